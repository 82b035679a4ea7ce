"""How a turn ended that took in a certain message."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..types.events import (
    AnyEvent,
    AskedAside,
    Hinted,
    MessageReceived,
    ModelReplied,
    Recorded,
    TurnEnded,
)
from ..types.messages import Usage


def is_receipt(event: AnyEvent, key: str) -> bool:
    """True when this event takes the message with that key into a turn."""
    return isinstance(event, MessageReceived) and event.external_id == key


def is_received(log: Sequence[Recorded], key: str) -> bool:
    """True when a turn has taken the message in. Until then it waits behind another turn."""
    return any(is_receipt(recorded.event, key) for recorded in log)


class FinishedTurn(msgspec.Struct, frozen=True):
    """The end of a turn: the number of its event, the event, and the answer."""

    n: int
    event: TurnEnded
    answer: str


def find_turn_end(log: Sequence[Recorded], key: str) -> FinishedTurn | None:
    """The end of the turn that took the message with this key in, or None while it goes on. An
    answer that came in several replies is stitched together, as `next_step.answer_text` does."""
    inbox_id = 0
    pieces: list[str] = []
    for recorded in log:
        event = recorded.event
        match event:
            case MessageReceived():
                pieces = []
                if event.external_id == key:
                    inbox_id = event.inbox_id
            case ModelReplied(message=message):
                pieces = [] if message.calls else [*pieces, message.text]
            case Hinted(why="schema"):
                pieces = []
            case TurnEnded(answers=answers):
                if inbox_id and inbox_id in answers:
                    return FinishedTurn(recorded.n, event, event.said or "".join(pieces))
                pieces = []
            case _:
                pass
    return None


def sum_usage(log: Sequence[Recorded], key: str, end: int) -> Usage:
    """What models used from the message with this key up to the event `end`."""
    used = Usage()
    begun = False
    for recorded in log:
        event = recorded.event
        begun = begun or is_receipt(event, key)
        if begun and recorded.n <= end and isinstance(event, ModelReplied | AskedAside):
            used += event.usage
    return used
