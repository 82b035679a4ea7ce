"""What is answered when something is wrong: a status, and one shape of JSON."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from starlette.responses import Response

from ..types.errors import (
    BlobMissing,
    ConfigError,
    DeskhandError,
    ModelUnknown,
    NoSuchJob,
    Refused,
    StoreUnavailable,
    ToolError,
)


class Problem(msgspec.Struct, frozen=True):
    """`code` is for programs and never changes; `message` is a sentence with the next step. `request_id` stands in the
    log too."""

    code: str
    message: str
    type: str
    request_id: str


class ErrorBody(msgspec.Struct, frozen=True):
    """Every answer that is no success has this body."""

    error: Problem


class HttpProblem(Exception):
    """Ends a request with this status. `headers` go along."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.headers = status, code, message, dict(headers or {})


def not_found(what: str) -> HttpProblem:
    """It is not there, or not theirs to know of: nobody learns which."""
    return HttpProblem(404, "not_found", f"There is no {what} here.")


def bad(message: str) -> HttpProblem:
    return HttpProblem(400, "bad_request", message)


def problem_of(error: DeskhandError) -> HttpProblem:
    """Which status an error of ours has."""
    said = sentence(str(error))
    match error:
        case NoSuchJob():
            return not_found("such job")
        case Refused():
            return HttpProblem(403, "refused", said)
        case StoreUnavailable():
            return HttpProblem(503, "store_unavailable", said, {"retry-after": "2"})
        case ConfigError():
            return HttpProblem(400, "bad_request", said)
        case BlobMissing():
            return not_found("such file")
        case ToolError() | ModelUnknown():
            return HttpProblem(400, "bad_request", said)
        case _:
            return HttpProblem(500, "failed", said)


def sentence(text: str) -> str:
    """`text` with a capital and a full stop."""
    text = text.strip() or "that did not work"
    return text[0].upper() + text[1:] + ("" if text[-1] in ".!?" else ".")


def error_response(problem: HttpProblem, request_id: str) -> Response:
    kind = "server_error" if problem.status >= 500 else "invalid_request_error"
    body = ErrorBody(Problem(problem.code, problem.message, kind, request_id))
    return Response(msgspec.json.encode(body), problem.status, problem.headers, "application/json")
