"""Deskhand as an MCP server, by the official SDK: over HTTP, and over standard streams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any
from urllib.parse import unquote

import anyio
import mcp_types as types
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.types import ASGIApp, Message, Scope

from ..types.errors import ToolError
from .own_tools import (
    CONVERSATIONS,
    INSTRUCTIONS,
    JOBS,
    MEMORY,
    TOOLS,
    ApiRequest,
    make_request,
    make_resource_request,
)

MAX_ANSWER_BYTES = 8 << 20
_PASSED_HEADERS = (b"authorization", b"cookie", b"host", b"origin", b"x-deskhand")


class ApiAnswer(msgspec.Struct, frozen=True):
    """What our HTTP API answered."""

    status: int
    body: bytes


Context = ServerRequestContext[Any, Any]
Ask = Callable[[Context, ApiRequest], Awaitable[ApiAnswer]]
"""Sends a request to our HTTP API, for whoever makes this call."""


def make_server(ask: Ask) -> Server[Any]:
    """The server; what it does, it asks of our HTTP API."""

    async def list_tools(
        context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        tools = [
            types.Tool(
                name=tool.name,
                description=tool.description,
                input_schema=tool.schema,
                annotations=types.ToolAnnotations(read_only_hint=tool.looks),
            )
            for tool in TOOLS.values()
        ]
        return types.ListToolsResult(tools=tools)

    async def call_tool(
        context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            return _make_result(f"there is no tool {params.name!r}", failed=True)
        try:
            answer = await ask(context, make_request(tool, params.arguments or {}))
        except ToolError as error:
            return _make_result(str(error), failed=True)
        text = answer.body.decode(errors="replace")
        return _make_result(text, failed=answer.status >= 400)

    async def list_resources(
        context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        answer = await ask(context, ApiRequest("GET", "/api/sessions?limit=100&brief=true"))
        found = [types.Resource(uri=MEMORY, name="memory", mime_type="text/markdown")]
        for each in _sessions(answer):
            uri = f"{CONVERSATIONS}{each['name']}"
            found.append(
                types.Resource(
                    uri=uri,
                    name=each["name"],
                    title=each.get("title") or None,
                    mime_type="application/json",
                )
            )
        jobs = await ask(context, make_request(TOOLS["list_jobs"], {}))
        found += [
            types.Resource(uri=f"{JOBS}{name}", name=name, mime_type="application/json")
            for name in _job_names(jobs)
        ]
        return types.ListResourcesResult(resources=found)

    async def read_resource(
        context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        request = make_resource_request(uri)
        if request is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no resource {uri[:200]!r}")
        answer = await ask(context, request)
        text = answer.body.decode(errors="replace")
        if answer.status >= 400:
            raise MCPError(types.INVALID_PARAMS, text)
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, text=text)])

    return Server(
        "deskhand",
        version=version("deskhand"),
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
    )


def _make_result(text: str, *, failed: bool) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], is_error=failed
    )


def _job_names(answer: ApiAnswer) -> list[str]:
    """Those of people; chores are our own."""
    if answer.status >= 400:
        return []
    found: list[dict[str, Any]] = msgspec.json.decode(answer.body)
    return [str(each["name"]) for each in found if each.get("kind") != "chore"]


def _sessions(answer: ApiAnswer) -> list[dict[str, Any]]:
    if answer.status >= 400:
        return []
    found: list[dict[str, Any]] = msgspec.json.decode(answer.body).get("sessions", [])
    return found


class HttpServer:
    """An ASGI application. `app` is our whole one, which is asked with the credential of each
    request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._manager = StreamableHTTPSessionManager(make_server(self._ask), stateless=True)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[ASGIApp]:
        """Requests are served in here."""
        async with self._manager.run():
            yield self._manager.handle_request

    async def _ask(self, context: Context, request: ApiRequest) -> ApiAnswer:
        if context.request is None:
            raise AssertionError("it is served over HTTP alone")
        return await ask_app(self._app, context.request.scope, request)


async def ask_app(app: ASGIApp, outer: Scope, request: ApiRequest) -> ApiAnswer:
    """Ask an ASGI application as whoever made the request `outer`."""
    path, _, query = request.path.partition("?")
    headers = [(name, value) for name, value in outer["headers"] if name in _PASSED_HEADERS]
    body = request.body or b""
    if request.body is not None:
        headers += [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ]
    scope: Scope = {
        "type": "http",
        "asgi": outer.get("asgi", {"version": "3.0"}),
        "http_version": "1.1",
        "method": request.method,
        "scheme": outer.get("scheme", "http"),
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": headers,
        "client": outer.get("client"),
        "server": outer.get("server"),
    }
    status = 500
    answered = bytearray()
    is_sent = False

    async def receive() -> Message:
        nonlocal is_sent
        if is_sent:
            await anyio.sleep_forever()
        is_sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        elif len(answered) < MAX_ANSWER_BYTES:
            answered.extend(message.get("body", b""))

    await app(scope, receive, send)
    return ApiAnswer(status, bytes(answered))


async def serve_streams(ask: Ask) -> None:
    """Serve over the standard streams of this process until they end."""
    server = make_server(ask)
    async with stdio_server() as (told, asked):
        await server.run(told, asked, server.create_initialization_options())
