"""What the model is shown: the conversation in its one order, ready for a wire."""

from __future__ import annotations

import msgspec

from ..models.base import Shown
from ..types.labels import LOCAL
from ..types.messages import Image, Message, Part, Text, Thinking, ToolCall, ToolResult, clean
from .compact import mask
from .state import FORMS, State


def view(state: State) -> tuple[Shown, ...]:
    """The messages of a request. It only grows at its end, except where a `Masked` or `Compacted` event moved it, or a
    newer picture took the pixels of an older one."""
    messages = mask(state.messages, state.masked_up_to) if state.masked_up_to else state.messages
    if len(state.pictures) > 1:
        messages = list(messages)
        for i in state.pictures[:-1]:
            if messages[i].key % FORMS == 0:
                messages[i] = Shown(messages[i].key + 1, without_pixels(messages[i].message))
    return tuple(messages)


def without_pixels(message: Message) -> Message:
    """The message with each picture as a line of text."""
    return Message(message.role, tuple(_without(part) for part in message.parts))


def _without(part: Part) -> Part:
    if isinstance(part, Image):
        return Text(f"[image: {part.name or part.mime}, shown earlier]", part.label)
    if isinstance(part, ToolResult):
        pieces = tuple(_without(piece) for piece in part.parts)
        return ToolResult(part.call_id, pieces, part.status)  # type: ignore[arg-type]  # a picture became a text
    return part


def usable(message: Message, tools: bool) -> Message:
    """A reply as the log can hold it: every call with an id of its own and arguments that are JSON, clean text, and no
    call where no tools were offered."""
    parts: list[Part] = []
    seen: set[str] = set()
    for part in message.parts:
        if isinstance(part, Text):
            parts.append(Text(clean(part.text), LOCAL))
        elif isinstance(part, Thinking):
            parts.append(part)
        elif isinstance(part, ToolCall) and tools:
            call_id, tries = part.id or "call", 1
            while call_id in seen:
                tries += 1
                call_id = f"{part.id or 'call'}_{tries}"
            seen.add(call_id)
            parts.append(ToolCall(call_id, clean(part.name), _json(part.arguments)))
    return Message("assistant", tuple(parts))


def _json(arguments: msgspec.Raw) -> msgspec.Raw:
    """The arguments, as a JSON string where they are no JSON: the log holds them verbatim, and must stay readable."""
    try:
        msgspec.json.decode(arguments)  # and a hundred levels deeper than they will be when the log is read
        msgspec.json.decode(b"[" * 100 + bytes(arguments) + b"]" * 100)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return msgspec.Raw(msgspec.json.encode(bytes(arguments).decode(errors="replace")))
    return arguments
