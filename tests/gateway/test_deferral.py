"""What nobody waits for is told when its reader wants to be told, and rings once for the same
thing; what somebody waits for is never held back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from zoneinfo import ZoneInfo

import anyio
import apsw
import pytest

from deskhand.config.statements import load_statements
from deskhand.gateway.deferral import Deferral
from deskhand.gateway.inbound_body import normalize_body
from deskhand.gateway.outbox import Outbox
from deskhand.gateway.queries import deferred_messages
from deskhand.gateway.streamed_replies import Drafts
from deskhand.store.base import Store
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.clock import SetClock
from deskhand.testing.jobs import JobDesk
from deskhand.testing.temporary_home import wait_for
from deskhand.types.commit import Choices, Commit, Outgoing
from deskhand.types.events import Hinted
from deskhand.types.identity import Address, Inbound, Principal, Said
from deskhand.types.messages import Message, Text
from deskhand.types.people import Identity
from deskhand.users.notification_commands import NotificationCommands
from deskhand.users.queries import notification_times_of

from ..jobs.seen import texts, truth

ANN = Principal("ann", ("member",))
EVENING = 1_700_000_000.0
"""22:13 in UTC, on a Tuesday."""
HOUR = 3600.0


class Desk:
    """An outbox with two chats: of Ann, who has quiet hours, and of Bob, who has none."""

    def __init__(self, folder: Path) -> None:
        self.store = SqliteStore(folder / "deskhand.db", load_statements())
        self.clock = SetClock(EVENING)
        self.channel = MemoryChannel()
        self.commands = NotificationCommands(self.store)
        self._count = 0

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[None]:
        drafts = Drafts(self.store, {}, self.clock, lambda session: None)
        outbox = Outbox(self.store, {"memory": self.channel}, self.clock, drafts)
        outbox.deferral = Deferral(self.store, self.clock, lambda: ZoneInfo("UTC"))
        self._outbox = outbox
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(outbox.run)
            yield
            tasks.cancel_scope.cancel()

    async def wants(self, text: str) -> str:
        body = normalize_body(Said(Message("user", (Text(text),))), ANN)
        await self.commands.carry_out(body, ANN)
        name, _, args = text[1:].partition(" ")
        return self.commands.answer(ANN, name, args)

    async def owes(
        self, text: str, *, unasked: str | None = "ann", chat: str = "1", ask: bool = False
    ) -> None:
        self._count += 1
        question = Choices("ask_1", text, ("yes", "no")) if ask else None
        address = Address("memory", chat=chat)
        outgoing = Outgoing(
            f"k{self._count}", address, (Text(text),), ask=question, unasked=unasked
        )
        now = self.clock.now()
        event = Hinted("loop", "")
        await self.store.commit(
            Commit(f"a/{self._count}", 1, now, (event,), outbox=(outgoing,), close=True)
        )

    def _is_sending(self) -> bool:
        """Whether a row is on its way, or is to be sent now."""
        owed = "SELECT EXISTS(SELECT 1 FROM outbox WHERE state IN ('pending', 'sending'))"
        db = apsw.Connection(str(self.store.path), flags=apsw.SQLITE_OPEN_READONLY)
        ((found,),) = db.execute(owed).fetchall()
        db.close()
        return bool(found)

    async def settles(self, seconds: float = 0.0) -> list[str]:
        """What is sent once so much time has passed; `(…)` where it does not ring."""
        self.clock.advance(seconds)
        before = len(self.channel.sent)
        calm = 0
        with anyio.fail_after(20):
            while calm < 40:
                self._outbox.wake()
                await anyio.sleep(0.005)
                calm = 0 if self._is_sending() else calm + 1
        return [
            f"({text})" if outgoing.silent else text
            for outgoing, _ in self.channel.sent[before:]
            for text in ["".join(getattr(part, "text", "") for part in outgoing.parts)]
        ]


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    desk = Desk(tmp_path)
    async with desk.sending():
        yield desk
    await desk.store.close()


async def test_quiet_hours(desk: Desk) -> None:
    told = await desk.wants("/quiet 22:00-07:00")
    assert told.startswith("Quiet hours: 22:00-07:00.")
    await desk.owes("the disk is full")
    await desk.owes("an answer", unasked=None)
    await desk.owes("for Bob", unasked="bob", chat="2")
    await desk.owes("the build is broken")
    assert await desk.settles() == ["an answer", "for Bob"]
    assert await desk.settles(8 * HOUR) == []
    assert await desk.settles(HOUR) == ["the disk is full", "(the build is broken)"]


async def test_a_digest_comes_together_and_rings_once(desk: Desk) -> None:
    assert "Digest at 08:00 18:00." in await desk.wants("/digest 18 8")
    await desk.owes("one")
    assert await desk.settles(3 * HOUR) == []
    await desk.owes("two")
    await desk.owes("shall I?", ask=True)
    assert await desk.settles() == ["shall I?"]
    assert await desk.settles(3 * HOUR) == []
    assert await desk.settles(4 * HOUR) == ["one", "(two)"]
    await desk.owes("three")
    assert await desk.settles() == []


async def test_turned_off_it_is_told_at_once(desk: Desk) -> None:
    await desk.wants("/quiet 22-7")
    await desk.wants("/digest 12")
    await desk.owes("one")
    assert await desk.settles() == []
    assert "no quiet hours" in await desk.wants("/quiet off")
    assert "no digest" in await desk.wants("/digest off")
    assert await desk.settles(11) == ["one"]


async def test_what_waits_lasts_over_a_restart(desk: Desk) -> None:
    await desk.wants("/quiet 22-7")
    await desk.owes("one")
    assert await desk.settles() == []
    async with desk.sending():
        assert await desk.settles(HOUR) == []
        assert await desk.settles(9 * HOUR) == ["one"]


async def test_the_same_thing_rings_once(desk: Desk) -> None:
    for _ in range(2):
        await desk.owes("the disk is full")
    assert await desk.settles() == ["the disk is full", "(the disk is full)"]
    await desk.owes("the disk is full", chat="2")
    await desk.owes("the disk is full", unasked=None)
    assert sorted(await desk.settles(11 * HOUR)) == ["the disk is full"] * 2
    await desk.owes("the disk is full")
    assert await desk.settles() == ["(the disk is full)"]
    await desk.owes("the disk is full")
    assert await desk.settles(13 * HOUR) == ["the disk is full"]


@pytest.mark.parametrize("text", ["/quiet soon", "/digest 25:00", "/quiet 7-7"])
async def test_what_is_not_understood_changes_nothing(desk: Desk, text: str) -> None:
    await desk.wants("/quiet 22:00-07:00")
    assert "I do not understand" in await desk.wants(text)
    assert "Quiet hours: 22:00-07:00." in await desk.wants("/quiet")


async def test_more_than_fit_into_a_batch_hold_nobody_up(desk: Desk) -> None:
    await desk.wants("/quiet 22-7")
    for number in range(250):
        await desk.owes(f"report {number}")
    await desk.owes("an answer", unasked=None, chat="2")
    with anyio.fail_after(60):
        while not desk.channel.sent:
            await desk.settles()
    assert [outgoing.address.chat for outgoing, _ in desk.channel.sent] == ["2"]
    assert len(await deferred_messages(desk.store)) == 250


async def test_a_job_waits_and_a_reminder_does_not(tmp_path: Path) -> None:
    """A job is at work in the night: what it says waits for the morning, and nothing of it is shown
    before. What was to be said at that time is said."""
    desk = JobDesk(tmp_path)
    channel = MemoryChannel()
    desk.write("watch", "every 1h", "Look after the disk.", to="memory:7")
    desk.write("pills", "every 1h", "Take your pills.", to="memory:7", kind="deliver")
    async with desk.running([channel]) as app:
        await app.people.link("owner", Identity("memory", "7"))
        said = Said(Message("user", (Text("/quiet 00:00-23:59"),)))
        quiet = Inbound("q1", Address("memory", chat="7"), "7", desk.clock.now(), said)
        channel.waiting.append(quiet)
        await wait_for(lambda: truth("Quiet hours" in str(texts(channel))))
        await desk.pass_time(app, 3600)
        await desk.ended(app, "watch")
        await wait_for(lambda: truth(("7", "Take your pills.") in texts(channel)))
        await wait_for(lambda: has_deferred(app.store))
        assert not any("done" in text for _, text in texts(channel))
        channel.waiting.append(
            Inbound("q2", quiet.address, "7", 0.0, Said(Message("user", (Text("/quiet off"),))))
        )
        await wait_for(lambda: truth("no quiet hours" in str(texts(channel))))
        await desk.pass_time(app, 60)
        await wait_for(lambda: truth(("7", "done") in texts(channel)))


async def test_what_is_delivered_again_does_not_come_back(tmp_path: Path) -> None:
    """A platform delivers `/quiet` again, after it was turned off."""
    desk = JobDesk(tmp_path)
    channel = MemoryChannel()
    async with desk.running([channel]) as app:
        await app.people.link("owner", Identity("memory", "7"))
        for name, text in (("q1", "/quiet 22-7"), ("q2", "/quiet off"), ("q1", "/quiet 22-7")):
            said = Said(Message("user", (Text(text),)))
            channel.waiting.append(Inbound(name, Address("memory", chat="7"), "7", 0.0, said))
        await wait_for(lambda: truth(len(channel.confirmed) == 3))
        assert (await notification_times_of(app.store, "owner")).quiet is None


async def has_deferred(store: Store) -> bool:
    return bool(await deferred_messages(store))
