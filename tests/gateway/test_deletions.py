"""Somebody takes their message back: it is not read if nobody has read it yet, and what was read is
told to the agent as taken back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.config.config import Config, Home, Settings
from deskhand.models.base import Request
from deskhand.runtime.app import App, Parts, open_app
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.tools.base import Context, Outcome, Spec, make_result
from deskhand.types.events import MessageDeleted
from deskhand.types.identity import Deletion, Inbound
from deskhand.types.labels import LOCAL
from deskhand.types.messages import Message, ToolCall
from deskhand.types.people import Identity


class Slow:
    """A tool that is at work until `go` is set."""

    def __init__(self) -> None:
        self.spec = Spec("look", "Takes its time.", {"type": "object"}, "none", "again")
        self.go = anyio.Event()
        self.is_running = False

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        self.is_running = True
        await self.go.wait()
        return make_result("looked", LOCAL)


class Desk:
    """Ann and Bob write; the model says what it was told, once it is let go."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.channel = MemoryChannel()
        self.busy = anyio.Event()
        self.go = anyio.Event()
        self.go.set()
        self.told: list[str] = []
        self.slow = Slow()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[App]:
        desk = self

        class Waiting(ScriptedModel):
            async def reply(self, request: Request):  # type: ignore[no-untyped-def]
                desk.busy.set()
                await desk.go.wait()
                async for item in super().reply(request):
                    yield item

        config = msgspec.convert({"defaults": {"models": ["scripted/x"]}}, Config)
        settings = Settings(Home(self.home), config, environment={"HOME": str(self.home)})
        tools = {"look": self.slow}
        parts = Parts(lambda _: Waiting(self._answer), tools, channels=(self.channel,))
        async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
            await app.people.add_user("ann", "member", Identity("memory", "ann"))
            await app.people.add_user("bob", "member", Identity("memory", "bob"))
            tasks.start_soon(app.run)
            yield app
            tasks.cancel_scope.cancel()

    def _answer(self, request: Request) -> Message:
        heard = [each.message.text for each in request.messages if each.message.role == "user"]
        self.told = [text.partition("] ")[2] for text in heard]
        if self.told == ["look at everything"] and request.messages[-1].message.role == "user":
            return say("", ToolCall("c1", "look", msgspec.Raw(b"{}")))
        return say("answered")

    def deletes(self, written: Inbound, *, sender: str = "") -> None:
        deletion = msgspec.structs.replace(
            written,
            external_id=f"deleted:{written.external_id}:{sender}",
            sender=sender or written.sender,
            body=Deletion(written.external_id),
        )
        self.channel.waiting.append(deletion)

    async def until_answered(self, count: int) -> None:
        with anyio.fail_after(20):
            while len(self.channel.sent) < count:
                await anyio.sleep(0.005)

    async def until_told(self, text: str) -> None:
        """Until the model was told this; in a turn of its own or in another."""
        with anyio.fail_after(20):
            while text not in self.told:
                await anyio.sleep(0.005)

    async def until_taken(self, count: int) -> None:
        with anyio.fail_after(20):
            while len(self.channel.confirmed) < count:
                await anyio.sleep(0.005)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def test_what_nobody_has_read_is_never_read(desk: Desk) -> None:
    async with desk.running() as app:
        desk.go = anyio.Event()
        desk.channel.write("one", external_id="m1")
        await desk.busy.wait()
        desk.channel.write("never mind", external_id="m2")
        desk.deletes(desk.channel.waiting[-1])
        desk.channel.write("two", external_id="m3")
        await desk.until_taken(4)
        desk.go.set()
        await desk.until_answered(1)
        desk.channel.write("three", external_id="m4")
        await desk.until_told("three")
        assert await app.store.list_waiting("default/memory:1") == []
    assert desk.told == ["one", "two", "three"]


async def test_what_was_read_is_told_as_taken_back(desk: Desk) -> None:
    async with desk.running():
        written = desk.channel.write("delete everything", external_id="m1")
        await desk.until_answered(1)
        desk.deletes(written)
        desk.channel.write("hello", external_id="m2")
        await desk.until_answered(2)
    assert desk.told[0] == "delete everything"
    assert "[took back an earlier message: delete everything]" in desk.told[1]


async def test_where_the_platform_does_not_say_whose_it_was(desk: Desk) -> None:
    async with desk.running() as app:
        written = desk.channel.write("never mind", external_id="m1")
        await desk.until_answered(1)
        nobodys = msgspec.structs.replace(written, sender="", external_id="m9")
        desk.channel.waiting.append(msgspec.structs.replace(nobodys, body=Deletion("m1")))
        desk.channel.waiting.append(msgspec.structs.replace(nobodys, body=Deletion("unknown")))
        desk.channel.write("hello", external_id="m2")
        await desk.until_answered(2)
        deleted = [
            each.event
            for each in await app.store.events("default/memory:1")
            if isinstance(each.event, MessageDeleted)
        ]
    assert [(each.principal.id, each.said) for each in deleted] == [("ann", "never mind")]
    assert len(desk.channel.sent) == 2, "nobody is told anything of what was never heard"


async def test_what_is_worked_on_is_told_at_once(desk: Desk) -> None:
    async with desk.running():
        written = desk.channel.write("look at everything", external_id="m1")
        with anyio.fail_after(20):
            while not desk.slow.is_running:
                await anyio.sleep(0.005)
        desk.deletes(written)
        await desk.until_taken(2)
        desk.slow.go.set()
        await desk.until_answered(1)
    assert desk.told == ["look at everything", "deleted: look at everything"]


async def test_what_is_not_theirs_is_not_taken_back(desk: Desk) -> None:
    """Neither what another person wrote nor what was never said to an agent; it leaves no trace."""
    async with desk.running() as app:
        written = desk.channel.write("one", external_id="m1")
        await desk.until_answered(1)
        desk.deletes(written, sender="bob")
        desk.deletes(msgspec.structs.replace(written, external_id="unknown"))
        desk.channel.write("two", external_id="m2")
        await desk.until_answered(2)
        kinds = [type(each.event).__name__ for each in await app.store.events("default/memory:1")]
    assert desk.told == ["one", "two"] and "MessageDeleted" not in kinds
    assert len(desk.channel.confirmed) == 4
