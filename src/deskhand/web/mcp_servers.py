"""MCP servers: what they bring, whether they answer, and an owner's yes to tools that changed."""

from __future__ import annotations

from .mcp_views import AcceptTools, McpServerView
from .routing import Call, Endpoint


async def list_servers(call: Call) -> list[McpServerView]:
    return await call.web.mcp.list_servers(call.principal)


async def try_server(call: Call) -> McpServerView:
    return await call.web.mcp.try_server(call.principal, call.path("name"))


async def accept_tools(call: Call) -> McpServerView:
    seen = {each.name: each.digest for each in call.body.tools}
    return await call.web.mcp.accept_tools(call.principal, call.path("name"), seen)


_T = "settings"
ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/mcp-servers",
        "admin",
        list_servers,
        "List MCP servers with their tools",
        returns=list[McpServerView],
        tag=_T,
    ),
    Endpoint(
        "POST",
        "/api/mcp-servers/{name}/try",
        "admin",
        try_server,
        "Connect a server, and look at its tools anew",
        returns=McpServerView,
        tag=_T,
    ),
    Endpoint(
        "POST",
        "/api/mcp-servers/{name}/accept",
        "admin",
        accept_tools,
        "Accept tools of a server as they were shown",
        body=AcceptTools,
        returns=McpServerView,
        tag=_T,
    ),
)
