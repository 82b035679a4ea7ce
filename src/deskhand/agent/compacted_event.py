"""The event that shortens what the model sees: which messages stay, and what is told of the others.
Pure."""

from __future__ import annotations

from ..models.window import Cut, is_omission
from ..types.events import Compacted, Ledger
from ..types.labels import LOCAL
from ..types.messages import Message, Text
from ..types.options import SessionOptions
from ..types.steps import Condensed
from ..types.turn import OMITTED_MARKER
from .state import State


def make_compaction(state: State, cut: Cut, told: Condensed) -> Compacted:
    """The event with which only what was `cut` is in view, and at its beginning what is `told` of
    the rest."""
    note = told.note
    if cut.dropped and not note:
        note = f"[{len(cut.dropped)} {OMITTED_MARKER} no longer shown]"
    kept = [(state.messages[i].n, message) for i, message in cut.kept]
    if cut.dropped:  # a message of its own, so that the next time it goes as a whole
        n = state.messages[cut.dropped[0]].n
        kept.insert(0, (n, Message("user", (Text(note + "\n", LOCAL), *told.parts))))
    shown_note = note or "[long texts were cut]"
    return Compacted(tuple(kept), shown_note, len(cut.dropped), make_ledger(state))


def is_compacted(state: State) -> bool:
    """Whether the model is shown less of this conversation than was said."""
    return bool(state.messages) and is_omission(state.messages[0].message)


def number_messages(state: State) -> tuple[tuple[int, Message], ...]:
    """All messages of a state, as a `Compacted` holds them."""
    return tuple((shown.n, shown.message) for shown in state.messages)


def make_ledger(state: State) -> Ledger:
    """What the state knows besides messages, but for the size of a context that is about to
    change."""
    options = state.options
    if options.compact:
        options = options.merge(SessionOptions(compact=""))
    return Ledger(
        usage=state.usage,
        masked_up_to=state.masked_up_to,
        turn=None if state.turn is None else state.turn.copy(),
        archived=state.archived,
        label=state.label,
        asides=dict(state.asides),
        sent=dict(state.sent),
        context_tokens=0,
        options=options,
        shared=state.shared,
        person=state.person,
        participants=dict(state.participants),
        edit_told=state.edit_told,
        stopped_at=state.stopped_at,
    )
