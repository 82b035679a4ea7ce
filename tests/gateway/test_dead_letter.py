"""A message that kills the process: it is given up after the fourth time, and everybody else is
answered."""

from __future__ import annotations

from pathlib import Path

import anyio
import msgspec

from deskhand.config.config import Config, Home, Settings
from deskhand.models.base import Request
from deskhand.runtime.app import Parts, open_app
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.crash import Crash, Fuse, fused
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.commit import Change
from deskhand.types.identity import Principal
from deskhand.types.messages import Message

CONFIG = msgspec.convert({"defaults": {"models": ["scripted/test"]}}, Config, strict=False)
ANN = Principal("ann", ("owner",))


def script(request: Request) -> Message:
    last = request.messages[-1].message.text
    if "poison" in last:
        raise Crash("the handler took the process with it")
    return say(f"answer to {last[-5:]}")


async def live(home: Path, channel: MemoryChannel, seconds: float) -> bool:
    """One life of the process, of at most so long. True when it crashed."""
    model = ScriptedModel(script, latency_s=0.02)
    parts = Parts(lambda name: model, {}, {}, (channel,), lambda inbound: ANN, fused(Fuse()))
    try:
        async with (
            open_app(Settings(Home(home), CONFIG), parts) as app,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(app.run)
            with anyio.move_on_after(seconds):
                while (
                    channel.waiting
                    or await app.store.open_sessions()
                    or await app.store.outbox_due(1e12, 9)
                ):
                    await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        assert group.subgroup(Crash) is not None
        return True
    return False


async def test_poison_is_given_up_and_the_next_message_answered(tmp_path: Path) -> None:
    channel = MemoryChannel()
    channel.write("poison", chat="1")
    channel.write("first", chat="2")
    crashes = 0
    while await live(tmp_path, channel, 30):
        crashes += 1
        assert crashes <= 5
    channel.write("again", chat="1")
    channel.write("other", chat="2")
    assert not await live(tmp_path, channel, 30)
    sent: dict[str, list[str]] = {"1": [], "2": []}
    for outgoing, mark in channel.sent:
        text: str = outgoing.parts[0].text  # type: ignore[union-attr]
        if not (
            mark and text in sent[outgoing.address.chat]
        ):  # a send that a crash cut off is repeated, and says so
            sent[outgoing.address.chat].append(text)
    store = SqliteStore(Home(tmp_path).database)
    letters = store._fetch_all("SELECT session, reason FROM dead_letter")
    await store.close()
    assert crashes == 4
    assert sent["1"][0].startswith(
        "Sorry, I encountered an error and gave this up: it ended the whole process"
    )
    assert sent["1"][1:] == ["answer to again"] and sent["2"] == [
        "answer to first",
        "answer to other",
    ]
    assert [session for session, _ in letters] == ["default/memory:1"]


async def test_a_log_that_cannot_be_read_stops_nobody_else(tmp_path: Path) -> None:
    channel = MemoryChannel()
    channel.write("first", chat="1")
    assert not await live(tmp_path, channel, 30)
    broken = SqliteStore(
        Home(tmp_path).database, {"break": "UPDATE event SET body = x'7b' WHERE n = 2"}
    )
    await broken.change((Change("break", ()),))
    await broken.close()
    channel.write("again", chat="1")
    channel.write("other", chat="2")
    assert not await live(tmp_path, channel, 4)
    answers = [outgoing.parts[0].text for outgoing, _ in channel.sent]  # type: ignore[union-attr]
    assert answers == ["answer to first", "answer to other"]
