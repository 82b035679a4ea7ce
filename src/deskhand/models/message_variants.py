"""The forms in which a message is shown to a model: in full, without its pixels, as one line."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..types.labels import LOCAL
from ..types.messages import Image, Message, Part, Text, ToolResult
from .base import ContextMessage
from .tokens import estimate_tokens, part_size

VARIANTS = 4
"""In how many forms the model may be shown one message; the key of a message in full is a multiple
of it."""
MASK_AT = 0.5
MASK_STEP = 0.1
MASK_KEEP = 3
MASKED_CHARS = 200


def next_mask_point(
    messages: Sequence[ContextMessage], masked_up_to: int, used: int, window: int
) -> int:
    """Up to which event tool results are to be one line each from now on, once the context is half
    full (`used` tokens of its `window`); 0 for no change. It moves seldom and far, since each move
    makes the provider read all anew."""
    if used < MASK_AT * window:
        return 0
    results = [shown for shown in messages if shown.message.role == "tool"][:-MASK_KEEP]
    fresh = [shown for shown in results if shown.key // VARIANTS > masked_up_to]
    return (
        fresh[-1].key // VARIANTS
        if sum(estimate_tokens(shown.message) for shown in fresh) >= MASK_STEP * window
        else 0
    )


def apply_variants(
    messages: Sequence[ContextMessage], pictures: Sequence[int], masked_up_to: int
) -> tuple[ContextMessage, ...]:
    """The messages with only the newest of the `pictures` (places in `messages`), and with long
    tool results up to event `masked_up_to` as one line each."""
    shown = mask_results(messages, masked_up_to) if masked_up_to else messages
    if len(pictures) > 1:
        shown = list(shown)
        for i in pictures[:-1]:
            if shown[i].key % VARIANTS == 0:
                shown[i] = ContextMessage(shown[i].key + 1, strip_images(shown[i].message))
    return tuple(shown)


def strip_images(message: Message) -> Message:
    """The message with each picture as a line of text."""
    return Message(message.role, tuple(_strip_image(part) for part in message.parts))


def _strip_image(part: Part) -> Part:
    if isinstance(part, Image):
        return Text(f"[image: {part.name or part.mime}, shown earlier]", part.label)
    if isinstance(part, ToolResult):
        pieces = tuple(_strip_image(piece) for piece in part.parts)
        return ToolResult(part.call_id, pieces, part.status)  # type: ignore[arg-type]  # a picture became a text
    return part


def mask_results(messages: Sequence[ContextMessage], up_to_n: int) -> list[ContextMessage]:
    """The messages as shown: long tool results up to event `up_to_n` as one line each."""
    return [
        _mask_result(shown) if shown.key < (up_to_n + 1) * VARIANTS else shown for shown in messages
    ]


def _mask_result(shown: ContextMessage) -> ContextMessage:
    message = shown.message
    if message.role != "tool" or sum(part_size(part) for part in message.parts) <= MASKED_CHARS:
        return shown
    parts = tuple(
        replace(
            part, parts=(Text("[an earlier result; call the tool again if you need it]", LOCAL),)
        )
        for part in message.parts
        if isinstance(part, ToolResult)
    )
    return ContextMessage(shown.key + 2, Message("tool", parts))
