"""Pixels as a picture that models and people can see."""

from __future__ import annotations

import io

from ...types.errors import ToolError


def encode_picture(width: int, height: int, pixels: bytes, max_width: int = 0) -> bytes:
    """A JPEG of them, at most `max_width` pixels wide where that is given. Raises ToolError where
    Pillow is not installed."""
    try:
        from PIL import Image  # noqa: PLC0415 -- only where a picture is wanted
    except ImportError as problem:
        raise ToolError("pictures need Pillow: pip install 'deskhand[desktop]'") from problem
    image = Image.frombuffer("RGB", (width, height), pixels, "raw", "BGRX", 0, 1)
    if 0 < max_width < width:
        image = image.resize((max_width, max(1, height * max_width // width)))
    out = io.BytesIO()
    image.save(out, "JPEG", quality=70)
    return out.getvalue()
