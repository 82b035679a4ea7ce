"""A stranger writes, is told a code, and is let in by whoever holds the house: on a real service
with a real store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from deskhand.config.config import Config, Home, Settings
from deskhand.runtime.app import App, Parts, open_app
from deskhand.store.schema import connect
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.clock import SetClock
from deskhand.testing.scripted import ScriptedModel
from deskhand.types.errors import ConfigError, Refused
from deskhand.types.identity import OWN_SURFACES, Address, Inbound, Principal, Reaction, Said
from deskhand.types.messages import Message, Text
from deskhand.types.people import Identity
from deskhand.users.pairing import (
    CODE_TTL_S,
    LETTERS,
    LOCKOUT_S,
    MAX_BAD_CODES,
    MAX_PENDING,
    RESERVED_CHANNELS,
)

from .test_users import T0, people_in, wrote

OWNER = Principal("owner", ("owner",))


@asynccontextmanager
async def running(
    home: Path, channel: MemoryChannel, clock: SetClock, **config: str
) -> AsyncIterator[App]:
    settings = Settings(Home(home), Config(**config)).with_model("scripted/test")  # type: ignore[arg-type]
    parts = Parts(lambda name: ScriptedModel(), {}, channels=(channel,), clock=clock)
    async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        yield app
        tasks.cancel_scope.cancel()


async def until(true: Callable[[], bool]) -> None:
    with anyio.fail_after(10):
        while not true():
            await anyio.sleep(0.005)


def texts(channel: MemoryChannel, chat: str) -> list[str]:
    said = [outgoing for outgoing, _ in channel.sent if outgoing.address.chat == chat]
    return ["".join(part.text for part in each.parts if isinstance(part, Text)) for each in said]


async def test_the_first_is_the_owner_and_the_next_a_member(tmp_path: Path) -> None:
    """From a bot that nobody knows to two people who talk with it, and a third who hears
    nothing."""
    channel, clock = MemoryChannel(), SetClock(T0)
    async with running(tmp_path, channel, clock) as app:
        channel.write("hello", chat="of 42", sender="42")
        await until(lambda: len(channel.sent) == 1)
        (asked,) = await app.people.pairings()
        assert (asked.channel, asked.external_id, asked.expires_at) == (
            "memory",
            "42",
            T0 + CODE_TTL_S,
        )
        assert len(asked.code) == 8 and set(asked.code) <= set(LETTERS)
        assert (
            asked.code in texts(channel, "of 42")[0]
            and "I do not know you yet" in texts(channel, "of 42")[0]
        )
        assert app.store.last_inbox_id() == 0, "nothing that a stranger wrote is stored"
        owner = await app.people.approve(f" {asked.code[:4].lower()}-{asked.code[4:]} ")
        assert owner.name == "owner" and owner.identities == (Identity("memory", "42"),)
        await until(lambda: len(channel.sent) == 2)
        assert "you are my owner now" in texts(channel, "of 42")[1]
        channel.write("hello", chat="of 42", sender="42")
        await until(lambda: len(channel.sent) == 3)
        assert texts(channel, "of 42")[2] == "You said: hello"
        channel.write("me too", chat="of 43", sender="43")
        await until(lambda: not channel.waiting)
        assert texts(channel, "of 43") == [], "one is known, so strangers hear nothing"
    async with running(tmp_path, channel, clock, reject_response="pair") as app:
        channel.write("and now?", chat="of 43", sender="43")
        await until(lambda: len(channel.sent) == 4)
        (asked,) = await app.people.pairings()
        bob = await app.people.approve(asked.code, "bob")
        assert (bob.roles, app.people.authorize(wrote("43", "memory"))) == (
            ("member",),
            Principal("bob", ("member",)),
        )
        channel.write("hello", chat="of 43", sender="43")
        await until(lambda: "You said: hello" in texts(channel, "of 43"))
        assert [(note.what, note.subject) for note in await app.people.list_audit_notes()] == [
            ("paired", "bob memory:43"),
            ("paired", "owner memory:42"),
        ]


async def test_one_reply_and_then_silence(tmp_path: Path) -> None:
    channel, clock = MemoryChannel(), SetClock(T0)
    async with running(tmp_path, channel, clock, reject_response="pair") as app:
        for text in ("hello", "hello?", "HELLO"):
            channel.write(text, chat="of 42", sender="42")
        group = Address("memory", chat="all", group=True)
        channel.waiting.append(Inbound("g", group, "50", T0, Said(Message("user", (Text("hi"),)))))
        channel.waiting.append(
            Inbound("r", Address("memory", chat="r"), "51", T0, Reaction("1", "👍", True))
        )
        for sender in ("43", "44", "45", "46"):
            channel.write("me too", chat=f"of {sender}", sender=sender)
        await until(lambda: not channel.waiting)
        told = [outgoing.address.chat for outgoing, _ in channel.sent]
        assert (
            told == ["of 42", "of 43", "of 44"] and len(await app.people.pairings()) == MAX_PENDING
        )
        codes = {each.external_id: each.code for each in await app.people.pairings()}
        await app.people.refuse(codes["42"])
        channel.write("please", chat="of 42", sender="42")
        await until(lambda: not channel.waiting)
        assert len(channel.sent) == 3, "who was refused does not ask again at once"
        clock.advance(600)
        channel.write("please", chat="of 42", sender="42")
        await until(lambda: len(channel.sent) == 4)
        assert len(await app.people.pairings()) == MAX_PENDING


async def test_a_thousand_guesses(tmp_path: Path) -> None:
    """None of them holds, the fifth locks it for an hour, and the owner hears of it."""
    channel, clock = MemoryChannel(), SetClock(T0)
    async with running(tmp_path, channel, clock, reject_response="pair") as app:
        channel.write("hello", chat="of 42", sender="42")
        await until(lambda: len(channel.sent) == 1)
        await app.people.approve((await app.people.pairings())[0].code)
        channel.write("hello", chat="of 43", sender="43")
        await until(lambda: len(channel.sent) == 3)
        (asked,) = await app.people.pairings()
        refused = []
        for number in range(1000):
            guess = "".join(LETTERS[(number >> 5 * place) % 32] for place in range(8))
            with pytest.raises(Refused) as error:
                await app.people.approve(guess, "mallory", "owner")
            refused.append(str(error.value))
        assert ["tries left" in text for text in refused[:4]] == [True] * 4
        assert "for an hour" in refused[MAX_BAD_CODES - 1] and all(
            "try again in" in text for text in refused[MAX_BAD_CODES:]
        )
        with pytest.raises(Refused, match="try again in 60 minutes"):
            await app.people.approve(asked.code)
        assert "too many bad pairing codes" in app.people.health()
        facts = {fact.name: fact for fact in (await app.health()).facts}
        assert facts["people"].state == "degraded"
        await until(lambda: any("Was it you?" in text for text in texts(channel, "of 42")))
        assert len(texts(channel, "of 42")) == 3, "once"
        assert [user.name for user in await app.people.users()] == ["owner"]
        clock.advance(LOCKOUT_S)
        channel.write("still here", chat="of 43", sender="43")
        await until(lambda: len(texts(channel, "of 43")) == 2)
        (again,) = await app.people.pairings()
        assert again.code != asked.code and app.people.health() == ""
        assert (await app.people.approve(again.code, "bob")).name == "bob"


async def test_a_code_holds_once_for_an_hour_and_for_one(tmp_path: Path) -> None:
    clock = SetClock(T0)
    async with people_in(tmp_path, clock) as people:
        await people.link("owner", Identity("chat", "1"))
        used, late, other = [
            await people.request_pairing(wrote(str(n), account="bot")) for n in (42, 43, 44)
        ]
        assert len({used, late, other}) == 3 and "" not in (used, late, other)
        ann = await people.approve(used, "ann")
        assert people.authorize(wrote("42", account="bot")) == Principal("ann", ("member",))
        for elsewhere in (
            wrote("42", account="bot2"),
            wrote("42"),
            wrote("42", "mail", "bot"),
            wrote("43", account="bot"),
        ):
            assert people.authorize(elsewhere) is None, elsewhere
        with pytest.raises(Refused, match="is not valid"):
            await people.approve(used, "mallory")
        await people.refuse(other)
        with pytest.raises(Refused, match="is not valid"):
            await people.approve(other, "mallory")
        clock.advance(CODE_TTL_S)
        with pytest.raises(Refused, match="is not valid"):
            await people.approve(late, "mallory")
        assert await people.pairings() == [] and ann.identities == (Identity("chat", "42", "bot"),)
        with pytest.raises(Refused, match="nobody waits"):
            await people.refuse(late)
        again = await people.request_pairing(wrote("43", account="bot"))
        assert again not in ("", late), "an hour later they may ask again"


async def test_under_which_name(tmp_path: Path) -> None:
    async with people_in(tmp_path, SetClock(T0)) as people:
        first = await people.request_pairing(wrote("42"))
        assert (await people.approve(first, "ann")).name == "ann", (
            "who is named is not the owner, though the first"
        )
        second = await people.request_pairing(wrote("A@b.C"))
        third = await people.request_pairing(wrote("a_b.c"))
        assert (await people.approve(second)).name == "chat-a-b.c"
        assert (await people.approve(third, role="approver")) == (await people.users())[2]
        assert [user.name for user in await people.users()] == [
            "ann",
            "chat-a-b.c",
            "chat-a-b.c-2",
            "owner",
        ]
        more = await people.request_pairing(wrote("77"))
        for bad in (people.approve(more, "Not A Name"), people.approve(more, role="boss")):
            with pytest.raises(ConfigError):
                await bad
        ann = await people.approve(more, "ann", "owner")
        assert len(ann.identities) == 2 and ann.roles == ("member",), "linking gives no role"


async def test_health_says_that_users_are_missing(tmp_path: Path) -> None:
    """Nobody may write on a channel, and then the users are gone: a whole Deskhand says so of
    itself."""
    channel = MemoryChannel()
    async with running(tmp_path, channel, SetClock(T0)) as app:

        async def people() -> tuple[str, str, str]:
            health = await app.health()
            (fact,) = [fact for fact in health.facts if fact.name == "people"]
            return fact.state, fact.detail, health.state

        assert (await people())[0] == "degraded" and "nobody may write on memory yet" in (
            await people()
        )[1]
        await app.people.add_user("ann", "member", Identity("memory", "42"))
        assert (await people())[:2] == ("ok", "")
        db = connect(app.settings.home.database, write=True)
        db.execute("DROP TABLE user_role").fetchall()
        db.execute("UPDATE people SET version = version + 1").fetchall()
        db.close()
        state, why, overall = await people()
        assert (state, overall) == ("degraded", "degraded") and "only the terminal is let in" in why
        channel.write("hello", chat="of 42", sender="42")
        await until(lambda: not channel.waiting)
        assert app.store.last_inbox_id() == 0 and channel.sent == []


def test_no_surface_of_our_own_can_be_a_channel() -> None:
    assert OWN_SURFACES <= RESERVED_CHANNELS
