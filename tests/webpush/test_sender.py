"""Notifications in browsers: a whole Deskhand, and a push service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import apsw
import pytest

from deskhand.testing.clock import SetClock
from deskhand.testing.push_server import PushBrowser, PushServer, open_push_server
from deskhand.testing.scripted import ScriptedModel
from deskhand.types import events as e
from deskhand.types.commit import Commit
from deskhand.types.identity import Address, Principal
from deskhand.types.messages import Message, Text

from ..web.served import Client, Served, serving, until

OWNER = Principal("owner", ("owner",))
EVE = Principal("eve", ("member",))
DONE = e.TurnEnded("done")
NOON = 1_700_049_600.0  # 12:00 UTC
HOUR = 3600.0
OPENING = "'message_received'"


class World:
    """A Deskhand whose clock is set, and a push service."""

    def __init__(self, served: Served, service: PushServer, clock: SetClock) -> None:
        self.served, self.service, self.clock = served, service, clock
        self.store = served.app.store

    async def subscribe(self, client: Client, **more: str) -> tuple[PushBrowser, str]:
        """One more browser of theirs, and its id."""
        browser = self.service.subscribe()
        status, made = await client.ask("POST", "/api/push", browser.subscription() | more)
        assert status == 200, made
        return browser, made["id"]

    async def turn(
        self,
        name: str,
        who: Principal = OWNER,
        took_s: float = 90.0,
        ended: e.TurnEnded = DONE,
        answer: str = "the answer",
    ) -> None:
        """One more turn of a conversation of theirs, which ends now."""
        session = f"default/web:{who.id}:{name}"
        n = await self._next_n(session)
        asked = Message("user", (Text(f"{name} asked"),))
        began = e.MessageReceived(0, who, Address("web"), asked)
        await self.store.commit(Commit(session, n, self.clock.now() - took_s, (began,)))
        said = e.ModelReplied(Message("assistant", (Text(answer),)), "m")
        await self.store.commit(Commit(session, n + 1, self.clock.now(), (said, ended)))

    async def question(self, name: str, who: Principal = OWNER) -> str:
        session = f"default/web:{who.id}:{name}"
        n = await self._next_n(session)
        asked = Message("user", (Text(f"{name} asked"),))
        began = e.MessageReceived(0, who, Address("web"), asked)
        ask = e.QuestionAsked(f"ask_{name}", "c", f"Is {name} right?\nSay so.", ("yes",), NOON * 2)
        await self.store.commit(Commit(session, n, self.clock.now(), (began, ask)))
        return session

    async def _next_n(self, session: str) -> int:
        return (await self.store.heads()).get(session, (0, b""))[0] + 1

    async def said(self, count: int, step_s: float = 3.0) -> list[dict[str, Any]]:
        """What was pushed, once it is so much; the clock goes on meanwhile."""
        with anyio.fail_after(20):
            while len(self.service.pushed) < count:
                self.clock.advance(step_s)
                await anyio.sleep(0.1)
        assert self.service.refused == []
        return [each.said for each in self.service.pushed]


@pytest.fixture
def looked_up() -> Iterator[list[str]]:
    """The statements that looked for what opened a turn, on connections that are opened now."""
    found: list[str] = []

    def watch(db: apsw.Connection) -> None:
        db.trace_v2(apsw.SQLITE_TRACE_STMT, lambda event: note(str(event["sql"])))

    def note(sql: str) -> None:
        if OPENING in sql:
            found.append(sql)

    apsw.connection_hooks.append(watch)
    yield found
    apsw.connection_hooks.remove(watch)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    clock = SetClock(NOON)
    async with open_push_server(clock.now) as service:
        push = {"services": [service.url.removeprefix("http://")], "contact": "mailto:a@b.example"}
        web = {"push": push}
        async with serving(tmp_path, ScriptedModel(), clock=clock, web=web) as served:
            await served.people.add_user("eve", "member")
            yield World(served, service, clock)


async def test_it_is_told_in_the_language_of_their_page(world: World) -> None:
    """What Deskhand says itself; an answer stays as it is."""
    _, owner = await world.served.browser()
    await world.subscribe(owner, language="de")
    await world.turn("right", answer="Stopped.")
    why = "Sorry, I could not answer: the connection was closed"
    await world.turn("wrong", ended=e.TurnEnded("failed", (), why))
    right, wrong = await world.said(2)
    assert right["body"] == "Stopped."
    assert (
        wrong["body"]
        == "Fehlgeschlagen: Leider konnte ich nicht antworten: die Verbindung wurde geschlossen"
    )


async def test_each_is_told_what_waits_for_them(world: World) -> None:
    _, owner = await world.served.browser()
    _, eve = await world.served.browser("eve")
    theirs, _ = await world.subscribe(owner)
    hers, _ = await world.subscribe(eve)
    await world.turn("quick", took_s=3.0)
    await world.turn("long work", answer="It is\n done.")
    await world.said(1)
    await world.question("the name", EVE)
    await world.said(3)
    await world.turn("broken", ended=e.TurnEnded("failed", said="The key is wrong."))
    told = await world.said(4)
    places = {theirs: "#/c/default~web%3Aeve%3Athe%20name", hers: "#/c/the%20name"}
    by = [each.browser for each in world.service.pushed]
    questions = [("the name asked", "Is the name right?", places[each]) for each in by[1:3]]
    assert [(each["title"], each["body"], each["hash"]) for each in told] == [
        ("long work asked", "It is done.", "#/c/long%20work"),
        *questions,
        ("broken asked", "Failed: The key is wrong.", "#/c/broken"),
    ], "an owner sees the questions of others too"
    assert by[0] is theirs and {by[1], by[2]} == {theirs, hers} and by[3] is theirs
    assert [each.headers["urgency"] for each in world.service.pushed] == [
        "normal",
        "high",
        "high",
        "normal",
    ]


async def test_what_was_seen_or_answered_meanwhile_is_not_told(world: World) -> None:
    _, owner = await world.served.browser()
    await world.subscribe(owner)
    await world.turn("seen")
    session = await world.question("answered")
    seq = world.store.last_seq()
    assert (await owner.ask("PUT", "/api/inbox/seen", {"seq": seq}))[0] == 200
    n = await world._next_n(session)
    answer = e.QuestionAnswered(0, "ask_answered", OWNER, Message("user", (Text("yes"),)))
    await world.store.commit(Commit(session, n, world.clock.now(), (answer,)))
    await world.turn("unseen")
    assert [each["title"] for each in await world.said(1)] == ["unseen asked"]


async def test_nothing_from_before_is_told_and_much_at_once_is_one(world: World) -> None:
    _, owner = await world.served.browser()
    await world.turn("old")
    await world.subscribe(owner)
    for name in ("one", "two", "three", "four", "five"):
        await world.turn(name)
    (told,) = await world.said(1)
    assert (told["body"], told["hash"]) == ("5 finished", "#/inbox")
    await world.turn("six")
    assert (await world.said(2))[1]["title"] == "six asked"


async def test_quiet_hours_and_digests_are_kept(world: World) -> None:
    _, owner = await world.served.browser()
    await world.subscribe(owner)
    for command in ("/quiet 13:00-15:00", "/digest 18:00"):
        status, _ = await world.served.owner.ask("POST", "/api/chat/c", {"message": command})
        assert status == 200
    await world.turn("work")
    world.clock.advance(HOUR)
    await world.question("early")
    world.clock.advance(10.0)
    await anyio.sleep(2.5)
    assert world.service.pushed == []
    world.clock.advance(2 * HOUR)
    assert [each["title"] for each in await world.said(1)] == ["early asked"], "it cannot wait"
    world.clock.advance(3 * HOUR)
    assert (await world.said(2))[1]["title"] == "work asked"


async def test_it_is_tried_again_until_it_is_taken(world: World) -> None:
    _, owner = await world.served.browser()
    await world.subscribe(owner)
    world.service.answers += [(503, {}), (429, {"retry-after": "300"}), (500, {})]
    await world.turn("work")
    before = world.clock.now()
    assert [each["title"] for each in await world.said(1, 10.0)] == ["work asked"]
    assert world.clock.now() - before > 30 + 300


async def test_what_is_not_taken_is_not_sent_for_ever(world: World) -> None:
    _, owner = await world.served.browser()
    await world.subscribe(owner)
    world.service.answers += [(403, {})]
    await world.turn("refused")
    world.clock.advance(10.0)
    await until(lambda: not world.service.answers)
    await world.turn("next")
    assert [each["title"] for each in await world.said(1)] == ["next asked"]


async def test_a_browser_that_is_gone_is_forgotten(world: World) -> None:
    _, owner = await world.served.browser()
    await world.subscribe(owner)
    await world.subscribe(owner)
    world.service.answers += [(410, {})]
    await world.turn("work")
    await world.said(1)
    assert len((await owner.get("/api/push"))["devices"]) == 1


async def test_who_logged_out_is_told_nothing(world: World) -> None:
    _, owner = await world.served.browser()
    _, eve = await world.served.browser("eve")
    await world.subscribe(owner)
    hers, _ = await world.subscribe(eve)
    assert (await eve.ask("POST", "/api/logout"))[0] in (200, 204)
    await world.turn("hers", EVE)
    await world.turn("mine")
    await world.said(1)
    assert [each.browser for each in world.service.pushed if each.browser is hers] == []
    _, again = await world.served.browser("eve")
    assert (await again.get("/api/push"))["devices"] == []


async def test_who_is_removed_is_told_nothing(world: World) -> None:
    _, owner = await world.served.browser()
    _, eve = await world.served.browser("eve")
    hers, _ = await world.subscribe(eve)
    await world.subscribe(owner)
    await world.served.people.remove_user("eve")
    await world.turn("hers", EVE)
    await world.turn("mine")
    await world.said(1)
    assert hers not in [each.browser for each in world.service.pushed]


async def test_another_person_in_the_same_browser_takes_it_over(world: World) -> None:
    _, owner = await world.served.browser()
    _, eve = await world.served.browser("eve")
    shared, _ = await world.subscribe(owner)
    assert (await eve.ask("POST", "/api/push", shared.subscription()))[0] == 200
    assert (await owner.get("/api/push"))["devices"] == []
    await world.turn("mine")
    await world.turn("hers", EVE)
    assert [each["title"] for each in await world.said(1)] == ["hers asked"]


async def test_a_restart_tells_nothing_again(tmp_path: Path) -> None:
    clock = SetClock(NOON)
    async with open_push_server(clock.now) as service:
        web = {"push": {"services": [service.url.removeprefix("http://")]}}
        async with serving(tmp_path, ScriptedModel(), clock=clock, web=web) as served:
            world = World(served, service, clock)
            _, owner = await served.browser()
            await world.subscribe(owner)
            key = (await owner.get("/api/push"))["public_key"]
            await world.turn("first")
            await world.said(1)
        async with serving(tmp_path, ScriptedModel(), clock=clock, web=web) as served:
            world = World(served, service, clock)
            assert (await served.owner.get("/api/push"))["public_key"] == key
            await world.turn("second")
            told = [each["title"] for each in await world.said(2)]
    assert told == ["first asked", "second asked"]


async def test_what_is_nothing_for_somebody_is_looked_at_once(
    looked_up: list[str], world: World
) -> None:
    _, owner = await world.served.browser()
    await world.subscribe(owner)
    for n in range(20):
        await world.turn("quick", took_s=1.0)
        if n % 5 == 4:
            world.clock.advance(10.0)
            await anyio.sleep(2.2)
    await world.turn("long")
    await world.said(1)
    assert 21 <= len(looked_up) <= 25


async def test_a_slow_push_service_holds_up_nobody(world: World) -> None:
    _, owner = await world.served.browser()
    slow, _ = await world.subscribe(owner)
    quick, _ = await world.subscribe(owner)
    held = world.service.hold(slow)
    await world.turn("work")
    await world.said(1)
    assert world.service.pushed[0].browser is quick
    held.set()
    await world.said(2)


async def test_a_page_that_is_opened_again_loses_no_notification(world: World) -> None:
    _, owner = await world.served.browser()
    browser, _ = await world.subscribe(owner)
    await world.turn("before")
    assert (await owner.ask("POST", "/api/push", browser.subscription()))[0] == 200
    assert [each["title"] for each in await world.said(1)] == ["before asked"]
