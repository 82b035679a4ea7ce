"""Crash at every boundary in turn, and at pairs of them; come back; nothing is lost and no effect
is repeated."""

from __future__ import annotations

import collections
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.agent.fold import fold
from deskhand.agent.state import State
from deskhand.config.config import Config, Home, Settings
from deskhand.config.statements import load_statements
from deskhand.models.base import Request
from deskhand.runtime.app import Parts, open_app
from deskhand.store.base import Store
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.crash import Crash, Fuse, OpenDatabase, fused
from deskhand.testing.postgres import database_at, open_schema, running_server
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.tools import STATEMENTS, ChangeTool, FileTool
from deskhand.types.identity import Inbound, Principal
from deskhand.types.messages import Message, ToolCall, ToolResult

ROUNDS = 3
CONFIG = msgspec.convert({"defaults": {"models": ["scripted/test"]}}, Config, strict=False)
ANN = Principal("ann", ("owner",))


def script(request: Request) -> Message:
    """Three rounds of a write that must not be repeated, two reads, and a row; then the answer."""
    done = sum(shown.message.role == "assistant" for shown in request.messages)
    if done >= ROUNDS:
        return say("all done")
    names = {"write": f"w{done}", "look": f"l{done}", "see": f"s{done}", "remember": f"r{done}"}
    calls = (
        ToolCall(call_id, name, msgspec.Raw(b'{"text":"%s"}' % call_id.encode()))
        for name, call_id in names.items()
    )
    return say(f"round {done}", *calls)


class World:
    """One home, one platform, and as many lives as it takes."""

    def __init__(self, home: Path, database: OpenDatabase) -> None:
        self.settings = Settings(Home(home), CONFIG)
        self.database = database
        self.channel = MemoryChannel()
        self.writes = home / "writes.txt"
        self.reads = home / "reads.txt"
        home.mkdir()

    def parts(self, fuse: Fuse) -> Parts:
        self.channel._fuse = fuse
        tools = (
            FileTool("write", self.writes, fuse=fuse),
            FileTool("look", self.reads, replay="again", fuse=fuse),
            FileTool("see", self.reads, replay="again", fuse=fuse),
            ChangeTool(),
        )
        model = ScriptedModel(script)

        def authorise(inbound: Inbound) -> Principal:
            return ANN

        return Parts(
            lambda name: model,
            {t.spec.name: t for t in tools},
            STATEMENTS,
            (self.channel,),
            authorise,
            fused(fuse, self.database),
        )

    async def live(self, fuse: Fuse) -> bool:
        """Run until everything is sent. True when the fuse blew first."""
        blown = False
        try:
            async with (
                open_app(self.settings, self.parts(fuse)) as app,
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(app.run)
                with anyio.fail_after(60):
                    while not await self.settled(app.store):
                        await anyio.sleep(0.002)
                tasks.cancel_scope.cancel()
        except* Crash:
            blown = True
        return blown

    async def settled(self, store: Store) -> bool:
        if self.channel.waiting or not self.channel.confirmed:
            return False
        return not await store.open_sessions() and not await store.outbox_due(1e12, 10)

    async def check(self) -> int:
        """The invariants. Returns how many writes were reported as interrupted."""
        store = self.database(self.settings.home.database, load_statements())
        sessions = await store.sessions(ANN)
        state = fold(State(""), await store.events(sessions[0].session))
        results = [p for m in state.messages for p in m.message.parts if isinstance(p, ToolResult)]
        interrupted = {r.call_id for r in results if r.status == "interrupted"}
        written = (
            [line.split()[1] for line in self.writes.read_text().splitlines()]
            if self.writes.exists()
            else []
        )
        rows = store._fetch_all("SELECT value FROM kv ORDER BY value")  # type: ignore[attr-defined]
        assert state.turn is None and not state.calls and sessions[0].turns == 1
        assert max(collections.Counter(written).values(), default=1) == 1, "a write was repeated"
        assert set(written) | interrupted == {"w0", "w1", "w2"}, "a write was lost without a word"
        assert rows == [("r0",), ("r1",), ("r2",)], "a row was lost or doubled"
        assert [r.call_id for r in results] == [f"{c}{i}" for i in range(ROUNDS) for c in "wlsr"], (
            "order of results"
        )
        finals = [
            (out.parts[0], mark)
            for out, mark in self.channel.sent
            if "all done" in str(out.parts[0])
        ]
        assert finals and sum(not mark for _, mark in finals) <= 1, "an answer twice, unmarked"
        assert self.channel.confirmed == ["1"]
        assert not (await store.audit())[1] and not store.check_integrity()  # type: ignore[attr-defined]
        await store.close()
        return len(interrupted)


async def live_through(
    home: Path, *crashes: int, database: OpenDatabase = SqliteStore
) -> tuple[int, int, list[str]]:
    """Crash at these boundaries, one life each, then live in peace. Returns crashes, interruptions,
    boundaries."""
    world = World(home, database)
    crashed = 0
    passed: list[str] = []
    world.channel.write("go")
    for at in (*crashes, 0):
        fuse = Fuse(at)
        blew = await world.live(fuse)
        crashed += blew
        passed = passed or fuse.passed
        if not blew:
            break
    return crashed, await world.check(), passed


@pytest.mark.timeout(300)
async def test_every_boundary(tmp_path: Path) -> None:
    # How many boundaries there are depends on who is quicker: so it goes on until none is reached
    # any more.
    crashes = interrupted = missed = at = 0
    while missed < 3:
        at += 1
        crashed, told, _ = await live_through(tmp_path / str(at), at)
        crashes += crashed
        interrupted += told
        missed = 0 if crashed else missed + 1
    assert crashes >= 40 and interrupted >= ROUNDS


@pytest.mark.timeout(300)
@pytest.mark.parametrize("first", [2, 6, 10, 14])
async def test_pairs_of_boundaries(first: int, tmp_path: Path) -> None:
    """80 pairs and more, in four parts that can be run side by side."""
    _, _, boundaries = await live_through(tmp_path / "0")
    pairs = [(a, b) for a in range(first, len(boundaries), 16) for b in range(2, 24, 3)]
    for a, b in pairs:
        await live_through(tmp_path / f"{a}-{b}", a, b)
    assert len(pairs) >= 20


@pytest.mark.timeout(300)
@pytest.mark.parametrize("first", [1, 2, 3, 4])
async def test_every_boundary_on_postgresql(first: int, tmp_path: Path) -> None:
    """In four parts, each with a server of its own."""
    crashes = missed = 0
    at = first
    with running_server() as server:
        while not missed:
            with open_schema(server) as url:
                crashed, _, _ = await live_through(
                    tmp_path / str(at), at, database=database_at(url)
                )
            crashes += crashed
            missed = 1 - crashed
            at += 4
    assert crashes >= 10
