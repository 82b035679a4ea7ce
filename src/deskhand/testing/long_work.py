"""A whole Deskhand for tests of long work: one scripted model, a channel in memory, and a clock
that never stands."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec

from ..assembly.tools import builtin_tools, skills_of
from ..config.config import Config, Home, Settings
from ..runtime.app import App, Parts, open_app
from ..store.base import Store
from ..store.sqlite import SqliteStore
from ..tools.deferred import defer_tools
from ..types import events as e
from ..types.identity import Principal
from ..types.messages import Text
from .channel import MemoryChannel
from .clock import SetClock
from .long_worker import StepEffect
from .scripted import Script, ScriptedModel

ANN = Principal("ann", ("owner",))
BOB = Principal("bob", ("member",))
SESSION = "default/memory:1"


class Ticking(SetClock):
    """Each look at it is a little later."""

    def now(self) -> float:
        self.advance(0.001)
        return self.at


class House:
    """`deep` is its `deep_work`; `done` the file in which the tools of `long_worker` note what they
    did."""

    def __init__(self, home: Path, script: Script, **deep: Any) -> None:
        raw = {"defaults": {"models": ["scripted/x"]}, "deep_work": deep}
        self.settings = Settings(Home(home), msgspec.convert(raw, Config))
        self.model, self.channel, self.clock = ScriptedModel(script), MemoryChannel(), Ticking()
        self.done = home / "done.txt"
        self.store: Callable[[Path, Mapping[str, str]], Store] = SqliteStore

    @asynccontextmanager
    async def running(self, *, known: bool = True) -> AsyncIterator[App]:
        """Drive it. Unless the person is `known`, the users in the store are asked, and there are
        none."""
        every = builtin_tools(self.settings, "default", skills_of(self.settings, "default"))
        effects = (StepEffect(self.done), StepEffect(self.done, check=True))
        tools = defer_tools(
            {tool.spec.name: tool for tool in (*every, *effects)}, frozenset({"manage_tasks"})
        )
        who = (lambda inbound: BOB if inbound.sender == BOB.id else ANN) if known else None
        parts = Parts(
            lambda name: self.model,
            tools,
            channels=(self.channel,),
            authorize=who,
            store=self.store,
            clock=self.clock,
        )
        async with open_app(self.settings, parts) as app, anyio.create_task_group() as tasks:
            tasks.start_soon(app.run)
            with anyio.fail_after(40):
                yield app
            tasks.cancel_scope.cancel()

    def said(self) -> list[str]:
        """What the person has been told."""
        parts = [
            [part.text for part in sent.parts if isinstance(part, Text)]
            for sent, _ in self.channel.sent
        ]
        return ["".join(each) for each in parts]

    async def hears(self, words: str) -> str:
        """Waits until the person is told something with these words in it."""
        while True:
            if found := [text for text in self.said() if words in text]:
                return found[0]
            await anyio.sleep(0.01)


async def log(app: App, session: str = SESSION) -> list[e.AnyEvent]:
    """What has happened in the conversation."""
    return [recorded.event for recorded in await app.store.events(session)]


async def until(app: App, found: Callable[[list[e.AnyEvent]], bool]) -> list[e.AnyEvent]:
    """Wait until this is found in it."""
    while not found(events := await log(app)):  # noqa: ASYNC110 -- the log tells
        await anyio.sleep(0.01)
    return events


def nudges(events: list[e.AnyEvent], who: str = "deep-work") -> list[e.MessageReceived]:
    """When it was told to go on, by this hand."""
    return [
        each for each in events if isinstance(each, e.MessageReceived) and each.principal.id == who
    ]
