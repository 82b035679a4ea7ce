"""Deep work in a whole Deskhand: planned, approved, pushed on, and resting where it cannot go on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec

from deskhand.models.base import Request
from deskhand.runtime.app import App, Parts, open_app
from deskhand.runtime.config import Config, Home, Settings
from deskhand.runtime.toolbox import ours, skills_of
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.clock import SetClock
from deskhand.testing.scripted import Script, ScriptedModel
from deskhand.testing.steadfast import Effect, Steadfast
from deskhand.types import events as e
from deskhand.types.identity import Principal
from deskhand.types.messages import Text, ToolCall, ToolResult

ANN = Principal("ann", ("owner",))
SESSION = "default/memory:1"


class House:
    """A Deskhand with one scripted model and a channel."""

    def __init__(self, home: Path, script: Script, **deep: Any) -> None:
        raw = {"defaults": {"models": ["scripted/x"]}, "deep_work": deep}
        self.settings = Settings(Home(home), msgspec.convert(raw, Config))
        self.model, self.channel, self.clock = ScriptedModel(script), MemoryChannel(), SetClock()
        self.done = home / "done.txt"

    @asynccontextmanager
    async def running(self) -> AsyncIterator[App]:
        every = ours(self.settings, "default", skills_of(self.settings, "default"))
        effects = (Effect(self.done), Effect(self.done, check=True))
        tools = {tool.spec.name: tool for tool in (*every, *effects)}
        parts = Parts(
            lambda name: self.model, tools, channels=(self.channel,), authorise=lambda inbound: ANN, clock=self.clock
        )
        async with open_app(self.settings, parts) as app, anyio.create_task_group() as tasks:
            tasks.start_soon(app.run)
            with anyio.fail_after(40):
                yield app
            tasks.cancel_scope.cancel()

    def said(self) -> list[str]:
        parts = [[part.text for part in sent.parts if isinstance(part, Text)] for sent, _ in self.channel.sent]
        return ["".join(each) for each in parts]

    async def hears(self, words: str) -> str:
        """Waits until the person is told something with these words in it."""
        while True:
            if found := [text for text in self.said() if words in text]:
                return found[0]
            await anyio.sleep(0.01)


async def log(app: App) -> list[e.AnyEvent]:
    return [recorded.event for recorded in await app.store.events(SESSION)]


async def until(app: App, found: Callable[[list[e.AnyEvent]], bool]) -> list[e.AnyEvent]:
    while not found(events := await log(app)):
        await anyio.sleep(0.01)
    return events


def nudges(events: list[e.AnyEvent], who: str = "deep-work") -> list[e.MessageReceived]:
    return [each for each in events if isinstance(each, e.MessageReceived) and each.principal.id == who]


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(f"{name}-{abs(hash(str(arguments)))}", name, msgspec.Raw(msgspec.json.encode(arguments)))


def results(request: Request) -> list[str]:
    parts = (part for shown in request.messages for part in shown.message.parts)
    return [part.text for part in parts if isinstance(part, ToolResult)]


async def test_it_plans_first_and_then_works_until_all_is_done(tmp_path: Path) -> None:
    house = House(tmp_path, Steadfast(16))
    async with house.running() as app:
        house.channel.write("/deep do all sixteen steps")
        (ask,) = [each for each in await until(app, _asked) if isinstance(each, e.ApprovalAsked)]
        assert ask.question.startswith("exit_plan_mode") and not house.done.exists()
        house.channel.write("yes", external_id="yes")
        await house.hears("16 of 16 tasks done (100 %)")
        events = await log(app)
        rows = app.works.deep.graph(SESSION)
    assert house.done.read_text().splitlines() == [f"step {n}" for n in range(1, 17)]
    assert [task.status for task in rows.values()] == ["completed"] * 16 and max(rows) == 16
    pushed = nudges(events)
    assert len(pushed) == 2 and all(each.principal.on_behalf_of == "ann" for each in pushed)
    assert all(each.principal.roles == ("owner",) and each.principal.kind == "agent" for each in pushed)
    assert "All 16 steps are done." in house.said()


def _asked(events: list[e.AnyEvent]) -> bool:
    return any(isinstance(each, e.ApprovalAsked) for each in events)
