"""A clock that jumps: back by a day, as after a wrong start, and forward."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.models.base import Request
from deskhand.runtime.app import Parts, open_app
from deskhand.runtime.config import Config, Home, Settings
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.clock import SetClock
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.commit import Outgoing
from deskhand.types.errors import ChannelError
from deskhand.types.identity import Principal
from deskhand.types.messages import Message, Text

CONFIG = msgspec.convert({"defaults": {"models": ["scripted/x"]}}, Config)
ANN = Principal("ann", ("owner",))
DAY_S = 86_400.0


class Refusing(MemoryChannel):
    """Takes the second try of each answer."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: list[str] = []

    async def send(self, outgoing: Outgoing, mark: str) -> str:
        if outgoing.key not in self.refused:
            self.refused.append(outgoing.key)
            raise ChannelError("not now", unsent=True)
        return await super().send(outgoing, mark)


async def until(true: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not true():
            await anyio.sleep(0.01)


def repeat(request: Request) -> Message:
    return say(f"heard {request.messages[-1].message.text.split()[-1]}")


@pytest.mark.parametrize("jump_s", [-DAY_S, DAY_S])
async def test_nothing_waits_for_the_clock_to_catch_up(jump_s: float, tmp_path: Path) -> None:
    """A try that was put off before the jump is made soon after it; the order, the log and its chain hold."""
    clock, channel = SetClock(), Refusing()
    parts = Parts(lambda name: ScriptedModel(repeat), {}, {}, (channel,), lambda inbound: ANN, clock=clock)
    async with open_app(Settings(Home(tmp_path), CONFIG), parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        for number in range(3):
            channel.write(f"m{number}")
            await until(lambda: len(channel.refused) == number + 1)  # noqa: B023 -- awaited at once
            clock.advance(jump_s)
            clock.advance(5)
            await until(lambda: len(channel.sent) == number + 1)  # noqa: B023
        tasks.cancel_scope.cancel()
        texts = [part.text for out, _ in channel.sent for part in out.parts if isinstance(part, Text)]
        assert texts == ["heard m0", "heard m1", "heard m2"]
        assert not (await app.store.audit())[1]  # type: ignore[attr-defined]
