"""The ASGI application: endpoints, WebSockets and the page, behind the guard."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from ..types.errors import DeskhandError
from ..types.marked_texts import mark_text
from ..types.people import Grant
from ..types.people import Scope as AccessScope
from .errors import OPENAI_PREFIX, HttpProblem, error_response, to_http_problem
from .guard import (
    ANONYMOUS,
    DEVICE_PATHS,
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
    id_token_of,
)
from .protocols import Web
from .redacted import Redacted
from .routing import Call, Endpoint, parse_query, read_body, to_response
from .sockets import Socket

log = logging.getLogger(__name__)

MAX_CONCURRENT = 2000
"""How many requests, streams and WebSockets are served at one time."""
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "media-src blob:; "
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
    "permissions-policy": "microphone=(self), camera=(), geolocation=(), payment=(), usb=()",
}


NOT_FOUND = "There is nothing at this address."
METHOD_NOT_ALLOWED = "This address does not support this method."
BAD_REQUEST = "The request is not valid."
FAILED = "Deskhand failed to answer. Run `deskhand logs` and look for this request id."


class Guarded:
    """Lets a request through to the routes only if its host and origin are right and its
    credential, if it has one, is valid. Adds the security headers to every response."""

    def __init__(self, app: ASGIApp, web: Web, limits: GuardLimits) -> None:
        self._app = app
        self._web = web
        self._limits = limits
        self._guesses = Guesses(web.people, web.clock, web.sign_in)
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return

        request_id = self._web.ids.new("req")
        scope.setdefault("state", {}).update(
            request_id=request_id, grant=None, credential=None, guesses=self._guesses
        )

        redacted = Redacted(send, self._web.redact)

        async def send_with_headers(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = request_id
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("content-security-policy", CSP)
                headers.setdefault("cache-control", "no-store")
            await redacted(message)

        self._open += 1
        try:
            try:
                await self._check(scope)
            except DeskhandError as error:
                raise to_http_problem(error) from error
            await self._app(scope, receive, send_with_headers)
        except HttpProblem as problem:
            response = error_response(problem, request_id, scope["path"])
            await response(scope, receive, send_with_headers)
        finally:
            self._open -= 1

    async def _check(self, scope: Scope) -> None:
        """Authenticate the request. Sets `grant` and `credential` in the state of the scope; both
        stay None without a credential. Raises HttpProblem or DeskhandError."""
        headers = Headers(scope=scope)
        if self._open > MAX_CONCURRENT:
            raise HttpProblem(
                503,
                "busy",
                mark_text("Too many requests are being served. Try again in a moment."),
                {"retry-after": "2"},
            )

        check_host(headers, self._limits.hosts)
        credential = credential_of(headers)
        is_http = scope["type"] == "http"
        if credential is None and not is_http and self._web.sign_in is not None:
            credential = id_token_of(scope["query_string"])
        may_change = not is_http or scope["method"] not in SAFE_METHODS
        if may_change:
            path = scope["path"]
            signed = is_http and (path.startswith(SIGNED_PREFIX) or path in DEVICE_PATHS)
            check_origin(headers, self._limits.origins, credential, signed=signed)
        if credential is None:
            return

        client = client_of(scope["client"][0] if scope.get("client") else "")
        scope["state"]["grant"] = await self._guesses.authenticate(credential, client)
        scope["state"]["credential"] = credential
        if credential.browser and is_http and may_change and FORGERY_HEADER not in headers:
            raise HttpProblem(
                403, "forged", f"A page must send the header `{FORGERY_HEADER}: 1` with this."
            )


def _make_route(web: Web, endpoint: Endpoint) -> Route:
    async def serve(request: Request) -> Response:
        try:
            call = await _make_call(web, endpoint, request)
            if request.method == "HEAD" and endpoint.media == "text/event-stream":
                return Response(media_type=endpoint.media)  # a stream would never end
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
    """What the handler gets: the query and the body, parsed and checked. Raises HttpProblem."""
    grant: Grant | None = request.state.grant
    if endpoint.needs != "public":
        await _require_scope(web, request, grant, endpoint.needs)

    query = parse_query(request, endpoint.query)
    body = None
    if endpoint.body is not None and not endpoint.raw:
        body = await read_body(request, endpoint.body, endpoint.limit, optional=endpoint.optional)
    principal = grant.principal if grant else ANONYMOUS
    return Call(web, request, grant=grant, principal=principal, query=query, body=body)


async def _require_scope(
    web: Web, request: Request, grant: Grant | None, needs: AccessScope
) -> None:
    """Raises HttpProblem if the credential may not do this, and writes that to the audit trail."""
    try:
        check_scope(grant, needs)
    except HttpProblem:
        if grant is not None:
            subject = f"{request.method} {request.url.path}"[:200]
            await web.people.add_audit_note(grant.principal, "refused", subject)
        raise


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
            raise AssertionError("check_scope has refused requests without a credential")
        await socket.serve(web, websocket, grant)

    return WebSocketRoute(socket.path, serve, name=f"WS {socket.path}")


async def _http_error(request: Request, error: Exception) -> Response:
    """The answer to what no route has handled."""
    status = 500
    headers: dict[str, str] = {}
    if isinstance(error, HTTPException):
        status = error.status_code
        headers = dict(error.headers or {})
    if status == 405 and _is_unknown(request):
        status = 404

    match status:
        case 404:
            problem = HttpProblem(status, "not_found", NOT_FOUND, headers)
        case 405:
            problem = HttpProblem(status, "method_not_allowed", METHOD_NOT_ALLOWED, headers)
        case _:
            problem = HttpProblem(status, "bad_request", BAD_REQUEST, headers)
    return error_response(problem, _request_id(request), request.url.path)


def _is_unknown(request: Request) -> bool:
    """Whether this is a path under OpenAI's API that no endpoint has: only the page's route
    matched, which takes any path."""
    return request.url.path.startswith(OPENAI_PREFIX) and "path" in request.path_params


async def _server_error(request: Request, error: Exception) -> Response:
    """The answer to an exception that no handler expected, which is a bug."""
    request_id = _request_id(request)
    log.exception(
        "%s %s failed (request %s)", request.method, request.url.path, request_id, exc_info=error
    )
    problem = HttpProblem(500, "failed", FAILED)
    return error_response(problem, request_id, request.url.path)


def _request_id(request: Request) -> str:
    return str(getattr(request.state, "request_id", ""))


def build_app(
    web: Web,
    limits: GuardLimits,
    endpoints: Sequence[Endpoint],
    sockets: Sequence[Socket],
    more: Sequence[BaseRoute] = (),
) -> ASGIApp:
    """The whole application. `more` are the routes of the page, which serve static files only."""
    routes: list[BaseRoute] = [_make_route(web, endpoint) for endpoint in endpoints]
    routes += [_make_socket_route(web, socket) for socket in sockets]
    handlers: dict[Any, Any] = {HTTPException: _http_error, Exception: _server_error}
    inner = Starlette(routes=[*routes, *more], exception_handlers=handlers)
    inner.router.redirect_slashes = False
    return Guarded(inner, web, limits)
