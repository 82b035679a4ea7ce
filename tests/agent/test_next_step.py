"""Events in, the step that is owed out."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from deskhand.agent.fold import _FOLDS, fold
from deskhand.agent.loop_guard import detect_loop
from deskhand.agent.next_step import answer_text, next_step
from deskhand.agent.state import State
from deskhand.testing.shorten import compact
from deskhand.types import events as e
from deskhand.types.identity import Address, Principal
from deskhand.types.limits import Limits
from deskhand.types.messages import Message, Text, ToolCall, ToolResult, Usage
from deskhand.types.steps import AskModel, Compact, EndTurn, RunTools, Step, Wait

NOW = 1_700_000_000.0
ANN = Principal("ann")
PLACE = Address("chat", chat="1")
LIMITS = Limits(steps=6, tokens=10_000, window=1_000)
LONG = Limits(steps=50, window=100_000)


LONG_TEXT = "w" * 600
"""Enough to be worth shortening, in the window of 1,000 tokens that these tests have."""


def got(text: str = "hello", inbox_id: int = 1) -> e.AnyEvent:
    return e.MessageReceived(inbox_id, ANN, PLACE, Message("user", (Text(text),)))


def reply(text: str = "", *calls: str, finish: e.Finish = "stop", tokens: int = 10) -> e.AnyEvent:
    """An answer, or calls by their ids: `c1` is a call of tool `c` with the argument 1."""
    made = (ToolCall(call, call[0], msgspec.Raw(call[1:].encode() or b"0")) for call in calls)
    parts = (*((Text(text),) if text else ()), *made)
    return e.ModelReplied(
        Message("assistant", parts), "m", "calls" if calls else finish, Usage(tokens, 0)
    )


def result(call: str, text: str = "ok") -> e.AnyEvent:
    return e.ToolFinished(ToolResult(call, (Text(text),)))


def last(call: str, text: str = "bye") -> e.AnyEvent:
    """A result that ends the turn."""
    return e.ToolFinished(ToolResult(call, (Text(text),)), end_turn=True)


def rounds(*calls: str, text: str = "ok") -> list[e.AnyEvent]:
    """One call after the other, each with the same result."""
    return [event for call in calls for event in (reply("", call), result(call, text))]


def failed(
    error: str = "ModelTimeout", retry_at: float | None = None, model: str = ""
) -> e.AnyEvent:
    return e.ModelFailed("m", error, "it broke", retry_at, model)


def state_of(*events: e.AnyEvent) -> State:
    return fold(
        State("s"), (e.Recorded(0, "s", n, NOW, event) for n, event in enumerate(events, 1))
    )


def step_of(*events: e.AnyEvent, limits: Limits = LIMITS, now: float = NOW) -> Step | None:
    return next_step(state_of(*events), limits, now)


def hinted(step: Step | None) -> list[str]:
    assert isinstance(step, AskModel)
    return [hint.why for hint in step.hints]


ASKED = e.ApprovalAsked("ask", "c1", "binds", "may I?", "because", NOW + 60)
NO_MORE = e.CommandRun(2, ANN, "stop")
SORRY = "Sorry, I could not answer: "


@pytest.mark.parametrize(
    ("events", "step"),
    [
        ([], None),
        ([got()], AskModel()),
        ([got(), reply("hi")], EndTurn("done")),
        ([got(), reply("hi"), e.TurnEnded("done", (1,))], None),
        ([got(), reply("hi"), e.TurnEnded("done", (1,)), got()], AskModel()),
        ([got(), reply("", "c1"), result("c1")], AskModel()),
        (
            [got(), reply("", "c1", "d2"), result("c1"), result("d2"), reply("both")],
            EndTurn("done"),
        ),
        ([got(), reply("", "c1"), ASKED], Wait(NOW + 60, 60)),
        ([got(), reply("", "c1"), ASKED, e.CallClosed("c1", "superseded", "x"), got()], AskModel()),
        ([got(), reply("half", finish="interrupted"), got("more", 2)], AskModel()),
        ([got(), NO_MORE], EndTurn("stopped", "Stopped.")),
        ([got(), failed(retry_at=NOW + 1, model="n")], AskModel((), True, "n", NOW + 1)),
        ([got(), failed(retry_at=NOW + 5, model="n")], AskModel((), True, "n", NOW + 5)),
        ([got(), failed(retry_at=NOW + 6, model="n")], Wait(NOW + 6, 6)),
        ([got(), failed()], EndTurn("failed", SORRY + "it broke")),
        ([got(), failed(retry_at=NOW + 1), failed()], EndTurn("failed", SORRY + "it broke")),
        ([got(), failed(retry_at=NOW), reply("hi")], EndTurn("done")),
        ([got(), failed("ContextOverflow")], Compact(0)),
        (
            [got(), reply("", "c1"), result("c1"), failed(), e.CommandRun(2, ANN, "stop")],
            EndTurn("stopped", "Stopped."),
        ),
        ([got(LONG_TEXT), reply("hm", "c1", tokens=801), result("c1")], Compact(400)),
        ([got(), reply("hi", tokens=801)], EndTurn("done")),
        ([got(LONG_TEXT), reply("hi", tokens=801), e.TurnEnded("done", (1,)), got()], Compact(400)),
        ([got(), reply("hm", "c1", tokens=791), result("c1")], AskModel()),
        ([got(LONG_TEXT), reply("hm", "c1", tokens=791), result("c1", "r" * 100)], Compact(400)),
        ([got(), reply("hm", "c1", tokens=900), result("c1")], AskModel()),
        ([got(), reply("hi", finish="filtered")], EndTurn("done")),
        ([got(), reply("", "c1"), last("c1")], EndTurn("done", "bye")),
        ([got(), reply("", "c1", "d2"), last("c1"), result("d2")], EndTurn("done", "bye")),
        ([got(), reply("", "c1"), last("c1", "")], EndTurn("done", "Done.")),
        ([got(), reply("", "c1", tokens=801), last("c1")], EndTurn("done", "bye")),
        ([got(), reply("", "c1"), last("c1"), NO_MORE], EndTurn("stopped", "Stopped.")),
        ([got(), reply("", "c1"), last("c1"), got("wait", 2)], AskModel()),
        (
            [got(), reply("", "c1"), last("c1"), e.TurnEnded("done", (1,), "bye"), got("again", 2)],
            AskModel(),
        ),
        ([e.CommandRun(1, ANN, "stop")], None),
        (
            [e.Reacted(1, ANN, "1", "x", True), e.MessageDelivered("k", "p"), e.Erased("session")],
            None,
        ),
    ],
)
def test_next_step(events: list[e.AnyEvent], step: Step | None) -> None:
    assert step_of(*events) == step


def test_open_calls_are_run_until_an_ask_rests_the_turn() -> None:
    step = step_of(got(), reply("", "c1", "d2"))
    assert isinstance(step, RunTools) and [call.call.id for call in step.calls] == ["c1", "d2"]
    expired = step_of(got(), reply("", "c1"), ASKED, now=NOW + 60)
    assert isinstance(expired, RunTools) and expired.calls[0].ask is not None
    said = e.ApprovalAnswered(2, "ask", "once", ANN)
    allowed = step_of(got(), reply("", "c1"), ASKED, said)
    assert isinstance(allowed, RunTools) and (
        allowed.calls[0].yes_at,
        allowed.calls[0].yes_binds,
    ) == (NOW, "binds")
    behind = step_of(got(), reply("", "d2", "c1"), ASKED)
    assert isinstance(behind, RunTools), "the one before it may still run"
    state = state_of(got(), reply("", "c1"), ASKED, said)
    assert state.turn is not None and state.turn.answers == [1, 2], (
        "who is waiting for `yes` is told when it ended"
    )


def test_overflow_compacts_once_and_tries_once() -> None:
    over = failed("ContextOverflow")
    state = state_of(got(), over)
    short = compact(state, 0)
    assert step_of(got(), over, short) == AskModel()
    assert step_of(got(), over, short, over) == EndTurn("failed", SORRY + "it broke")
    fresh = step_of(got(), over, short, reply("", "c1"), result("c1"), over)
    assert fresh == Compact(0), "a reply in between: it fitted, and grew"
    assert step_of(got(), over, short, failed(retry_at=NOW + 1)) == AskModel((), True, "", NOW + 1)


def test_cut_off_replies_are_continued_three_times_and_stitched() -> None:
    events = [got()]
    for i in range(3):
        events.append(reply(f"part{i} ", finish="length"))
        step = step_of(*events, limits=LONG)
        assert hinted(step) == ["continue"]
        assert isinstance(step, AskModel)
        events.extend(step.hints)
        assert step_of(*events, limits=LONG) == AskModel(), (
            "after a crash the hint is there already"
        )
    state = state_of(*events, reply("the end"))
    assert state.turn is not None and answer_text(state.turn) == "part0 part1 part2 the end"
    assert next_step(state, LONG, NOW) == EndTurn("done")
    assert step_of(*events, reply("still not", finish="length")) == EndTurn("done")


def test_a_continuation_survives_a_compaction() -> None:
    before = [got(LONG_TEXT), reply("first half ", finish="length", tokens=900)]
    assert step_of(*before) == Compact(400)
    after = [*before, compact(state_of(*before), 400)]
    assert hinted(step_of(*after)) == ["continue"]
    cold = state_of(after[-1], reply("second half"))
    assert cold.turn is not None and answer_text(cold.turn) == "first half second half"


def test_empty_replies_are_asked_again_twice() -> None:
    events = [got()]
    for blank in ("", " \n "):
        events.append(reply(blank))
        step = step_of(*events)
        assert hinted(step) == ["empty"] and isinstance(step, AskModel)
        events.extend(step.hints)
    assert step_of(*events, reply("there")) == EndTurn("done")
    ended = step_of(*events, reply(""))
    assert (
        isinstance(ended, EndTurn)
        and ended.reason == "failed"
        and "the model gave no answer" in ended.said
    )
    held = step_of(got(), reply("", finish="filtered"))
    assert (
        isinstance(held, EndTurn) and held.reason == "failed" and "blocked the answer" in held.said
    )
    assert not any(shown.message.role == "assistant" for shown in state_of(*events).messages), (
        "nothing empty is shown"
    )


def test_steps_run_out_in_words() -> None:
    events = [got()]
    whys = []
    for i in range(6):
        step = step_of(*events)
        assert isinstance(step, AskModel) and step.tools
        whys.append([hint.why for hint in step.hints])
        events += [*step.hints, *rounds(f"c{i}")]
    assert whys == [[], [], [], ["wrap_up"], [], []]
    final = step_of(*events)
    assert hinted(final) == ["final"] and isinstance(final, AskModel) and not final.tools
    events.extend(final.hints)
    again = step_of(*events, failed(retry_at=NOW))
    assert isinstance(again, AskModel) and not again.tools
    assert step_of(*events, reply("so far")) == EndTurn("steps")
    silent = step_of(*events, reply(""))
    assert isinstance(silent, EndTurn) and silent.reason == "steps" and "6 steps" in silent.said
    assert (
        step_of(*events, reply("so far"), e.TurnEnded("steps", (1,)), got("continue")) == AskModel()
    )


def test_tokens_run_out_and_the_next_message_goes_on() -> None:
    events = [got(), reply("", "c1", tokens=10_001), result("c1")]
    ended = step_of(*events, limits=Limits(tokens=10_000, window=100_000))
    assert isinstance(ended, EndTurn) and ended.reason == "tokens" and "10000 tokens" in ended.said
    assert (
        step_of(
            *events, e.TurnEnded("tokens", (1,), ended.said), got(), limits=Limits(window=100_000)
        )
        == AskModel()
    )


def test_the_same_call_again_and_again() -> None:
    wide = Limits(window=100_000)
    assert [hinted(step_of(got(), *rounds(*["c1"] * n), limits=wide)) for n in (1, 2, 3, 4)] == [
        [],
        [],
        ["loop"],
        [],
    ]
    stopped = step_of(got(), *rounds(*["c1"] * 5), limits=wide)
    assert isinstance(stopped, EndTurn) and stopped.reason == "loop" and stopped.said
    assert isinstance(step_of(got(), *rounds("c1", "c1", "c2", "c1", "c1"), limits=wide), AskModel)
    moving = [x for i in range(9) for x in (reply("", "c1"), result("c1", f"page {i}"))]
    assert isinstance(step_of(got(), *moving, limits=wide), AskModel), (
        "same call, other result: that is progress"
    )
    turns = rounds(*["c1", "d2"] * 4)
    assert isinstance(step_of(got(), *turns[:-2], limits=wide), AskModel)
    assert isinstance(step_of(got(), *turns, limits=wide), EndTurn)
    assert detect_loop([b"a", b"b"] * 3 + [b"a", b"c"]) is None and detect_loop([]) is None


def test_every_kind_of_event_is_folded() -> None:
    assert set(_FOLDS) == set(get_args(e.AnyEvent))
