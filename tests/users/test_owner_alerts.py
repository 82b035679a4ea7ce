"""Alerts reach all owners where each last wrote; one that reaches nobody is told by the health."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.config.config import read_settings
from deskhand.runtime.app import App, Parts, open_app
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.clock import SetClock
from deskhand.testing.scripted import ScriptedModel
from deskhand.testing.temporary_home import wait_for
from deskhand.types.commit import Change, Outgoing
from deskhand.types.errors import SendRefused
from deskhand.types.health import HealthFact
from deskhand.types.identity import Address, Command, Inbound, Principal, Said
from deskhand.types.messages import Message, Text
from deskhand.types.people import Identity

T0 = 1_700_000_000.0


class Refusing(MemoryChannel):
    """Takes nothing for the chats in `closed`."""

    def __init__(self, name: str = "memory") -> None:
        super().__init__(name)
        self.closed: set[str] = set()

    async def send(self, outgoing: Outgoing, mark: str) -> str:
        if outgoing.address.chat in self.closed:
            raise SendRefused("the bot was blocked")
        return await super().send(outgoing, mark)


class Life:
    """A Deskhand with two channels, whose `memory` lets `1` and `2` write."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.clock = SetClock(T0)
        self.one = Refusing("memory")
        self.two = Refusing("other")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[App]:
        settings = read_settings(None, {"DESKHAND_HOME": str(self.home)}).with_model(
            "scripted/test"
        )
        parts = Parts(
            lambda name: ScriptedModel(), {}, channels=(self.one, self.two), clock=self.clock
        )
        async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
            tasks.start_soon(app.run)
            await wait_for(lambda: _true(app.dispatch.is_driving))
            yield app
            tasks.cancel_scope.cancel()

    async def alert(self, app: App, text: str) -> None:
        await app.store.change(await app.alerts.alert_owners(text, text))
        app.outbox.wake()

    async def wrote(
        self, app: App, channel: MemoryChannel, sender: str, chat: str, *, group: bool = False
    ) -> None:
        """Somebody writes there, and is answered."""
        self.clock.advance(60)
        before = len(channel.sent)
        number = f"{channel.name}-{self.clock.at}"
        address = Address(channel.name, "", chat, group=group)
        channel.waiting.append(
            Inbound(number, address, sender, self.clock.at, Said(Message("user", (Text("hello"),))))
        )
        await wait_for(lambda: _true(len(channel.sent) > before))

    def alerts(self, channel: MemoryChannel) -> list[tuple[str, str]]:
        return [
            (out.address.chat, _text(out))
            for out, _ in channel.sent
            if out.key.startswith("alert:")
        ]


def _text(out: Outgoing) -> str:
    return "".join(part.text for part in out.parts if isinstance(part, Text))


async def _true(value: bool) -> bool:
    return value


async def fact(app: App) -> HealthFact | None:
    return next((each for each in (await app.health()).facts if each.name == "alerts"), None)


async def test_each_owner_is_told_where_they_last_wrote(tmp_path: Path) -> None:
    """However they came to be known: none of these identities has an address of its own."""
    life = Life(tmp_path)
    async with life.running() as app:
        await app.people.link("owner", Identity("memory", "1"))
        await app.people.link("owner", Identity("other", "one"))
        await app.people.add_user("bob", "owner", Identity("memory", "2"))
        await app.people.add_user("ann", "member", Identity("memory", "3"))
        await life.wrote(app, life.one, "1", "chat-1")
        await life.wrote(app, life.two, "one", "chat-one")
        await life.wrote(app, life.one, "2", "chat-2")
        await life.wrote(app, life.one, "3", "chat-3")
        await life.alert(app, "It burns.")
        await wait_for(lambda: _true(bool(life.alerts(life.one) and life.alerts(life.two))))
        assert life.alerts(life.one) == [("chat-2", "It burns.")]
        assert life.alerts(life.two) == [("chat-one", "It burns.")]
        assert await fact(app) is None
        await life.wrote(app, life.one, "1", "chat-1")
        await life.alert(app, "It still burns.")
        await wait_for(lambda: _true(len(life.alerts(life.one)) == 3))
        assert {chat for chat, text in life.alerts(life.one) if "still" in text} == {
            "chat-1",
            "chat-2",
        }


async def test_a_command_is_writing_a_group_is_not(tmp_path: Path) -> None:
    life = Life(tmp_path)
    async with life.running() as app:
        await app.people.link("owner", Identity("memory", "1"))
        place = Address("memory", "", "alone")
        life.one.waiting.append(Inbound("c", place, "1", T0, Command("start")))
        await wait_for(lambda: _true(bool(life.one.sent)))
        await life.wrote(app, life.one, "1", "family", group=True)
        await life.alert(app, "It burns.")
        await wait_for(lambda: _true(bool(life.alerts(life.one))))
        assert life.alerts(life.one) == [("alone", "It burns.")]


async def test_who_wrote_before_they_were_linked_is_told(tmp_path: Path) -> None:
    life = Life(tmp_path)
    async with life.running() as app:
        await app.people.add_user("ann", "member", Identity("memory", "1"))
        await life.wrote(app, life.one, "1", "chat-1")
        await app.people.unlink(Identity("memory", "1"))
        await life.alert(app, "Nobody hears this.")
        await app.people.link("owner", Identity("memory", "1"))
        await life.alert(app, "It burns.")
        await wait_for(lambda: _true(bool(life.alerts(life.one))))
        await app.people.unlink(Identity("memory", "1"))
        await life.alert(app, "And who is unlinked hears no more.")
        assert life.alerts(life.one) == [("chat-1", "It burns.")]
        assert [each.text for each in await app.alerts.unreached()] == [
            "And who is unlinked hears no more."
        ]


