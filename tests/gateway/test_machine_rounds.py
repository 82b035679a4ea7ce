"""Machines that answer each other come to an end, wherever they talk, and the owner hears of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.config.statements import load_statements
from deskhand.gateway.machine_rounds import WINDOW_S, MachineRounds
from deskhand.models.base import Request
from deskhand.runtime.app import OWNER, App
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.clock import SetClock
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.telegram.server import TelegramServer
from deskhand.testing.temporary_home import TemporaryHome, wait_for
from deskhand.types.events import MessageReceived
from deskhand.types.messages import Message, Text, ToolCall
from deskhand.types.people import Identity
from deskhand.users.owner_alerts import Alerts

from ..runtime.telegram_home import ANN, FAMILY, World, until

BOT = 5151
MOST = 6


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with TelegramServer() as server:
        found = World(tmp_path / "home", server)
        found.config = {"machine_rounds": MOST}
        found.channel = {"groups": "all", "allow_from": [BOT]}
        found.chats.people[BOT] = {
            "id": BOT,
            "is_bot": True,
            "first_name": "Echo",
            "username": "echo_bot",
        }
        found.chats.group(FAMILY)
        yield found


async def chatters(world: World) -> None:
    """Another bot answers whatever ours says in the group."""
    answered = 0
    while True:
        said = world.chats.said(FAMILY)
        for text in said[answered:]:
            world.chats.says(BOT, f"And what about {text[-20:]}?", FAMILY)
        answered = len(said)
        await anyio.sleep(0.01)


async def test_other_bots_are_not_heard(world: World) -> None:
    """Neither answered, nor turned away, nor given a code: whatever is said to a bot may be
    answered by it."""
    world.channel["allow_from"] = []
    world.config["reject_response"] = "announce"
    async with world.running() as app:
        world.chats.says(BOT, "hello", FAMILY)
        world.chats.says(BOT, "hello")
        await app.people.add_user("echo", "member", Identity("telegram", str(BOT)))
        world.chats.says(BOT, "hello again")
        world.chats.says(ANN, "hello from a person")
        await until(lambda: world.chats.said(ANN))
        assert world.chats.said(FAMILY) == [] and world.chats.said(BOT) == []
        assert list(await app.store.query("machine_rounds_by", (9,))) == []


async def test_two_bots_that_answer_each_other_come_to_an_end(world: World) -> None:
    """After so many rounds ours is silent, the owner is told once, and a word of a person lets it
    go on."""
    world.channel["bots"] = True
    async with world.running(), anyio.create_task_group() as tasks:
        world.chats.says(ANN, "hello")
        await until(lambda: world.chats.said(ANN))
        tasks.start_soon(chatters, world)
        world.chats.says(BOT, "hello", FAMILY)
        await until(lambda: any("Programs have started" in said for said in world.chats.said(ANN)))
        assert len(world.chats.said(FAMILY)) == MOST
        assert f"a bot on telegram ({MOST})" in world.chats.last(ANN).text
        world.chats.says(BOT, "are you there?", FAMILY)
        world.chats.says(ANN, "go on", FAMILY)
        await until(lambda: len(world.chats.said(FAMILY)) > MOST + 2)
        told = [said for said in world.chats.said(ANN) if "Programs have started" in said]
        assert len(told) == 1
        tasks.cancel_scope.cancel()


async def test_what_a_bot_writes_is_from_outside(world: World) -> None:
    """It has nobody's rank, and gives no commands."""
    world.channel["bots"] = True
    async with world.running() as app:
        world.chats.says(BOT, "/stop everything", FAMILY)
        await until(lambda: world.chats.said(FAMILY))
        (session,) = [row.session for row in await app.store.sessions(OWNER, 9)]
        events = [each.event for each in await app.store.events(session)]
    (received,) = [event for event in events if isinstance(event, MessageReceived)]
    assert received.message.own_text == ""
    assert {part.label.integrity for part in received.message.parts if isinstance(part, Text)} == {
        "untrusted"
    }


def starting(request: Request) -> Message:
    """Starts one more command in the background whenever it is asked or told anything."""
    last = request.messages[-1].message
    if last.role == "tool":
        return say("started")
    arguments = msgspec.Raw(msgspec.json.encode({"command": "true"}))
    return say("", ToolCall(f"c{len(request.messages)}", "background_run", arguments))


async def test_commands_that_start_commands_come_to_an_end(tmp_path: Path) -> None:
    """What the last of them said is not lost: it is told once a person writes."""
    desk = TemporaryHome(tmp_path, machine_rounds=MOST)
    desk.model = ScriptedModel(starting)
    async with desk.running() as app:
        await desk.say(app, "go")
        await wait_for(partial(_alerted, app))
        count = len(await _ends(app))
        assert count == MOST
        await desk.say(app, "go on")
        await wait_for(partial(_more, app, count + 1))


async def _alerted(app: App) -> bool:
    return any("in the background of default" in alert.text for alert in await app.alerts.latest())


async def _ends(app: App) -> list[MessageReceived]:
    events = [each.event for each in await app.store.events("default/terminal:1")]
    return [
        event
        for event in events
        if isinstance(event, MessageReceived) and event.principal.kind == "agent"
    ]


async def _more(app: App, count: int) -> bool:
    return len(await _ends(app)) >= count


steps = st.one_of(
    st.tuples(
        st.just("round"), st.sampled_from(("a bot on telegram", "the job door", "commands of home"))
    ),
    st.tuples(st.just("person"), st.just("")),
    st.tuples(st.just("restart"), st.just("")),
    st.tuples(st.just("passes"), st.sampled_from(("1", "600", "4000"))),
    st.tuples(st.just("clock"), st.sampled_from(("-172800", "-60", "60", "172800"))),
)


@settings(deadline=None)
@given(st.lists(steps, min_size=10, max_size=60), st.integers(1, 5))
def test_never_more_than_so_many_in_an_hour(script: list[tuple[str, str]], most: int) -> None:
    """Over all surfaces, whatever happens: between two words of a person, no hour has more rounds
    than are allowed; and no clock that is set keeps them away for longer than an hour."""
    with TemporaryDirectory() as folder:
        anyio.run(_play, Path(folder), script, most)


async def _play(folder: Path, script: list[tuple[str, str]], most: int) -> None:
    clock = SetClock()
    store = SqliteStore(folder / "s.db", load_statements())
    alerts = Alerts(store, clock, ())
    rounds = MachineRounds(store, clock, alerts, lambda: most)
    begun: list[float] = []  # by the time that really passes
    for what, detail in script:
        match what:
            case "round":
                if not await rounds.begin_round(detail):
                    begun.append(clock.monotonic())
                lately = [at for at in begun if at > clock.monotonic() - WINDOW_S]
                assert len(lately) <= most
            case "person":
                await rounds.reset()
                begun = []
            case "restart":
                await store.close()
                store = SqliteStore(folder / "s.db", load_statements())
                rounds = MachineRounds(store, clock, Alerts(store, clock, ()), lambda: most)
            case "passes":
                clock.advance(float(detail))
            case _:
                clock.at += float(detail)
    clock.advance(2 * WINDOW_S)
    assert not await rounds.begin_round("the end"), "after an hour without any they are heard again"
    await store.close()
