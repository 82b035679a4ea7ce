"""What ends with a conversation, what is kept of one that goes on, and when each of its events was
recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio
import msgspec
import pytest
from msgspec.structs import replace

from deskhand.agent.compacted_event import make_ledger
from deskhand.agent.fold import fold
from deskhand.agent.state import Conversation, State
from deskhand.assembly.trace import Trace
from deskhand.models.base import Reply, Request
from deskhand.models.window import estimate_request_tokens
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.bench import (
    ANN,
    PLACE,
    SESSION,
    Bench,
    ShortContext,
)
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.tools import SCHEMA
from deskhand.tools.base import Context, Outcome, Spec, make_result
from deskhand.types import events as e
from deskhand.types.client import ClientRequest
from deskhand.types.identity import SYSTEM, Command, Edit, Principal, Reaction
from deskhand.types.labels import LOCAL, OWNER, UNTRUSTED
from deskhand.types.limits import Limits
from deskhand.types.messages import Image, Message, Text, ToolCall, Usage
from deskhand.types.options import SessionOptions
from deskhand.types.steps import Condensed
from deskhand.types.turn import LATE_EDIT

MakeBench = Callable[..., Bench]
WINDOW = 100_000
PICTURE = Image("sha256:" + "0" * 64, "image/png", "shot", UNTRUSTED)


def recorded(*events: e.AnyEvent) -> list[e.Recorded]:
    return [e.Recorded(0, SESSION, n, float(n), event) for n, event in enumerate(events, 1)]


def received(message: Message, who: Principal = ANN) -> e.MessageReceived:
    return e.MessageReceived(1, who, PLACE, message)


FIRST: tuple[e.AnyEvent, ...] = (
    received(Message("user", (Text("look", OWNER), PICTURE)), Principal("bob", ("member",))),
    e.ModelReplied(
        Message("assistant", (Text("I see."),)), "test/model", "stop", Usage(90_000, 10)
    ),
    e.TurnEnded("done", (1,)),
    e.MessageDelivered(f"{SESSION}#3.0", "p1"),
    e.Masked(2),
    e.Reacted(2, ANN, "p1", "x", True),
    e.CommandRun(2, SYSTEM, LATE_EDIT),
    e.OptionsSet(
        3, ANN, SessionOptions(model="test/big", trust=("a.example",), loaded_tools=("cron",))
    ),
)
"""A conversation that leaves a trace in every field of it."""


async def test_what_a_model_is_shown_no_more_takes_no_room(bench: MakeBench) -> None:
    b = bench(ScriptedModel(lambda request: say("fine")), [])
    journal = b.session.journal
    for _ in range(5):
        await b.say("hello")
    heavy = journal.size_bytes
    journal.encoded.messages["wire", 1, "full"] = b"as it was sent"
    await b.say(Command("start"))
    await b.say("hello")
    assert not journal.encoded.messages and len(journal.encoded.tokens) <= 2
    assert journal.size_bytes < heavy / 2


@pytest.mark.parametrize("name", ["start", "stop"])
def test_a_new_conversation_begins_with_nothing_of_the_old_one(name: str) -> None:
    after = received(Message("user", (Text("hello", OWNER),)))
    old = fold(State(SESSION), recorded(*FIRST))
    old.compacted_at = 5
    for field in Conversation.__struct_fields__:
        assert getattr(old, field) != getattr(Conversation(), field), (
            f"nothing is known of {field} to be forgotten"
        )
    events = recorded(*FIRST, e.CommandRun(4, ANN, name), after)
    state = fold(State(SESSION), events)
    fresh = fold(State(SESSION, n=len(events) - 1), events[-1:])
    for field in Conversation.__struct_fields__:
        assert getattr(state, field) == getattr(fresh, field), field
    assert state.options == SessionOptions(model="test/big")


async def test_the_first_message_of_a_new_conversation_has_the_whole_window(
    bench: MakeBench,
) -> None:
    asked: list[Request] = []

    def script(request: Request) -> Reply:
        asked.append(request)
        return Reply(say("Fine."), "stop", Usage(estimate_request_tokens(request), 10))

    b = bench(ScriptedModel(script), [])
    b.configure(limits=Limits(window=WINDOW))
    for _ in range(3):
        await b.say("word " * 18_000)
    await b.say(Command("start"))
    await b.say("word " * 20_000)
    assert len(asked[-1].messages) == 1
    assert len(asked[-1].messages[0].message.text) == 100_000


def test_all_that_is_known_of_an_open_turn_outlasts_a_summary() -> None:
    """Each field of it: a new one cannot be forgotten."""
    failed = e.ModelFailed("m", "ModelError", "x")
    turn = e.Turn(
        principal=ANN,
        address=PLACE,
        answers=[1, 2],
        opened_at=3.0,
        steps=4,
        usage=Usage(5, 6),
        reply_to="7",
        failures=[failed],
        failed_at=19.0,
        hinted={"loop"},
        marks=[b"8"],
        pieces=["9"],
        continued=10,
        empty=11,
        finish="length",
        overflows=1,
        asked=13,
        said=["14"],
        recalled=15,
        compacted=1,
        stopped=True,
        stop_id=19,
        ending="16",
        request=ClientRequest(stop=("17",)),
        heard=["18"],
        unheard=["sha256:3"],
        spoken="de",
        transcripts=["zehn Uhr"],
    )
    for field in e.Turn.__struct_fields__:
        assert getattr(turn, field), f"{field} needs a value here"
    state = State(SESSION, turn=turn)
    short = e.decode_event(e.encode_event(e.Compacted((), "", 0, make_ledger(state))))
    restored = fold(State(SESSION), recorded(short)).turn
    assert restored == turn and restored is not turn
    turn.said.append("later")
    assert restored.said == ["14"]


async def slow_summary(b: Bench, started: anyio.Event) -> None:
    class Slow(ShortContext):
        async def summarize(
            self, state: State, messages: Sequence[Message], focus: str
        ) -> Condensed:
            started.set()
            await anyio.sleep_forever()
            raise AssertionError

    b.agent = replace(b.agent, context=Slow())
    b.start()


@pytest.mark.parametrize("said_to_it", ["stop", "a new message"])
async def test_a_summary_that_is_cut_short_writes_nothing(
    bench: MakeBench, said_to_it: str
) -> None:
    b = bench(ScriptedModel(lambda request: say("Fine.")), [])
    for text in ("one", "two", "three", "four"):
        await b.say(text)
    started = anyio.Event()
    await slow_summary(b, started)
    assert await b.drive() is None
    before = [shown.message for shown in b.session.state.messages]
    await b.tell(Command("compact"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(b.drive)
        with anyio.fail_after(5):
            await started.wait()
        if said_to_it == "stop":
            await b.tell(Command("stop"))
        else:
            await b.tell("what now?", when="interrupt")
            b.agent = replace(b.agent, context=ShortContext())
            await anyio.wait_all_tasks_blocked()
            await b.tell(Command("stop"))
    events = await b.events()
    assert not any(isinstance(event, e.Compacted) for event in events)
    state = b.session.state
    assert [shown.message for shown in state.messages][: len(before)] == before
    assert not state.options.compact and not state.archived
    await b.say("and five")
    assert [shown.message.text for shown in state.messages][-2:] == ["and five", "Fine."]


async def test_a_stop_in_a_turn_that_is_summed_up_ends_the_turn(bench: MakeBench) -> None:
    long = "word " * 2_000
    b = bench(ScriptedModel(lambda request: Reply(say("Fine."), "stop", Usage(9_000, 10))), [])
    b.configure(limits=Limits(window=12_000))
    for _ in range(4):
        await b.say(long)
    before = sum(isinstance(event, e.Compacted) for event in await b.events())
    started = anyio.Event()
    await slow_summary(b, started)
    await b.tell(long)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(b.drive)
        with anyio.fail_after(5):
            await started.wait()
        await b.tell(Command("stop"))
    events = await b.events()
    assert sum(isinstance(event, e.Compacted) for event in events) == before
    assert isinstance(events[-1], e.TurnEnded) and events[-1].reason == "stopped"


async def test_each_event_has_the_time_at_which_it_was_recorded(bench: MakeBench) -> None:
    def script(request: Request) -> Message:
        b.clock.advance(30)
        return say("Fine.")

    b = bench(ScriptedModel(script), [])
    began = b.clock.now()
    await b.say("hello")
    log = await b.store.events(SESSION)
    times = {type(each.event): each.at - began for each in log}
    assert times == {e.MessageReceived: 0, e.ModelReplied: 30, e.TurnEnded: 30}
    trace = Trace(lambda text: text)
    spans = [span for each in log for span in trace.add(each)]
    assert [(span.kind, span.took_s) for span in spans] == [("llm_call", 30), ("agent_run", 30)]
    published = [each for each in b.shown if isinstance(each, e.Recorded)]
    assert [each.at for each in published] == [each.at for each in log]
    assert isinstance(b.store, SqliteStore)
    _, breaks = await b.store.audit()
    assert breaks == []


async def test_each_event_of_one_commit_has_its_own_time(bench: MakeBench) -> None:
    """A quick read is written with the reply that called it: the reply is older."""

    class Slow:
        spec = Spec("look", "Looks.", SCHEMA)

        async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
            b.clock.advance(30)
            return make_result("seen", LOCAL)

    def script(request: Request) -> Message:
        if request.messages[-1].message.role == "tool":
            return say("Fine.")
        return say("", ToolCall("c1", "look", msgspec.Raw(b"{}")))

    b = bench(ScriptedModel(script), [Slow()])
    began = b.clock.now()
    await b.say("hello")
    log = await b.store.events(SESSION)
    assert [(type(each.event), each.at - began) for each in log[1:3]] == [
        (e.ModelReplied, 0),
        (e.ToolFinished, 30),
    ]
    spans = [
        span for trace in [Trace(lambda text: text)] for each in log for span in trace.add(each)
    ]
    calls = [(span.name, span.took_s) for span in spans if span.kind != "agent_run"]
    assert calls == [("test/model", 0), ("look", 30), ("test/model", 0)]


async def test_edits_and_reactions_of_an_old_conversation_are_not_told_in_a_new_one(
    bench: MakeBench,
) -> None:
    asked: list[Request] = []

    def script(request: Request) -> Message:
        asked.append(request)
        return say("Fine.")

    b = bench(ScriptedModel(script), [])
    await b.say("one")
    await b.say(Edit("1", Message("user", (Text("uno", OWNER),))))
    await b.say(Reaction("1", "x", True))
    await b.say(Command("start"))
    await b.say("two")
    assert [shown.message.text for shown in asked[-1].messages] == ["two"]
