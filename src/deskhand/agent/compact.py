"""Shortens what the model sees when it grows too long. Pure: which messages stay, and in which form."""

from __future__ import annotations

import msgspec

from ..models.forms import FORMS
from ..models.tokens import fit
from ..types.events import Compacted, Ledger, OpenTurn
from ..types.labels import LOCAL
from ..types.messages import Message, Text
from .state import State


def compact(state: State, budget: int) -> Compacted:
    """Shorten the conversation to about `budget` tokens (0: half of what there is), as `models.tokens.fit` does it."""
    before = compacted(state)
    start, messages = fit([message for _, message in before], budget)
    note = f"[{start} earlier messages are no longer shown]" if start else "[long texts were cut]"
    kept = [(n, message) for (n, _), message in zip(before[start:], messages, strict=True)]
    if kept:
        n, first = kept[0]
        kept[0] = n, Message(first.role, (Text(note + "\n", LOCAL), *first.parts))
    return Compacted(tuple(kept), note, start, ledger(state))


def compacted(state: State) -> tuple[tuple[int, Message], ...]:
    """All messages of a state, as a `Compacted` holds them."""
    return tuple((shown.key // FORMS, shown.message) for shown in state.messages)


def ledger(state: State) -> Ledger:
    """What the state knows besides messages, but for the size of a context that is about to change."""
    turn = None if state.turn is None else msgspec.convert(state.turn, OpenTurn, from_attributes=True)
    kept = (state.archived, state.label, state.asides, state.sent, 0, state.options)
    return Ledger(state.usage, state.masked_up_to, turn, *kept, state.shared, state.person)
