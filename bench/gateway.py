"""What the web room costs and how soon clients hear of an event: `bench/bench.py gateway`.

The server is this process, its clients are another one, the fake model a third. The bare reference
is a plain uvicorn with WebSockets that sends the same number of bytes at the same moments to as
many clients.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import anyio
import msgspec
import uvicorn
from gateway_clients import Counted, Seen, Wanted

from deskhand.assembly.models import Models
from deskhand.config.config import Config, Home, Settings
from deskhand.runtime.app import App, Parts, open_app
from deskhand.runtime.http_server import AppServer
from deskhand.types.door import Progress
from deskhand.types.events import Recorded, TurnEnded

SESSIONS = 50
FOLLOWERS = 500
TURNS = 4
PIECES = 60
GAP_S = 0.05
"""An answer: so many pieces, twenty a second, as models write them."""
HERE = Path(__file__).parent


Lags = tuple[float, float, float]
Figure = tuple[str, float, str, float | None, float | None]
"""What it is, how much, the unit, what bare WebSockets have, and what it must not exceed."""


class Script(Protocol):
    """Tells the fake model what to do."""

    async def __call__(self, *behaviours: dict[str, object]) -> None: ...


@asynccontextmanager
async def served(home: Path, url: str) -> AsyncIterator[tuple[App, str]]:
    """A Deskhand with its web room, and a token for it."""
    providers = {"fake": {"base_url": f"{url}/v1"}}
    raw = {"defaults": {"models": ["fake/m"]}, "providers": providers, "web": {"port": 0}}
    settings = Settings(Home(home), msgspec.convert(raw, Config, strict=False))
    async with Models(settings) as models:

        async def page(app: App) -> None:
            await AppServer(app, models).run()

        async with (
            open_app(settings, Parts(models.open, {}, serve=page)) as app,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(app.run)
            with anyio.fail_after(30):
                while not app.address:
                    await anyio.sleep(0.01)
            _, token = await app.people.make_token("owner", "bench")
            yield app, token
            tasks.cancel_scope.cancel()


class Run(msgspec.Struct, frozen=True):
    seen: Seen
    cpu_s: float


async def clients(
    *args: str, line: bytes, ready: Callable[[], Awaitable[None]] | None = None
) -> Run:
    """Run the client process. CPU is ours, from the moment in which it is ready (or began) to the
    last delivery."""
    command = [sys.executable, str(HERE / "gateway_clients.py"), *args]
    process = await asyncio.create_subprocess_exec(
        *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=1 << 28
    )
    if process.stdin is None or process.stdout is None:
        raise AssertionError("no pipe")
    process.stdin.write(line + b"\n")
    await process.stdin.drain()
    cpu = time.process_time()
    while (said := await process.stdout.readline()).strip() in (b"ready", b"done"):
        if said.strip() == b"ready" and ready is not None:
            cpu = time.process_time()
            await ready()
    if not said:
        raise AssertionError("the clients ended without a word")
    cpu = time.process_time() - cpu
    await process.wait()
    return Run(msgspec.json.decode(said, type=Seen), cpu)


class Bare:
    """Sends frames of these sizes at these moments to as many clients, and nothing else."""

    def __init__(self) -> None:
        self._queues: dict[str, set[asyncio.Queue[str]]] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        queue: asyncio.Queue[str] = asyncio.Queue()
        self._queues.setdefault(scope["path"].strip("/"), set()).add(queue)
        await send({"type": "websocket.send", "text": "hello"})
        while text := await queue.get():
            await send({"type": "websocket.send", "text": text})

    def end(self) -> None:
        for queues in self._queues.values():
            for queue in queues:
                queue.put_nowait("")

    async def play(self, frames: list[tuple[float, int, int]]) -> None:
        began = time.monotonic()
        for at, i, size in sorted(frames):
            if (wait := began + at - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            text = f'{{"at":{time.time()}'.ljust(size, " ")
            for queue in self._queues[str(i)]:
                queue.put_nowait(text)


async def bare(frames: list[tuple[float, int, int]]) -> Run:
    app = Bare()
    plain: dict[str, Any] = {
        "ws": "websockets-sansio",
        "ws_per_message_deflate": False,
        "lifespan": "off",
    }
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, access_log=False, **plain))
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    counted = Counted(
        f"http://127.0.0.1:{port}", SESSIONS, FOLLOWERS, len(frames) * FOLLOWERS // SESSIONS
    )
    try:
        return await clients(
            "bare", line=msgspec.json.encode(counted), ready=lambda: app.play(frames)
        )
    finally:
        app.end()
        server.should_exit = True
        await task


class Published:
    """When each event was committed and handed to those who follow."""

    def __init__(self, app: App) -> None:
        self.at: dict[tuple[str, int], float] = {}
        self.ends: dict[str, list[float]] = {}
        self._publish = app.feed.publish
        app.feed.publish = self._note  # type: ignore[method-assign]

    def _note(self, session: str, item: Recorded | Progress) -> None:
        if isinstance(item, Recorded):
            self.at[session, item.n] = now = time.time()
            if isinstance(item.event, TurnEnded):
                self.ends.setdefault(session, []).append(now)
        self._publish(session, item)

    def lags_ms(self, seen: Seen, prefix: str) -> list[float]:
        """From there to each client."""
        names = [f"default/web:owner:{prefix}{i}" for i in range(SESSIONS)]
        lags = [at - self.at[names[i], n] for i, n, at in seen.events]
        lags += [
            at - self.ends[names[i]][turn + 1] for i, turn, at in seen.ends
        ]  # one was before they came
        return [lag * 1e3 for lag in lags]


async def figures(home: Path, url: str, script: Script) -> list[Figure]:
    """What `bench.py` shows."""
    await script({"text": "word " * PIECES, "chunks": PIECES, "gap_s": GAP_S})
    rows: list[Figure] = []
    async with served(home, url) as (app, token):
        published = Published(app)

        async def talk(
            prefix: str, transport: str, followers: int, turns: int, flood: int = 0
        ) -> tuple[Run, Lags]:
            wanted = Wanted(
                app.address,
                token,
                transport,
                SESSIONS,
                followers,
                turns,
                flood=flood,
                prefix=prefix,
            )
            run = await clients(line=msgspec.json.encode(wanted))
            if run.seen.gaps or run.seen.flooded != flood:
                raise AssertionError(f"{run.seen.gaps} gaps, {run.seen.flooded} of {flood} taken")
            return run, percentiles(published.lags_ms(run.seen, prefix))

        alone, _ = await talk("alone", "sse", SESSIONS, 2)
        for transport, name in (("sse", "server-sent events"), ("ws", "WebSocket")):
            run, lags = await talk(transport, transport, FOLLOWERS, TURNS)
            plain = await bare(run.seen.frames)
            each = plain.cpu_s / plain.seen.delivered * 1e6
            # What the turns themselves cost is in both, and taken out.
            more = run.cpu_s - alone.cpu_s / 2 * TURNS
            ours = more / (run.seen.delivered - alone.seen.delivered / 2 * TURNS) * 1e6
            idle = percentiles(plain.seen.lags_ms)
            rows.append((f"commit to {FOLLOWERS} by {name}, p50", lags[0], "ms", idle[0], None))
            rows.append((f"commit to {FOLLOWERS} by {name}, p95", lags[1], "ms", idle[1], 20.0))
            rows.append((f"commit to {FOLLOWERS} by {name}, p99", lags[2], "ms", idle[2], None))
            rows.append((f"each piece by {name}", ours, "us CPU", each, None))
        _, quiet = await talk("quiet", "sse", SESSIONS, TURNS)
        _, beside = await talk("beside", "sse", SESSIONS, TURNS, flood=1000)
        rows.append(
            ("50 others beside 1,000 messages, p95", beside[1], "ms", quiet[1], quiet[1] * 2)
        )
    return rows


def percentiles(lags: list[float]) -> Lags:
    cuts = statistics.quantiles(lags, n=100)
    return cuts[49], cuts[94], cuts[98]
