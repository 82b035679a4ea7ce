"""The tool `cron`: what is asked for in a chat is done when it is due, and said there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec

from deskhand.models.base import Request
from deskhand.runtime.app import App
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.jobs import JobDesk
from deskhand.testing.scripted import say
from deskhand.types.events import MessageReceived
from deskhand.types.identity import Address, Principal
from deskhand.types.jobs import CHAT, Job
from deskhand.types.messages import Message, Text, ToolCall, ToolResult
from deskhand.types.people import Identity

NOW = 1_700_000_000.0  # Tue Nov 14 22:13:20 UTC 2023
HERE = Address("memory", "", "1")


class Chat:
    """Somebody's chat with an agent that calls tools as the test says; `told` is what it got for each call."""

    def __init__(self, home: Path, **config: Any) -> None:
        self.next: ToolCall | None = None
        self.told: list[tuple[str, str]] = []
        self.desk = JobDesk(home, self._say, **config)
        self.channel = MemoryChannel()

    def _say(self, request: Request) -> Message:
        last = request.messages[-1].message
        for part in last.parts:
            if isinstance(part, ToolResult):
                self.told.append((part.status, part.text))
                return say("noted")
        if self.next is not None:
            call, self.next = self.next, None
            return say("", call)
        return say(f"answer to: {last.text.strip().splitlines()[-1]}")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[App]:
        """`owner` and `ann`, a member, are known on the channel under their names."""
        async with self.desk.running((self.channel,)) as app:
            known = {user.name for user in await app.people.users()}
            await app.people.link("owner", Identity("memory", "owner"))
            if "ann" not in known:
                await app.people.add_user("ann", "member", Identity("memory", "ann"))
            yield app

    async def call(self, tool: str, sender: str = "owner", chat: str = "1", **arguments: Any) -> tuple[str, str]:
        """The person writes something, and the agent makes this call."""
        self.next = ToolCall("c", tool, msgspec.Raw(msgspec.json.encode(arguments)))
        before = len(self.told)
        self.channel.write("go", chat, sender=sender)
        with anyio.fail_after(30):
            while len(self.told) == before:
                await anyio.sleep(0.005)
        return self.told[-1]

    async def sent(self, number: int) -> list[str]:
        with anyio.fail_after(30):
            while len(self.channel.sent) < number:
                await anyio.sleep(0.005)
        return ["".join(part.text for part in out.parts if isinstance(part, Text)) for out, _ in self.channel.sent]


async def test_what_is_asked_for_is_done_when_it_is_due_and_said_there(tmp_path: Path) -> None:
    chat = Chat(tmp_path, timezone="Europe/Berlin")
    async with chat.running() as app:
        status, text = await chat.call(
            "cron", mode="add", name="Tea!", schedule_mode="at", schedule_expr="in 20m", message="Is the tea ready?"
        )
        when, cost = text.split(". ", 1)
        assert (status, when) == ("ok", "ok, tea: once, at 2023-11-14 23:33; next: 2023-11-14 23:33 (Europe/Berlin)")
        assert cost == "Forecast: 1 run in 30 days; each takes what its conversation does; `tokens:` bounds it."
        view = await app.works.jobs.get("tea")
        assert view.job == Job(
            "tea",
            "Is the tea ready?",
            schedule="at 2023-11-14T22:33:20.000+00:00",
            agent="default",
            session=CHAT,
            to=HERE,
            delete_after_run=True,
        )
        sent = await chat.sent(1)
        await chat.desk.pass_time(app, 1199)
        assert len(chat.channel.sent) == 1
        await chat.desk.pass_time(app, 1)
        sent = await chat.sent(2)
        assert sent == ["noted", "answer to: Is the tea ready?"]
        assert [out.address for out, _ in chat.channel.sent] == [HERE, HERE]
        events = [e.event for e in await app.store.events("default/memory:1")]
        heard = [event for event in events if isinstance(event, MessageReceived)]
        assert heard[-1].principal == Principal("job:tea", ("owner",), "clock", "owner")
        await chat.desk.look(app)
        assert await app.works.jobs.all() == [] or "tea" not in [v.name for v in await app.works.jobs.all()]
