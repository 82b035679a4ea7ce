"""Makes one picture smaller: `python -m deskhand.models.shrink_picture` reads it on stdin and
writes a JPEG, or with a number of pixels a PNG that is at most so wide and high. Run by
`pictures.py`, in a process of its own; needs the extra [images]."""

from __future__ import annotations

import resource
import sys
from io import BytesIO

from PIL import Image, ImageOps, UnidentifiedImageError

from .pictures import (
    LIMIT_BYTES,
    LIMIT_SIDE,
    MAX_PIXELS,
    REFUSED_EXIT_CODE,
    SHRINK_S,
    explain_too_many_pixels,
)

QUALITIES = (80, 60, 40, 25)
MAX_HALVINGS = 5
FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
"""Only these are decoded."""
MEMORY_BYTES = 3 << 30


class ImageTooLarge(ValueError):
    """The picture is not made smaller; the message says why."""


def shrink_picture(data: bytes, limit_bytes: int = LIMIT_BYTES) -> bytes:
    """A JPEG of at most `limit_bytes` and LIMIT_SIDE: as much of the quality as fits, then half the
    size, at most five times. Raises ImageTooLarge, and what Pillow raises for broken pictures."""
    picture = _decode(data, LIMIT_SIDE)
    for halved in range(MAX_HALVINGS + 1):
        if halved:
            picture = picture.resize((max(1, picture.width // 2), max(1, picture.height // 2)))
        for quality in QUALITIES:
            made = BytesIO()
            picture.save(made, "JPEG", quality=quality)
            if made.tell() <= limit_bytes:
                return made.getvalue()
    raise ImageTooLarge(f"it is larger than {limit_bytes / 1e6:.1f} MB even at a 32nd of its size")


def make_thumbnail(data: bytes, side: int) -> bytes:
    """A PNG of at most `side` pixels each way, with a palette, so that it is few bytes. Raises
    ImageTooLarge, and what Pillow raises for broken pictures."""
    made = BytesIO()
    _decode(data, side).quantize(256).save(made, "PNG", optimize=True)
    return made.getvalue()


def _decode(data: bytes, side: int) -> Image.Image:
    """The picture, no wider or higher than this."""
    with Image.open(BytesIO(data), formats=FORMATS) as opened:
        if opened.width * opened.height > MAX_PIXELS:
            raise ImageTooLarge(explain_too_many_pixels(opened.width, opened.height))
        opened.draft("RGB", (side, side))
        picture = _flatten(ImageOps.exif_transpose(opened))
    picture.thumbnail((side, side))
    return picture


def _flatten(picture: Image.Image) -> Image.Image:
    """What can be seen through becomes white, as on paper."""
    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        ground = Image.new("RGBA", picture.size, "white")
        return Image.alpha_composite(ground, picture.convert("RGBA")).convert("RGB")
    return picture.convert("RGB")


def main() -> int:
    """Shrink stdin to stdout within limits of memory and time."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (int(SHRINK_S), int(SHRINK_S)))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    Image.MAX_IMAGE_PIXELS = None  # ours is checked before anything is decoded
    try:
        data = sys.stdin.buffer.read()
        made = make_thumbnail(data, int(sys.argv[1])) if sys.argv[1:] else shrink_picture(data)
    except ImageTooLarge as error:
        sys.stderr.write(str(error))
        return REFUSED_EXIT_CODE
    except MemoryError:
        sys.stderr.write("making it smaller takes too much memory")
        return REFUSED_EXIT_CODE
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError):
        sys.stderr.write("it is damaged, or not a PNG, JPEG, GIF or WebP")
        return REFUSED_EXIT_CODE
    sys.stdout.buffer.write(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
