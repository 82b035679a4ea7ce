"""The words of a PDF and where they stand on its pages: what is laid over their pictures, to be
selected and searched."""

from __future__ import annotations

import ctypes
from typing import Any

import pypdfium2
from pypdfium2 import raw

from .found import ExtractedText
from .pdf import remove_unseen

GRID = 10_000
"""A page is so many units wide and so many high, whichever size and rotation it has."""
MAX_WORDS = 60_000
MAX_CHARS = 500_000
"""So many are read of one PDF."""
_LINE_ENDS = "\r\n"

Word = tuple[str, int, int, int, int, int]
"""The text; left, top, width and height in units of GRID; and 1 where a line ends behind it."""


def read_words(document: pypdfium2.PdfDocument, most: int) -> list[list[Word]]:
    """The words of the first `most` pages, in the order in which the file writes them: a list for
    each page, which is empty where it is damaged or there were too many before it."""
    pages = list[list[Word]]()
    words_left, chars_left = MAX_WORDS, MAX_CHARS
    for number in range(min(len(document), most)):
        words = list[Word]()
        if words_left > 0 and chars_left > 0:
            try:
                words, chars = _read_page(document[number], chars_left)
            except pypdfium2.PdfiumError:
                chars = 0
            words = words[:words_left]
            words_left -= len(words)
            chars_left -= chars
        pages.append(words)
    return pages


def _read_page(page: pypdfium2.PdfPage, most_chars: int) -> tuple[list[Word], int]:
    remove_unseen(page, ExtractedText())
    text = page.get_textpage()
    count = min(text.count_chars(), most_chars)
    words = list[Word]()
    pending = ""
    box: list[float] = []
    for at in range(count):
        char = chr(raw.FPDFText_GetUnicode(text, at))
        if char.isspace() or char == "\0":
            if pending:
                words.append(_make_word(page, pending, box))
                pending = ""
            if char in _LINE_ENDS and words:
                words[-1] = (*words[-1][:5], 1)
            continue
        letter = _read_box(text, at)
        if pending and box and letter[0] < box[0] - (box[3] - box[1]):
            words.append((*_make_word(page, pending, box)[:5], 1))  # a line began without a space
            pending = ""
        box = _join(box, letter) if pending else letter
        pending += "-" if char == "\ufffe" else char
    if pending:
        words.append(_make_word(page, pending, box))
    page.close()
    return words, count


def _read_box(text: Any, at: int) -> list[float]:
    """Left, bottom, right and top of a character, in points."""
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    raw.FPDFText_GetCharBox(text, at, left, right, bottom, top)
    return [left.value, bottom.value, right.value, top.value]


def _join(box: list[float], other: list[float]) -> list[float]:
    return [
        min(box[0], other[0]),
        min(box[1], other[1]),
        max(box[2], other[2]),
        max(box[3], other[3]),
    ]


def _make_word(page: pypdfium2.PdfPage, text: str, box: list[float]) -> Word:
    left, bottom, right, top = box
    one = _place(page, left, top)
    other = _place(page, right, bottom)
    x, y = min(one[0], other[0]), min(one[1], other[1])
    return (text, x, y, abs(one[0] - other[0]), abs(one[1] - other[1]), 0)


def _place(page: pypdfium2.PdfPage, x: float, y: float) -> tuple[int, int]:
    """Where a point lies on the page as it is drawn: cropped and turned."""
    across, down = ctypes.c_int(), ctypes.c_int()
    raw.FPDF_PageToDevice(page, 0, 0, GRID, GRID, 0, x, y, across, down)
    return across.value, down.value
