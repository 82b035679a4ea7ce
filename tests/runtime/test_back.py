"""Going back, branching and setting options through the Door, and with a crash at every
boundary."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.agent.fold import fold
from deskhand.agent.state import State
from deskhand.config.config import Config, Home, Settings
from deskhand.models.base import Request
from deskhand.runtime.app import App, Parts, open_app
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.crash import Crash, Fuse, fused
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.tools.define import tool
from deskhand.types import events as e
from deskhand.types.commit import Commit
from deskhand.types.errors import ModelUnknown, StaleSession
from deskhand.types.identity import Address, Inbound, Principal, Receipt, Rewind, Said
from deskhand.types.labels import LOCAL
from deskhand.types.messages import Image, Message, Text, ToolCall
from deskhand.types.options import SessionOptions

CONFIG = msgspec.convert({"defaults": {"models": ["scripted/test"]}}, Config, strict=False)
ANN = Principal("ann", ("owner",))
BOB = Principal("bob", ("member",))
EVE = Principal("eve", ("member",))
WEB = "default/web:bob:room"
PICTURE = "sha256:" + "ab" * 32


def heard(request: Request) -> Message:
    """Says all that people said, as the model sees it now, without the dates."""
    said = [shown.message.parts for shown in request.messages if shown.message.role == "user"]
    return say(
        "heard "
        + " / ".join(part.text for parts in said for part in parts[1:] if isinstance(part, Text))
    )


@tool(reads=LOCAL)
async def look() -> str:
    """Look."""
    return "seen"


@asynccontextmanager
async def running(home: Path, model: ScriptedModel) -> AsyncIterator[App]:
    people = {person.id: person for person in (ANN, BOB, EVE)}

    def open_model(name: str) -> ScriptedModel:
        if name.startswith("nobody/"):
            raise ModelUnknown(f"there is no {name!r}")
        return model

    parts = Parts(open_model, {"look": look}, authorize=lambda inbound: people.get(inbound.sender))
    async with (
        open_app(Settings(Home(home), CONFIG), parts) as app,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(app.run)
        with anyio.fail_after(20):
            yield app
        tasks.cancel_scope.cancel()


async def settle(app: App) -> None:
    while await app.store.open_sessions():
        await anyio.sleep(0.002)


async def say_to(
    app: App, text: str, who: Principal = ANN, session: str = WEB, *parts: Image
) -> Receipt:
    said = Said(Message("user", (Text(text), *parts)))
    place = Address("web", chat="room", group=True)
    receipt = await app.door.submit(
        Inbound(app.parts.ids.new("x"), place, who.id, app.parts.clock.now(), said, session)
    )
    await settle(app)
    return receipt


async def last(app: App, session: str = WEB) -> str:
    events = await app.store.events(session)
    return [r.event.message.text for r in events if isinstance(r.event, e.ModelReplied)][-1]


async def ends(app: App, session: str = WEB) -> list[int]:
    return [r.n for r in await app.store.events(session) if isinstance(r.event, e.TurnEnded)]


async def test_rewind_through_the_door(tmp_path: Path) -> None:
    async with running(tmp_path / "h", ScriptedModel(heard)) as app:
        for text in ("one", "two"):
            await say_to(app, text)
        first = (await ends(app))[0]
        edited = Message("user", (Text("zwei\0"),))
        assert (await app.door.rewind(WEB, ANN, first, edited)).status == "accepted"
        await settle(app)
        assert await last(app) == "heard one / zwei\ufffd"
        received = [
            r.event for r in await app.store.events(WEB) if isinstance(r.event, e.MessageReceived)
        ][-1]
        assert received.message.parts[0].label.integrity == "owner"  # type: ignore[union-attr]
        refused = await app.door.rewind(WEB, EVE, 0)
        assert refused.status == "refused" and "not yours" in refused.reason
        long = await app.door.rewind(WEB, ANN, 0, Message("user", (Text("x" * 1_000_001),)))
        assert long.status == "refused" and "characters" in long.reason


async def test_rewind_interrupts_what_runs(tmp_path: Path) -> None:
    model = ScriptedModel(heard)
    async with running(tmp_path / "h", model) as app:
        await say_to(app, "one")
        model.latency_s = 60
        place = Address("web", chat="room", group=True)
        slow = Inbound(
            "slow", place, "ann", app.parts.clock.now(), Said(Message("user", (Text("two"),))), WEB
        )
        await app.door.submit(slow)
        while len(model.requests) < 2:
            await anyio.sleep(0.002)
        model.latency_s = 0
        await app.door.rewind(WEB, ANN, (await ends(app))[0])
        await settle(app)
        events = [r.event for r in await app.store.events(WEB)]
        assert [type(event) for event in events[-3:]] == [e.TurnEnded, e.Undone, e.Compacted]
        await say_to(app, "three")
        assert await last(app) == "heard one / three"


async def test_branch_through_the_door(tmp_path: Path) -> None:
    async with running(tmp_path / "h", ScriptedModel(heard)) as app:
        await say_to(app, "one", ANN, WEB, Image(PICTURE, "image/png"))
        await say_to(app, "two")
        await app.door.configure(WEB, ANN, SessionOptions(title="Taxes", thinking="low"))
        await settle(app)
        store = app.store
        assert isinstance(store, SqliteStore)
        first, second = await ends(app)
        receipt = await app.door.branch(WEB, ANN, second - 1, "default/web:other")
        assert (receipt.status, receipt.session, receipt.after) == (
            "accepted",
            "default/web:other",
            2,
        )
        begun = (await store.events(receipt.session))[0].event
        said = [recorded.at for recorded in await store.events(WEB) if recorded.n in (1, 2)]
        assert begun == e.Branched(WEB, first, ANN, "Taxes (2)", tuple(said))
        rows = {row.session: row for row in await store.sessions(ANN)}
        assert (rows[receipt.session].title, rows[WEB].title) == ("Taxes (2)", "Taxes")
        assert (rows[receipt.session].agent, rows[receipt.session].channel) == ("default", "web")
        await say_to(app, "three", ANN, receipt.session)
        assert await last(app, receipt.session) == "heard one / three"
        assert await last(app) == "heard one / two"
        await store.erase(ANN, WEB, 1.0)
        assert store.is_blob_used(PICTURE), "the branch still shows it"
        gone = await app.door.branch(WEB, ANN, first)
        assert gone.status == "refused" and "erased" in gone.reason
        count, breaks = await store.audit()
        assert count and not breaks
        sessions = await store.sessions(ANN)
        await store.rebuild_projections()
        assert await store.sessions(ANN) == sessions
        assert (await store.history(receipt.session))[0].n == 2


async def test_a_branch_is_refused_in_words(tmp_path: Path) -> None:
    async with running(tmp_path / "h", ScriptedModel(heard)) as app:
        await say_to(app, "one", BOB)
        for to, at_n, who, why in (
            (None, 1, EVE, "not yours to branch"),
            (None, 99, BOB, "no event 99"),
            ("other/web:bob:x", 1, BOB, "name it default/web:bob:NAME"),
            ("default/telegram:7", 1, BOB, "name it"),
            ("default/web:eve:x", 1, BOB, "name it"),
            ("default", 1, BOB, "name it"),
        ):
            receipt = await app.door.branch(WEB, who, at_n, to)
            assert receipt.status == "refused" and why in receipt.reason
        (end,) = await ends(app)
        made = await app.door.branch(WEB, BOB, end)
        assert made.session == f"{WEB}.b{end}"
        with pytest.raises(StaleSession):
            await app.door.branch(WEB, BOB, end)
        with pytest.raises(StaleSession):
            await app.door.branch(WEB, BOB, end, WEB)
        assert await app.store.may_see(BOB, made.session) and not await app.store.may_see(
            EVE, made.session
        )
        assert (await say_to(app, "mine?", EVE, made.session)).status == "refused"


async def test_options_through_the_door(tmp_path: Path) -> None:
    home = tmp_path / "h"
    (home / "prompts" / "pirate").mkdir(parents=True)
    (home / "prompts" / "pirate" / "PROMPT.md").write_text("Speak as a pirate.")
    model = ScriptedModel(heard)
    async with running(home, model) as app:
        made = await app.door.configure(
            WEB, BOB, SessionOptions(title="Logs", preset="pirate", system_prompt="Be brief.")
        )
        assert made.status == "accepted"
        await settle(app)
        (row,) = await app.store.sessions(BOB)
        assert (row.session, row.title, row.channel) == (WEB, "Logs", "web")
        assert (
            await app.door.configure(WEB, EVE, SessionOptions(title="mine"))
        ).status == "refused"
        await say_to(app, "one", BOB)
        stable, place = model.requests[0].system
        assert "Speak as a pirate." in stable and "Be brief." in place
        await say_to(app, "elsewhere", EVE, "default/web:eve:else")
        stable, place = model.requests[1].system
        assert "pirate" not in stable and "Be brief." not in place
        for who, options, why in (
            (ANN, SessionOptions(model="big"), "provider/name"),
            (ANN, SessionOptions(model="nobody/big"), "there is no 'nobody/big'"),
            (BOB, SessionOptions(model="nobody/big"), "Only owners may choose"),
            (BOB, SessionOptions(preset="ghost"), "choose one of"),
            (BOB, SessionOptions(title="x" * 81), "at most 80"),
            (BOB, SessionOptions(system_prompt="x" * 100_001), "at most 100,000"),
        ):
            refused = await app.door.configure(WEB, who, options)
            assert refused.status == "refused" and why in refused.reason
        await say_to(app, "/model nobody/big", ANN)
        told = [r.event for r in await app.store.events(WEB) if isinstance(r.event, e.CommandRun)]
        assert told[-1].reply == "there is no 'nobody/big'"
        (home / "prompts" / "pirate" / "PROMPT.md").unlink()
        await say_to(app, "/title  Ship's  log ", BOB)
        assert (await app.store.sessions(BOB))[0].title == "Ship's log"


async def test_nobody_sets_up_the_place_of_another(tmp_path: Path) -> None:
    async with running(tmp_path / "h", ScriptedModel(heard)) as app:
        for session in ("default/telegram::7", "default/web:eve:room"):
            refused = await app.door.configure(
                session, BOB, SessionOptions(system_prompt="obey bob")
            )
            assert refused.status == "refused" and not await app.store.events(session)


async def test_what_is_said_again_in_a_group_stays_in_it(tmp_path: Path) -> None:
    """Else the private notes would be in the prompt, and in the log that the group reads."""
    model = ScriptedModel(heard)
    async with running(tmp_path / "h", model) as app:
        await say_to(app, "one")
        await app.door.rewind(WEB, ANN, 0, Message("user", (Text("two"),)))
        await settle(app)
        received = [
            r.event for r in await app.store.events(WEB) if isinstance(r.event, e.MessageReceived)
        ]
        assert [event.address.group for event in received] == [True, True]
        assert "in a group" in model.requests[-1].system[1]


async def test_asking_before_every_tool(tmp_path: Path) -> None:
    def script(request: Request) -> Message:
        if request.messages[-1].message.role == "tool":
            return say("done")
        return say("", ToolCall("c", "look", msgspec.Raw(b"{}")))

    async with running(tmp_path / "h", ScriptedModel(script)) as app:
        await say_to(app, "free")
        await app.door.configure(WEB, ANN, SessionOptions(approval=True))
        await settle(app)
        place = Address("web", chat="room", group=True)
        said = Said(Message("user", (Text("asked"),)))
        await app.door.submit(Inbound("a", place, "ann", app.parts.clock.now(), said, WEB))
        while not (
            asked := [
                r for r in await app.store.events(WEB) if isinstance(r.event, e.ApprovalAsked)
            ]
        ):
            await anyio.sleep(0.002)
        event = asked[0].event
        assert isinstance(event, e.ApprovalAsked) and "asks before every tool" in event.reason


# ---------------------------------------------------------- crashes


async def live(home: Path, fuse: Fuse, channel: MemoryChannel) -> bool:
    """Run until all is taken in and sent. True when the fuse blew first."""
    channel._fuse = fuse
    model = ScriptedModel(heard)
    parts = Parts(
        lambda name: model,
        {},
        channels=(channel,),
        authorize=lambda inbound: ANN,
        store=fused(fuse),
    )
    blown = False
    try:
        async with (
            open_app(Settings(Home(home), CONFIG), parts) as app,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(app.run)
            with anyio.fail_after(30):
                while (
                    channel.waiting
                    or await app.store.open_sessions()
                    or await app.store.outbox_due(1e12, 9)
                ):
                    await anyio.sleep(0.002)
            tasks.cancel_scope.cancel()
    except* Crash:
        blown = True
    return blown


async def lives(home: Path, crash: int) -> tuple[bool, list[str]]:
    """Say `one` and `two`, branch, go back to the end of the first turn with `three`; crash at this
    boundary of the third life. Returns whether it did, and the boundaries of that life."""
    channel = MemoryChannel()
    channel.write("one")
    assert not await live(home, Fuse(), channel)
    store = SqliteStore(Home(home).database)
    (session,) = [row.session for row in await store.sessions(ANN)]
    end = next(r.n for r in await store.events(session) if isinstance(r.event, e.TurnEnded))
    await store.close()
    channel.write("two")
    assert not await live(home, Fuse(), channel)
    channel.write("/branch")
    back = Rewind(end, Message("user", (Text("three"),)))
    channel.waiting.append(
        Inbound("back", channel.waiting[0].address, "ann", 1_700_000_000.0, back)
    )
    fuse = Fuse(crash)
    blown = await live(home, fuse, channel)
    assert not await live(home, Fuse(), channel)
    store = SqliteStore(Home(home).database)
    await check(store, session, end)
    await store.close()
    return blown, fuse.passed


async def check(store: SqliteStore, session: str, end: int) -> None:
    events = await store.events(session)
    state, at_end = (fold(State(session, zone=UTC), events[:n]) for n in (None, end))
    assert sum(isinstance(r.event, e.Undone) for r in events) == 1
    texts = [shown.message.text for shown in state.messages]
    assert texts[: len(at_end.messages)] == [shown.message.text for shown in at_end.messages]
    assert state.turn is None and texts[-1] == "heard one / three"
    branches = [row.session for row in await store.sessions(ANN) if row.session != session]
    copies = [[s.message for s in fold(State(b), await store.events(b)).messages] for b in branches]
    assert len(branches) == 1 and len(copies[0]) == 4 and copies[0][-1].text == "heard one / two"
    assert not (await store.audit())[1] and not await store.open_sessions()


@pytest.mark.timeout(300)
async def test_every_boundary(tmp_path: Path) -> None:
    # How many boundaries there are depends on what was woken by what: so it goes on until none is
    # reached any more.
    crashes = 0
    missed = 0
    at = 0
    boundaries: list[str] = []
    while missed < 3:
        at += 1
        blown, boundaries = await lives(tmp_path / str(at), at)
        crashes += blown
        missed = 0 if blown else missed + 1
    assert crashes >= 20 and boundaries.count("before commit") >= 4


async def test_a_branch_is_one_commit(tmp_path: Path) -> None:
    """Whoever comes second finds the number taken, and nothing of it is written."""
    store = SqliteStore(tmp_path / "x.db")
    begun = (e.Branched("a/web:1", 0, ANN), e.Compacted((), "", 0, e.Ledger()))
    await store.commit(Commit("a/web:2", 1, 1.0, begun, close=True))
    with pytest.raises(StaleSession):
        await store.commit(
            Commit("a/web:2", 1, 1.0, (e.Branched("a/web:9", 0, EVE), begun[1]), close=True)
        )
    assert not await store.may_see(EVE, "a/web:2") and len(await store.events("a/web:2")) == 2
    await store.close()
