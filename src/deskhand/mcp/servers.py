"""The MCP servers of this process: each is connected when it is first needed, left when it has had
nothing to do for a while, and begun again, with pauses, when it has failed."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import anyio
import anyio.to_thread
import msgspec

from ..assembly.host import Host
from ..config.mcp_servers import McpServerConfig
from ..net.client import Net
from ..sandbox.base import Sandbox
from ..store.queries import asking_sessions
from ..tools.base import Context, Done
from ..types.errors import DeskhandError, ToolError, first_of_group
from ..types.labels import Label
from ..types.marked_texts import mark_text
from . import queries
from .asking_call import AskingCall
from .definitions import KnownTool, ToolDefinition, compare_with_lock, count_states
from .sign_in_secrets import ServerLogin

log = logging.getLogger(__name__)

NO_EXTRA = "MCP servers need the extra `mcp`: pip install 'deskhand[mcp]'"
CONNECT_S = 120.0
"""So long a server may take to begin: the first time it may be downloaded."""
LONGEST_PAUSE_S = 300.0
PATIENCE_S = 5.0
"""So long a call waits for a server that is about to be begun again."""
IDLE_LOOK_S = 5.0
LOOK_S = 1.0
MAX_MISSED_LOOKS = 5
"""So often it is looked whether the question of a call still rests in the log. After so many looks
in which it does not, nobody will answer."""
NEW_TOOLS_S = 1.0
"""So long after a server has said that its tools are others, and no sooner, they are listed."""

OpenNetwork = Callable[[str, Sequence[str]], AbstractAsyncContextManager[str]]
"""Opens a way to these hosts for the server of this name; gives the path of a socket."""


class ToolRequest(msgspec.Struct, frozen=True):
    """A call of a tool of a server."""

    name: str
    arguments: dict[str, Any]
    timeout_s: float


class Reach(msgspec.Struct, frozen=True):
    """What a connection to the server `name` needs of the running Deskhand: `folder` is that of its
    program, `egress` the socket to its hosts, '' for none. `login` is where its sign-in is kept,
    and `page` how a person signs in: a `sign_in.SignInPage`, or None where nobody can."""

    name: str
    sandbox: Callable[[], Awaitable[Sandbox]]
    net: Net
    environment: Mapping[str, str]
    folder: Path
    egress: str = ""
    login: ServerLogin | None = None
    page: Any = None


class ServerLink(Protocol):
    """A connection to a server. All methods raise ToolError. Implemented by
    `connection.SdkLink`."""

    async def list_tools(self) -> tuple[list[ToolDefinition], list[str]]:
        """Its tools, and why some of them are left out."""

    async def call_tool(self, wanted: ToolRequest, context: Context, label: Label) -> Done: ...

    async def call_asking_tool(self, wanted: ToolRequest, call: AskingCall, label: Label) -> Done:
        """As `call_tool`, where the server may ask back."""

    async def answers(self) -> bool:
        """Whether it answers at all, within a few seconds."""

    async def list_resources(self) -> list[str]: ...

    async def read_resource(self, uri: str, context: Context, label: Label) -> Done: ...

    async def list_prompts(self) -> list[str]: ...

    async def get_prompt(
        self, name: str, arguments: dict[str, str], context: Context, label: Label
    ) -> Done: ...


class ServerState(msgspec.Struct):
    """What this process knows of one server. `problem` says why it could not be used last; it is
    not tried again before `again_at` (monotonic). `ended` says why the latest connection is over,
    where nobody here has left it. `is_changing` while it is made or given up."""

    name: str
    config: McpServerConfig
    link: ServerLink | None = None
    problem: str = ""
    ended: str = ""
    failures: int = 0
    again_at: float = 0.0
    in_use: int = 0
    used_at: float = 0.0
    is_changing: bool = False
    changed: anyio.Event = msgspec.field(default_factory=anyio.Event)
    scope: anyio.CancelScope = msgspec.field(default_factory=anyio.CancelScope)
    has_new_tools: anyio.Event = msgspec.field(default_factory=anyio.Event)

    def end(self, why: str) -> None:
        """It has gone, or must."""
        self.ended = why
        self.leave()

    def leave(self) -> None:
        """Give the connection up."""
        self.link = None
        self.is_changing = True
        self.scope.cancel()

    def leave_if_begun(self) -> bool:
        """The same, also while it is being made. Returns whether there was anything."""
        if self.link is None and not self.is_changing:
            return False
        self.leave()
        return True

    def expect_new_tools(self) -> None:
        """It says that its tools are others now."""
        self.has_new_tools.set()

    def tell(self) -> None:
        """Wake those who wait for it."""
        self.changed.set()
        self.changed = anyio.Event()


class McpServers:
    """The servers of the settings. `run` keeps their connections, in each process that drives."""

    def __init__(self, host: Host, open_network: OpenNetwork) -> None:
        self._host = host
        self._open_network = open_network
        self._states: dict[str, ServerState] = {}
        self._wanted: list[ServerState] = []
        self._poke = anyio.Event()
        self._known: list[KnownTool] | None = None
        self._given: list[KnownTool] = []
        self._given_configs: dict[str, McpServerConfig] = {}
        self._version = -1
        self._has_begun = anyio.Event()
        self.is_running = False
        self._calls: dict[str, AskingCall] = {}
        self._begun: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self.page: Any = None
        """How a person signs in, where one is there: a `sign_in.SignInPage`."""

    # What is known of their tools

    def known_tools(self) -> list[KnownTool]:
        """The tools of all servers, as they were last seen."""
        if self._known is None:
            self._known = queries.known_tools(self._host.store) if self._configs else []
        return self._known

    def tools_for_agents(self) -> list[KnownTool]:
        """As `known_tools`, for whoever makes agents of them: `has_changed` says when these are no
        longer the same."""
        self._given = self.known_tools()
        self._given_configs = self._configs
        return self._given

    @property
    def _configs(self) -> dict[str, McpServerConfig]:
        servers = self._host.settings().config.mcp
        return {name: server for name, server in servers.items() if server.enabled}

    def has_changed(self) -> bool:
        """Whether the tools are others than those that agents were given. Servers of which nothing
        is known yet are looked at."""
        if not self._configs and not self._given_configs:
            return False
        self._leave_removed()
        version = self._host.store.version()
        if version != self._version or self._known is None:
            self._version = version
            self._known = queries.known_tools(self._host.store)
        self._look_at_new(self._known)
        return self._known != self._given or self._configs != self._given_configs

    def _look_at_new(self, tools: Sequence[KnownTool]) -> None:
        """Connect those of which nothing is known yet; one that fails again after its pause."""
        known = {tool.server for tool in tools}
        now = self._host.clock.monotonic()
        for name in self._configs.keys() - known - queries.locked_servers(self._host.store):
            state = self._state(name)
            if state.link is None and not state.is_changing and state.again_at <= now:
                self._want(state)

    def _leave_removed(self) -> None:
        """Also those that are set up otherwise now."""
        configs = self._configs
        for name, state in list(self._states.items()):
            if state.config != configs.get(name):
                del self._states[name]
                state.leave_if_begun()

    def check_accepted(self, server: str, tool: ToolDefinition) -> None:
        """Raises ToolError where this is not what was accepted of the tool, or the server says
        something else now."""
        for each in self.known_tools():
            if (each.server, each.name) != (server, tool.name):
                continue
            if each.state == "accepted" and each.accepted == tool:
                return
        raise ToolError(
            f"the MCP server {server} describes {tool.name} otherwise than when it was accepted, "
            f"so it rests until a person has looked: deskhand mcp review {server}"
        )

    # Connections

    async def run(self) -> None:
        """Connect servers that are wanted, until cancelled."""
        self.is_running = True
        self._has_begun.set()
        try:
            async with anyio.create_task_group() as tasks:
                self.has_changed()
                while True:
                    self._poke = anyio.Event()
                    while self._wanted:
                        tasks.start_soon(self._serve, self._wanted.pop())
                    while self._begun:
                        tasks.start_soon(self._begun.pop())
                    await self._poke.wait()
        finally:
            self.is_running = False
            self._has_begun = anyio.Event()
            for state in self._states.values():
                state.is_changing = False
                state.tell()

    def _state(self, name: str) -> ServerState:
        config = self._configs[name]
        state = self._states.get(name)
        if state is None or state.config != config:
            if state is not None:
                state.leave_if_begun()
            state = self._states[name] = ServerState(name, config)
        return state

    def _want(self, state: ServerState) -> None:
        state.is_changing = True
        state.scope = anyio.CancelScope()
        state.ended = ""
        self._wanted.append(state)
        self._poke.set()

    async def _serve(self, state: ServerState) -> None:
        """Connect, and hold the connection until it is not needed any more."""
        why = ""
        try:
            with state.scope:
                await self._hold(state)
        except* ModuleNotFoundError:
            why = NO_EXTRA
        except* (DeskhandError, OSError, TimeoutError) as errors:
            why = _first_words(errors)
        except* Exception as errors:  # the SDK runs tasks of its own, which may raise anything
            log.exception("MCP server %s", state.name)
            why = _first_words(errors)
        finally:
            why = why or state.ended
            state.link = None
            state.is_changing = False
            if why:
                self._fail(state, why)
            state.tell()

    async def _hold(self, state: ServerState) -> None:
        from .connection import open_link  # noqa: PLC0415 -- an extra, and half a second

        async with self._open_reach(state) as reach:
            with anyio.fail_after(CONNECT_S) as connecting:
                opened = open_link(state.config, reach, state.end, state.expect_new_tools)
                async with opened as link, anyio.create_task_group() as tasks:
                    await self._lock(state.name, *await link.list_tools())
                    connecting.deadline = float("inf")
                    state.link = link
                    state.is_changing = False
                    state.problem = ""
                    state.used_at = anyio.current_time()
                    state.tell()
                    tasks.start_soon(self._lock_new_tools, state, link)
                    await _wait_until_idle(state)
                    state.leave()

    async def _lock_new_tools(self, state: ServerState, link: ServerLink) -> None:
        """Look at its tools again when it says that they are others, and not too often."""
        while True:
            await state.has_new_tools.wait()
            await anyio.sleep(NEW_TOOLS_S)
            state.has_new_tools = anyio.Event()
            with suppress(ToolError):  # it has gone, which is seen elsewhere
                await self._lock(state.name, *await link.list_tools())

    @asynccontextmanager
    async def _open_reach(self, state: ServerState) -> AsyncIterator[Reach]:
        host = self._host
        settings = host.settings()
        folder = settings.home.mcp_server(state.name)
        await anyio.to_thread.run_sync(settings.home.make_folder, folder)
        async with self._open_network(f"mcp:{state.name}", state.config.hosts) as egress:
            yield Reach(
                state.name,
                host.sandbox,
                host.net,
                settings.environment,
                folder.resolve(),
                egress,
                ServerLogin(host.secrets, state.name, state.config.url),
                self.page,
            )

    async def _lock(
        self, name: str, found: Sequence[ToolDefinition], problems: Sequence[str]
    ) -> None:
        for problem in problems:
            log.warning("MCP server %s: %s", name, problem)
        known = queries.known_tools(self._host.store)
        is_locked = name in queries.locked_servers(self._host.store)
        changes = compare_with_lock(name, known, found, is_locked=is_locked)
        if changes:
            now = self._host.clock.now()
            await self._host.store.change(queries.store_changes(name, changes, now))
        self._known = queries.known_tools(self._host.store)
        counts = count_states(tool for tool in self._known if tool.server == name)
        resting = counts["changed"] + counts["new"]
        if resting and changes:
            text = mark_text(
                "The MCP server {server_name} describes {tools_number} tools otherwise than when "
                "they were accepted, or they are new. They rest until you accept them: deskhand "
                "mcp review {review_name}"
            ).format(server_name=name, tools_number=resting, review_name=name)
            rows = await self._host.alerts.alert_owners(f"mcp-{name}", text)
            if rows:
                await self._host.store.change(rows)

    def _fail(self, state: ServerState, why: str) -> None:
        state.problem = self._host.redact(why)
        state.failures += 1
        pause = min(2.0 ** (state.failures - 1), LONGEST_PAUSE_S)
        state.again_at = self._host.clock.monotonic() + pause
        log.warning("MCP server %s: %s", state.name, state.problem)

    @asynccontextmanager
    async def use(self, name: str) -> AsyncIterator[ServerLink]:
        """The connection to this server, for one call. Raises ToolError where it cannot be had."""
        self.find_config(name)
        with anyio.move_on_after(PATIENCE_S):
            await self._has_begun.wait()
        if not self.is_running:
            raise ToolError("MCP servers are not available here")
        state = self._state(name)
        link = await self._connected(state)
        state.in_use += 1
        try:
            yield link
            state.failures = 0
        except ToolError:
            # A session on the web may be gone, and a program may hang: the next call begins anew.
            if state.link is link and (state.config.url or not await link.answers()):
                state.leave()
            raise
        finally:
            state.in_use -= 1
            state.used_at = anyio.current_time()

    async def _connected(self, state: ServerState) -> ServerLink:
        was_begun = False
        with anyio.move_on_after(CONNECT_S):
            while state.link is None:
                if not state.is_changing and was_begun:
                    raise ToolError(_unavailable(state))
                if not state.is_changing:
                    await self._wait_for_turn(state)
                    was_begun = True
                    if not state.is_changing:
                        self._want(state)
                await state.changed.wait()
        if state.link is None:
            raise ToolError(f"the MCP server {state.name} did not begin within {CONNECT_S:.0f} s")
        return state.link

    async def _wait_for_turn(self, state: ServerState) -> None:
        """Until one that has failed may be begun again. Raises ToolError where that takes long."""
        wait = state.again_at - self._host.clock.monotonic()
        if wait > PATIENCE_S:
            raise ToolError(f"{_unavailable(state)}. It is tried again in {wait:.0f} s")
        if wait > 0:
            await anyio.sleep(wait)

    # Calls in which a server may ask back

    def find_call(self, key: str) -> AskingCall | None:
        return self._calls.get(key)

    def forget_call(self, key: str) -> None:
        self._calls.pop(key, None)

    def begin_call(
        self, server: str, tool: ToolDefinition, wanted: ToolRequest, context: Context, label: Label
    ) -> AskingCall:
        """Begin a call that goes on while a person is asked. Raises ToolError while another
        conversation is."""
        for other in self._calls.values():
            if other.server != server or not other.is_asking:
                continue
            if other.session != context.session:
                raise ToolError(
                    f"the MCP server {server} waits for the answer of a person in another "
                    "conversation: try again later"
                )
            other.scope.cancel()  # a conversation makes one such call at a time: its turn is over
        call = self._calls[context.key] = AskingCall(server, context)
        self._begun.append(partial(self._serve_call, context.key, call, tool, wanted, label))
        self._poke.set()
        return call

    async def _serve_call(
        self, key: str, call: AskingCall, tool: ToolDefinition, wanted: ToolRequest, label: Label
    ) -> None:
        try:
            with call.scope:
                async with self.use(call.server) as link, anyio.create_task_group() as tasks:
                    self.check_accepted(call.server, tool)
                    tasks.start_soon(self._end_if_closed, call)
                    call.done = await link.call_asking_tool(wanted, call, label)
                    tasks.cancel_scope.cancel()
        except Exception as error:  # whatever a server makes of it ends this call alone
            found = first_of_group(error)
            if not isinstance(found, DeskhandError):
                log.exception("MCP server %s", call.server)
            call.problem = str(found)
        finally:
            call.end()
            if call.scope.cancelled_caught:
                self.stop(call.server)  # it may still ask for what nobody waits for
            if not call.is_followed:
                self.forget_call(key)

    async def _end_if_closed(self, call: AskingCall) -> None:
        """End the call where its question rests no more: the turn was stopped, or nobody answered
        in time."""
        missed = 0
        while True:
            await anyio.sleep(LOOK_S)
            rests = not call.is_asking or await asking_sessions(self._host.store, call.session)
            missed = 0 if rests else missed + 1
            if missed == MAX_MISSED_LOOKS:  # an answer may be on its way to the call
                call.scope.cancel()

    def names(self) -> list[str]:
        """The servers that are set up and not switched off."""
        return list(self._configs)

    def find_config(self, name: str) -> McpServerConfig:
        """Raises ToolError."""
        found = self._configs.get(name)
        if found is None:
            there = ", ".join(self._configs) or "none"
            raise ToolError(f"there is no MCP server {name[:40]!r}; there are: {there}")
        return found

    def status(self) -> dict[str, ServerState]:
        """What is known of the servers that were used in this process."""
        return {name: self._states[name] for name in self._configs if name in self._states}

    def stop(self, name: str) -> bool:
        """Leave this server. Returns whether it was connected."""
        state = self._states.get(name)
        return state is not None and state.leave_if_begun()


async def _wait_until_idle(state: ServerState) -> None:
    while state.in_use or anyio.current_time() - state.used_at < state.config.idle_s:  # noqa: ASYNC110 -- the end of a time
        await anyio.sleep(min(IDLE_LOOK_S, state.config.idle_s))


def _unavailable(state: ServerState) -> str:
    return f"the MCP server {state.name} is not available: {state.problem or 'it was left'}"


def _first_words(errors: BaseExceptionGroup[Exception]) -> str:
    found = first_of_group(errors)
    if isinstance(found, TimeoutError):
        return f"it did not answer within {CONNECT_S:.0f} s"
    return str(found)
