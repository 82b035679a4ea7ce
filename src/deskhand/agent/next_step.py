"""The whole agent as a pure function: what is owed now."""

from __future__ import annotations

from ..models.window import estimate_fresh_tokens, is_worth_compacting
from ..types.client import ClientRequest
from ..types.events import Turn
from ..types.limits import Limits
from ..types.marked_texts import mark_text
from ..types.steps import AskModel, Compact, EndTurn, RunTools, Step, Transcribe, Wait
from ..types.turn import OpenCall, is_handed_to
from .handed_calls import next_call
from .loop_guard import detect_loop, make_hints
from .state import State

SHORT_WAIT_S = 5.0
"""A shorter wait is slept through; a longer one rests in the log."""
MAX_CONTINUATIONS = 3
EXPIRED_REPLY = mark_text("The program that asked did not return the results of its tools in time.")
STOPPED = mark_text("Stopped.")
_FAILED = mark_text("Sorry, I could not answer: {why_text}")
_LOOPED = mark_text("I stopped: I was repeating the same step without getting further.")
_NO_STEPS = mark_text(
    "I stopped after {count_number} steps without an answer. Write `continue` to go on."
)
_NO_TOKENS = mark_text(
    "I stopped: this turn used its {count_number} tokens. Write `continue` to go on."
)
_BLOCKED = mark_text(
    "Sorry, I could not answer: the provider blocked the answer. Try again, or say it in other "
    "words."
)
_SILENT = mark_text(
    "Sorry, I could not answer: the model gave no answer. Try again, or say it in other words."
)
MAX_EMPTY_REPLIES = 2
COMPACT_AT = 0.8
COMPACT_TO = 0.4


def next_step(state: State, limits: Limits, now: float) -> Step | None:
    """What to do now; None when nothing is owed. Resuming after a crash is the same question."""
    turn = state.turn
    if turn is None:
        return (
            Compact(int(COMPACT_TO * limits.window), state.options.compact)
            if state.options.compact
            else None
        )
    if turn.stopped:
        return EndTurn("stopped", STOPPED)
    if state.calls:
        return _step_after_calls(tuple(state.calls.values()), turn.request, now)
    if turn.ending:
        return EndTurn("done", turn.ending)
    if turn.unheard:
        return Transcribe(turn.unheard[0])
    if turn.failures:
        return _step_after_failure(turn, now)
    return _continue_turn(state, turn, limits)


def _step_after_calls(
    calls: tuple[OpenCall, ...], client: ClientRequest | None, now: float
) -> Step:
    first = next_call(calls, client)
    if first.ask is not None and now < first.ask.until:
        return Wait(first.ask.until, first.ask.until - first.rests_since)
    if first.handed is not None and now < first.handed.until:
        return Wait(first.handed.until, first.handed.until - first.rests_since)
    if is_handed_to(first, "client"):
        return EndTurn("stopped", EXPIRED_REPLY)
    return RunTools(calls)


def _step_after_failure(turn: Turn, now: float) -> Step:
    last = turn.failures[-1]
    if turn.overflows == 1 and last.error == "ContextOverflow":
        return AskModel((), "final" not in turn.hinted) if turn.compacted else Compact(0)
    if last.retry_at is None:
        return EndTurn("failed", _FAILED.format(why_text=last.detail))
    at = last.retry_at
    if now < turn.failed_at:  # somebody has set the clock back
        at = now
    if at - now > SHORT_WAIT_S:
        return Wait(at, at - turn.failed_at)
    return AskModel((), "final" not in turn.hinted, last.next_model, at)


def _continue_turn(state: State, turn: Turn, limits: Limits) -> Step:
    if ended := _end_if_answered(turn):
        return ended
    guard = detect_loop(turn.marks)
    if guard == "stop":
        return EndTurn("loop", _LOOPED)
    if turn.steps > limits.steps:
        said = _NO_STEPS.format(count_number=limits.steps)
        return EndTurn("steps", said)
    if turn.usage.input_tokens + turn.usage.output_tokens > limits.tokens:
        return EndTurn(
            "tokens",
            _NO_TOKENS.format(count_number=limits.tokens),
        )
    full = (
        state.context_tokens + limits.scale * estimate_fresh_tokens(state.messages)
        > COMPACT_AT * limits.window
    )
    if state.options.compact or (
        full and state.n != state.compacted_at and is_worth_compacting(state.messages, limits)
    ):
        return Compact(int(COMPACT_TO * limits.window), state.options.compact or "")
    return AskModel(make_hints(turn, limits, guard), turn.steps < limits.steps)


def _end_if_answered(turn: Turn) -> EndTurn | None:
    """The end, if the model's last reply was its answer."""
    if not turn.pieces or turn.finish == "interrupted" or turn.hinted & {"continue", "empty"}:
        return None
    if (
        turn.finish == "length"
        and turn.continued <= MAX_CONTINUATIONS
        and not _has_output_limit(turn)
    ):
        return None
    if not answer_text(turn).strip():
        if turn.empty <= MAX_EMPTY_REPLIES and turn.finish != "filtered":
            return None
        return EndTurn("failed", _BLOCKED if turn.finish == "filtered" else _SILENT)
    return EndTurn("steps" if "final" in turn.hinted else "done")


def _has_output_limit(turn: Turn) -> bool:
    """Whether a program says how long an answer may be: then it is cut there."""
    return turn.request is not None and turn.request.max_output_tokens is not None


def answer_text(turn: Turn) -> str:
    """What the model said at the end, stitched together where it was cut off."""
    return "".join(turn.pieces)
