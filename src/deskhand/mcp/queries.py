"""Typed queries on the tools of MCP servers as they were accepted."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..store.base import Store
from ..store.queries import drop_grants_of_tool
from ..types.commit import Change
from .definitions import LOCKED, KnownTool, LockChange, ToolDefinition, make_tool_name

_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(ToolDefinition).decode


def known_tools(store: Store) -> list[KnownTool]:
    """Those of all servers, as they were last seen."""
    return [
        KnownTool(
            server, name, _decode(accepted) if accepted else None, _decode(found) if found else None
        )
        for server, name, accepted, found in store.query_sync("mcp_tools", ())
        if name != LOCKED
    ]


def locked_servers(store: Store) -> set[str]:
    """Those whose tools were accepted once, also where they had none."""
    return {server for server, *_ in store.query_sync("mcp_tools", ())}


def store_changes(server: str, changes: Iterable[LockChange], now: float) -> list[Change]:
    """Keep what has become of the tools of this server."""
    rows = []
    for change in changes:
        data = _encode(change.definition) if change.definition is not None else None
        name = "mcp_tool_accept" if change.accept else "mcp_tool_found"
        rows.append(Change(name, (server, change.name, data, now)))
        if data is None:
            rows.append(Change("mcp_tool_drop", (server, change.name)))
    return rows


def accept_tool(tool: KnownTool, now: float) -> list[Change]:
    """What the server says of this tool holds from now on. What was always allowed or refused of
    its calls was said of another tool, and counts no more."""
    row = (tool.server, tool.name, _encode(tool.found), now)
    offered = make_tool_name(tool.server, tool.name)
    return [Change("mcp_tool_accept", row), drop_grants_of_tool(offered)]


def forget_server(server: str) -> Change:
    """Nothing of this server is accepted any more."""
    return Change("mcp_tool_forget", (server,))
