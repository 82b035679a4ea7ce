"""What a turn costs, beside bare aiohttp calls to the same fake model in the same run: `make
bench`.

CPU is that of this process, all threads; the fake model is another process. Every figure is the
median of five rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import aiohttp
import anyio
import commands
import journal
import judging
import msgspec
import serving

from deskhand.agent.fold import fold
from deskhand.agent.state import State
from deskhand.assembly.models import Models
from deskhand.config.config import Config, Home, Settings
from deskhand.runtime.app import OWNER, App, Parts, open_app
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.llm_script import NOW
from deskhand.tools.base import Context, Spec, make_result
from deskhand.types.commit import Commit
from deskhand.types.door import Progress
from deskhand.types.events import MessageReceived, ModelReplied, Recorded, TurnEnded
from deskhand.types.identity import Address, Inbound, Said
from deskhand.types.interpreter import tune_interpreter
from deskhand.types.labels import LOCAL
from deskhand.types.messages import Message, Text, Usage

ROUNDS = 5
TOOL_ROUNDS = 10
WORDS = "some words of an ordinary message, about as long as people write them. "


class Row(msgspec.Struct, frozen=True):
    """A line of the table. `limit` is what it must not exceed (None: only told)."""

    name: str
    ours: float
    unit: str
    bare: float | None = None
    limit: float | None = None


class Count:
    """A tool that reads: a new number each time, so that nobody takes it for a loop."""

    spec = Spec("count", "Counts.", {"type": "object", "properties": {}})

    def __init__(self) -> None:
        self.n = 0

    async def run(self, arguments: msgspec.Raw, context: Context) -> object:
        self.n += 1
        return make_result(str(self.n), LOCAL)


class Bench:
    """A Deskhand, a bare client, and the fake model that both talk to."""

    def __init__(self, app: App, bare: aiohttp.ClientSession, url: str) -> None:
        self.app = app
        self._bare = bare
        self._url = url
        self.turns = 0

    async def script(self, *behaviours: dict[str, object]) -> None:
        async with self._bare.post(f"{self._url}/script", json=list(behaviours)) as response:
            await response.read()

    def body(self, messages: int = 1) -> bytes:
        """A request as the wire would send it."""
        talk = [
            {"role": "user" if n % 2 == 0 else "assistant", "content": WORDS * 2}
            for n in range(messages)
        ]
        return msgspec.json.encode({"model": "m", "messages": talk, "stream": True})

    async def call(self, body: bytes) -> int:
        """One bare call: send the body, read the stream to its end. Returns the number of
        pieces."""
        pieces = 0
        url = f"{self._url}/v1/chat/completions"
        async with self._bare.post(
            url, data=body, headers={"Content-Type": "application/json"}
        ) as response:
            async for chunk in response.content.iter_any():
                pieces += chunk.count(b"\n\n")
        return pieces

    async def answer(self, chat: str) -> str:
        """One message in. Returns the text of the answer."""
        text = ""
        async for item in self._talk(chat):
            if not isinstance(item, Progress) and isinstance(item.event, ModelReplied):
                text = item.event.message.text
        return text

    async def turn(self, chat: str) -> int:
        """One message in, one answer out. Returns the number of pieces in which it came."""
        return sum([isinstance(item, Progress) async for item in self._talk(chat)])

    async def _talk(self, chat: str) -> AsyncIterator[Recorded | Progress]:
        self.turns += 1
        said = Said(Message("user", (Text(WORDS),)))
        inbound = Inbound(
            f"{chat}-{self.turns}", Address("terminal", chat=chat), "owner", time.time(), said
        )
        receipt = await self.app.door.submit(inbound)
        async with aclosing(self.app.door.follow(receipt.session, OWNER, receipt.after)) as items:
            async for item in items:
                yield item
                if not isinstance(item, Progress) and isinstance(item.event, TurnEnded):
                    if item.event.reason != "done":
                        raise RuntimeError(
                            f"a turn ended with {item.event.reason}: {item.event.said}"
                        )
                    break


async def cpu_ms(once: Callable[[], Awaitable[object]], times: int) -> float:
    """CPU milliseconds of this process per call, median of the rounds, after one to warm up."""
    figures = []
    for _ in range(ROUNDS + 1):
        start = time.process_time()
        for _ in range(times):
            await once()
        figures.append((time.process_time() - start) / times * 1e3)
    return statistics.median(figures[1:])


async def at_once_cpu_ms(
    make: Callable[[int], Awaitable[object]], count: int, rounds: int
) -> tuple[float, float]:
    """(CPU milliseconds per call, wall seconds) of `count` at once, `rounds` times one after the
    other."""

    async def each(i: int) -> None:
        for _ in range(rounds):
            await make(i)

    cpu = time.process_time()
    wall = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for i in range(count):
            tasks.start_soon(each, i)
    return (time.process_time() - cpu) / count / rounds * 1e3, time.perf_counter() - wall


async def plain(bench: Bench) -> list[Row]:
    await bench.script({"text": "A short answer.", "chunks": 2})
    bare = await cpu_ms(lambda: bench.call(bench.body()), 200)
    one = await cpu_ms(lambda: bench.turn(f"one{bench.turns // 10}"), 100)
    bare_many, _ = await at_once_cpu_ms(lambda i: bench.call(bench.body()), 200, 3)
    for _ in range(2):
        many, _ = await at_once_cpu_ms(lambda i: bench.turn(f"many{i}"), 200, 3)
    return [
        Row("plain turn, one session", one, "ms CPU", bare, bare + 1.0),
        Row("plain turn, 200 sessions", many, "ms CPU", bare_many, 1.0),
    ]


async def tool_rounds(bench: Bench) -> list[Row]:
    """A turn of ten rounds with a tool that reads; the last call answers."""
    figures = []
    bare_figures = []
    call = {"name": "count", "arguments": "{}"}
    for i in range(20):
        await bench.script(
            {"times": TOOL_ROUNDS, "calls": [call], "text": ""}, {"text": "done", "chunks": 1}
        )
        start = time.process_time()
        await bench.turn(f"tools{i}")
        figures.append((time.process_time() - start) / TOOL_ROUNDS * 1e3)
        start = time.process_time()
        for _ in range(TOOL_ROUNDS):
            await bench.call(bench.body(10))
        bare_figures.append((time.process_time() - start) / TOOL_ROUNDS * 1e3)
    return [
        Row(
            "tool round", statistics.median(figures), "ms CPU", statistics.median(bare_figures), 1.0
        )
    ]


async def long_talk(bench: Bench) -> list[Row]:
    """A turn when 1,000 messages are in view."""
    await bench.script({"text": "A short answer.", "chunks": 2})
    session = "default/terminal:long"
    events: list[MessageReceived | ModelReplied | TurnEnded] = []
    principal = OWNER
    address = Address("terminal", chat="long")
    for i in range(500):
        events.append(MessageReceived(i, principal, address, Message("user", (Text(WORDS * 2),))))
        events.append(ModelReplied(Message("assistant", (Text(WORDS * 2),)), "fake/m"))
        events.append(TurnEnded("done", (i,)))
    await bench.app.store.commit(Commit(session, 1, time.time(), tuple(events), close=True))
    body = bench.body(1000)
    bare = await cpu_ms(lambda: bench.call(body), 40)
    ours = await cpu_ms(lambda: bench.turn("long"), 10)
    return [Row("plain turn at 1,000 messages", ours, "ms CPU", bare, bare + 1.0)]


async def concurrent(bench: Bench) -> list[Row]:
    rows = []
    for latency, name in ((0.2, "200 ms"), (1.0, "1 s")):
        await bench.script({"text": WORDS * 3, "chunks": 10, "latency_s": latency})
        _, bare = await at_once_cpu_ms(lambda i: bench.call(bench.body()), 200, 3)
        _, wall = await at_once_cpu_ms(lambda i, name=name: bench.turn(f"{name}-{i}"), 200, 3)
        limit = bare * 1.4 if latency < 1 else 3 * latency * 1.15
        rows.append(Row(f"200 sessions x 3 turns at {name}", wall, "s wall", bare, limit))
    return rows


async def crowd(bench: Bench) -> list[Row]:
    """199 conversations never stop talking: how long a message of another one waits before its
    model is asked. And 1,000 that begin in the same moment."""
    latency_s = 0.2
    await bench.script({"text": NOW, "chunks": 1, "latency_s": latency_s})
    waits = []

    async def talk(i: int) -> None:
        while True:
            await bench.turn(f"busy{i}")

    async with anyio.create_task_group() as tasks:
        for i in range(199):
            tasks.start_soon(talk, i)
        await anyio.sleep(3)
        for i in range(40):
            sent = time.monotonic()
            answered = await bench.answer(f"fresh{i}")
            waits.append((float(answered) - latency_s - sent) * 1e3)
        tasks.cancel_scope.cancel()
    _, wall = await at_once_cpu_ms(lambda i: bench.turn(f"thousand{i}"), 1000, 1)
    return [
        Row(
            "among 199 busy ones: until asked, median", statistics.median(waits), "ms", None, 250.0
        ),
        Row("among 199 busy ones: until asked, longest", max(waits), "ms"),
        Row("1,000 sessions, a turn at 200 ms", wall, "s wall"),
    ]


async def streams(bench: Bench) -> list[Row]:
    """300 streams of 50 pieces a second for 4 seconds."""
    pieces = 200
    gap = 0.02
    await bench.script({"text": "word " * pieces, "chunks": pieces, "gap_s": gap})
    bare_cpu, bare_wall = await at_once_cpu_ms(lambda i: bench.call(bench.body()), 300, 1)
    cpu, wall = await at_once_cpu_ms(lambda i: bench.turn(f"s{i}"), 300, 1)
    return [
        Row(
            "300 streams of 50/s, each piece",
            cpu / pieces * 1e3,
            "us CPU",
            bare_cpu / pieces * 1e3,
            bare_cpu / pieces * 1.6e3,
        ),
        Row("300 streams of 50/s, all of it", wall, "s wall", bare_wall, bare_wall * 1.1),
    ]


async def follow(bench: Bench) -> list[Row]:
    """From the moment in which the model's process writes a piece to its follower, on this
    machine's one clock."""
    pieces = 200
    gap = 0.01
    await bench.script({"text": NOW * pieces, "chunks": pieces, "gap_s": gap})
    lags = []
    for i in range(3):
        bench.turns += 1
        said = Said(Message("user", (Text(WORDS),)))
        inbound = Inbound(f"f{i}", Address("terminal", chat=f"f{i}"), "owner", time.time(), said)
        receipt = await bench.app.door.submit(inbound)
        async with aclosing(bench.app.door.follow(receipt.session, OWNER, receipt.after)) as items:
            async for item in items:
                if isinstance(item, Progress):
                    lags.append((time.monotonic() - float(item.text)) * 1e3)
                elif isinstance(item.event, TurnEnded):
                    break
    if len(lags) < 3 * pieces * 0.9:
        raise AssertionError(f"only {len(lags)} pieces came by themselves")
    return [Row("from the model's bytes to the follower", statistics.median(lags), "ms", None, 2.0)]


