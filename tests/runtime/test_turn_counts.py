"""What a turn costs, counted: Python calls, SQL statements, commits, tasks and bytes. They stand in
`turn_counts.toml`, so that nobody makes every turn dearer without saying so."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import tomllib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
import apsw
import msgspec
import pytest

import deskhand
from deskhand.assembly.models import Models
from deskhand.config.config import Config, Home, Settings
from deskhand.models.base import Request
from deskhand.runtime.app import OWNER, App, Parts, open_app
from deskhand.secrets.secrets import Secrets
from deskhand.supervision.restart_with_backoff import keep_running
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.tools import FileTool
from deskhand.types.commit import Commit
from deskhand.types.events import ApprovalAsked, MessageReceived, ModelReplied, TurnEnded
from deskhand.types.identity import Address, Answer, Body, Inbound, Said
from deskhand.types.messages import Message, Text, ToolCall, Usage

COUNTS = Path(__file__).with_name("turn_counts.toml")
HERE = Address("terminal", chat="x")
SESSION = "default/terminal:x"
OURS = str(Path(deskhand.__file__).parent)
WARM_UP = 10
TURNS = 36
"""Each is counted alone, and the least counts: something looks around beside them every 50 ms."""
LONG = 5_000
MANY = 600
FRESH = 50
BESIDE = (keep_running.__code__, Secrets._look.__code__)
POLLED = ("PRAGMA data_version", "SELECT id, session, body FROM inbox WHERE")
"""Statements that look about, whoever talks."""


class Counts(msgspec.Struct, forbid_unknown_fields=True):
    """Of one turn."""

    calls: float = 0.0
    writes: float = 0.0
    reads: float = 0.0
    commits: float = 0.0
    tasks: float = 0.0
    bytes: float = 0.0


class Counter:
    """Counts while it is entered. Statements are counted on every connection that was opened while
    the hook stood."""

    def __init__(self) -> None:
        self.counts = Counts()
        self._counting = False
        self._beside: FrameType | None = None

    def watch(self, db: apsw.Connection) -> None:
        db.trace_v2(apsw.SQLITE_TRACE_STMT, self._on_statement)

    def __enter__(self) -> Counter:
        self.counts = Counts()
        self._counting = True
        loop = asyncio.get_running_loop()
        loop.set_task_factory(self._make_task)
        sys.setprofile(self._on_call)
        return self

    def __exit__(self, *raised: object) -> None:
        sys.setprofile(None)
        asyncio.get_running_loop().set_task_factory(None)
        self._counting = False
        self._beside = None

    def _on_call(self, frame: FrameType, event: str, argument: object) -> None:
        """Count a call, but for those of what looks around after so many milliseconds: on a busy
        machine that falls into every turn."""
        if self._beside is not None:
            if event == "return" and frame is self._beside:
                self._beside = None
        elif event == "call" and frame.f_code in BESIDE:
            self._beside = frame
        elif event == "call" and frame.f_code.co_filename.startswith(OURS):
            self.counts.calls += 1

    def _make_task(self, loop: Any, coroutine: Any, **more: Any) -> asyncio.Task[Any]:
        self.counts.tasks += 1
        return asyncio.Task(coroutine, loop=loop, **more)

    def _on_statement(self, event: dict[str, Any]) -> None:
        sql = " ".join(str(event["sql"]).split())
        if not self._counting or sql.startswith(POLLED):
            return
        if threading.current_thread().name == "deskhand-writer":
            self.counts.writes += 1
            self.counts.commits += sql == "COMMIT"
        else:
            self.counts.reads += 1


@pytest.fixture
def counter() -> Iterator[Counter]:
    counter = Counter()
    apsw.connection_hooks.append(counter.watch)
    yield counter
    apsw.connection_hooks.remove(counter.watch)


def plain(request: Request) -> Message:
    return say("Fine.")


def with_tool(request: Request) -> Message:
    """Calls the tool, and answers when it has its result."""
    if request.messages[-1].message.role == "tool":
        return say("Noted.")
    call = ToolCall(f"c{request.messages[-1].n}", "note", msgspec.Raw(b'{"text": "x"}'))
    return say("", call)


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    """The URL of a provider in a process of its own, whose calls are not counted."""
    with subprocess.Popen(
        [sys.executable, "-m", "deskhand.testing.llm", "--port", "0"], stdout=subprocess.PIPE
    ) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        finally:
            server.terminate()


@asynccontextmanager
async def running(
    home: Path, script: Callable[[Request], Message], verdict: str, provider: str = ""
) -> AsyncIterator[App]:
    """With a `provider`, its model answers over the network, and not the script."""
    raw = {
        "defaults": {"models": ["provider/x" if provider else "scripted/x"]},
        "providers": {"provider": {"base_url": provider}} if provider else {},
        "policy": [{"verdict": verdict, "tool": "note"}],
    }
    settings = Settings(Home(home / "h"), msgspec.convert(raw, Config, strict=False))
    note = FileTool("note", home / "notes", replay="never" if verdict == "ask" else "again")
    async with AsyncExitStack() as stack:
        scripted = ScriptedModel(script, remember=False)
        models = await stack.enter_async_context(Models(settings))
        opener = models.open if provider else lambda name: scripted
        parts = Parts(opener, {"note": note}, authorize=lambda inbound: OWNER)
        app = await stack.enter_async_context(open_app(settings, parts))
        tasks = await stack.enter_async_context(anyio.create_task_group())
        ready = anyio.Event()
        tasks.start_soon(app.run, ready.set)
        await ready.wait()
        yield app
        tasks.cancel_scope.cancel()


async def submit(app: App, body: Body, number: int, at: Address = HERE) -> tuple[str, int]:
    # What was allowed long ago holds no more.
    sent_at = app.parts.clock.now() if isinstance(body, Answer) else number
    receipt = await app.door.submit(Inbound(f"i{number}", at, "owner", sent_at, body))
    assert receipt.status == "accepted", receipt
    return receipt.session, receipt.after


def chat(number: int) -> Address:
    return Address("terminal", chat=f"c{number}")


async def turn(app: App, number: int, at: Address = HERE) -> None:
    """One turn from the message to its end; a question in it is answered with yes."""
    session, after = await submit(app, Said(Message("user", (Text("hello"),))), 10 * number, at)
    async with aclosing(app.door.follow(session, OWNER, after)) as items:
        async for item in items:
            event = getattr(item, "event", None)
            if isinstance(event, ApprovalAsked):
                await submit(app, Answer(event.ask_id, "once"), 10 * number + 1)
            elif isinstance(event, TurnEnded):
                assert event.reason == "done"
                return


async def stored_bytes(app: App) -> int:
    ((size,),) = app.store._fetch_all(  # type: ignore[attr-defined]
        "SELECT (SELECT sum(length(body)) FROM event) + (SELECT sum(length(body)) FROM inbox)"
    )
    return int(size)


async def count_turns(app: App, counter: Counter, *, fresh: bool = False) -> Counts:
    """`fresh`: each turn begins a conversation."""
    for number in range(WARM_UP):
        await turn(app, number)
    turns = []
    for number in range(1_000, 1_000 + TURNS):
        before = await stored_bytes(app)
        with counter:
            await turn(app, number, chat(number) if fresh else HERE)
        counter.counts.bytes = await stored_bytes(app) - before
        turns.append(counter.counts)
    names = Counts.__struct_fields__
    return Counts(**{name: min(getattr(each, name) for each in turns) for name in names})


def wanted(kind: str) -> Counts:
    return msgspec.convert(tomllib.loads(COUNTS.read_text())[kind], Counts, strict=False)


def check(kind: str, found: Counts) -> None:
    limit = wanted(kind)
    shown = f"{kind}: {found}, {COUNTS.name} says {limit}"
    assert found.calls <= limit.calls, shown
    # A time in it may have a digit more or less.
    assert found.bytes == pytest.approx(limit.bytes, rel=0.01), shown
    for name in ("writes", "reads", "commits", "tasks"):
        assert getattr(found, name) == getattr(limit, name), shown


@pytest.mark.parametrize(
    ("kind", "script", "verdict"),
    [
        ("plain", plain, "allow"),
        ("fresh", plain, "allow"),
        ("tool", with_tool, "allow"),
        ("approval", with_tool, "ask"),
    ],
)
async def test_what_a_turn_costs(
    kind: str, script: Callable[[Request], Message], verdict: str, tmp_path: Path, counter: Counter
) -> None:
    async with running(tmp_path, script, verdict) as app:
        check(kind, await count_turns(app, counter, fresh=kind == "fresh"))


async def test_what_a_provider_costs(tmp_path: Path, counter: Counter, provider: str) -> None:
    """The same as a plain turn, with a model that answers over the network in eight pieces."""
    async with running(tmp_path, plain, "allow", provider) as app:
        found = await count_turns(app, counter)
    found.tasks = 0  # before Python 3.12, aiohttp begins one for each request
    check("provider", found)


async def test_a_long_conversation_costs_no_more(
    tmp_path: Path, counter: Counter, provider: str
) -> None:
    """A turn behind 5,000 messages runs the same code as one behind ten."""
    async with running(tmp_path, plain, "allow", provider) as app:
        short = await count_turns(app, counter)
    async with running(tmp_path / "long", plain, "allow", provider) as app:
        await fill(app)
        long = await count_turns(app, counter)
    assert long.calls <= 1.05 * short.calls and long.writes == short.writes, (short, long)


async def test_many_conversations_cost_no_more(tmp_path: Path) -> None:
    """A conversation begins as cheaply where as many are in memory as may be."""
    async with running(tmp_path, plain, "allow") as app:
        app.dispatch.most_sessions = MANY
        first = await count_lines(app, 0)
        for number in range(FRESH, MANY):
            await turn(app, number, chat(number))
        later = await count_lines(app, MANY)
    assert later <= 1.05 * first, (first, later)


async def count_lines(app: App, first: int) -> float:
    """How many lines of ours a turn runs with which a conversation begins. Lines: a loop over all
    others need not call anything."""
    lines = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        lines += event == "line"
        return trace

    sys.settrace(trace)
    try:
        for number in range(first, first + FRESH):
            await turn(app, number, chat(number))
    finally:
        sys.settrace(None)
    return lines / FRESH


async def fill(app: App) -> None:
    """A conversation of LONG messages, as if it had been had before."""
    said = Message("user", (Text("hello"),))
    for first in range(0, LONG, 500):
        events: list[Any] = []
        for number in range(first, first + 500, 2):
            events += [
                MessageReceived(number + 1, OWNER, HERE, said, f"old{number}"),
                ModelReplied(say("Fine."), "scripted/x", "stop", Usage(10, 1)),
                TurnEnded("done", (number + 1,)),
            ]
        n = 1 + first // 2 * 3
        await app.store.commit(Commit(SESSION, n, 1.0, tuple(events), close=True))
