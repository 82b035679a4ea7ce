"""The table of everything that can be asked over HTTP: path, who may, what goes in and what comes
out."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, Literal, TypeVar

import anyio
import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from ..types.identity import Principal
from ..types.marked_texts import mark_text
from ..types.people import Grant, Scope
from .errors import FieldError, HttpProblem, bad_request
from .faults import json_fault, parse_fault
from .protocols import Web

Needs = Scope | Literal["public"]
"""What a credential must be allowed. `public` is for nothing that tells or changes anything of
anyone."""
BODY_BYTES = 1_000_000
MAX_DEPTH = 32
"""So many brackets deep may JSON be."""
BODY_S = 30.0
_PIECES = re.compile(rb'"[^"]*"?|[^"]+')
_AS_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b'[]{}"'))
_PLACE = re.compile(r"at `\$\.([^`]+)`")
_MISSING = re.compile(r"required field `([^`]+)`")
T = TypeVar("T", bound=msgspec.Struct)


class Nothing(msgspec.Struct, frozen=True):
    """No parameters."""


class Call(msgspec.Struct, frozen=True):
    """One request as a handler sees it: who asks, and what, already checked against the table."""

    web: Web
    request: Request
    grant: Grant | None
    principal: Principal
    query: Any
    body: Any

    def path(self, name: str) -> str:
        return str(self.request.path_params[name])

    @property
    def origin(self) -> str:
        """Where the browser thinks we are: a proxy in front may have TLS where we have none."""
        headers = self.request.headers
        host = self.request.headers.get("host", "")
        origin = headers.get("origin", "").lower()  # one of ours, or it would not have come so far
        return (
            origin
            if origin.endswith(f"://{host.lower()}")
            else f"{self.request.scope['scheme']}://{host}"
        )

    @property
    def public_origin(self) -> str:
        """The same for programs, which send no origin: names of the settings are those of a proxy
        with TLS."""
        host = self.request.headers.get("host", "").lower()
        return f"https://{host}" if host in self.web.proxied_hosts else self.origin


Handler = Callable[[Call], Awaitable[Any]]


class Endpoint(msgspec.Struct, frozen=True):
    """One line of the table. `body` and `returns` are types whose schema is published; `media` is
    what comes out where that is not JSON. `raw`: the handler reads the body by itself, which is of
    the media type `takes`. `optional`: without a body, all of it is default. `limit` is how many
    bytes a body may have, `invalid` the status for a field that does not fit, where that is not
    400."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    needs: Needs
    handler: Handler
    summary: str
    body: Any = None
    query: type[msgspec.Struct] = Nothing
    returns: Any = None
    status: int = 200
    media: str = "application/json"
    raw: bool = False
    takes: str = "*/*"
    optional: bool = False
    limit: int = BODY_BYTES
    invalid: int | None = None
    tag: str = "general"

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(re.findall(r"\{(\w+)(?::\w+)?\}", self.path))


def parse_query(request: Request, type_: type[T]) -> T:
    """The parameters of the address as a struct. Raises HttpProblem that names what is wrong."""
    given: Mapping[str, str] = dict(request.query_params)
    try:
        return msgspec.convert(given, type_, strict=False)
    except msgspec.ValidationError as error:
        raise bad_request(
            f"A parameter of the address is not right: {error}.", parse_fault(error, "query", given)
        ) from error


async def read_body(
    request: Request, type_: Any, limit: int = BODY_BYTES, *, optional: bool = False
) -> Any:
    """The JSON body. Raises HttpProblem for one that is too large, is no JSON, or does not fit."""
    data = await read_limited(request, limit)
    if not data.strip() and optional:
        data = b"{}"
    if not (optional and data == b"{}"):
        check_is_json(request)
    check_depth(data)
    try:
        return msgspec.json.decode(data, type=type_)
    except msgspec.ValidationError as error:
        fault = parse_fault(error, "body", _decode_json(data))
        raise bad_request(
            f"The body is not right: {error}.", fault, param=_field_of(str(error))
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"The body is no JSON: {error}.", json_fault(error)) from error


def check_is_json(request: Request) -> None:
    """Raises HttpProblem where the body is said to be something else."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        said = "Send JSON, with the header `Content-Type: application/json`."
        raise HttpProblem(415, "not_json", said, faults=(FieldError("missing", ("body",), said),))


def _decode_json(data: bytes) -> Any:
    """The JSON of a body that does not fit; None where what comes behind that place is no JSON."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _field_of(problem: str) -> str:
    """The field that msgspec complains of; '' where it names none."""
    match = _PLACE.search(problem) or _MISSING.search(problem)
    return match[1] if match else ""


def check_depth(data: bytes) -> None:
    """Raises HttpProblem for JSON that is too deep. Its time and memory grow with the size of
    `data`, whatever stands in it; what is no JSON may pass."""
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return
    brackets = _brackets(data)
    deep = b"[" * (MAX_DEPTH + 1) in brackets
    if not deep:
        for _ in range(MAX_DEPTH):
            inner = brackets.replace(b"[]", b"")
            if len(inner) == len(brackets):
                break
            brackets = inner
        deep = b"[]" in brackets or brackets.count(b"[") > MAX_DEPTH
    if deep:
        raise bad_request(
            f"The body is no JSON that is taken here: at most {MAX_DEPTH} brackets deep."
        )


def _brackets(data: bytes) -> bytes:
    """The brackets of JSON that stand in no string, all of them as square ones.

    A pattern that repeats a group remembers each round, which is a hundred bytes for each byte of a
    string.
    """
    unescaped = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Without an empty pair of quotes, what is in a string and what is not stays as it was.
    bare = unescaped.translate(_AS_BRACKETS, _NO_BRACKETS).replace(b'""', b"")
    outside = bytearray()
    for piece in _PIECES.finditer(bare):
        if not piece[0].startswith(b'"'):
            outside += piece[0]
    return bytes(outside)


async def read_limited(request: Request, limit: int, within_s: float = BODY_S) -> bytes:
    """The whole body. Raises HttpProblem as `limited` does."""
    return b"".join([chunk async for chunk in stream_limited(request, limit, within_s)])


async def stream_limited(request: Request, limit: int, within_s: float) -> AsyncGenerator[bytes]:
    """The body in pieces. Raises HttpProblem where it is too large or too slow, or whoever sent it
    has gone."""
    too_large = HttpProblem(
        413,
        "too_large",
        mark_text("That is too large: at most {most_number} bytes are taken here.").format(
            most_number=f"{limit:,}"
        ),
    )
    said = request.headers.get("content-length", "0")
    size = 0
    if said.isdecimal() and int(said[:18]) > limit:
        raise too_large
    until = anyio.current_time() + within_s
    stream = request.stream()
    try:
        while True:
            with anyio.fail_after(max(0.0, until - anyio.current_time())):
                chunk = await anext(stream, None)
            if chunk is None:
                return
            if (size := size + len(chunk)) > limit:
                raise too_large
            yield chunk
    except TimeoutError:
        raise HttpProblem(
            408,
            "too_slow",
            mark_text("The body did not come within {limit_number} seconds.").format(
                limit_number=f"{within_s:g}"
            ),
        ) from None
    except ClientDisconnect:
        raise bad_request("The body broke off.") from None


def to_response(endpoint: Endpoint, value: Any) -> Response:
    """What a handler returned, as it is sent."""
    if isinstance(value, Response):
        return value
    if value is None and endpoint.returns is None:
        return Response(status_code=204)
    return Response(msgspec.json.encode(value), endpoint.status, media_type="application/json")
