"""What is answered when something is wrong: a status, and one shape of JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from ..types.errors import (
    BlobMissing,
    ConfigError,
    DeskhandError,
    ModelUnknown,
    NoSuchFact,
    NoSuchJob,
    PushFailed,
    Refused,
    StoreUnavailable,
    ToolError,
)
from ..types.marked_texts import mark_text


class Problem(msgspec.Struct, frozen=True):
    """`code` is for programs and never changes; `message` is a sentence with the next step.
    `request_id` stands in the log too."""

    code: str
    message: str
    type: str
    request_id: str


class FieldError(msgspec.Struct, frozen=True):
    """What is wrong with one field of a request, in FastAPI's words: `loc` leads to it from `body`
    or `query`, `input` is what was sent there."""

    type: str
    loc: tuple[str | int, ...]
    msg: str
    input: Any = None
    ctx: dict[str, str] | msgspec.UnsetType = msgspec.UNSET


class ErrorBody(msgspec.Struct, frozen=True):
    """Every answer that is no success has this body. `detail` is for clients that were written for
    a FastAPI server: the message, or the fields that do not fit."""

    error: Problem
    detail: str | tuple[FieldError, ...]


class OpenAIProblem(Problem, frozen=True):
    """The same as OpenAI's clients read it: `param` is the field that is meant."""

    param: str | None = None


class OpenAIErrorBody(msgspec.Struct, frozen=True):
    """Every answer under `/v1/` that is no success has this body."""

    error: OpenAIProblem


class HttpProblem(Exception):
    """Ends a request with this status. `headers` go along; `param` is the field of the request that
    is wrong, `faults` say what is wrong with each that does not fit."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        headers: Mapping[str, str] | None = None,
        *,
        param: str = "",
        faults: tuple[FieldError, ...] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})
        self.param = param
        self.faults = faults


def not_found(what: str) -> HttpProblem:
    """It is not there, or not theirs to know of: nobody learns which."""
    return HttpProblem(
        404, "not_found", mark_text("There is no {what_text} here.").format(what_text=what)
    )


def bad_request(message: str, *faults: FieldError, param: str = "") -> HttpProblem:
    return HttpProblem(400, "bad_request", message, param=param, faults=faults)


def to_http_problem(error: DeskhandError) -> HttpProblem:
    """Which status an error of ours has."""
    said = to_sentence(str(error))
    match error:
        case NoSuchJob():
            return not_found(mark_text("such job"))
        case NoSuchFact():
            return not_found(mark_text("such memory"))
        case Refused():
            return HttpProblem(403, "refused", said)
        case StoreUnavailable():
            return HttpProblem(503, "store_unavailable", said, {"retry-after": "2"})
        case ConfigError():
            return HttpProblem(400, "bad_request", said)
        case BlobMissing():
            return not_found(mark_text("such file"))
        case PushFailed():
            return HttpProblem(502, "push_failed", said)
        case ToolError() | ModelUnknown():
            return HttpProblem(400, "bad_request", said)
        case _:
            return HttpProblem(500, "failed", said)


def to_sentence(text: str) -> str:
    """`text` with a capital and a full stop."""
    text = text.strip() or "that did not work"
    return text[0].upper() + text[1:] + ("" if text[-1] in ".!?" else ".")


OPENAI_PREFIX = "/v1/"


def error_response(problem: HttpProblem, request_id: str, path: str = "") -> Response:
    """The answer at this path, in the shape of the protocol that is spoken there."""
    kind = "server_error" if problem.status >= 500 else "invalid_request_error"
    said = (problem.code, problem.message, kind, request_id)
    body: ErrorBody | OpenAIErrorBody = ErrorBody(Problem(*said), problem.faults or problem.message)
    if path.startswith(OPENAI_PREFIX):
        body = OpenAIErrorBody(OpenAIProblem(*said, problem.param or None))
    return Response(msgspec.json.encode(body), problem.status, problem.headers, "application/json")
