"""What a service that runs for months keeps in memory does not grow with the people, conversations
and messages that it has seen."""

from __future__ import annotations

import gc
from asyncio import TimerHandle
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import FunctionType, ModuleType

import anyio
import msgspec
import pytest

from deskhand.budgets import enforcement as budgets
from deskhand.config.config import Config, Home, Settings
from deskhand.gateway import door
from deskhand.gateway import streamed_replies as drafts
from deskhand.learning import recall as remembering
from deskhand.models.base import Request
from deskhand.runtime.app import OWNER, App, Parts, open_app
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.scripted import ScriptedModel, open_scripted, say
from deskhand.types.identity import Principal
from deskhand.types.messages import Message, ToolCall

CHATS = 150
FEW = 20
"""The bounds of this test, so that it need not talk to thousands."""
GROWN = CHATS // 2


class Desk:
    """A service with one channel, where each message is another chat's."""

    def __init__(self, home: Path, answer: str = "Fine.") -> None:
        self.channel = MemoryChannel()
        self.model = ScriptedModel(lambda request: say(answer), remember=False)
        self.settings = Settings(
            Home(home), msgspec.convert({"defaults": {"models": ["scripted/x"]}}, Config)
        )
        self._written = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[App]:
        parts = Parts(
            lambda name: self.model,
            channels=(self.channel,),
            authorize=lambda inbound: Principal(f"p{inbound.sender}", ("owner",)),
        )
        async with open_app(self.settings, parts) as app, anyio.create_task_group() as tasks:
            tasks.start_soon(app.run)
            yield app
            tasks.cancel_scope.cancel()

    async def talk(self, chats: range, text: str = "hello") -> None:
        """Somebody else writes in each of these chats, and is answered."""
        with anyio.fail_after(60):
            for chat in chats:
                self._written += 1
                self.channel.write(text, str(chat), f"m{self._written}", sender=str(chat))
                while not self.channel.sent or self.channel.sent[-1][0].address.chat != str(chat):
                    await anyio.sleep(0.001)
            self.channel.sent.clear()
            self.channel.confirmed.clear()


def containers(root: object) -> dict[int, tuple[str, int]]:
    """Every dict, list, set and deque that can be reached from here, by its id: what it holds, and
    how much. A deque with a bound of its own is none that grows, and timers that were cancelled do
    not count: asyncio keeps up to a hundred of them."""
    found: dict[int, tuple[str, int]] = {}
    seen = {id(root)}
    left: list[tuple[object, str]] = [(root, "app")]
    while left:
        each, name = left.pop()
        if isinstance(each, (dict, list, set, deque)) and getattr(each, "maxlen", None) is None:
            found[id(each)] = (name, len(each) - sum(map(_is_cancelled_timer, each)))
        for inner in gc.get_referents(each):
            if id(inner) in seen or isinstance(inner, (type, ModuleType, str, bytes, int)):
                continue
            if isinstance(inner, FunctionType):
                left += [(cell, name) for cell in inner.__closure__ or ()]
                continue
            seen.add(id(inner))
            left.append((inner, f"{name} > {type(inner).__qualname__}"))
    return found


def _is_cancelled_timer(entry: object) -> bool:
    return isinstance(entry, TimerHandle) and entry.cancelled()


async def test_nothing_grows_with_the_conversations_there_have_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in (
        (budgets, "MAX_ADDRESSES"),
        (drafts, "MAX_PLACES"),
        (remembering, "PEOPLE_KNOWN"),
    ):
        monkeypatch.setattr(module, name, FEW)
    for module, name in ((door, "MAX_OWN_ROWS"), (door, "MAX_CHECKED_NAMES")):
        monkeypatch.setattr(module, name, FEW)
    desk = Desk(tmp_path / "home")
    async with desk.running() as app:
        app.dispatch.most_sessions = FEW
        await desk.talk(range(CHATS))
        gc.collect()
        before = containers(app)
        await desk.talk(range(CHATS, 2 * CHATS))
        gc.collect()
        after = containers(app)
    grown = [
        f"{name}: {size} after {before[key][1]}"
        for key, (name, size) in after.items()
        if key in before and size - before[key][1] >= GROWN and "MemoryChannel" not in name
    ]
    assert grown == []


async def test_warm_conversations_are_bounded_in_bytes(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "home")
    async with desk.running() as app:
        app.dispatch.most_bytes = 1_000_000
        await desk.talk(range(30), "word " * 10_000)
        assert 1 <= len(app.dispatch.warm) <= 6, (
            "each takes some 150 kB as text, and the copies of wires"
        )
        await desk.talk(range(1))
        log = await app.store.events("default/memory:0")
        assert [each.n for each in log][-1] >= 6, "who was let go is read from the log again"
        await desk.talk(range(100, 140))
        assert len(app.dispatch.warm) > 30, "small ones stay"


@pytest.mark.parametrize("bound", ["sessions", "bytes"])
async def test_conversations_that_wait_for_a_person_take_no_room(
    tmp_path: Path, bound: str
) -> None:
    """However many wait, another one is still driven; and those that wait go on when their answer
    comes."""
    desk = Desk(tmp_path / "home")

    def answer(request: Request) -> Message:
        if request.messages[-1].message.role == "tool":
            return say("Thank you.")
        return say("", ToolCall("c1", "ask_user", msgspec.Raw(b'{"question": "Which one?"}')))

    desk.model.script = answer
    async with desk.running() as app:
        if bound == "sessions":
            app.dispatch.most_sessions = 5
        else:
            app.dispatch.most_bytes = 20_000
        await desk.talk(range(20), "word " * 100)
        assert len(app.dispatch.warm) >= 20, (
            "each is known, with the time at which it is to be woken"
        )
        assert bound == "sessions" or sum(app.dispatch.warm.values()) <= 20_000
        await desk.talk(range(20), "this one")
        log = await app.store.events("default/memory:0")
        assert "Thank you." in str(log[-2].event)


async def test_a_conversation_that_was_shortened_weighs_less(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "home")
    async with desk.running() as app:
        for _ in range(4):
            await desk.talk(range(1), "word " * 10_000)
        (heavy,) = app.dispatch.warm.values()
        assert heavy > 4 * 50_000
        await desk.talk(range(1), "/compact")
        await desk.talk(range(1), "go on")
        (light,) = app.dispatch.warm.values()
        assert light < heavy / 2


async def test_what_models_are_told_of_tools_is_made_once_for_all_conversations(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path / "home")
    asked: list[Request] = []

    def answer(request: Request) -> Message:
        asked.append(request)
        return say("Fine.")

    desk.model.script = answer
    async with desk.running():
        await desk.talk(range(2))
    assert asked[0].tools and asked[0].messages != asked[1].messages
    assert all(one is other for one, other in zip(asked[0].tools, asked[1].tools, strict=True))


def test_the_model_without_a_key_remembers_no_request() -> None:
    assert not open_scripted("echo").remember and not open_scripted("tour").remember


async def test_the_walk_finds_what_grows(tmp_path: Path) -> None:
    """A list that is reached from the app and gets one entry for each chat."""
    desk = Desk(tmp_path / "home")
    async with desk.running() as app:
        app.dispatch.most_sessions = FEW
        leak: list[str] = []
        app.feed.leak = leak  # type: ignore[attr-defined]
        before = containers(app)
        leak += [OWNER.id] * CHATS
        after = containers(app)
    assert after[id(leak)][1] - before[id(leak)][1] == CHATS
