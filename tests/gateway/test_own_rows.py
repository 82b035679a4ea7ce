"""What came in here is not taken for what another process accepted."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import msgspec

from deskhand.config.config import Config, Home, Settings
from deskhand.gateway.housekeeping import POLL_S
from deskhand.runtime.app import OWNER, App, Parts, open_app
from deskhand.store.base import Accepted
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.events import TurnEnded
from deskhand.types.identity import Address, Inbound, Said, When
from deskhand.types.messages import Message, Text


class SlowToAnswer(SqliteStore):
    """Its rows are on disk long before whoever stored them goes on."""

    async def accept(self, *given: Any, **named: Any) -> Accepted:
        accepted = await super().accept(*given, **named)
        await anyio.sleep(10 * POLL_S)
        return accepted


async def write(app: App, text: str, when: When) -> tuple[str, int]:
    said = Said(Message("user", (Text(text),)))
    receipt = await app.door.submit(
        Inbound(text, Address("terminal", chat="x"), "owner", 0.0, said, when=when)
    )
    return receipt.session, receipt.after


async def test_an_interrupt_cuts_once(tmp_path: Path) -> None:
    """Cut a second time, the model that answers it would be asked twice, and paid twice."""
    model = ScriptedModel(lambda request: say("Fine."), latency_s=20 * POLL_S)
    config = msgspec.convert({"defaults": {"models": ["scripted/x"]}}, Config, strict=False)
    parts = Parts(
        lambda name: model,
        {},
        authorize=lambda inbound: OWNER,
        store=lambda path, statements: SlowToAnswer(path, statements),
    )
    async with (
        open_app(Settings(Home(tmp_path), config), parts) as app,
        anyio.create_task_group() as tasks,
    ):
        ready = anyio.Event()
        tasks.start_soon(app.run, ready.set)
        await ready.wait()
        await write(app, "go", "steer")
        with anyio.fail_after(30):
            while not model.requests:
                await anyio.sleep(POLL_S)
            session, after = await write(app, "stop that, do this", "interrupt")
            async with aclosing(app.door.follow(session, OWNER, after)) as items:
                async for item in items:
                    if isinstance(getattr(item, "event", None), TurnEnded):
                        break
        tasks.cancel_scope.cancel()
    assert len(model.requests) == 2
