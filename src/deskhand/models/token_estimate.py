"""How long a message is for a model, guessed without asking one, and how to make it shorter."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from ..types.messages import File, Message, Part, Text, Thinking, ToolCall, ToolResult

CHARS_PER_TOKEN = 3.5
"""A low guess for prose, so that estimates err towards too long."""
CUT_LIMITS = (4000, 2000, 1000, 500, 250, 120)
"""Characters that a long text is cut to in turn, in its middle, until the whole fits."""
CUT_NOTE = "\n…[cut to fit]…\n"


def estimate_tokens(message: Message) -> int:
    """About how many tokens the message takes."""
    size = 0
    for part in message.parts:
        # Most parts are English text, and this runs several times for every call of a model.
        if type(part) is Text and part.text.isascii():
            size += len(part.text)
        else:
            size += part_size(part)
    return 8 + int(size / CHARS_PER_TOKEN)


def text_size(text: str) -> int:
    """Its characters; those of other scripts count by their bytes, since a token holds fewer of
    them."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def part_size(part: Part) -> int:
    """The size of a part, as if all of it were English; a picture or a file counts as a page of
    text."""
    match part:
        case Text(text=text):
            return text_size(text)
        case File(shown=shown) if shown:
            return text_size(shown)
        case ToolCall(name=name, arguments=arguments):
            return len(name) + len(bytes(arguments))
        case Thinking(text=text, redacted=redacted):
            return len(text) + len(redacted)
        case ToolResult(parts=parts):
            return sum(part_size(piece) for piece in parts)
        case _:
            return 4000


def shorten_message(message: Message, limit: int) -> Message:
    """The message with its texts cut to `limit` characters in the middle, also those in the
    arguments of calls."""
    return Message(message.role, tuple(_shorten_part(part, limit) for part in message.parts))


def _shorten_part(part: Part, limit: int) -> Part:
    match part:
        case Text(text=text, label=label) if len(text) > limit + len(CUT_NOTE):
            return Text(_cut(text, limit), label)
        case File(shown=shown) if len(shown) > limit + len(CUT_NOTE):
            return replace(part, shown=_cut(shown, limit))
        case ToolResult(parts=parts):
            pieces = tuple(_shorten_part(piece, limit) for piece in parts)
            return replace(part, parts=pieces)
        case ToolCall(arguments=arguments) if len(bytes(arguments)) > limit + len(CUT_NOTE):
            try:
                shorter = msgspec.json.encode(_cut_strings(msgspec.json.decode(arguments), limit))
            except (ValueError, RecursionError):  # too deep to be gone through
                return part
            return replace(part, arguments=msgspec.Raw(shorter))
        case _:
            return part


def _cut_strings(value: Any, limit: int) -> Any:
    """The JSON value with its long strings cut."""
    match value:
        case str() if len(value) > limit + len(CUT_NOTE):
            return _cut(value, limit)
        case dict():
            return {name: _cut_strings(each, limit) for name, each in value.items()}
        case list():
            return [_cut_strings(each, limit) for each in value]
        case _:
            return value


def _cut(text: str, limit: int) -> str:
    return text[: limit // 2] + CUT_NOTE + text[-(limit // 2) :]
