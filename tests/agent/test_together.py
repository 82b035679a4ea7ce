"""One question about several calls of a reply: what its answers do, and what voids them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deskhand.assembly.judge import judge
from deskhand.models.base import Model, Request
from deskhand.policy.approval import render_arguments
from deskhand.policy.checks import AgentPolicy
from deskhand.policy.rules import Case, Decision
from deskhand.store.queries import standing_grants
from deskhand.testing.bench import BOB, Bench
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.tools.base import Context, Outcome, Spec, Tool, make_result
from deskhand.types.effects import Effect
from deskhand.types.events import (
    AnyEvent,
    ApprovalAnswered,
    ApprovalAsked,
    CallClosed,
    ModelReplied,
    ToolFinished,
    ToolStarted,
)
from deskhand.types.identity import SYSTEM
from deskhand.types.labels import LOCAL, UNTRUSTED, Label
from deskhand.types.messages import Message, ResultStatus, ToolCall, ToolResult

from ..examples import examples

MakeBench = Callable[[Model, Sequence[Tool]], Bench]
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}


class Sink:
    """A tool of this effect that remembers what it was given; what it answers has this label."""

    def __init__(
        self,
        name: str,
        effect: Effect,
        label: Label = LOCAL,
        after: Callable[[], None] | None = None,
    ) -> None:
        self.spec = Spec(name, "", SCHEMA, effect, "never")
        self.got: list[str] = []
        self._label = label
        self._after = after or (lambda: None)

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        self.got.append(msgspec.json.decode(arguments)["text"])
        self._after()
        return make_result("ok", self._label)


def calls(*wanted: tuple[str, str]) -> ScriptedModel:
    """Makes these calls in one reply, then says `fine`."""

    def script(request: Request) -> Message:
        if any(shown.message.role == "tool" for shown in request.messages):
            return say("fine")
        made = (
            ToolCall(f"c{i}", name, msgspec.Raw(msgspec.json.encode({"text": text})))
            for i, (name, text) in enumerate(wanted)
        )
        return say("", *made)

    return ScriptedModel(script)


def asking(case: Case) -> Decision:
    return Decision("allow", "") if case.effect == "none" else Decision("ask", f"{case.tool} asks")


def asks(events: Sequence[AnyEvent]) -> list[list[str]]:
    """The lines of each question."""
    return [event.question.split("\n") for event in events if isinstance(event, ApprovalAsked)]


def statuses(events: Sequence[AnyEvent]) -> dict[str, ResultStatus]:
    ended: dict[str, ResultStatus] = {
        event.result.call_id: event.result.status
        for event in events
        if isinstance(event, ToolFinished)
    }
    return ended | {
        event.call_id: event.status for event in events if isinstance(event, CallClosed)
    }


@pytest.fixture
def sink() -> Sink:
    return Sink("send", "send_other")


async def three(bench: MakeBench, sink: Sink) -> Bench:
    b = bench(calls(("send", "a"), ("send", "b"), ("send", "c")), [sink])
    b.configure(asking)
    await b.say("go")
    return b


async def test_one_yes_runs_them_all_in_order(bench: MakeBench, sink: Sink) -> None:
    b = await three(bench, sink)
    assert asks(await b.events()) == [
        ['send {"text":"a"}', 'send {"text":"b"}', 'send {"text":"c"}']
    ]
    (asked,) = await b.sent()
    assert asked.startswith(
        'send {"text":"a"}\nsend {"text":"b"}\nsend {"text":"c"} (once / each / no)\nAsked because'
    )
    assert sink.got == []
    b.start()  # a restart changes nothing
    await b.answer("once")
    assert sink.got == ["a", "b", "c"] and (await b.sent())[-1] == "fine"
    assert len(asks(await b.events())) == 1


async def test_one_no_runs_none(bench: MakeBench, sink: Sink) -> None:
    b = await three(bench, sink)
    await b.answer("no")
    assert sink.got == [] and set(statuses(await b.events()).values()) == {"denied"}


async def test_one_by_one(bench: MakeBench, sink: Sink) -> None:
    b = await three(bench, sink)
    for answer in ("each", "once", "no", "once"):
        b.start()
        await b.answer(answer)
    assert sink.got == ["a", "c"]
    assert [len(lines) for lines in asks(await b.events())] == [3, 1, 1, 1]
    assert (await b.sent())[-1] == "fine"


@pytest.mark.parametrize(
    ("typed", "ran"), [("yes", 3), ("no", 0), ("One by one.", 0), ("always", 3), ("never", 0)]
)
async def test_typed_answers(bench: MakeBench, sink: Sink, typed: str, ran: int) -> None:
    b = await three(bench, sink)
    await b.say(typed)
    assert len(sink.got) == ran
    assert await standing_grants(b.store, SYSTEM) == [], "nothing is remembered of several calls"
    chosen = [event.choice for event in await b.events() if isinstance(event, ApprovalAnswered)]
    assert chosen == [
        {"yes": "once", "always": "once", "never": "no", "One by one.": "each"}.get(typed, typed)
    ]


async def test_who_may_not_allow_one_may_not_allow_several(bench: MakeBench, sink: Sink) -> None:
    b = await three(bench, sink)
    for choice in ("once", "each"):
        await b.answer(choice, BOB)
    assert sink.got == [] and len(asks(await b.events())) == 1


async def test_another_message_supersedes_all(bench: MakeBench, sink: Sink) -> None:
    b = await three(bench, sink)
    await b.say("something else")
    assert sink.got == [] and set(statuses(await b.events()).values()) == {"superseded"}
    await b.answer("once")
    assert sink.got == []


async def test_after_a_day_none_is_run(bench: MakeBench, sink: Sink) -> None:
    b = await three(bench, sink)
    b.clock.at += 25 * 3600.0
    await b.drive()
    assert sink.got == [] and set(statuses(await b.events()).values()) == {"expired"}


async def test_what_cannot_be_undone_has_a_question_of_its_own(
    bench: MakeBench, sink: Sink
) -> None:
    pay = Sink("pay", "irreversible")
    b = bench(
        calls(("send", "a"), ("pay", "1"), ("pay", "2"), ("send", "b"), ("send", "c")), [sink, pay]
    )
    b.configure(asking)
    await b.say("go")
    for _ in range(4):
        await b.answer("once")
    assert [[line.split(" ")[0] for line in lines] for lines in asks(await b.events())] == [
        ["send"],
        ["pay"],
        ["pay"],
        ["send", "send"],
    ]
    assert sink.got == ["a", "b", "c"] and pay.got == ["1", "2"]


async def test_a_free_call_ends_the_question(bench: MakeBench, sink: Sink) -> None:
    """What it reads may decide what the calls behind it mean to a person."""
    look = Sink("look", "none")
    b = bench(calls(("send", "a"), ("send", "b"), ("look", "x"), ("send", "c")), [sink, look])
    b.configure(asking)
    await b.say("go")
    await b.answer("once")
    assert [len(lines) for lines in asks(await b.events())] == [2, 1] and sink.got == ["a", "b"]


async def test_what_is_read_meanwhile_voids_the_rest(bench: MakeBench) -> None:
    """A yes from before something untrusted was read does not hold after it: it is asked about
    again."""
    post = Sink("post", "network", Label("untrusted", source="https://evil.example"))
    b = bench(calls(("post", "a"), ("post", "b"), ("post", "c")), [post])
    b.configure(asking)
    await b.say("go")
    await b.answer("once")
    assert post.got == ["a"]
    first, again = [event for event in await b.events() if isinstance(event, ApprovalAsked)]
    assert (
        len(first.calls) == 3 and len(again.calls) == 2 and again.source == "https://evil.example"
    )
    assert {each.binds for each in again.calls}.isdisjoint({each.binds for each in first.calls})
    await b.answer("once")
    assert post.got == ["a", "b", "c"]


async def test_what_comes_too_late_is_asked_about_again(bench: MakeBench) -> None:
    def passes() -> None:
        b.clock.at += 601.0

    slow = Sink("send", "send_other", after=passes)
    b = bench(calls(("send", "a"), ("send", "b")), [slow])
    b.configure(asking)
    await b.say("go")
    await b.answer("once")
    assert slow.got == ["a"] and [len(lines) for lines in asks(await b.events())] == [2, 1]
    await b.answer("no")
    assert slow.got == ["a"]


async def test_five_calls_a_turn_however_they_are_asked_about(bench: MakeBench, sink: Sink) -> None:
    b = bench(calls(*(("send", str(i)) for i in range(8))), [sink])
    b.configure(asking)
    await b.say("go")
    assert [len(lines) for lines in asks(await b.events())] == [5]
    await b.answer("each")
    for _ in range(5):
        await b.answer("once")
    assert sink.got == ["0", "1", "2", "3", "4"]
    assert [len(lines) for lines in asks(await b.events())] == [5, 1, 1, 1, 1, 1]
    assert [status for _, status in sorted(statuses(await b.events()).items())] == ["ok"] * 5 + [
        "denied"
    ] * 3


async def test_a_yes_to_five_calls_is_all_that_a_turn_asks_for(
    bench: MakeBench, sink: Sink
) -> None:
    b = bench(calls(*(("send", str(i)) for i in range(8))), [sink])
    b.configure(asking)
    await b.say("go")
    await b.answer("once")
    assert sink.got == ["0", "1", "2", "3", "4"]
    assert [len(lines) for lines in asks(await b.events())] == [5]
    assert [status for _, status in sorted(statuses(await b.events()).items())] == ["ok"] * 5 + [
        "denied"
    ] * 3


EFFECTS: tuple[Effect, ...] = ("none", "fetch", "send_other", "network", "irreversible", "host")
drawn = st.lists(st.tuples(st.sampled_from(EFFECTS), st.text(max_size=30)), min_size=1, max_size=7)


@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(drawn, st.lists(st.sampled_from(["once", "each", "no"]), min_size=1, max_size=9))
async def test_nothing_runs_that_nobody_saw(
    tmp_path_factory: pytest.TempPathFactory, wanted: list[tuple[Effect, str]], answers: list[str]
) -> None:
    """With the real gate, after something untrusted was read: whatever texts the calls of a reply
    hold, each call that reaches outward ran only after its own line, byte for byte, stood in a
    question that was answered with yes."""
    tools = [Sink("read", "none", UNTRUSTED), *(Sink(effect, effect) for effect in EFFECTS)]

    def script(request: Request) -> Message:
        turn = sum(shown.message.role == "assistant" for shown in request.messages)
        made = [("read", "x")] if turn == 0 else wanted if turn == 1 else []
        calls = (
            ToolCall(
                f"{turn}.{i}", name, msgspec.Raw(msgspec.json.encode({"text": text, "url": text}))
            )
            for i, (name, text) in enumerate(made)
        )
        return say("" if made else "fine", *calls)

    b = Bench(tmp_path_factory.mktemp("one") / "x.db", ScriptedModel(script), tools)
    b.configure(partial(judge, policy=AgentPolicy()))
    try:
        await b.say("go")
        for answer in (*answers, *["no"] * 9):
            await b.answer(answer)
        events = await b.events()
    finally:
        await b.close()
    made: dict[str, ToolCall] = {}
    asked: dict[str, dict[str, str]] = {}
    allowed: set[str] = set()
    for event in events:
        match event:
            case ModelReplied(message=message):
                made |= {call.id: call for call in message.calls}
            case ApprovalAsked(ask_id=ask_id, question=question, calls=bound):
                lines = question.split("\n")
                assert len(lines) == len(bound)
                asked[ask_id] = {
                    each.call_id: line for each, line in zip(bound, lines, strict=True)
                }
            case ApprovalAnswered(ask_id=ask_id, choice="once"):
                for call_id, line in asked[ask_id].items():
                    call = made[call_id]
                    assert line == f"{call.name} {render_arguments(call)}"
                    allowed.add(call_id)
            case ToolStarted(call_id=call_id) if made[call_id].name in (
                "send_other",
                "network",
                "irreversible",
                "host",
            ):
                assert call_id in allowed
            case ToolFinished(result=ToolResult(call_id=call_id, status="ok")):
                assert made[call_id].name in ("read", "none", "fetch") or call_id in allowed
            case _:
                pass
