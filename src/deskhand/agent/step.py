"""The whole agent as a pure function: what is owed now."""

from __future__ import annotations

from ..models.window import fresh, worth_it
from ..policy.guard import hints, loop_guard
from ..types.client import ClientRequest
from ..types.events import Turn
from ..types.limits import Limits
from ..types.steps import AskModel, Compact, EndTurn, RunTools, Step, Wait
from ..types.turn import OpenCall
from .client_calls import first_of
from .state import State

NAP_S = 5.0
"""A shorter wait is slept through; a longer one rests in the log."""
CONTINUE_TIMES = 3
EXPIRED = "The program that asked did not return the results of its tools in time."
EMPTY_TIMES = 2
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
        return EndTurn("stopped", "Stopped.")
    if state.calls:
        return _after_calls(tuple(state.calls.values()), turn.request, now)
    if turn.ending:
        return EndTurn("done", turn.ending)
    if turn.failures:
        return _after_failure(turn, now)
    return _next(state, turn, limits)


def _after_calls(calls: tuple[OpenCall, ...], client: ClientRequest | None, now: float) -> Step:
    first = first_of(calls, client)
    if first.ask is not None and now < first.ask.until:
        return Wait(first.ask.until, first.ask.until - first.rests_since)
    if first.handed is not None:
        until = first.handed.until
        return (
            Wait(until, until - first.rests_since) if now < until else EndTurn("stopped", EXPIRED)
        )
    return RunTools(calls)


def _after_failure(turn: Turn, now: float) -> Step:
    last = turn.failures[-1]
    if turn.overflows == 1 and last.error == "ContextOverflow":
        return AskModel((), "final" not in turn.hinted) if turn.compacted else Compact(0)
    if last.retry_at is None:
        return EndTurn("failed", f"Sorry, I could not answer: {last.detail}")
    at = (
        last.retry_at if now >= turn.failed_at else now
    )  # before the failure: somebody has set the clock back
    if at - now > NAP_S:
        return Wait(at, at - turn.failed_at)
    return AskModel((), "final" not in turn.hinted, last.next_model, at)


def _next(state: State, turn: Turn, limits: Limits) -> Step:
    if ended := _answered(turn):
        return ended
    guard = loop_guard(turn.marks)
    if guard == "stop":
        return EndTurn("loop", "I stopped: I was repeating the same step without getting further.")
    if turn.steps > limits.steps:
        said = f"I stopped after {limits.steps} steps without an answer. Write `continue` to go on."
        return EndTurn("steps", said)
    if turn.usage.input_tokens + turn.usage.output_tokens > limits.tokens:
        return EndTurn(
            "tokens",
            f"I stopped: this turn used its {limits.tokens} tokens. Write `continue` to go on.",
        )
    full = state.context_tokens + limits.scale * fresh(state.messages) > COMPACT_AT * limits.window
    if state.options.compact or (
        full and state.n != state.compacted_at and worth_it(state.messages, limits)
    ):
        return Compact(int(COMPACT_TO * limits.window), state.options.compact or "")
    return AskModel(hints(turn, limits, guard), turn.steps < limits.steps)


def _answered(turn: Turn) -> EndTurn | None:
    """The end, if the model's last reply was its answer."""
    if not turn.pieces or turn.finish == "interrupted" or turn.hinted & {"continue", "empty"}:
        return None
    if turn.finish == "length" and turn.continued <= CONTINUE_TIMES and not _is_limited(turn):
        return None
    if not answer(turn).strip():
        if turn.empty <= EMPTY_TIMES and turn.finish != "filtered":
            return None
        why = (
            "the provider held its answer back"
            if turn.finish == "filtered"
            else "the model gave no answer"
        )
        return EndTurn(
            "failed", f"Sorry, I could not answer: {why}. Try again, or say it in other words."
        )
    return EndTurn("steps" if "final" in turn.hinted else "done")


def _is_limited(turn: Turn) -> bool:
    """Whether a program says how long an answer may be: then it is cut there."""
    return turn.request is not None and turn.request.max_output_tokens is not None


def answer(turn: Turn) -> str:
    """What the model said at the end, stitched together where it was cut off."""
    return "".join(turn.pieces)
