"""PDF files: the text on each page, within the page, as somebody who looks at it sees it."""

from __future__ import annotations

import pypdfium2
from pypdfium2 import raw

from .found import ExtractedText, Full, Unreadable

MAX_PAGES = 2_000
_INVISIBLE = 3  # ISO 32000-1, table 106: neither fill nor stroke
_MIN_POINTS = 1.0
"""Letters of fewer points than this are read by no person."""
_MAX_OBJECTS = 20_000


def read_pdf(data: bytes, found: ExtractedText) -> None:
    """Every page, with its number. Raises Unreadable and Full."""
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise Unreadable("is protected with a password") from error
        raise Unreadable(f"is damaged: {error}") from error
    count = len(document)
    found.title = " ".join(document.get_metadata_value("Title").split())[:300]
    without = 0
    for number in range(min(count, MAX_PAGES)):
        try:
            page = document[number]
            text = _extract_text(page, found)
            page.close()
        except pypdfium2.PdfiumError:
            found.notes.append(f"page {number + 1} is damaged")
            continue
        without += not text.strip()
        try:
            found.add(f"[page {number + 1} of {count}]\n")
            found.add_block(text.replace("\r\n", "\n").replace("\ufffe", "-"))
        except Full as full:
            raise Full(f"{full}: pages 1-{number + 1} of {count}") from None
    if without:
        found.notes.append(
            f"{without} of {min(count, MAX_PAGES)} pages have no text: pictures or scans"
        )
    if count > MAX_PAGES:
        raise Full(f"only the first {MAX_PAGES:,} of its {count:,} pages are given")


def _extract_text(page: pypdfium2.PdfPage, found: ExtractedText) -> str:
    """What stands within the page, and is seen."""
    remove_unseen(page, found)
    written = page.get_textpage()
    inside = written.get_text_bounded()
    outside = len("".join(written.get_text_range().split())) - len("".join(inside.split()))
    written.close()
    if outside > 0:
        found.hidden["characters beyond the page"] += outside
    return str(inside)


def remove_unseen(page: pypdfium2.PdfPage, found: ExtractedText) -> None:
    """Take invisible letters away, but for a scan, whose only text they are."""
    texts = []
    for number, each in enumerate(page.get_objects(filter=[raw.FPDF_PAGEOBJ_TEXT], max_depth=1)):
        if number >= _MAX_OBJECTS:
            break
        texts.append(each)
    unseen = [each for each in texts if _is_unseen(each)]
    if unseen and len(unseen) < len(texts):
        for each in unseen:
            page.remove_obj(each)
        found.hidden["hidden text"] += len(unseen)


def _is_unseen(text: pypdfium2.PdfObject) -> bool:
    return raw.FPDFTextObj_GetTextRenderMode(text) == _INVISIBLE or _is_tiny(text)


def _is_tiny(text: pypdfium2.PdfObject) -> bool:
    left, bottom, right, top = text.get_bounds()
    return bool(0 < top - bottom < _MIN_POINTS and right > left)
