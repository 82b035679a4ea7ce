"""What is said in a chat arrives in its order: whatever fails, however long a platform makes it
wait, over restarts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import anyio
import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.config.statements import load_statements
from deskhand.gateway.outbox import DUPLICATE, Outbox
from deskhand.gateway.streamed_replies import Drafts
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.clock import SetClock
from deskhand.types.commit import Commit, Outgoing
from deskhand.types.errors import ChannelError, SendRefused
from deskhand.types.events import Hinted
from deskhand.types.identity import Address
from deskhand.types.messages import Text

from ..examples import examples

Outcome = Literal["sent", "busy", "lost", "refused", "hangs"]


class Say(msgspec.Struct, frozen=True):
    chat: str


class Pass(msgspec.Struct, frozen=True):
    seconds: float


class Restart(msgspec.Struct, frozen=True):
    pass


Action = Say | Pass | Restart
ACTIONS = st.lists(
    st.one_of(
        st.builds(Say, st.sampled_from(["1", "2"])),
        st.builds(Pass, st.sampled_from([0.5, 3.0, 700.0])),
        st.builds(Restart),
    ),
    min_size=1,
    max_size=14,
)
OUTCOMES = st.lists(
    st.sampled_from(["sent", "sent", "busy", "lost", "refused", "hangs"]), max_size=14
)


class Moody(MemoryChannel):
    """Each send has the next outcome; afterwards all of them arrive. `late` are those that came
    before an older one of their chat was over."""

    def __init__(self, outcomes: list[Outcome]) -> None:
        super().__init__()
        self.outcomes = outcomes
        self.owed: dict[str, list[str]] = {}
        self.early: list[str] = []
        self.doubtful: set[str] = set()
        self.refused: list[str] = []
        self.hanging = anyio.Event()
        # a restart may come just before a send, or behind it: then that one is marked too
        self.cut_off = False

    async def send(self, outgoing: Outgoing, mark: str) -> str:
        chat = outgoing.address.chat
        key = outgoing.key
        if key in self.owed[chat] and self.owed[chat][0] != key:
            self.early.append(key)
        outcome = self.outcomes.pop(0) if self.outcomes else "sent"
        match outcome:
            case "busy":
                raise ChannelError("too many requests", unsent=True, retry_after_s=20.0)
            case "lost":
                self.doubtful.add(key)
                raise ChannelError("the connection broke")
            case "refused":
                if key in self.owed[chat]:
                    self.owed[chat].remove(key)
                self.refused.append(key)
                raise SendRefused("no such chat")
            case "hangs":
                self.doubtful.add(key)
                self.hanging.set()
                await anyio.sleep_forever()
        if key in self.owed[chat]:
            self.owed[chat].remove(key)
        return await super().send(outgoing, mark)


class House:
    """A store, a channel, and the sender that is started anew at each restart."""

    def __init__(self, folder: Path, outcomes: list[Outcome]) -> None:
        self.store = SqliteStore(folder / "deskhand.db", load_statements())
        self.channel, self.clock = Moody(outcomes), SetClock()
        self.said = 0

    @asynccontextmanager
    async def sender(self) -> AsyncIterator[Outbox]:
        channels = {"memory": self.channel}
        drafts = Drafts(self.store, {}, self.clock, lambda session: None)
        outbox = Outbox(self.store, channels, self.clock, drafts)
        self.channel.hanging = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(outbox.run)
            yield outbox
            tasks.cancel_scope.cancel()

    async def say(self, chat: str) -> None:
        self.said += 1
        key = f"k{self.said}"
        self.channel.owed.setdefault(chat, []).append(key)
        outgoing = Outgoing(key, Address("memory", chat=chat), (Text(key),))
        await self.store.commit(
            Commit(
                f"a/{chat}",
                self._next(chat),
                self.clock.now(),
                (Hinted("loop", ""),),
                outbox=(outgoing,),
            )
        )

    def _next(self, chat: str) -> int:
        return sum(1 for _ in self.store.query_sync("event_of", (f"a/{chat}",))) + 1

    async def settle(self, outbox: Outbox) -> bool:
        """Until all that is due has been tried. Returns whether something hangs."""
        with anyio.fail_after(20):
            while (
                await self.store.outbox_due(self.clock.now(), 99)
                and not self.channel.hanging.is_set()
            ):
                outbox.wake()
                await anyio.sleep(0.001)
        return self.channel.hanging.is_set()


async def play(actions: list[Action], outcomes: list[Outcome], folder: Path) -> House:
    house = House(folder, outcomes)
    left = [*actions]
    while left:
        async with house.sender() as outbox:
            while left:
                action = left.pop(0)
                match action:
                    case Say(chat=chat):
                        await house.say(chat)
                    case Pass(seconds=seconds):
                        house.clock.advance(seconds)
                    case Restart():
                        break
                if await house.settle(outbox):
                    house.channel.cut_off = True
                    break  # only a restart ends what hangs
    house.channel.outcomes.clear()
    while any(house.channel.owed.values()):
        house.clock.advance(3_600)
        async with house.sender() as outbox:
            await house.settle(outbox)
    await house.store.close()
    return house


@settings(deadline=None, max_examples=examples(40))
@given(ACTIONS, OUTCOMES)
def test_nothing_is_sent_before_what_is_older_in_its_chat(
    actions: list[Action], outcomes: list[Outcome]
) -> None:
    with TemporaryDirectory() as folder:
        house = anyio.run(play, actions, outcomes, Path(folder))
    channel = house.channel
    assert channel.early == [], f"{channel.early} came before its turn"
    arrived = [outgoing.key for outgoing, _ in channel.sent]
    said = [f"k{n + 1}" for n in range(house.said)]
    assert {*arrived, *channel.refused} == {*said}, "none is missing"
    unmarked = [outgoing.key for outgoing, mark in channel.sent if mark != DUPLICATE]
    assert len(unmarked) == len({*unmarked}), "none comes twice without a mark"
    marked = {outgoing.key for outgoing, mark in channel.sent if mark == DUPLICATE}
    assert marked >= channel.doubtful - set(channel.refused), "who may read it twice is told so"
    assert channel.cut_off or marked == channel.doubtful - set(channel.refused), "and nobody else"


async def test_a_message_that_must_wait_holds_up_its_chat_and_no_other(tmp_path: Path) -> None:
    house = House(tmp_path, ["busy"])
    async with house.sender() as outbox:
        await house.say("1")
        await house.settle(outbox)
        await house.say("1")
        await house.say("2")
        await house.settle(outbox)
        assert [outgoing.key for outgoing, _ in house.channel.sent] == ["k3"]
        house.clock.advance(20)
        await house.settle(outbox)
        assert [outgoing.key for outgoing, _ in house.channel.sent] == ["k3", "k1", "k2"]
    await house.store.close()
