"""How long a message is for a model, guessed without asking one."""

from __future__ import annotations

from ..types.messages import File, Message, Part, Text, ToolCall, ToolResult

CHARS_PER_TOKEN = 3.5
"""A low guess for prose, so that estimates err towards too long."""


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
        case ToolResult(parts=parts):
            return sum(chars(piece) for piece in parts)
        case _:
            return 4000
