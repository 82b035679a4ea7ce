"""In which variant the model is shown a message: in full, without its images, or, for an old result
of a tool, as one line. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..models.base import ContextMessage
from ..models.token_estimate import estimate_tokens, part_size
from ..types.labels import LOCAL
from ..types.messages import Image, Message, Part, Text, ToolResult

MASK_AT = 0.5
MASK_STEP = 0.1
MASK_KEEP = 3
MASKED_CHARS = 200
"""A result that is no longer than this is never masked."""
MASKED_RESULT = Text("[an earlier result; call the tool again if you need it]", LOCAL)


def next_mask_point(
    messages: Sequence[ContextMessage], masked_up_to: int, used: int, window: int
) -> int:
    """Up to which event tool results are to be one line each from now on, once the context is half
    full (`used` tokens of its `window`); 0 for no change. It moves seldom and far, since each move
    makes the provider read everything anew."""
    if used < MASK_AT * window:
        return 0

    results = [shown for shown in messages if shown.message.role == "tool"][:-MASK_KEEP]
    fresh = [shown for shown in results if shown.n > masked_up_to]
    saved = sum(estimate_tokens(shown.message) for shown in fresh)
    return fresh[-1].n if saved >= MASK_STEP * window else 0


def apply_variants(
    messages: Sequence[ContextMessage], pictures: Sequence[int], masked_up_to: int
) -> tuple[ContextMessage, ...]:
    """The messages as a model is shown them: only the newest of the `pictures` (places in
    `messages`) with its pixels, and long tool results up to event `masked_up_to` as one line."""
    shown = mask_results(messages, masked_up_to) if masked_up_to else messages
    if len(pictures) > 1:
        shown = list(shown)
        for i in pictures[:-1]:
            if shown[i].variant == "full":
                stripped = strip_images(shown[i].message)
                shown[i] = ContextMessage(shown[i].n, stripped, "no_images")
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
    """The messages with long tool results up to event `up_to_n` as one line each."""
    return [_mask_result(shown) if shown.n <= up_to_n else shown for shown in messages]


def _mask_result(shown: ContextMessage) -> ContextMessage:
    message = shown.message
    if message.role != "tool" or sum(map(part_size, message.parts)) <= MASKED_CHARS:
        return shown
    parts = tuple(
        replace(part, parts=(MASKED_RESULT,))
        for part in message.parts
        if isinstance(part, ToolResult)
    )
    return ContextMessage(shown.n, Message("tool", parts), "one_line")
