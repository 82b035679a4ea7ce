"""Calls on which somebody else works: those of a program's own tools are handed over to it, others
to sub-agents. The turn rests until there are results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..types.client import ClientRequest
from ..types.events import AnyEvent, CallClosed, CallsHandedOver
from ..types.turn import GOES_ON, OpenCall, is_handed_to

HANDOVER_TIMEOUT_S = 3600.0
"""So long a turn waits for the results of a program's tools."""


def split_calls(
    calls: Sequence[OpenCall], client: ClientRequest | None
) -> tuple[list[OpenCall], list[OpenCall]]:
    """The calls that are ours to run, and those of the program's tools."""
    ours = [call for call in calls if not is_handed_to(call, "subagent")]
    if client is None:
        return ours, []
    theirs = [call for call in ours if client.tool(call.call.name) is not None]
    return [call for call in ours if call not in theirs], theirs


def next_call(calls: Sequence[OpenCall], client: ClientRequest | None) -> OpenCall:
    """The call that is next: those of the program's tools come behind ours, and then those on which
    sub-agents work."""
    ours, theirs = split_calls(calls, client)
    return (ours or theirs or sorted(calls, key=_handed_until))[0]


def _handed_until(call: OpenCall) -> float:
    return call.handed.until if call.handed is not None else 0.0


def stop_waiting(calls: Sequence[OpenCall], now: float) -> list[AnyEvent]:
    """The events with which the calls end on which sub-agents have worked for too long to be waited
    for."""
    return [
        CallClosed(call.call.id, "ok", GOES_ON)
        for call in calls
        if is_handed_to(call, "subagent") and _handed_until(call) <= now
    ]


def hand_over_calls(
    calls: Sequence[OpenCall], client: ClientRequest, now: float, new_id: Callable[[str], str]
) -> list[AnyEvent]:
    """The events with which these calls are handed over: all of them together, or the first where
    the program wants one at a time."""
    events: list[AnyEvent] = []
    if not client.parallel_calls:
        later = "only one call is made at a time: make this one again if it is still needed"
        events += [CallClosed(call.call.id, "superseded", later) for call in calls[1:]]
        calls = calls[:1]
    ids = {call.call.id: new_id("call") for call in calls}
    return [*events, CallsHandedOver(ids, now + HANDOVER_TIMEOUT_S)]
