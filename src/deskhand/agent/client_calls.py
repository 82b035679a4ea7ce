"""The calls of a program's own tools: they are handed over to it, and the turn rests until it
returns what came of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..types.client import ClientRequest
from ..types.events import AnyEvent, CallClosed, CallsHandedOver
from ..types.turn import OpenCall

HANDOVER_TIMEOUT_S = 3600.0
"""So long a turn waits for the results of a program's tools."""


def split_calls(
    calls: Sequence[OpenCall], client: ClientRequest | None
) -> tuple[list[OpenCall], list[OpenCall]]:
    """The calls that are ours to run, and those of the program's tools."""
    if client is None:
        return list(calls), []
    theirs = [call for call in calls if client.tool(call.call.name) is not None]
    return [call for call in calls if call not in theirs], theirs


def next_call(calls: Sequence[OpenCall], client: ClientRequest | None) -> OpenCall:
    """The call that is next: those of the program's tools come last."""
    ours, theirs = split_calls(calls, client)
    return (ours or theirs)[0]


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
