"""A Deskhand whose model answers the questions that are asked beside conversations as a test
says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from deskhand.config.config import Config, Home, Settings
from deskhand.memory import clean, project_days, reflect
from deskhand.memory import fact_extraction as harvest
from deskhand.memory.facts import Fact
from deskhand.memory.queries import get_facts
from deskhand.models.base import Reply, Request
from deskhand.runtime.app import App
from deskhand.testing.clock import SetClock
from deskhand.testing.jobs import JobDesk
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.temporary_home import OWNER, TemporaryHome, at_rest, wait_for
from deskhand.types.events import MessageReceived
from deskhand.types.identity import Address, Inbound, Principal, Said
from deskhand.types.jobs import Run
from deskhand.types.messages import Message

NOON = 1_763_812_800.0
"""2025-11-22 12:00 UTC."""
ASKED = {
    harvest.SYSTEM[:40]: "harvest",
    clean.SYSTEM[:40]: "clean",
    reflect.SYSTEM[:40]: "reflect",
    project_days.SYSTEM[:40]: "promote",
}
STAFF = OWNER
Answer = Callable[[str], Any]


class Study(TemporaryHome):
    """`answers` say what comes back to each kind of question, by its text; `asked` are those texts.
    `talk` is what the model says in conversations. `due`: the chores are also done when they are
    due, else only when a test says so."""

    def __init__(self, home: Path, due: bool = False, **config: Any) -> None:
        super().__init__(home)
        if not due:
            off = {"enabled": False}
            config["memory"] = {"harvester": off, "cleaner": off} | config.get("memory", {})
            config["reflection"] = off | config.get("reflection", {})
        self.settings = Settings(
            Home(home),
            msgspec.convert(
                {"defaults": {"models": ["scripted/x"]}} | config, Config, strict=False
            ),
            (),
            {},
        )
        self.clock = SetClock(NOON)
        self._desk = JobDesk(home, clock=self.clock)
        self.answers: dict[str, Answer] = {}
        self.asked: list[tuple[str, str]] = []
        self.talk: Callable[[Request], Message] = lambda request: say("fine")
        self.model = ScriptedModel(self._script)

    def _script(self, request: Request) -> Message | Reply:
        kind = next(
            (name for start, name in ASKED.items() if request.system[0].startswith(start)), ""
        )
        if not kind:
            return self.talk(request)
        text = request.messages[-1].message.text
        self.asked.append((kind, text))
        answer = self.answers[kind](text)
        return say(answer if isinstance(answer, str) else msgspec.json.encode(answer).decode())

    @asynccontextmanager
    async def running(self, **more: Any) -> AsyncIterator[App]:
        async with super().running(clock=self.clock, **more) as app:
            await self._desk.look(app)
            yield app

    async def pass_time(self, app: App, seconds: float) -> None:
        """So much time passes, and what is due is begun."""
        self.clock.advance(seconds)
        await self._desk.look(app)

    async def ended(self, app: App, name: str, number: int = 1) -> Run:
        """The latest run of a job, once so many are over."""
        return await self._desk.ended(app, name, number)

    async def chat(self, app: App, *texts: str, chat: str = "1") -> str:
        """The owner says these, one after the other, and hears an answer to each. Returns the
        session."""
        session = f"default/terminal:{chat}"
        for text in texts:
            before = await self._received(app, session)
            session = await self.say(app, text, chat)
            await wait_for(partial(self._answered, app, session, before))
        return session

    async def say_message(
        self, app: App, message: Message, by: Principal = OWNER, group: bool = False
    ) -> str:
        """The same with the labels of its parts as they are: what a person hands on from elsewhere,
        or nobody said."""
        address = Address("terminal", chat="1", group=group)
        session = "default/terminal:1"
        inbound = Inbound(
            app.parts.ids.new("said"), address, "owner", self.clock.now(), Said(message), session
        )
        before = await self._received(app, session)
        await app.store.accept(inbound, by, session)
        app.dispatch.wake(session)
        await wait_for(partial(self._answered, app, session, before))
        return session

    async def _received(self, app: App, session: str) -> int:
        return sum(
            isinstance(each.event, MessageReceived) for each in await app.store.events(session)
        )

    async def _answered(self, app: App, session: str, before: int) -> bool:
        return await self._received(app, session) > before and await at_rest(app, session)


async def facts(app: App, *, all_: bool = False) -> list[Fact]:
    """What is there, the oldest first; all: what is over too."""
    found = await get_facts(app.store, range(1, 300))
    return sorted(
        (fact for fact in found if all_ or fact.valid_to is None), key=lambda fact: fact.id
    )


def texts(found: list[Fact]) -> list[str]:
    return [fact.text for fact in found]