async def test_who_wrote_long_ago_is_told(tmp_path: Path) -> None:
    """Others have written a lot since."""
    life = Life(tmp_path)
    async with life.running() as app:
        await app.people.link("owner", Identity("memory", "1"))
        await life.wrote(app, life.one, "1", "chat-0")
        await life.wrote(app, life.one, "1", "chat-1")
        for number in range(501):
            said = Said(Message("user", (Text("x"),)))
            others = Inbound(f"n{number}", Address("memory", "", "ann"), "ann", T0, said)
            await app.store.accept(others, Principal("ann", ("member",)), "default/memory:ann")
        await life.alert(app, "It burns.")
        await wait_for(lambda: _true(bool(life.alerts(life.one))))
        assert life.alerts(life.one) == [("chat-1", "It burns.")]


async def test_who_never_wrote_is_told_where_they_were_let_in(tmp_path: Path) -> None:
    life = Life(tmp_path)
    async with life.running() as app:
        where = msgspec.json.encode(Address("memory", chat="9"))
        await app.store.change(
            [Change("user_identity_add", ("memory", "", "9", "owner", where, 0.0))]
        )
        await life.alert(app, "It burns.")
        await wait_for(lambda: _true(life.alerts(life.one) == [("9", "It burns.")]))


@pytest.mark.parametrize(
    "why", ["nobody can be reached", "the platform refuses", "it is not sent for five minutes"]
)
async def test_one_that_reaches_nobody_is_told_by_the_health_until_it_is_over(
    tmp_path: Path, why: str
) -> None:
    life = Life(tmp_path)
    async with life.running() as app:
        if why != "nobody can be reached":
            await app.people.link("owner", Identity("memory", "1"))
            await life.wrote(app, life.one, "1", "chat-1")
            life.one.closed = {"chat-1"} if why == "the platform refuses" else set()
        if why == "it is not sent for five minutes":
            changes = await app.alerts.alert_owners("k", "It burns.")
            rows = [each for each in changes if each.statement != "alert_send"]
            late = [replace_due(each) for each in changes if each.statement == "alert_send"]
            await app.store.change([*rows, *late])
            assert await fact(app) is None, "it is on its way"
            life.clock.advance(301)
        else:
            await life.alert(app, "It burns.")
        found = await wait_for(lambda: fact(app))
        assert (found.state, found.detail) == (
            "degraded",
            "1 alert not delivered; see `deskhand alerts`",
        )
        assert [each.text for each in await app.alerts.unreached()] == ["It burns."]
        assert (await app.health()).state == "degraded"
        await app.alerts.mark_seen()
        assert await fact(app) is None, "an owner has seen it"
        await life.alert(app, "It burns again.")
        life.one.closed.clear()
        if why == "nobody can be reached":
            assert [each.text for each in await app.alerts.unreached()] == ["It burns again."]
            await app.people.link("owner", Identity("memory", "1"))
            await life.wrote(app, life.one, "1", "chat-1")
        await life.alert(app, "It burns for the third time.")
        await wait_for(lambda: _true("third" in str(life.alerts(life.one))))
        await wait_for(lambda: _over(app))


@pytest.mark.parametrize(("chat", "state"), [("chat-1", "sent"), ("ann", "unreached")])
async def test_only_what_an_owner_reads_counts_as_said(
    tmp_path: Path, chat: str, state: str
) -> None:
    """The words of a failed job go to its chat, which may be somebody else's."""
    life = Life(tmp_path)
    async with life.running() as app:
        await app.people.link("owner", Identity("memory", "1"))
        await life.wrote(app, life.one, "1", "chat-1")
        said = Outgoing("said", Address("memory", "", chat), (Text("It burns."),))
        row = ("said", "", msgspec.json.encode(said), life.clock.at, "memory")
        await app.store.change([Change("outbox_insert", row)])
        app.outbox.wake()
        await wait_for(lambda: _true(any(out.key == "said" for out, _ in life.one.sent)))
        life.one.closed = {"chat-1"}
        await app.store.change(await app.alerts.alert_owners("k", "It burns.", said_as="said"))
        app.outbox.wake()
        await wait_for(lambda: _is(app, state))
        assert life.alerts(life.one) == []


async def test_telling_twice_is_telling_once(tmp_path: Path) -> None:
    life = Life(tmp_path)
    async with life.running() as app:
        await app.people.link("owner", Identity("memory", "1"))
        await life.wrote(app, life.one, "1", "chat-1")
        await life.alert(app, "It burns.")
        await life.alert(app, "It burns.")
        await app.store.change(await app.alerts.notify_owners("n", "It is out."))
        await app.store.change(await app.alerts.notify_owners("n", "It is out."))
        await life.alert(app, "The end.")
        await wait_for(lambda: _true("The end." in str(life.alerts(life.one))))
        assert life.alerts(life.one) == [("chat-1", "It burns."), ("chat-1", "The end.")]
        assert [each.text for each in await app.alerts.latest()] == ["The end.", "It burns."]


async def _is(app: App, state: str) -> bool:
    return (await app.alerts.latest())[0].state == state


def replace_due(change: Change) -> Change:
    """The same row for a channel that is not there now, as one that does not come up."""
    return Change(change.statement, (*change.args[:4], "gone"))


async def _over(app: App) -> bool:
    return await fact(app) is None
