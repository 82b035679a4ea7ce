"""What the model is shown: the conversation in its one order, ready for a wire."""

from __future__ import annotations

from ..models.base import Shown
from ..types.messages import Image, Message, Part, Text, ToolResult
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
