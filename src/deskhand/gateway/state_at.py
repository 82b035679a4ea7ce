"""Shows a conversation as it was after one event of its log."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from ..agent.context import show_messages
from ..agent.rewind import RewindView
from ..agent.state import State
from ..types import events as e
from ..types.messages import ResultStatus
from ..types.moment import Judged, Moment, Outcome

_OUTCOMES: dict[ResultStatus, Outcome] = {
    "denied": "refused",
    "expired": "expired",
    "unasked": "unasked",
}


def build_moment(past: RewindView, n: int, prompt: Callable[[State], tuple[str, ...]]) -> Moment:
    """The conversation after event n of this log. Pure, except for the files that `prompt` reads.
    Raises Refused when there is no such event, or its text was erased."""
    rest = past.find_rest(n)
    state = past.state_at(n)
    last = next(
        (each.n for each in reversed(past.log[:n]) if isinstance(each.event, e.TurnEnded)), 0
    )
    in_turn = state
    if state.turn is None and last:  # a prompt is made for a turn: show that of the last one
        in_turn = past.state_at(last - 1)
    return Moment(
        n=n,
        at=past.log[n - 1].at if n else 0.0,
        rest=rest,
        messages=tuple(shown.message for shown in show_messages(state)),
        prompt=prompt(in_turn),
        usage=state.usage,
        context_tokens=state.context_tokens,
        label=state.label,
        options=state.options,
        busy=state.turn is not None,
        archived=state.archived,
        judged=tuple(list_decisions(past.log[:n])),
    )


def list_decisions(log: Iterable[e.Recorded]) -> list[Judged]:
    """Every call with the decision about it, in the order in which they were made."""
    made: dict[str, Judged] = {}
    done: list[Judged] = []
    asks: dict[str, list[str]] = {}
    for recorded in log:
        n = recorded.n
        event = recorded.event
        match event:
            case e.ModelReplied(message=message):
                done += made.values()
                made = {
                    call.id: Judged(
                        n,
                        call.id,
                        call.name,
                        bytes(call.arguments).decode(errors="replace"),
                        "open",
                        "",
                    )
                    for call in message.calls
                }
            case e.QuestionAsked(call_id=call_id) if call_id in made:
                made[call_id] = replace(
                    made[call_id], n=n, outcome="allowed", reason="it asks a person"
                )
            case e.ApprovalAsked(calls=calls, ask_id=ask_id, reason=reason):
                asks[ask_id] = [call.call_id for call in calls if call.call_id in made]
                for call_id in asks[ask_id]:
                    made[call_id] = replace(made[call_id], n=n, outcome="asked", reason=reason)
            case e.ApprovalAnswered(ask_id=ask_id, choice=choice, principal=principal) if (
                choice != "each"
            ):
                outcome: Outcome = "approved" if choice in ("once", "always") else "refused"
                for call_id in asks.get(ask_id, ()):
                    if call_id in made:
                        made[call_id] = replace(
                            made[call_id], n=n, outcome=outcome, by=f"{principal.id}: {choice}"
                        )
            case e.ToolFinished(result=result, allowed=allowed) if result.call_id in made:
                made[result.call_id] = _close_decision(
                    made[result.call_id], n, result.status, result.text, allowed
                )
            case e.CallClosed(call_id=call_id, status=status, reason=reason) if call_id in made:
                closed: Outcome = "refused" if status == "denied" else "closed"
                made[call_id] = replace(made[call_id], n=n, outcome=closed, reason=reason)
            case _:
                pass
    return [*done, *made.values()]


def _close_decision(call: Judged, n: int, status: ResultStatus, text: str, allowed: str) -> Judged:
    if status in _OUTCOMES and call.outcome != "refused":
        return replace(call, n=n, outcome=_OUTCOMES[status], reason=text)
    if call.outcome == "open":
        return replace(
            call, n=n, outcome="allowed" if allowed else "closed", reason=allowed or text
        )
    return call