async def cold_load(home: Path) -> list[Row]:
    """Read and fold 10,000 messages."""
    store = SqliteStore(home / "cold.db")
    principal = OWNER
    address = Address("terminal", chat="x")
    n = 1
    for _ in range(100):
        events: list[MessageReceived | ModelReplied | TurnEnded] = []
        for i in range(50):
            events.append(
                MessageReceived(i, principal, address, Message("user", (Text(WORDS * 2),)))
            )
            events.append(
                ModelReplied(
                    Message("assistant", (Text(WORDS * 2),)), "fake/m", usage=Usage(900, 40, 800)
                )
            )
            events.append(TurnEnded("done", (i,)))
        await store.commit(Commit("s", n, 1.0, tuple(events), close=True))
        n += len(events)
    figures = []
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        state = fold(State("s"), await store.history("s"))
        figures.append((time.perf_counter() - start) * 1e3)
        if len(state.messages) != 10_000:
            raise AssertionError("the fold lost messages")
    await store.close()
    return [Row("cold load of 10,000 messages", min(figures[1:]), "ms wall", None, 20.0)]


def start_up() -> list[Row]:
    command = Path(sys.executable).with_name("deskhand")
    figures = []
    for _ in range(7):
        start = time.perf_counter()
        subprocess.run([command, "--help"], stdout=subprocess.DEVNULL, check=True)
        figures.append((time.perf_counter() - start) * 1e3)
    return [Row("deskhand --help", statistics.median(figures), "ms wall", None, 150.0)]


