"""How long a message is for a model, guessed without asking one, and how to make it shorter."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..types.labels import LOCAL
from ..types.messages import File, Message, Part, Text, Thinking, ToolCall, ToolResult

CHARS_PER_TOKEN = 3.5
"""A low guess for prose, so that estimates err towards too long."""
CUTS = (4000, 2000, 1000, 500, 250, 120)
"""Characters that a long text is cut to in turn, in its middle, until the whole fits."""
CUT_NOTE = "\n…[cut to fit]…\n"


def tokens(message: Message) -> int:
    """About how many tokens the message takes."""
    return 8 + int(sum(chars(part) for part in message.parts) / CHARS_PER_TOKEN)


def chars(part: Part) -> int:
    """The characters of a part; a picture or a file counts as a page of text."""
    match part:
        case Text(text=text):
            return len(text)
        case File(shown=shown) if shown:
            return len(shown)
        case ToolCall(name=name, arguments=arguments):
            return len(name) + len(bytes(arguments))
        case Thinking(text=text, redacted=redacted):
            return len(text) + len(redacted)
        case ToolResult(parts=parts):
            return sum(chars(piece) for piece in parts)
        case _:
            return 4000


def fit(messages: Sequence[Message], budget: int) -> tuple[int, list[Message]]:
    """Drop the oldest whole exchanges, then cut long texts in the middle, until about `budget` tokens are left
    (0: half of what there is). The last message of a person and what followed it always stay. Returns how many were
    dropped, and the others."""
    sizes = [tokens(message) for message in messages]
    budget = budget or sum(sizes) // 2
    starts = [i for i, message in enumerate(messages) if message.role == "user" and not _is_hint(message)] or [0]
    start = next((i for i in starts if sum(sizes[i:]) <= budget), starts[-1])
    kept = list(messages[start:])
    for limit in CUTS:
        if sum(map(tokens, kept)) <= budget:
            break
        kept = [shorten(message, limit) for message in kept]
    return start, kept


def _is_hint(message: Message) -> bool:
    """The runtime said it to the model, not a person."""
    return all(isinstance(part, Text) and part.label == LOCAL for part in message.parts)


def shorten(message: Message, limit: int) -> Message:
    """The message with its texts cut to `limit` characters in the middle; calls stay whole."""
    return Message(message.role, tuple(_shorten(part, limit) for part in message.parts))


def _shorten(part: Part, limit: int) -> Part:
    match part:
        case Text(text=text, label=label) if len(text) > limit + len(CUT_NOTE):
            return Text(_cut(text, limit), label)
        case File(shown=shown) if len(shown) > limit + len(CUT_NOTE):
            return replace(part, shown=_cut(shown, limit))
        case ToolResult(parts=parts):
            pieces = tuple(_shorten(piece, limit) for piece in parts)
            return replace(part, parts=pieces)
        case _:
            return part


def _cut(text: str, limit: int) -> str:
    return text[: limit // 2] + CUT_NOTE + text[-(limit // 2) :]
