"""Deskhand's driver for a harness that measures several systems against one fake model.

The harness gives FAKE_BASE and BENCH_RUN, and calls `setup`, `turn`, `stream`, `prefill` and
`persist`.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Any

import anyio
import msgspec

from deskhand.assembly.models import Models
from deskhand.config.config import Config, Home, Settings
from deskhand.runtime.app import OWNER, App, Parts, open_app
from deskhand.tools.base import Context, Spec, make_result
from deskhand.types.commit import Commit
from deskhand.types.door import Progress
from deskhand.types.events import AnyEvent, MessageReceived, ModelReplied, TurnEnded
from deskhand.types.identity import Address, Inbound, Said
from deskhand.types.interpreter import tune_interpreter
from deskhand.types.labels import LOCAL
from deskhand.types.messages import Message, Text, ToolResult

TOOL = "read_again"
ARGS = '{"path": "a.txt"}'
RUN = Path(os.environ["BENCH_RUN"])


class ReadAgain:
    """Reads a file, and tells how often it did. The harness repeats one call, which Deskhand takes
    for a loop where the result is the same."""

    spec = Spec(
        TOOL,
        "Reads a file of the workspace.",
        {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    )

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._times = 0

    async def run(self, arguments: msgspec.Raw, context: Context) -> ToolResult:
        path = msgspec.json.decode(arguments)["path"]
        self._times += 1
        return make_result(f"{(self._folder / path).read_text()}({self._times})", LOCAL)


_stack = AsyncExitStack()
_app: list[App] = []
_count = 0


async def setup() -> None:
    tune_interpreter()
    raw: dict[str, Any] = {
        "defaults": {"models": ["fake/fake-model"], "steps": 500, "tokens": 10_000_000}
    }
    raw["providers"] = {"fake": {"base_url": os.environ["FAKE_BASE"]}}
    settings = Settings(Home(RUN), msgspec.convert(raw, Config, strict=False))
    models = await _stack.enter_async_context(Models(settings))
    workspace = settings.home.workspace("default")
    parts = Parts(models.open, {TOOL: ReadAgain(workspace)})
    app = await _stack.enter_async_context(open_app(settings, parts))
    workspace.joinpath("a.txt").write_text("hello file\n")
    ready = anyio.Event()
    _app.append(app)
    _stack.callback(asyncio.get_running_loop().create_task(app.run(ready.set)).cancel)
    await ready.wait()


async def _go(sid: str, text: str) -> tuple[str, float | None]:
    global _count
    _count += 1
    said = Said(Message("user", (Text(text),)))
    inbound = Inbound(f"{sid}-{_count}", Address("terminal", chat=sid), "owner", time.time(), said)
    receipt = await _app[0].door.submit(inbound)
    answer = ""
    first = None
    async with aclosing(_app[0].door.follow(receipt.session, OWNER, receipt.after)) as items:
        async for item in items:
            if isinstance(item, Progress):
                first = first or time.perf_counter()
            elif isinstance(item.event, ModelReplied):
                answer = item.event.message.text
            elif isinstance(item.event, TurnEnded):
                return item.event.said or answer, first
    return answer, first


async def turn(sid: str, text: str) -> str:
    return (await _go(sid, text))[0]


async def stream(sid: str, text: str) -> float | None:
    return (await _go(sid, text))[1]


async def prefill(sid: str, n: int) -> None:
    address = Address("terminal", chat=sid)
    words = "some words to fill it " * 8
    events: list[AnyEvent] = []
    for i in range(n // 2):
        said = Message("user", (Text(f"message number {2 * i} {words}"),))
        events.append(MessageReceived(0, OWNER, address, said))
        events.append(
            ModelReplied(
                Message("assistant", (Text(f"message number {2 * i + 1} {words}"),)), "fake/m"
            )
        )
        events.append(TurnEnded("done"))
    await _app[0].store.commit(
        Commit(f"default/terminal:{sid}", 1, time.time(), tuple(events), close=True)
    )


async def persist(n: int) -> dict[str, object]:
    store = _app[0].store
    figures = []
    start = time.perf_counter()
    await prefill("persist", n)
    bulk = time.perf_counter() - start
    for _ in range(7):
        start = time.perf_counter()
        events = await store.history("default/terminal:persist")
        figures.append((time.perf_counter() - start) * 1e3)
    size = sum(path.stat().st_size for path in RUN.rglob("deskhand.db*"))
    return {
        "bulk_append_s": round(bulk, 3),
        "load_ms": round(sorted(figures)[3], 2),
        "n": len(events),
        "bytes": size,
    }
