"""One person floods: nothing of anybody is lost, nobody else waits until the flood is over, and
what is held in memory stays small."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import anyio
import msgspec

from deskhand.config.config import Config, Home, Settings
from deskhand.runtime.app import OWNER, Parts, open_app
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.scripted import ScriptedModel, echo
from deskhand.types.events import MessageReceived

FLOOD = 1_000
OTHERS = 50


async def test_a_flood_of_one_holds_up_nobody(tmp_path: Path) -> None:
    loud, calm = MemoryChannel("loud"), MemoryChannel("calm")
    config = msgspec.convert({"defaults": {"models": ["scripted/echo"]}}, Config)
    settings = Settings(Home(tmp_path), config, environment={"HOME": str(tmp_path)})
    parts = Parts(
        lambda _: ScriptedModel(echo), channels=(loud, calm), authorize=lambda inbound: OWNER
    )
    for number in range(FLOOD):
        loud.write(f"flood {number}", chat="1", external_id=f"f{number}")
    tracemalloc.start()
    async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
        before, _ = tracemalloc.get_traced_memory()
        tasks.start_soon(app.run)
        for number in range(OTHERS):
            calm.write("hello", chat=str(number), external_id=f"c{number}")
        with anyio.fail_after(60):
            while len(calm.sent) < OTHERS:
                await anyio.sleep(0.01)
            while_others_waited = len(loud.confirmed)
            while len(loud.confirmed) < FLOOD or not answered(loud):
                await anyio.sleep(0.05)
        log = await app.store.events("default/loud:1")
        after, _ = tracemalloc.get_traced_memory()
        tasks.cancel_scope.cancel()
    tracemalloc.stop()
    assert while_others_waited < FLOOD, "the others were answered while it went on"
    assert {outgoing.address.chat for outgoing, _ in calm.sent} == {str(n) for n in range(OTHERS)}
    assert len(calm.sent) == OTHERS
    heard = [each.event.message.text for each in log if isinstance(each.event, MessageReceived)]
    assert heard == [f"flood {number}" for number in range(FLOOD)], "all of it, once, in order"
    assert after - before < 60 * 2**20


def answered(channel: MemoryChannel) -> bool:
    last, _ = channel.sent[-1]
    return any(f"flood {FLOOD - 1}" in getattr(part, "text", "") for part in last.parts)
