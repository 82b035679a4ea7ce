"""What a turn costs with its log in PostgreSQL, beside SQLite in the same run: `bench/bench.py
postgres`. The server's own work is not counted; it waits for the disk."""

from __future__ import annotations

import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import anyio
import msgspec

from deskhand.assembly.models import Models
from deskhand.config.config import Config, Home, Settings
from deskhand.runtime.app import App, Parts, open_app
from deskhand.testing.postgres import open_schema, running_server

ROUNDS = 5
TURNS = 200
Figure = tuple[str, float, str, float | None, float | None]
"""What it is, how much, the unit, what SQLite takes, and what it must not exceed."""


class Talker(Protocol):
    """Has a turn in a chat."""

    async def turn(self, chat: str) -> int: ...


@asynccontextmanager
async def opened(home: Path, url: str, store: str) -> AsyncIterator[App]:
    raw = {
        "defaults": {"models": ["fake/m"]},
        "providers": {"fake": {"base_url": f"{url}/v1"}},
        "store": store,
    }
    home.mkdir()
    settings = Settings(Home(home), msgspec.convert(raw, Config, strict=False))
    async with (
        Models(settings) as models,
        open_app(settings, Parts(models.open)) as app,
        anyio.create_task_group() as tasks,
    ):
        ready = anyio.Event()
        tasks.start_soon(app.run, ready.set)
        await ready.wait()
        yield app
        tasks.cancel_scope.cancel()


async def figures(
    home: Path,
    url: str,
    script: Callable[..., Awaitable[None]],
    talker: Callable[[App], Talker],
) -> list[Figure]:
    """What `bench.py` shows: the two take turns, so that both have the same machine."""
    await script({"text": "A short answer.", "chunks": 2})
    cpu: dict[str, list[float]] = {"sqlite": [], "postgres": []}
    wall: dict[str, list[float]] = {"sqlite": [], "postgres": []}
    with running_server(durable=True) as server, open_schema(server) as address:
        async with (
            opened(home / "sqlite", url, "") as one,
            opened(home / "postgres", url, address) as other,
        ):
            for number in range(ROUNDS + 1):
                for name, app in (("sqlite", one), ("postgres", other)):
                    bench = talker(app)
                    began_cpu, began = time.process_time(), time.perf_counter()
                    for i in range(TURNS):
                        await bench.turn(f"{number}-{i // 10}")
                    if number:
                        cpu[name].append((time.process_time() - began_cpu) / TURNS * 1e3)
                        wall[name].append((time.perf_counter() - began) / TURNS * 1e3)
    sqlite, postgres = (statistics.median(cpu[name]) for name in ("sqlite", "postgres"))
    waited, waits = (statistics.median(wall[name]) for name in ("sqlite", "postgres"))
    return [
        ("plain turn on PostgreSQL, beside SQLite", postgres, "ms CPU", sqlite, sqlite * 2),
        ("plain turn on PostgreSQL, all of it", waits, "ms wall", waited, None),
    ]
