"""What people read when a conversation goes on elsewhere. Pure."""

from __future__ import annotations

from ..types.identity import EVERYBODY, OWN_SURFACES, Address, Waiting, only_person
from ..types.turn import HANDOFF_BACK
from .state import State

TITLE_CHARS = 60


def describe_departure(state: State, row: Waiting, channel: str, to: Address | None) -> str:
    """The reply to a handoff to this channel, where it was written. `to` is where it leads; None
    for nowhere."""
    if not channel:
        return "Write /handoff CHANNEL to go on there, such as /handoff telegram."
    if only_person(state.participants_with(row)) == EVERYBODY:
        return "Others take part in this conversation, so it stays here."
    if to is None and channel == HANDOFF_BACK:
        return "This conversation goes on nowhere else."
    if to is None:
        return (
            f"I know no other chat with you alone on {channel[:60]!r}. Write to me there once, and "
            "try again."
        )
    if to == row.inbound.address:
        return "This conversation goes on here only."
    if channel == HANDOFF_BACK:
        return "This conversation goes on where it began."
    return f"From now on this conversation is on {to.channel}."


def describe_arrival(title: str, before: Address) -> str:
    """What is said where the conversation of this title goes on, after it was at `before`."""
    title = " ".join(title.split())[:TITLE_CHARS]
    named = f"“{title}” goes on here." if title else "Our conversation goes on here."
    if before.channel in OWN_SURFACES:
        return f"{named} Write /handoff back to end that."
    return f"{named} Write /handoff back to return to {before.channel}."
