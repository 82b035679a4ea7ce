"""MCP servers, for the page and the API."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

import msgspec

from ..assembly.host import Host
from ..config.mcp_servers import McpServerConfig
from ..mcp.definitions import KnownTool, ToolDefinition, describe_change
from ..mcp.queries import accept_tool, known_tools
from ..mcp.servers import McpServers
from ..policy.visible import escape_invisible
from ..types.errors import Refused
from ..types.identity import Principal
from ..users.queries import audit_note
from ..web.mcp_views import McpServerView, McpToolView
from ..web.protocols import McpBackend

DESCRIPTION_CHARS = 300
_encode = msgspec.json.Encoder(order="deterministic").encode


class McpApi:
    """Lists and tries them, and accepts what has changed. For owners; a server is added and removed
    on the machine itself, with `deskhand mcp`, since it can be any program."""

    def __init__(self, ground: Host, servers: McpServers) -> None:
        self._ground = ground
        self._servers = servers

    async def list_servers(self, principal: Principal) -> list[McpServerView]:
        """All servers of the configuration. Raises Refused."""
        _require_owner(principal)
        known = known_tools(self._ground.store)
        return [
            self._view(name, server, known)
            for name, server in self._ground.settings().config.mcp.items()
        ]

    async def try_server(self, principal: Principal, name: str) -> McpServerView:
        """Connect it, where it is not connected. Raises Refused, and ToolError where it cannot be
        used."""
        _require_owner(principal)
        async with self._servers.use(name):
            pass
        return self._find(name)

    async def accept_tools(
        self, principal: Principal, name: str, seen: Mapping[str, str]
    ) -> McpServerView:
        """What the server says of these tools holds from now on, where it is still what was seen:
        `seen` has a digest for each name. Raises Refused, ToolError."""
        _require_owner(principal)
        self._servers.find_config(name)
        waiting = {
            tool.name: tool
            for tool in known_tools(self._ground.store)
            if tool.server == name and tool.found is not None
        }
        if any(
            each not in waiting or _digest(waiting[each].found) != digest
            for each, digest in seen.items()
        ):
            raise Refused("the tools were changed after you opened them: review them again")
        now = self._ground.clock.now()
        rows = [row for each in seen for row in accept_tool(waiting[each], now)]
        who = principal.on_behalf_of or principal.id
        note = audit_note(now, who, "tools accepted", f"{name}: {', '.join(seen)}"[:200])
        await self._ground.store.change([*rows, note])
        return self._find(name)

    def _find(self, name: str) -> McpServerView:
        return self._view(name, self._servers.find_config(name), known_tools(self._ground.store))

    def _view(self, name: str, server: McpServerConfig, known: list[KnownTool]) -> McpServerView:
        state = self._servers.status().get(name)
        where = server.url or " ".join((server.command, *server.args))
        return McpServerView(
            name=name,
            kind="web" if server.url else "program",
            where=escape_invisible(self._ground.redact(where)),
            enabled=server.enabled,
            trusted=server.trusted,
            hosts=list(server.hosts),
            folders=list(server.folders),
            problem=state.problem if state is not None else "",
            tools=[_view_tool(tool) for tool in known if tool.server == name],
        )


def _view_tool(tool: KnownTool) -> McpToolView:
    definition = tool.accepted or tool.found
    said = " ".join(definition.description.split()) if definition is not None else ""
    is_waiting = tool.state != "accepted"
    return McpToolView(
        name=tool.name,
        description=escape_invisible(said[:DESCRIPTION_CHARS]),
        state=tool.state,
        change=describe_change(tool) if is_waiting else "",
        digest=_digest(tool.found) if is_waiting else "",
    )


def _digest(definition: ToolDefinition | None) -> str:
    return sha256(_encode(definition)).hexdigest()


def _require_owner(principal: Principal) -> None:
    if "owner" not in principal.roles:
        raise Refused("only an owner may see and accept what MCP servers bring")


_port: type[McpBackend] = McpApi
