"""The program that draws pages of a PDF: a line of JSON and the bytes come in, sizes or a picture
go out."""

from __future__ import annotations

import json
import struct
import sys
import zlib
from collections.abc import Iterator
from importlib import import_module
from typing import Any

WIDTH = 1400
MAX_PIXELS = 4_000_000
"""How wide a page is drawn, and how large at most."""


def main() -> None:
    """Read stdin, write stdout: `{"page": 0}` asks for the sizes of the first `most` pages as JSON,
    -1 for the words of those pages and where they stand, another number for that page as PNG. What
    cannot be drawn is an answer too: `{"unreadable": "it …"}`."""
    asked = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read()
    try:
        pdfium = import_module("pypdfium2")
    except ModuleNotFoundError as error:
        answer = json.dumps({"missing": error.name or ""}).encode()
    else:
        answer = _make_answer(pdfium, data, asked["page"], asked["most"])
    sys.stdout.buffer.write(answer)


def _make_answer(pdfium: Any, data: bytes, page: int, most: int) -> bytes:
    try:
        document = pdfium.PdfDocument(data)
        if page > 0:
            return _render_png(document[page - 1])
        if page < 0:
            words = import_module("deskhand.tools.documents.words").read_words(document, most)
            return json.dumps({"pages": words}).encode()
        count = len(document)
        sizes = [document.get_page_size(number) for number in range(min(count, most))]
        return json.dumps({"count": count, "sizes": sizes}).encode()
    except pdfium.PdfiumError as error:
        why = (
            "is protected with a password"
            if "password" in str(error).lower()
            else f"is damaged: {error}"
        )
        return json.dumps({"unreadable": why}).encode()


def _render_png(page: Any) -> bytes:
    """The page on white."""
    width, height = page.get_size()
    scale = min(WIDTH / max(width, 1), (MAX_PIXELS / max(width * height, 1)) ** 0.5)
    bitmap = page.render(scale=scale, rev_byteorder=True)
    pixels = memoryview(bitmap.buffer)
    packer = zlib.compressobj(6)
    packed = (
        b"".join(packer.compress(row) for row in _iter_png_rows(pixels, bitmap)) + packer.flush()
    )
    head = struct.pack(
        ">IIBBBBB", bitmap.width, bitmap.height, 8, {1: 0, 3: 2, 4: 6}[bitmap.n_channels], 0, 0, 0
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        map(_make_chunk, (b"IHDR", b"IDAT", b"IEND"), (head, packed, b""))
    )


def _iter_png_rows(pixels: memoryview, bitmap: Any) -> Iterator[bytes]:
    """Each line of the picture, unfiltered (PNG specification, 7.2)."""
    for at in range(bitmap.height):
        begin = at * bitmap.stride
        yield b"\0" + pixels[begin : begin + bitmap.width * bitmap.n_channels].tobytes()


def _make_chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


if __name__ == "__main__":
    main()
