"""The process that is killed: the real runtime, with the platform's channel, the real wire and one
dangerous tool."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import msgspec
from aiohttp import ClientSession  # noqa: TID251 -- loopback

from ..assembly.models import Models
from ..config.clock import SystemClock
from ..config.config import Config, Home, Settings
from ..mcp.setup import make_program_config
from ..runtime.app import App, Parts, open_app
from ..runtime.http_server import AppServer
from ..store.sqlite import SqliteStore
from ..supervision.supervise import RESTART
from ..tools.base import Context, Outcome, Spec, Tool, call_label, make_result
from ..types.clock import Clock
from ..types.commit import Commit
from ..types.errors import StoreUnavailable, ToolError
from ..types.identity import Inbound, Principal
from ..types.interpreter import tune_interpreter
from .clock import OneClock, Shift, ShiftedClock
from .platform import CHATS, HttpChannel
from .tools import SCHEMA, NoteArguments

EAGER_S = 0.05
ANN = Principal("ann", ("owner",))


class SinkEffect:
    """Does something at the sink that must not happen twice."""

    spec = Spec("effect", "Does it.", SCHEMA, "local_write", "never")

    def __init__(self, url: str, session: ClientSession) -> None:
        self._url = url
        self._session = session

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        note = msgspec.json.decode(arguments, type=NoteArguments)
        async with self._session.post(self._url + "/effect", json={"key": note.text}) as response:
            await response.read()
        return make_result(f"did {note.text}", call_label(context))


class ServedEffect:
    """The same by the MCP server, once its tool is known."""

    spec = SinkEffect.spec

    def __init__(self) -> None:
        self.app: App | None = None

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        found = () if self.app is None else self.app.features.tools(context.agent)
        served = next((each for each in found if each.spec.name == f"mcp__{SERVER}__effect"), None)
        if served is None:
            raise ToolError("the server has not begun yet")
        return await served.run(arguments, context)


class EagerStore(SqliteStore):
    """The mutant that must be caught: who follows hears of events before they are on disk."""

    app: App | None = None

    async def commit(self, commit: Commit) -> int:
        for recorded in commit.to_recorded(self.last_seq() + 1):
            if self.app is not None:
                self.app.feed.publish(commit.session, recorded)
        await anyio.sleep(EAGER_S)
        return await super().commit(commit)


HELPERS = "helpers"
"""The mode of a process that leaves some of its work to sub-agents, teammates and scripts."""
HELPER_TOOLS = ("spawn_agent", "run_script", "spawn_teammate", "message_teammate")
SERVERS = "servers"
"""The mode of a process whose effect is the tool of an MCP server."""
SERVER = "wild"
SERVER_TIMEOUT_S = 3
WORKER = "worker:"
"""The mode of a process that works beside another one; its name follows."""


def describe_wild_server() -> dict[str, object]:
    """Its settings, as `deskhand mcp add` makes them."""
    script = str(Path(__file__).with_name("wild_server.py"))
    made = make_program_config((sys.executable, "-P", script), timeout_s=SERVER_TIMEOUT_S)
    found: dict[str, object] = msgspec.to_builtins(made)
    return found


def settings_at(home: Path, url: str, worker: str = "", mode: str = "") -> Settings:
    providers = {"fake": {"base_url": f"{url}/v1"}}
    raw: dict[str, object] = {
        "defaults": {"models": ["fake/model"]},
        "providers": providers,
        "web": {"port": 0},
        "jobs": {"storm_starts": 0},
        "machine_rounds": 0,
        "memory": {"harvester": {"enabled": False}, "cleaner": {"enabled": False}},
        "reflection": {"enabled": False},
        "store": read_store_address(home),
    }
    raw["mcp"] = {SERVER: describe_wild_server()} if mode == SERVERS else {}
    agents = int(path.read_text()) if (path := agents_beside(home)).exists() else 0
    if agents:
        names = [f"a{number}" for number in range(agents)]
        raw["agents"] = {key: {} for key in names}
        raw["bindings"] = [
            {"chat": f"chat{chat}", "agent": names[chat % agents]} for chat in range(CHATS)
        ]
    return Settings(Home(home, worker), msgspec.convert(raw, Config, strict=False))


def store_beside(home: Path) -> Path:
    """The file that names the database of this home, where that is not SQLite."""
    return home.with_name(f"{home.name}.store")


def agents_beside(home: Path) -> Path:
    """The file that says how many agents share the chats, where that is not one."""
    return home.with_name(f"{home.name}.agents")


def read_store_address(home: Path) -> str:
    path = store_beside(home)
    return path.read_text() if path.exists() else ""


def clock_of(home: Path, mode: str) -> Clock:
    """The machine's own, or, where there is one beside the home, that which the parent sets."""
    path = shift_beside(home, worker_of(mode))
    if not path.exists():
        return SystemClock()
    return OneClock(Shift(path)) if mode == "one-clock" else ShiftedClock(Shift(path))


def shift_beside(home: Path, worker: str = "") -> Path:
    """The file by which its clock is set, or that of one of its workers."""
    return home.with_name(f"{home.name}{worker}.shift")


def worker_of(mode: str) -> str:
    """The name of the worker that is meant; '' for the process that leads."""
    return mode.removeprefix(WORKER) if mode.startswith(WORKER) else ""


async def live(home: Path, url: str, mode: str) -> None:
    """Run until killed."""
    settings = settings_at(home, url, worker_of(mode), mode)

    def authorise(inbound: Inbound) -> Principal:
        return ANN

    async with ClientSession() as session, Models(settings) as models:

        async def page(app: App) -> None:
            await AppServer(app, models).run()

        served = ServedEffect()
        tool = served if mode == SERVERS else SinkEffect(url, session)
        channel = HttpChannel(url, session, ack_first=mode == "ack-first")
        store = EagerStore if mode == "publish-first" else None
        clock = clock_of(home, mode)
        tools: dict[str, Tool] = {tool.spec.name: tool}
        parts = Parts(models.open, tools, {}, (channel,), authorise, store, clock, serve=page)
        async with open_app(settings, parts) as app:
            served.app = app
            if mode == HELPERS:
                more = {each.spec.name: each for each in app.features.tools("default")}
                tools |= {name: more[name] for name in HELPER_TOOLS}
            if isinstance(app.store, EagerStore):
                app.store.app = app
            await app.run()


def main() -> None:
    home, url, mode = sys.argv[1:]
    tune_interpreter()
    try:
        anyio.run(lambda: live(Path(home), url, mode))
    except* StoreUnavailable as error:  # a supervisor starts it again
        sys.stderr.write(f"{mode}: {error.exceptions[0]}\n")
        sys.exit(RESTART)


if __name__ == "__main__":
    main()
