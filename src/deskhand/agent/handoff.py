"""What people read when a conversation goes on elsewhere. Pure."""

from __future__ import annotations

from ..types.identity import EVERYBODY, OWN_SURFACES, Address, Waiting, only_person
from ..types.marked_texts import mark_text
from ..types.turn import HANDOFF_BACK
from .state import State

TITLE_CHARS = 60


def describe_departure(state: State, row: Waiting, channel: str, to: Address | None) -> str:
    """The reply to a handoff to this channel, where it was written. `to` is where it leads; None
    for nowhere."""
    if not channel:
        return mark_text("Write /handoff CHANNEL to go on there, such as /handoff telegram.")
    if only_person(state.participants_with(row)) == EVERYBODY:
        return mark_text("Others take part in this conversation, so it stays here.")
    if to is None and channel == HANDOFF_BACK:
        return mark_text("This conversation goes on nowhere else.")
    if to is None:
        return mark_text(
            "I know no other chat with you alone on {channel}. Write to me there once, and try "
            "again."
        ).format(channel=repr(channel[:60]))
    if to == row.inbound.address:
        return mark_text("This conversation goes on here only.")
    if channel == HANDOFF_BACK:
        return mark_text("This conversation goes on where it began.")
    moved = mark_text("From now on this conversation is on {channel_name}.")
    return moved.format(channel_name=to.channel)


def describe_arrival(title: str, before: Address) -> str:
    """What is said where the conversation of this title goes on, after it was at `before`."""
    title = " ".join(title.split())[:TITLE_CHARS]
    goes_on = mark_text("Our conversation goes on here.")
    if title:
        goes_on = mark_text("“{title}” goes on here.").format(title=title)
    if before.channel in OWN_SURFACES:
        back = mark_text("Write /handoff back to end that.")
    else:
        back = mark_text("Write /handoff back to return to {channel_name}.").format(
            channel_name=before.channel
        )
    return f"{goes_on} {back}"
