"""Shortens what the model sees when it grows too long: which messages stay, and what is told of the others."""

from __future__ import annotations

import msgspec

from ..models.forms import FORMS
from ..models.window import Cut
from ..types.events import Compacted, Ledger, OpenTurn
from ..types.labels import LOCAL
from ..types.messages import Message, Text
from ..types.options import SessionOptions
from ..types.steps import Condensed
from .state import State


def shortened(state: State, cut: Cut, told: Condensed) -> Compacted:
    """The event with which only what was `cut` is in view, and at its beginning what is `told` of the rest."""
    note = told.note or (f"[{len(cut.dropped)} earlier messages are no longer shown]" if cut.dropped else "")
    kept = [(state.messages[i].key // FORMS, message) for i, message in cut.kept]
    if cut.dropped:  # a message of its own, so that the next time it goes as a whole
        n = state.messages[cut.dropped[0]].key // FORMS
        kept.insert(0, (n, Message("user", (Text(note + "\n", LOCAL), *told.parts))))
    return Compacted(tuple(kept), note or "[long texts were cut]", len(cut.dropped), ledger(state))


def compacted(state: State) -> tuple[tuple[int, Message], ...]:
    """All messages of a state, as a `Compacted` holds them."""
    return tuple((shown.key // FORMS, shown.message) for shown in state.messages)


def ledger(state: State) -> Ledger:
    """What the state knows besides messages, but for the size of a context that is about to change."""
    turn = None if state.turn is None else msgspec.convert(state.turn, OpenTurn, from_attributes=True)
    options = state.options.updated(SessionOptions(compact="")) if state.options.compact else state.options
    kept = (state.archived, state.label, state.asides, state.sent, 0, options)
    return Ledger(state.usage, state.masked_up_to, turn, *kept, state.shared, state.person)
