"""Shortens what the model sees when it grows too long. Pure: which messages stay, and in which form."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..models.base import Shown
from ..models.tokens import chars, shorten, tokens
from ..types.events import Compacted, Ledger, Masked, OpenTurn
from ..types.labels import LOCAL
from ..types.messages import Message, Text, ToolResult
from .state import FORMS, State

CUTS = (4000, 2000, 1000, 500, 250, 120)
"""Characters that a long text is cut to in turn, in its middle, until the whole fits."""
MASK_AT, MASK_STEP, MASK_KEEP, MASKED_CHARS = 0.5, 0.1, 3, 200


def mask_due(state: State, window: int) -> Masked | None:
    """A far step of the mask, once the context is half full: old tool results become one line each. It moves seldom,
    since each move makes the provider read the conversation anew."""
    if state.context_tokens < MASK_AT * window:
        return None
    results = [shown for shown in state.messages if shown.message.role == "tool"][:-MASK_KEEP]
    fresh = [shown for shown in results if shown.key // FORMS > state.masked_up_to]
    if sum(tokens(shown.message) for shown in fresh) < MASK_STEP * window:
        return None
    return Masked(fresh[-1].key // FORMS)


def compact(state: State, budget: int) -> Compacted:
    """Drop the oldest whole exchanges, then cut long texts in the middle, until about `budget` tokens are left
    (0: half of what there is). The last message of the person and what followed it always stay."""
    before = [(shown.key // FORMS, shown.message) for shown in state.messages]
    size = sum(tokens(message) for _, message in before)
    budget = budget or size // 2
    starts = [i for i, (_, message) in enumerate(before) if message.role == "user" and not _is_hint(message)] or [0]
    kept, start = before, 0
    for start in starts:
        kept = before[start:]
        if sum(tokens(message) for _, message in kept) <= budget:
            break
    for limit in CUTS:
        if sum(tokens(message) for _, message in kept) <= budget:
            break
        kept = [(n, shorten(message, limit)) for n, message in kept]
    note = f"[{start} earlier messages are no longer shown]" if start else "[long texts were cut]"
    if kept:
        n, first = kept[0]
        kept = [(n, Message(first.role, (Text(note + "\n", LOCAL), *first.parts))), *kept[1:]]
    return Compacted(tuple(kept), note, start, _ledger(state))


def _is_hint(message: Message) -> bool:
    """The runtime said it to the model, not a person."""
    return all(isinstance(part, Text) and part.label == LOCAL for part in message.parts)


def _ledger(state: State) -> Ledger:
    turn = None if state.turn is None else msgspec.convert(state.turn, OpenTurn, from_attributes=True)
    return Ledger(state.usage, state.masked_up_to, turn, state.archived, state.label, state.asides, state.sent)


def mask(messages: Sequence[Shown], up_to_n: int) -> list[Shown]:
    """The messages as shown: long tool results up to event `up_to_n` as one line each."""
    return [_masked(shown) if shown.key < (up_to_n + 1) * FORMS else shown for shown in messages]


def _masked(shown: Shown) -> Shown:
    message = shown.message
    if message.role != "tool" or sum(chars(part) for part in message.parts) <= MASKED_CHARS:
        return shown
    parts = tuple(
        msgspec.structs.replace(part, parts=(Text("[an earlier result; call the tool again if you need it]", LOCAL),))
        for part in message.parts
        if isinstance(part, ToolResult)
    )
    return Shown(shown.key + 2, Message("tool", parts))
