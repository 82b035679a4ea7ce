"""Long output: its head and tail go to the model, all of it to the blob store, to be read in
pieces."""

from __future__ import annotations

from ..types.labels import Label
from ..types.messages import Text, clean_text
from .base import Context, Done
from .label_marks import mark_blob

MAX_OUTPUT_BYTES = 32_768
EDGE_BYTES = 12_000
PIECE_BYTES = 24_000


async def make_bounded_result(text: str, context: Context, label: Label, note: str = "") -> Done:
    """A result with this text, or with its ends and a handle when it is longer than LIMIT_BYTES.

    `note` is said at the end in every case.
    """
    text = clean_text(text)
    note = clean_text(note)
    if len(text) * 4 <= MAX_OUTPUT_BYTES or len(data := text.encode()) <= MAX_OUTPUT_BYTES:
        return Done((Text((text + note) or "[no output]", label),))
    handle = await context.reach.host.put_blob(data)
    head = data[: utf8_boundary(data, EDGE_BYTES)]
    tail = data[utf8_boundary(data, len(data) - EDGE_BYTES) :]
    shown_text = Text(join_ends(head, tail, len(data), handle) + note, label)
    return Done((shown_text,), changes=mark_blob(handle, label, context))


def utf8_boundary(data: bytes, at: int) -> int:
    """`at`, or a little before it, so that no character of UTF-8 is cut there."""
    at = min(max(at, 0), len(data))
    for back in range(min(4, at + 1)):
        if at - back == len(data) or data[at - back] & 0xC0 != 0x80:
            return at - back
    return at  # it is no UTF-8


def join_ends(head: bytes, tail: bytes, size: int, handle: str) -> str:
    """Head and tail with the words between them that say how to read the rest."""
    left = size - len(head) - len(tail)
    between = (
        f"\n…[{left:,} of {size:,} bytes are not shown; read_output(handle={handle!r}, "
        f"offset={len(head)})]…\n"
    )
    return clean_text(head.decode(errors="replace") + between + tail.decode(errors="replace"))
