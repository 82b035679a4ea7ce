"""Pixels as a picture that models and people can see."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import msgspec

from ...types.errors import ToolError

MARK_COLOUR = "#c2006b"
MARK_PIXELS = 12
"""How high the letters of a mark are."""


class Mark(msgspec.Struct, frozen=True):
    """A ref, and where in a picture its element is, in pixels."""

    ref: str
    left: int
    top: int
    width: int
    height: int

    def is_within(self, width: int, height: int) -> bool:
        """Whether its middle is in a picture of this size."""
        x, y = self.left + self.width // 2, self.top + self.height // 2
        return 0 <= x < width and 0 <= y < height


def encode_picture(
    width: int, height: int, pixels: bytes, max_width: int = 0, marks: Sequence[Mark] = ()
) -> bytes:
    """A JPEG of them with these marks, at most `max_width` pixels wide where that is given. Raises
    ToolError where Pillow is not installed."""
    try:
        from PIL import Image, ImageDraw, ImageFont  # noqa: PLC0415 -- only where a picture is wanted
    except ImportError as problem:
        raise ToolError("pictures need Pillow: pip install 'deskhand[desktop]'") from problem
    image = Image.frombuffer("RGB", (width, height), pixels, "raw", "BGRX", 0, 1)
    if marks:
        image = image.copy()  # what was given cannot be drawn on
        draw, font = ImageDraw.Draw(image), ImageFont.load_default(MARK_PIXELS)
        for mark in marks:
            _draw_mark(draw, font, mark)
    if 0 < max_width < width:
        image = image.resize((max_width, max(1, height * max_width // width)))
    out = io.BytesIO()
    image.save(out, "JPEG", quality=70)
    return out.getvalue()


def _draw_mark(draw: Any, font: Any, mark: Mark) -> None:
    """A frame around the element, and its ref in the corner. A program may say that it is of any
    size, and what lies outside of the picture would be drawn too, pixel by pixel."""
    width, height = draw.im.size
    left, top = max(-1, mark.left), max(-1, mark.top)
    right, bottom = min(width, mark.left + mark.width), min(height, mark.top + mark.height)
    draw.rectangle((left, top, right, bottom), outline=MARK_COLOUR, width=1)
    above = 0 if mark.height else MARK_PIXELS  # words stay readable
    corner = max(0, mark.left), max(0, mark.top - above)
    draw.rectangle(draw.textbbox(corner, mark.ref, font=font), fill=MARK_COLOUR)
    draw.text(corner, mark.ref, fill="white", font=font)
