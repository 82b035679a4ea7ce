"""The tools of MCP servers as tools of agents, and those that look after the servers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from ..config.config import Settings
from ..config.mcp_servers import McpServerConfig
from ..policy.profiles import is_name_matched
from ..tools.base import Context, Done, Outcome, Spec, Tool, call_label, label_errors, make_result
from ..tools.define import decode_object, tool
from ..tools.output import make_bounded_result
from ..types.effects import Effect
from ..types.errors import ToolError
from ..types.labels import LOCAL, Label, join_labels
from .definitions import KnownTool, ToolDefinition, count_states, make_tool_name
from .servers import McpServers, ToolRequest

GRACE_S = 10.0
McpAction = Literal["list", "connect", "disconnect"]
McpReading = Literal["resources", "read_resource", "prompts", "get_prompt"]


class McpTool:
    """One tool of a server, as it was accepted."""

    def __init__(
        self, servers: McpServers, server: str, config: McpServerConfig, tool: ToolDefinition
    ) -> None:
        self._servers = servers
        self._server = server
        self._config = config
        self._tool = tool
        looks = is_name_matched(tool.name, config.read_only)
        self.spec = Spec(
            name=make_tool_name(server, tool.name),
            description=tool.description,
            parameters=tool.parameters or {"type": "object", "properties": {}},
            effect=effect_of(config, looks=looks),
            # A call in which somebody is asked holds up what runs beside it.
            replay="again" if looks and not config.asks else "never",
            reads=label_of(server, config),
            timeout_s=config.timeout_s + GRACE_S,
            group=make_tool_name(server, ""),
        )

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        wanted = ToolRequest(self._tool.name, decode_object(arguments), self._config.timeout_s)
        label = join_labels((self.spec.reads, call_label(context)))
        if self._config.asks:
            return await self._run_asking(wanted, context, label)
        with label_errors(label):
            async with self._servers.use(self._server) as link:
                self._servers.check_accepted(self._server, self._tool)
                return await link.call_tool(wanted, context, label)

    async def _run_asking(self, wanted: ToolRequest, context: Context, label: Label) -> Outcome:
        """Begin the call, or go on with it where a person has answered."""
        with label_errors(label):
            call = self._servers.find_call(context.key)
            if context.answer is not None:
                if call is None:
                    raise ToolError(
                        f"the MCP server {self._server} was left while a person was asked; it may "
                        "or may not have happened"
                    )
                call.reply(context.answer.text)
            elif call is None:
                call = self._servers.begin_call(self._server, self._tool, wanted, context, label)
            question = await call.next(context)
            if question is not None:
                return question
            self._servers.forget_call(context.key)
            return call.result


def effect_of(config: McpServerConfig, *, looks: bool) -> Effect:
    """What a call may do to the world, by what the server can reach; what it says of itself counts
    for nothing. `looks`: the owner says that this tool only reads."""
    reaches_out = bool(config.url or config.hosts)
    if looks:
        return "fetch" if reaches_out else "none"
    if any(each.endswith(":rw") for each in config.folders):
        return "host"
    return "network" if reaches_out else "local_write"


def label_of(server: str, config: McpServerConfig) -> Label:
    """Whose word its answers are."""
    return LOCAL if config.trusted else Label("untrusted", None, f"mcp:{server}")


def offered_tools(
    known: Iterable[KnownTool], settings: Settings
) -> list[tuple[str, McpServerConfig, ToolDefinition]]:
    """The tools that agents may be offered: as they were accepted, of servers that are set up. One
    that has changed rests."""
    servers = settings.config.mcp
    found = []
    for each in known:
        config = servers.get(each.server)
        if config is None or not config.enabled or each.state != "accepted":
            continue
        if each.accepted is not None and is_name_matched(each.name, config.tools):
            found.append((each.server, config, each.accepted))
    return found


def make_mcp_tools(servers: McpServers, settings: Settings) -> tuple[Tool, ...]:
    """All of them, and `mcp` and `mcp_read`; none where no server is set up."""
    known = servers.tools_for_agents()
    if not settings.config.mcp:
        return ()
    found = offered_tools(known, settings)
    tools: list[Tool] = [McpTool(servers, *each) for each in found]
    return (*tools, *_make_mcp_tools(servers))


def _make_mcp_tools(servers: McpServers) -> tuple[Tool, ...]:
    @tool(hint="look after MCP servers")
    async def mcp(context: Context, action: McpAction = "list", server_name: str = "") -> Done:
        """List, connect or disconnect the MCP servers that people have set up."""
        if action == "list":
            return make_result(_render_servers(servers), _label_of_list(servers, context))
        if not server_name:
            raise ToolError("server_name is missing: mcp with action list says which there are")
        if action == "disconnect":
            was = "was connected" if servers.stop(server_name) else "was not connected"
            return make_result(f"{server_name} {was}, and is not now", call_label(context))
        with label_errors(label_of(server_name, servers.find_config(server_name))):
            async with servers.use(server_name):
                return make_result(f"{server_name} is connected", call_label(context))

    @tool(effect="network", hint="resources and prompts of MCP servers")
    async def mcp_read(
        server_name: str,
        action: McpReading,
        context: Context,
        name: str = "",
        arguments: dict[str, str] | None = None,
    ) -> Done:
        """List or read the resources and prompts of an MCP server.

        name: the address of the resource, or the name of the prompt
        arguments: those of the prompt
        """
        config = servers.find_config(server_name)
        label = join_labels((label_of(server_name, config), call_label(context)))
        with label_errors(label):
            async with servers.use(server_name) as link:
                match action:
                    case "resources":
                        lines = await link.list_resources()
                    case "prompts":
                        lines = await link.list_prompts()
                    case "read_resource":
                        return await link.read_resource(name, context, label)
                    case "get_prompt":
                        return await link.get_prompt(name, arguments or {}, context, label)
        return await make_bounded_result(
            "\n".join(lines) or f"{server_name} has none", context, label
        )

    return mcp, mcp_read


def _label_of_list(servers: McpServers, context: Context) -> Label:
    """Why a server has failed is said in its own words."""
    failed = [
        label_of(name, state.config) for name, state in servers.status().items() if state.problem
    ]
    return join_labels((call_label(context), *failed))


def _render_servers(servers: McpServers) -> str:
    """A line for each: its state, and how many tools it has."""
    states = servers.status()
    lines = []
    for name in servers.names():
        counts = count_states(each for each in servers.known_tools() if each.server == name)
        state = states.get(name)
        is_up = state is not None and state.link is not None
        why = state.problem if state is not None and not is_up else ""
        status = "connected" if is_up else (f"failed: {why}" if why else "connected when needed")
        resting = counts["changed"] + counts["new"]
        rest = f", {resting} more rest until a person accepts them" if resting else ""
        lines.append(f"{name}: {status}; {counts['accepted']} tools{rest}")
    return "\n".join(lines)
