"""How a conversation was at one event, as the page's slider shows it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.config.config import Config, Home, Settings
from deskhand.gateway.state_at import list_decisions
from deskhand.models.base import Request
from deskhand.runtime.app import App, Parts, open_app
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.tools.define import tool
from deskhand.types import events as e
from deskhand.types.errors import Refused
from deskhand.types.identity import Address, Inbound, Principal, Said
from deskhand.types.labels import LOCAL
from deskhand.types.messages import Message, Text, ToolCall
from deskhand.types.options import SessionOptions

ANN = Principal("ann", ("owner",))
BOB = Principal("bob", ("member",))
EVE = Principal("eve", ("member",))
ROOM = "default/web:bob:room"
POLICY = [{"verdict": "allow", "tool": "reach"}, {"verdict": "deny", "tool": "refused"}]


@tool(reads=LOCAL)
async def look() -> str:
    """Look."""
    return "seen"


@tool(effect="network", reads=LOCAL)
async def reach() -> str:
    """Reach out, by a rule."""
    return "reached"


@tool(reads=LOCAL)
async def refused() -> str:
    """Is refused by a rule."""
    return "never"


@tool(effect="host", reads=LOCAL)
async def risky() -> str:
    """Is asked about."""
    return "done"


TOOLS = {each.spec.name: each for each in (look, reach, refused, risky)}


def script(request: Request) -> Message:
    """Calls the tools that the person names, one after the other, then says `fine`."""
    user = max(i for i, shown in enumerate(request.messages) if shown.message.role == "user")
    names = request.messages[user].message.parts[-1].text.split()  # type: ignore[union-attr]
    made = len(request.messages) - 1 - user
    return (
        say("fine")
        if made
        else say("", *(ToolCall(name, name, msgspec.Raw(b"{}")) for name in names))
    )


@asynccontextmanager
async def running(home: Path, model: ScriptedModel) -> AsyncIterator[App]:
    config = msgspec.convert(
        {"defaults": {"models": ["scripted/x"]}, "policy": POLICY}, Config, strict=False
    )
    people = {person.id: person for person in (ANN, BOB, EVE)}
    parts = Parts(lambda name: model, TOOLS, authorize=lambda inbound: people.get(inbound.sender))
    async with (
        open_app(Settings(Home(home), config), parts) as app,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(app.run)
        with anyio.fail_after(40):
            yield app
        tasks.cancel_scope.cancel()


async def say_to(app: App, text: str, *kinds: type[e.Event]) -> None:
    """Bob says this; until the log ends with one of these, or the turn is over."""
    said = Said(Message("user", (Text(text),)))
    inbound = Inbound(
        app.parts.ids.new("x"), Address("web"), "bob", app.parts.clock.now(), said, ROOM
    )
    receipt = await app.door.submit(inbound)
    while not any(
        isinstance(r.event, kinds or e.TurnEnded)
        for r in await app.store.events(ROOM, receipt.after)
    ):
        await anyio.sleep(0.003)


async def test_each_call_and_why(tmp_path: Path) -> None:
    async with running(tmp_path / "h", ScriptedModel(script)) as app:
        await say_to(app, "look reach refused missing risky", e.ApprovalAsked)
        events = await app.store.events(ROOM)
        now = await app.door.get_state_at(ROOM, BOB, len(events))
        told = {call.tool: (call.outcome, call.reason) for call in now.judged}
        assert told["look"] == ("allowed", "look stays within the workspace and this conversation")
        assert told["reach"] == ("allowed", "rule 1: allow reach (*)")
        assert told["refused"] == ("refused", "not permitted: rule 2: deny refused (*)")
        assert told["missing"][0] == "closed" and "there is no tool 'missing'" in told["missing"][1]
        assert told["risky"][0] == "asked" and "no rule allows it" in told["risky"][1]
        assert now.busy and now.rest == 0
        (ask,) = await app.store.open_asks(ANN)
        await app.door.answer(ask.ask_id, "no", ANN)
        while not isinstance((await app.store.events(ROOM))[-1].event, e.TurnEnded):
            await anyio.sleep(0.003)
        events = await app.store.events(ROOM)
        last = await app.door.get_state_at(ROOM, BOB, len(events))
        risk = last.judged[-1]
        assert (risk.outcome, risk.by) == (
            "refused",
            "ann: no",
        ) and "no rule allows it" in risk.reason
        assert not last.busy and last.rest == last.n
        assert [len((await app.door.get_state_at(ROOM, BOB, n)).judged) for n in (0, 1, 2)] == [
            0,
            0,
            5,
        ]
        assert {call.outcome for call in (await app.door.get_state_at(ROOM, BOB, 2)).judged} == {
            "open"
        }


async def test_what_the_model_saw_at_every_event(tmp_path: Path) -> None:
    model = ScriptedModel(script)
    async with running(tmp_path / "h", model) as app:
        await app.door.configure(ROOM, BOB, SessionOptions(system_prompt="Be brief."))
        await say_to(app, "look")
        await say_to(app, "look reach")
        events = await app.store.events(ROOM)
        replies = [r.n for r in events if isinstance(r.event, e.ModelReplied)]
        assert len(replies) == len(model.requests) == 4
        for n, request in zip(replies, model.requests, strict=True):
            seen = await app.door.get_state_at(ROOM, ANN, n - 1)
            assert seen.messages == tuple(shown.message for shown in request.messages)
            assert seen.prompt == request.system
        used = [(await app.door.get_state_at(ROOM, ANN, n)).usage.input_tokens for n in replies]
        assert used == [10, 20, 30, 40]
        end = await app.door.get_state_at(ROOM, ANN, len(events))
        assert end.prompt == model.requests[-1].system, "at rest it is that of the turn before"
        assert end.options.system_prompt == "Be brief." and end.context_tokens == 20
        assert (await app.door.get_state_at(ROOM, BOB, len(events))).prompt == (), (
            "it is made of files that bob may not read"
        )
        await app.door.rewind(
            ROOM, ANN, (await app.door.get_state_at(ROOM, ANN, replies[2] - 1)).rest
        )
        while not isinstance((await app.store.events(ROOM))[-1].event, e.Compacted):
            await anyio.sleep(0.003)
        back = await app.door.get_state_at(ROOM, ANN, len(await app.store.events(ROOM)))
        assert len(back.messages) == 4 and len(back.judged) == 3, (
            "what was decided stays to be seen"
        )


async def test_what_is_not_there(tmp_path: Path) -> None:
    async with running(tmp_path / "h", ScriptedModel(script)) as app:
        await say_to(app, "look")
        for who, n in ((EVE, 1), (BOB, -1), (BOB, 99)):
            with pytest.raises(Refused):
                await app.door.get_state_at(ROOM, who, n)
        await app.store.erase(ANN, ROOM, 1.0)
        with pytest.raises(Refused, match="erased"):
            await app.door.get_state_at(ROOM, ANN, 2)
        beginning = await app.door.get_state_at(ROOM, ANN, 0)
        assert (beginning.messages, beginning.judged, beginning.at) == ((), (), 0.0)


def test_calls_that_are_asked_about_together_are_judged_each() -> None:
    calls = (ToolCall(name, "reach", msgspec.Raw(b"{}")) for name in ("a", "b"))
    both = e.ApprovalAsked(
        "ask_1", "a", "x", "reach {}\nreach {}", "why", 1e9, others=(e.BoundCall("b", "y"),)
    )
    alone = e.ApprovalAsked("ask_2", "a", "x", "reach {}", "why", 1e9)
    log: list[e.AnyEvent] = [e.ModelReplied(say("", *calls), "p/m"), both]

    def outcomes(*more: e.AnyEvent) -> list[tuple[str, str]]:
        found = list_decisions(
            [e.Recorded(n, "s", n, float(n), event) for n, event in enumerate((*log, *more), 1)]
        )
        return [(each.outcome, each.by) for each in found]

    assert outcomes() == [("asked", "")] * 2
    assert outcomes(e.ApprovalAnswered(1, "ask_1", "once", ANN)) == [("approved", "ann: once")] * 2
    split = e.ApprovalAnswered(1, "ask_1", "each", ANN)
    assert outcomes(split) == [("asked", "")] * 2, "it is neither yes nor no"
    one = outcomes(split, alone, e.ApprovalAnswered(2, "ask_2", "no", ANN))
    assert one == [("refused", "ann: no"), ("asked", "")]
