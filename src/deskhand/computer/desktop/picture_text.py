"""The words in a picture, where a program does not say what it shows: read by tesseract."""

from __future__ import annotations

import io
import shutil
import subprocess
from functools import cache

import msgspec

from ...types.errors import ToolError

INSTALL_COMMAND = "sudo apt-get install tesseract-ocr"
READ_S = 20.0
SCALE = 2
"""Letters on a screen are half as high as those that it was made for."""
MIN_CONFIDENCE = 40.0
WIDE_GAP = 1.2
"""Words that stand further apart, in heights of a line, are different things. A space between
letters of one width is nearly one."""
ROW_PX = 12
"""Rows of the order in which lines are told are so high."""
MAX_LINES = 400
MAX_LANGUAGES = 3
_SPARSE = "11"
"""Page segmentation: as much text as there is, in no order.
https://github.com/tesseract-ocr/tesseract/blob/main/doc/tesseract.1.asc"""


class TextLine(msgspec.Struct, frozen=True):
    """Words that stand beside each other, and where, in pixels of the picture."""

    text: str
    left: int
    top: int
    width: int
    height: int


class Picture(msgspec.Struct, frozen=True):
    """A part of the screen: where it is there, and its pixels as BGRX."""

    left: int
    top: int
    width: int
    height: int
    pixels: bytes


def is_installed() -> bool:
    """Whether pictures can be read."""
    return shutil.which("tesseract") is not None


def read_lines(picture: Picture) -> list[TextLine]:
    """The words in it, from above. Blocks for as long as READ_S. Raises ToolError."""
    program = shutil.which("tesseract")
    if program is None:
        raise ToolError(f"its words are read by tesseract: {INSTALL_COMMAND}")
    command = [program, "stdin", "stdout", "-l", _languages(program), "--psm", _SPARSE, "tsv"]
    told = _run(command, _encode(picture)).decode(errors="replace")
    return parse_lines(told)


def _run(command: list[str], data: bytes = b"") -> bytes:
    try:
        done = subprocess.run(
            command,
            input=data,
            capture_output=True,
            timeout=READ_S,
            check=True,
            env={"OMP_THREAD_LIMIT": "1"},
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ToolError(f"tesseract has not read the picture: {type(error).__name__}") from error
    return done.stdout


@cache
def _languages(program: str) -> str:
    """Those that are installed, English first, as `eng+deu`."""
    listed = _run([program, "--list-langs"]).decode(errors="replace").splitlines()[1:]
    found = sorted({*listed} - {"osd"}, key=lambda each: (each != "eng", each))
    return "+".join(found[:MAX_LANGUAGES]) or "eng"


def _encode(picture: Picture) -> bytes:
    try:
        from PIL import Image  # noqa: PLC0415 -- only where a picture is read
    except ImportError as problem:
        raise ToolError("pictures need Pillow: pip install 'deskhand[desktop]'") from problem
    size = picture.width, picture.height
    image = Image.frombuffer("RGB", size, picture.pixels, "raw", "BGRX", 0, 1).convert("L")
    image = image.resize((size[0] * SCALE, size[1] * SCALE), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def parse_lines(told: str) -> list[TextLine]:
    """The lines of tesseract's table, without what it is not sure of."""
    words: dict[tuple[str, ...], list[TextLine]] = {}
    for row in told.splitlines()[1:]:
        fields = row.split("\t")
        try:
            *_, left, top, width, height = (int(each) // SCALE for each in fields[:10])
            confidence, text = float(fields[10]), " ".join(fields[11].split())
        except (ValueError, IndexError):
            continue
        if text and confidence >= MIN_CONFIDENCE:
            line = TextLine(text, left, top, width, height)
            words.setdefault(tuple(fields[1:5]), []).append(line)
    lines = [_join(group) for each in words.values() for group in _split_at_gaps(each)]
    return sorted(lines, key=_reading_order)[:MAX_LINES]


def _reading_order(line: TextLine) -> tuple[int, int]:
    return (line.top + line.height // 2) // ROW_PX, line.left


def _split_at_gaps(words: list[TextLine]) -> list[list[TextLine]]:
    """Words that stand far apart are different things: the names of two menus."""
    groups: list[list[TextLine]] = []
    for word in sorted(words, key=lambda each: each.left):
        before = groups[-1][-1] if groups else None
        gap = word.left - (before.left + before.width) if before is not None else 0
        if before is None or gap > WIDE_GAP * max(before.height, word.height):
            groups.append([])
        groups[-1].append(word)
    return groups


def _join(words: list[TextLine]) -> TextLine:
    left, top = min(each.left for each in words), min(each.top for each in words)
    right = max(each.left + each.width for each in words)
    bottom = max(each.top + each.height for each in words)
    text = " ".join(each.text for each in words)
    return TextLine(text, left, top, right - left, bottom - top)