def in_sandbox() -> list[Row]:
    wall, bare_wall, cpu, bare_cpu = commands.figures()
    return [
        Row("sandboxed `true`, beside bare bubblewrap", wall, "ms wall", bare_wall, 25.0),
        Row("sandboxed `true`, all its processes", cpu, "ms CPU", bare_cpu),
    ]


async def kept() -> list[Row]:
    """Policy and journal of a command that changes nothing."""
    cpu, _ = await journal.figures()
    return [Row(f"policy + journal, a call, {journal.FILES} files", cpu, "ms CPU", None, 0.3)]


def rss_mb() -> float:
    """Resident memory of this process now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


@asynccontextmanager
async def opened(home: Path, url: str):  # type: ignore[no-untyped-def]  # a context for main alone
    providers = {"fake": {"base_url": f"{url}/v1"}}
    off = {"enabled": False}  # no chore is due while it is measured
    raw = {
        "defaults": {"models": ["fake/m"]},
        "providers": providers,
        "memory": {"harvester": off, "cleaner": off},
        "reflection": off,
    }
    settings = Settings(Home(home), msgspec.convert(raw, Config, strict=False))
    tool = Count()
    async with (
        Models(settings) as models,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as bare,
        open_app(settings, Parts(models.open, {"count": tool})) as app,  # type: ignore[dict-item]
        anyio.create_task_group() as tasks,
    ):
        ready = anyio.Event()
        tasks.start_soon(app.run, ready.set)
        await ready.wait()
        yield Bench(app, bare, url)
        tasks.cancel_scope.cancel()


CASES = {
    "plain": plain,
    "tools": tool_rounds,
    "long": long_talk,
    "concurrent": concurrent,
    "crowd": crowd,
    "streams": streams,
    "follow": follow,
}


OTHERS = (
    "gateway",
    "cold",
    "subagents",
    "judging",
    "help",
    "commands",
    "memory",
    "serve",
    "channels",
)


async def on_postgres(home: Path, url: str) -> list[Row]:
    import postgres  # noqa: PLC0415 -- not before idle memory was measured

    both = home / "both"
    both.mkdir()
    async with aiohttp.ClientSession() as bare:
        script = Bench(None, bare, url).script  # type: ignore[arg-type]  # it only tells the model
        found = await postgres.figures(both, url, script, lambda app: Bench(app, bare, url))
    return [Row(*figure) for figure in found]


async def on_channels(home: Path) -> list[Row]:
    import channels  # noqa: PLC0415 -- not before idle memory was measured

    home.mkdir()
    return [Row(*figure) for figure in await channels.figures(home)]


async def run(names: list[str]) -> list[Row]:  # noqa: C901 -- a line for each case
    fake = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "deskhand.testing.llm", "--port", "0", stdout=asyncio.subprocess.PIPE
    )
    rows: list[Row] = []
    try:
        if fake.stdout is None:
            raise AssertionError("no pipe")
        port = int(await fake.stdout.readline())
        with tempfile.TemporaryDirectory(prefix="deskhand-bench-", dir=Path.cwd()) as home:
            async with opened(Path(home), f"http://127.0.0.1:{port}") as bench:
                rows.append(Row("idle, all of it imported", rss_mb(), "MB", None, 60.0))
                for name in names:
                    if name in CASES:
                        rows += await CASES[name](bench)
                        show(rows[-1:] if name != "plain" else rows)
                if "gateway" in names:
                    import gateway  # noqa: PLC0415 -- not before idle memory was measured

                    home_of_web = Path(home, "web")
                    home_of_web.mkdir()
                    found = await gateway.figures(
                        home_of_web, f"http://127.0.0.1:{port}", bench.script
                    )
                    rows += [Row(*figure) for figure in found]
                    show(rows[-len(found) :])
            if "postgres" in names:
                rows += await on_postgres(Path(home), f"http://127.0.0.1:{port}")
            if "cold" in names:
                rows += await cold_load(Path(home))
            if "subagents" in names:
                import subagents  # noqa: PLC0415 -- not before idle memory was measured

                below = Path(home, "subagents")
                below.mkdir()
                took = await subagents.figure(below)
                name = f"{subagents.MANY} sub-agents at once, over the ideal"
                rows.append(Row(name, took, "x", None, subagents.LIMIT))
            if "judging" in names:
                rows.append(
                    Row("judge a call, 50 rules", judging.figure(Path(home)), "ms CPU", None, 0.05)
                )
            if "help" in names:
                rows += start_up()
            if "commands" in names:
                rows += in_sandbox()
                rows += await kept()
            for name in ("memory", "million"):
                if name in names:
                    import memory  # noqa: PLC0415 -- not before idle memory was measured

                    rows += [Row(*figure) for figure in await memory.rows(name)]
            if "channels" in names:
                rows += await on_channels(Path(home, "channels"))
            if "serve" in names:
                rows += [
                    Row(name, value, unit, None, limit)
                    for name, value, unit, limit in serving.figures()
                ]
                rows += [
                    Row(name, value, unit, None, limit)
                    for name, value, unit, limit in await serving.end_in_mid_turn()
                ]
    finally:
        fake.terminate()
        await fake.wait()
    return rows


def show(rows: list[Row]) -> None:
    for row in rows:
        bare = f"{row.bare:8.2f}" if row.bare is not None else " " * 8
        ratio = f"x{row.ours / row.bare:5.2f}" if row.bare else " " * 6
        limit = (
            f"<= {row.limit:.2f}  {'ok' if row.ours <= row.limit else 'MISSED'}"
            if row.limit is not None
            else ""
        )
        print(
            f"{row.name:44} {row.ours:8.2f} {row.unit:8} bare {bare} {ratio}  {limit}", flush=True
        )


def main() -> None:
    tune_interpreter()
    parser = argparse.ArgumentParser(description=__doc__)
    # `million` is not among the usual ones: it writes a database of two gigabytes first. Nor is
    # `postgres`, which needs a server that is installed.
    parser.add_argument(
        "cases",
        nargs="*",
        default=[
            *CASES,
            "gateway",
            "cold",
            "subagents",
            "judging",
            "help",
            "commands",
            "memory",
            "serve",
            "channels",
        ],
    )
    rows = anyio.run(run, parser.parse_args().cases)
    print()
    show(rows)


if __name__ == "__main__":
    main()
