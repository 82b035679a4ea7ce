"""Puts the table of endpoints, the sockets and the page behind the guard: one ASGI application."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from ..types.errors import DeskhandError
from ..types.people import Grant
from .errors import OPENAI_PREFIX, HttpProblem, error_response, to_http_problem
from .guard import (
    ANONYMOUS,
    FORGERY_HEADER,
    SAFE_METHODS,
    SIGNED_PREFIX,
    Credential,
    GuardLimits,
    Guesses,
    check_host,
    check_origin,
    check_scope,
    client_of,
    credential_of,
)
from .ports import Web
from .redacted import Redacted
from .routing import Call, Endpoint, parse_query, read_body, to_response
from .sockets import Socket

log = logging.getLogger(__name__)

MAX_CONCURRENT = 2000
"""Requests, streams and WebSockets that are served at one time."""
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; "
    "manifest-src 'self'; worker-src 'self'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types deskhand dompurify"
)
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), payment=(), usb=()",
}


class Guarded:
    """Nothing gets to a route that is of the wrong host or origin, or that brings a credential
    which does not hold."""

    def __init__(self, app: ASGIApp, web: Web, limits: GuardLimits) -> None:
        self._app = app
        self._web = web
        self._limits = limits
        self._guesses = Guesses(web.people, web.clock)
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        request_id = self._web.ids.new("req")
        scope.setdefault("state", {}).update(
            request_id=request_id, grant=None, credential=None, guesses=self._guesses
        )

        async def with_headers(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = request_id
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("content-security-policy", CSP)
                headers.setdefault("cache-control", "no-store")
            await leaving(message)

        leaving = Redacted(send, self._web.redact)

        self._open += 1
        try:
            try:
                await self._check(scope)
            except DeskhandError as error:
                raise to_http_problem(error) from error
            await self._app(scope, receive, with_headers)
        except HttpProblem as problem:
            await error_response(problem, request_id, scope["path"])(scope, receive, with_headers)
        finally:
            self._open -= 1

    async def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        state = scope["state"]
        if self._open > MAX_CONCURRENT:
            raise HttpProblem(
                503,
                "busy",
                "Too much is going on here. Try again in a moment.",
                {"retry-after": "2"},
            )
        check_host(headers, self._limits.hosts)
        credential = credential_of(headers)
        changes = scope["type"] == "websocket" or scope["method"] not in SAFE_METHODS
        if changes:
            signed = scope["type"] == "http" and scope["path"].startswith(SIGNED_PREFIX)
            check_origin(headers, self._limits.origins, credential, signed=signed)
        if credential is None:
            return
        client = client_of(scope["client"][0] if scope.get("client") else "")
        state["grant"] = await self._guesses.authenticate(credential, client)
        state["credential"] = credential
        if (
            credential.browser
            and scope["type"] == "http"
            and changes
            and FORGERY_HEADER not in headers
        ):
            raise HttpProblem(
                403, "forged", f"A page must send the header `{FORGERY_HEADER}: 1` with this."
            )


def _make_route(web: Web, endpoint: Endpoint) -> Route:
    async def serve(request: Request) -> Response:
        try:
            call = await _make_call(web, endpoint, request)
            if request.method == "HEAD" and endpoint.media == "text/event-stream":
                return Response(
                    media_type=endpoint.media
                )  # of a stream there is no end to wait for
            return to_response(endpoint, await endpoint.handler(call))
        except HttpProblem as problem:
            if problem.faults and endpoint.invalid is not None:
                problem.status = endpoint.invalid
            return error_response(problem, request.state.request_id, request.url.path)
        except DeskhandError as error:
            return error_response(
                to_http_problem(error), request.state.request_id, request.url.path
            )

    return Route(endpoint.path, serve, methods=[endpoint.method], name=endpoint.name)


async def _make_call(web: Web, endpoint: Endpoint, request: Request) -> Call:
    grant: Grant | None = request.state.grant
    if endpoint.needs != "public":
        try:
            check_scope(grant, endpoint.needs)
        except HttpProblem:
            if grant is not None:
                await web.people.add_audit_note(
                    grant.principal, "refused", f"{request.method} {request.url.path}"[:200]
                )
            raise
    query = parse_query(request, endpoint.query)
    body = None
    if endpoint.body is not None and not endpoint.raw:
        body = await read_body(request, endpoint.body, endpoint.limit, optional=endpoint.optional)
    return Call(web, request, grant, grant.principal if grant else ANONYMOUS, query, body)


def _make_socket_route(web: Web, socket: Socket) -> WebSocketRoute:
    async def serve(websocket: WebSocket) -> None:
        grant: Grant | None = websocket.state.grant
        credential: Credential | None = websocket.state.credential
        try:
            check_scope(grant, socket.needs)
        except HttpProblem as problem:
            await websocket.send_denial_response(
                error_response(problem, websocket.state.request_id)
            )
            return
        if grant is None or credential is None:
            raise AssertionError("checked above")
        await socket.serve(web, websocket, grant)

    return WebSocketRoute(socket.path, serve, name=f"WS {socket.path}")


async def _http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 405 and _is_unknown(request):
        status = 404
    words = {404: "There is nothing at this address.", 405: "This address takes other methods."}
    codes = {404: "not_found", 405: "method_not_allowed"}
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    message = words.get(status, "This request cannot be understood.")
    problem = HttpProblem(status, codes.get(status, "bad_request"), message, headers)
    return error_response(problem, _request_id(request), request.url.path)


def _is_unknown(request: Request) -> bool:
    """Whether nothing of OpenAI's API is at this address: all that matched is the page, which has
    any path."""
    return request.url.path.startswith(OPENAI_PREFIX) and "path" in request.path_params


async def _server_error(request: Request, error: Exception) -> Response:
    log.exception(
        "%s %s broke (request %s)",
        request.method,
        request.url.path,
        _request_id(request),
        exc_info=error,
    )
    said = "Something broke on our side; the log has it under this request id: deskhand logs."
    return error_response(HttpProblem(500, "failed", said), _request_id(request), request.url.path)


def _request_id(request: Request) -> str:
    return str(getattr(request.state, "request_id", ""))


def build_app(
    web: Web,
    limits: GuardLimits,
    endpoints: Sequence[Endpoint],
    sockets: Sequence[Socket],
    more: Sequence[BaseRoute] = (),
) -> ASGIApp:
    """The application. `more` are routes of the page, which bring nobody's data."""
    routes: list[BaseRoute] = [_make_route(web, endpoint) for endpoint in endpoints]
    routes += [_make_socket_route(web, socket) for socket in sockets]
    handlers: dict[Any, Any] = {HTTPException: _http_error, Exception: _server_error}
    inner = Starlette(routes=[*routes, *more], exception_handlers=handlers)
    inner.router.redirect_slashes = False
    return Guarded(inner, web, limits)


def encode_json(value: object) -> bytes:
    return msgspec.json.encode(value)
