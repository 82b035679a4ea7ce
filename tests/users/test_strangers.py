"""Who is not known here gets in nowhere, and is told so at most once in a while."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.config.config import Config, Home, Settings
from deskhand.runtime.app import App, Parts, open_app
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.clock import SetClock
from deskhand.testing.scripted import ScriptedModel
from deskhand.types.commit import Outgoing
from deskhand.types.errors import ChannelError, ConfigError
from deskhand.types.identity import Address, Inbound, Principal, Said
from deskhand.types.messages import Message, Text
from deskhand.users.strangers import REJECTION, REPEAT_AFTER_S

ANN = Principal("ann", ("owner",))
KID = Principal("kid", ("family",))


@asynccontextmanager
async def running(
    home: Path, channel: MemoryChannel, clock: SetClock, how: str
) -> AsyncIterator[App]:
    config = msgspec.convert(
        {"reject_response": how, "roles": {"family": {"agents": ["kitchen"]}}}, Config
    )
    settings = Settings(Home(home), config).with_model("scripted/test")
    parts = Parts(
        lambda name: ScriptedModel(),
        {},
        channels=(channel,),
        authorize=lambda inbound: {"ann": ANN, "kid": KID}.get(inbound.sender),
        clock=clock,
    )
    async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        yield app
        tasks.cancel_scope.cancel()


async def until(true: Callable[[], bool]) -> None:
    with anyio.fail_after(10):
        while not true():
            await anyio.sleep(0.005)


def texts(channel: MemoryChannel) -> list[tuple[str, str]]:
    return [
        (o.address.chat, "".join(p.text for p in o.parts if isinstance(p, Text)))
        for o, _ in channel.sent
    ]


async def test_a_stranger_may_be_ignored(tmp_path: Path) -> None:
    channel = MemoryChannel()
    async with running(tmp_path, channel, SetClock(1e9), "ignore") as app:
        channel.write("let me in", chat="eve", sender="eve")
        channel.write("hello", chat="ann")
        await until(lambda: len(channel.sent) == 1)
        assert texts(channel) == [("ann", "You said: hello")]
        assert [row.chat for row in await app.store.sessions(ANN)] == ["ann"]


async def test_a_stranger_is_told_once_in_a_while(tmp_path: Path) -> None:
    channel, clock = MemoryChannel(), SetClock(1e9)
    async with running(tmp_path, channel, clock, "announce") as app:
        for number in range(3):
            channel.write(f"let me in {number}", chat="eve", sender="eve")
        channel.write("me too", chat="bob", sender="bob")
        await until(lambda: not channel.waiting)
        assert texts(channel) == [("eve", REJECTION), ("bob", REJECTION)]
        clock.advance(REPEAT_AFTER_S)
        words = Said(Message("user", (Text("and now?"),)))
        channel.waiting.append(
            Inbound("99", Address("memory", chat="all", group=True), "eve", 1.0, words)
        )
        await until(lambda: not channel.waiting)
        assert texts(channel)[2:] == [("all", REJECTION)] and channel.sent[-1][0].reply_to == "99"
        assert await app.store.sessions(ANN) == [] and app.store.last_inbox_id() == 0, (
            "nothing of theirs is stored"
        )


async def test_a_platform_that_will_not_tell_them_is_no_trouble(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Mute(MemoryChannel):
        async def send(self, outgoing: Outgoing, mark: str) -> str:
            if outgoing.address.chat == "eve":
                raise ChannelError("not now")
            return await super().send(outgoing, mark)

    channel = Mute()
    async with running(tmp_path, channel, SetClock(1e9), "announce"):
        channel.write("let me in", chat="eve", sender="eve")
        channel.write("hello", chat="ann")
        await until(lambda: texts(channel) == [("ann", "You said: hello")])
    assert channel.confirmed == ["1", "2"]
    assert "cannot answer a stranger" in caplog.text and "broke" not in caplog.text


@pytest.mark.parametrize("how", ["ignore", "announce"])
async def test_what_is_refused_for_another_reason_is_not_theirs(tmp_path: Path, how: str) -> None:
    channel = MemoryChannel()
    async with running(tmp_path, channel, SetClock(1e9), how):
        channel.write("x" * 1_000_001, chat="ann")
        await until(lambda: not channel.waiting)
    assert channel.sent == []


@pytest.mark.parametrize(
    ("how", "told"), [("announce", 1), ("auto", 1), ("pair", 1), ("ignore", 0)]
)
async def test_who_is_known_hears_that_an_agent_is_not_for_them(
    tmp_path: Path, how: str, told: int
) -> None:
    channel = MemoryChannel()
    async with running(tmp_path, channel, SetClock(1e9), how) as app:
        channel.write("hello", chat="kid", sender="kid")
        channel.write("hello?", chat="kid", sender="kid")
        await until(lambda: not channel.waiting)
        assert texts(channel) == [("kid", "You don't have access to this agent.")] * told
        assert app.store.last_inbox_id() == 0, "nothing of theirs is stored"
        assert [
            (note.who, note.what, note.subject) for note in await app.people.list_audit_notes()
        ] == [("kid", "write to agent", "default")]


async def test_a_channel_speaks_for_no_other(tmp_path: Path) -> None:
    """What it hands in under another name, such as that of the terminal, is dropped."""
    channel = MemoryChannel()
    async with running(tmp_path, channel, SetClock(1e9), "announce") as app:
        forged = channel.write("hello", chat="1", sender="ann")
        channel.waiting[0] = msgspec.structs.replace(forged, address=Address("terminal", chat="1"))
        channel.write("hello", chat="2", sender="ann")
        await until(lambda: len(channel.sent) == 1)
        assert [row.session for row in await app.store.sessions(ANN)] == ["default/memory:2"]
    for name in ("terminal", "web", "api", "door"):
        with pytest.raises(ConfigError, match="uses that name itself"):
            async with running(tmp_path, MemoryChannel(name), SetClock(1e9), "auto"):
                raise AssertionError("it was opened")
