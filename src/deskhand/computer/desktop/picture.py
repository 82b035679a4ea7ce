"""Pixels as a picture that models and people can see."""

from __future__ import annotations

import io

from ...types.errors import ToolError


def encode_picture(width: int, height: int, pixels: bytes) -> bytes:
    """A JPEG of them. Raises ToolError where Pillow is not installed."""
    try:
        from PIL import Image  # noqa: PLC0415 -- only where a picture is wanted
    except ImportError as problem:
        raise ToolError("pictures need Pillow: pip install 'deskhand[desktop]'") from problem
    image = Image.frombuffer("RGB", (width, height), pixels, "raw", "BGRX", 0, 1)
    out = io.BytesIO()
    image.save(out, "JPEG", quality=70)
    return out.getvalue()
