"""A provider asks to wait for long: the person is told at once until when, and what is promised is
done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from deskhand.config.config import read_settings
from deskhand.models.base import Request
from deskhand.runtime.app import App, Parts, open_app
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.clock import SetClock
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.temporary_home import OWNER, wait_for
from deskhand.types.errors import ModelOverloaded
from deskhand.types.events import ModelFailed, TurnEnded
from deskhand.types.messages import Message, Text

SESSION = "default/memory:1"
T0 = 1_700_000_000.0  # 22:13:20 UTC


class Busy:
    """A provider that refuses with these waits, and then answers."""

    def __init__(self, waits: Sequence[float]) -> None:
        self.waits = list(waits)

    def __call__(self, request: Request) -> Message:
        if self.waits:
            raise ModelOverloaded("scripted/test is overloaded.", self.waits.pop(0))
        return say("Here I am.")


class Asked:
    """A person on a channel who asks once; time passes as a test says."""

    def __init__(self, home: Path, waits: Sequence[float]) -> None:
        self.clock, self.channel = SetClock(T0), MemoryChannel()
        self.model = ScriptedModel(Busy(waits))
        self.settings = read_settings(None, {"DESKHAND_HOME": str(home)}).with_model(
            "scripted/test"
        )
        self.parts = Parts(
            lambda name: self.model,
            {},
            channels=(self.channel,),
            clock=self.clock,
            authorize=lambda inbound: OWNER,
        )

    @property
    def heard(self) -> list[str]:
        return [
            "".join(part.text for part in out.parts if isinstance(part, Text))
            for out, _ in self.channel.sent
        ]

    async def until_heard(self, number: int) -> list[str]:
        await wait_for(lambda: _true(len(self.heard) >= number))
        return self.heard

    async def pass_time(self, app: App, seconds: float) -> None:
        """So much time passes, and what was to be woken by then is."""
        self.clock.advance(seconds)
        for row in await app.store.open_sessions():
            if row.wake_at is not None and row.wake_at <= self.clock.now():
                app.dispatch.wake(row.session)


async def _true(value: bool) -> bool:
    return value


async def test_a_wait_is_said_at_once_and_the_promise_is_kept(tmp_path: Path) -> None:
    asked = Asked(tmp_path, [600.0])
    async with open_app(asked.settings, asked.parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        asked.channel.write("hello")
        said = "scripted/test asks to wait. I will try again at 22:23 UTC; /stop cancels that."
        assert await asked.until_heard(1) == [said]
        failed = [
            each.event
            for each in await app.store.events(SESSION)
            if isinstance(each.event, ModelFailed)
        ]
        assert [event.retry_at for event in failed] == [T0 + 600]
        await asked.pass_time(app, 599)
        assert asked.heard == [said]
        await asked.pass_time(app, 1)
        assert await asked.until_heard(2) == [said, "Here I am."]
        tasks.cancel_scope.cancel()


async def test_a_wait_goes_on_after_a_restart(tmp_path: Path) -> None:
    asked = Asked(tmp_path, [600.0])
    async with open_app(asked.settings, asked.parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        asked.channel.write("hello")
        await asked.until_heard(1)
        tasks.cancel_scope.cancel()
    asked.clock.advance(601)
    async with open_app(asked.settings, asked.parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        assert (await asked.until_heard(2))[1] == "Here I am."
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("waits", [[7200.0], [600.0, 7200.0]])
async def test_what_is_too_long_is_not_promised(tmp_path: Path, waits: list[float]) -> None:
    asked = Asked(tmp_path, waits)
    async with open_app(asked.settings, asked.parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        asked.channel.write("hello")
        for number in range(len(waits) - 1):
            await asked.until_heard(number + 1)
            await asked.pass_time(app, waits[number])
        heard = await asked.until_heard(len(waits))
        assert heard[-1] == "Sorry, I could not answer: scripted/test is overloaded."
        ended = [
            each.event
            for each in await app.store.events(SESSION)
            if isinstance(each.event, TurnEnded)
        ]
        assert [event.reason for event in ended] == [
            "failed"
        ] and await app.store.open_sessions() == []
        tasks.cancel_scope.cancel()


async def test_a_short_wait_is_not_worth_a_message(tmp_path: Path) -> None:
    asked = Asked(tmp_path, [29.0])
    async with open_app(asked.settings, asked.parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        asked.channel.write("hello")
        await wait_for(lambda: _rests(app))
        await asked.pass_time(app, 29)
        assert await asked.until_heard(1) == ["Here I am."]
        tasks.cancel_scope.cancel()


async def _rests(app: App) -> bool:
    return any(row.wake_at is not None for row in await app.store.open_sessions())
