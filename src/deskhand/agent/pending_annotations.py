"""What happens beside a conversation, a reaction, an edit or a deletion, in words that the model
reads with the next message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ..models.base import ContextMessage
from ..types.events import MessageDeleted, MessageDelivered, MessageEdited, Reacted
from ..types.identity import principal_label
from ..types.labels import LOCAL, join_labels
from ..types.messages import Text, clean_text

V = TypeVar("V")

EDIT_CHARS = 2_000
EMOJI_CHARS = 32
QUOTE_CHARS = 80
MAX_ENTRIES = 20
"""So many of them wait for the next message, and so many answers are known by what the platform
calls them."""


def add_annotation(
    asides: dict[str, Text], sent: dict[str, str], event: MessageEdited | MessageDeleted | Reacted
) -> None:
    """Add what the event means to `asides`. The last edit of a message counts, and a reaction that
    was taken back before anyone read of it is none. `sent` has the answers by the platform's
    ids."""
    if isinstance(event, MessageDeleted):
        asides.pop(f"edit {event.of}", None)
        if event.said and not event.withdrawn:
            words = f"[took back an earlier message: {_cut(event.said, EDIT_CHARS)}]\n"
            aside = Text(words, principal_label(event.principal))
            _put_bounded(asides, f"deleted {event.of}", aside)
        return
    if isinstance(event, MessageEdited):
        label = join_labels(part.label for part in event.message.parts if isinstance(part, Text))
        aside = Text(
            f"[edited an earlier message: {_cut(event.message.text, EDIT_CHARS)}]\n", label
        )
        _put_bounded(asides, f"edit {event.of}", aside)
        return
    who = event.principal.id
    emoji = _cut(event.emoji, EMOJI_CHARS)
    key = f"{event.of} {who} {emoji}"
    if event.added:
        quoted = sent.get(event.of, "")
        to = f"your answer “{quoted}”" if quoted else "an earlier message"
        _put_bounded(asides, key, Text(f"[{who} reacted {emoji} to {to}]\n", LOCAL))
    else:
        asides.pop(key, None)


def add_sent_answer(
    sent: dict[str, str], event: MessageDelivered, messages: Sequence[ContextMessage]
) -> None:
    """Note the beginning of the answer that was delivered. Its key ends with the event after which
    it was said and a number; other keys are those of tools."""
    n, _, number = event.key.rpartition("#")[2].partition(".")
    if not (event.platform_id and n.isdecimal() and number.isdecimal()):
        return
    said = (
        shown.message.text
        for shown in reversed(messages)
        if _is_answer(shown) and shown.n <= int(n)
    )
    _put_bounded(sent, event.platform_id, _cut(" ".join(next(said, "").split()), QUOTE_CHARS))


def _is_answer(shown: ContextMessage) -> bool:
    return shown.message.role == "assistant" and bool(shown.message.text.strip())


def _cut(text: str, chars: int) -> str:
    text = clean_text(text)
    return text if len(text) <= chars else f"{text[:chars]}…"


def _put_bounded(known: dict[str, V], key: str, value: V) -> None:
    known.pop(key, None)
    known[key] = value
    if len(known) > MAX_ENTRIES:
        del known[next(iter(known))]
