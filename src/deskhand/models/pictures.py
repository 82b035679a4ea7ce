"""Pictures as every provider takes them: not too many bytes, not too wide or high.

Larger ones are made smaller by a process of its own, without our keys and with little memory,
because it decodes what strangers send (`shrink_picture.py`, the extra [images]). What it made is
kept beside the picture until the collector of unnamed blobs comes by.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path

import anyio
import anyio.to_thread

from ..types.errors import PictureRefused

LIMIT_BYTES = 4_800_000
"""Providers take 5 MB and more, https://platform.claude.com/docs/en/build-with-claude/vision"""
LIMIT_SIDE = 8000
"""Wider or higher is refused there."""
MAX_PIXELS = 100_000_000
"""What may be decoded: with three bytes each, and twice."""
SHRINK_S = 30.0
REFUSED_EXIT_CODE = 3
"""The exit code of `shrink_picture.py` for a picture that it will not or cannot make smaller; its
words are on stderr."""
INSTALL = "pip install 'deskhand[images]'"

ReadBlob = Callable[[str], Awaitable[bytes]]


class PictureStore:
    """Reads pictures from a blob store: `read` gives the bytes of a digest, `path` the file where
    they lie."""

    def __init__(self, read: ReadBlob, path: Callable[[str], Path]) -> None:
        self._read = read
        self._path = path
        self._one_by_one = anyio.Lock()

    async def get(self, digest: str) -> bytes:
        """The picture, or a smaller copy of at most LIMIT_BYTES and LIMIT_SIDE, as JPEG. Raises
        BlobMissing, and PictureRefused with a sentence."""
        data = await self._read(digest)
        size = read_picture_size(data)
        if len(data) <= LIMIT_BYTES and (size is None or max(size) <= LIMIT_SIDE):
            return data
        if size is not None and size[0] * size[1] > MAX_PIXELS:
            raise PictureRefused(explain_too_many_pixels(*size))
        kept = self._path(digest).with_suffix(".jpg")
        async with self._one_by_one:
            if (made := await anyio.to_thread.run_sync(_read_cached, kept)) is None:
                made = await shrink_in_process(data)
                await anyio.to_thread.run_sync(_write_cached, kept, made)
        return made


async def shrink_in_process(data: bytes) -> bytes:
    """A smaller copy. Raises PictureRefused."""
    if find_spec("PIL") is None:
        raise PictureRefused(
            f"it has {len(data) / 1e6:.1f} MB, and models accept {LIMIT_BYTES / 1e6:.1f} MB. To "
            f"have large pictures made smaller: {INSTALL}"
        )
    return await _run_shrinking(data)


async def make_thumbnail_in_process(data: bytes, side: int) -> bytes:
    """A PNG that is at most `side` pixels wide and high, of few colours. Raises PictureRefused."""
    if find_spec("PIL") is None:
        raise PictureRefused(f"to have pictures made smaller: {INSTALL}")
    return await _run_shrinking(data, str(side))


async def _run_shrinking(data: bytes, *args: str) -> bytes:
    command = [sys.executable, "-I", "-m", "deskhand.models.shrink_picture", *args]
    try:
        with anyio.fail_after(SHRINK_S):
            done = await anyio.run_process(
                command, input=data, check=False, env={}, stderr=subprocess.PIPE
            )
    except TimeoutError:
        raise PictureRefused(f"making it smaller took longer than {SHRINK_S:.0f} s") from None
    if done.returncode == REFUSED_EXIT_CODE:
        raise PictureRefused(done.stderr.decode("utf-8", "replace").strip())
    if done.returncode or not 0 < len(done.stdout) <= LIMIT_BYTES:
        raise PictureRefused("it could not be decoded")
    return done.stdout


def explain_too_many_pixels(width: int, height: int) -> str:
    """The sentence for a picture that is not decoded at all."""
    return (
        f"it has {width} x {height} pixels, and at most {MAX_PIXELS // 1_000_000} million are "
        "decoded"
    )


def detect_media_type(data: bytes) -> str:
    """The media type that the first bytes say; '' for none that models know."""
    if data.startswith(b"\x89PNG"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return ""


def read_picture_size(data: bytes) -> tuple[int, int] | None:
    """Width and height as the header says, without decoding anything; None where it does not."""
    match detect_media_type(data):
        case "image/png" if data[12:16] == b"IHDR" and len(data) >= 24:
            return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
        case "image/gif" if len(data) >= 10:
            return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
        case "image/jpeg":
            return _read_jpeg_size(data)
        case "image/webp" if len(data) >= 30:
            return _read_webp_size(data)
    return None


def _read_jpeg_size(data: bytes) -> tuple[int, int] | None:
    """From the frame header (ITU T.81, B.2.2), past the segments before it."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            width = int.from_bytes(data[at + 7 : at + 9], "big")
            height = int.from_bytes(data[at + 5 : at + 7], "big")
            return width, height
        if marker == 0xFF:
            at += 1  # fills up
        else:
            at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None


def _read_webp_size(data: bytes) -> tuple[int, int] | None:
    """https://developers.google.com/speed/webp/docs/riff_container"""
    match data[12:16]:
        case b"VP8X":
            width = 1 + int.from_bytes(data[24:27], "little")
            height = 1 + int.from_bytes(data[27:30], "little")
            return width, height
        case b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 ":
            width = int.from_bytes(data[26:28], "little") & 0x3FFF
            height = int.from_bytes(data[28:30], "little") & 0x3FFF
            return width, height
    return None


def _read_cached(path: Path) -> bytes | None:
    try:
        data = path.read_bytes()
        os.utime(path)  # the collector's hour starts anew
    except OSError:
        return None
    return data


def _write_cached(path: Path, data: bytes) -> None:
    """Best effort: without it, the picture is made smaller again."""
    part = path.with_suffix(f".{os.getpid()}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
