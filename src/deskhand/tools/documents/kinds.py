"""What kind of document bytes are: by what they begin with, whatever their name and their sender
say."""

from __future__ import annotations

import re
from typing import Literal

DocumentKind = Literal[
    "html", "pdf", "docx", "xlsx", "pptx", "odf", "epub", "zip", "rtf", "text", ""
]

KIND_NAMES: dict[str, str] = {
    "html": "web page",
    "pdf": "PDF file",
    "docx": "Word document",
    "xlsx": "Excel workbook",
    "pptx": "PowerPoint presentation",
    "odf": "OpenDocument file",
    "epub": "e-book",
    "zip": "zip archive",
    "rtf": "RTF document",
    "text": "text",
}
_BINARY = (
    (b"\xd0\xcf\x11\xe0", "it is in an old Office format; save it as docx, xlsx or pptx"),
    (b"\x89PNG", "it is a picture"),
    (b"\xff\xd8\xff", "it is a picture"),
    (b"GIF8", "it is a picture"),
    (b"\x1f\x8b", "it is a gzip archive; unpack it with a command"),
    (b"7z\xbc\xaf", "it is a 7z archive; unpack it with a command"),
    (b"Rar!", "it is a RAR archive; unpack it with a command"),
    (b"\x7fELF", "it is a program"),
    (b"MZ", "it is a program"),
    (b"SQLite format 3\0", "it is a database; query it with a command"),
)
_OFFICE_FOLDERS = ((b"word/", "docx"), (b"xl/", "xlsx"), (b"ppt/", "pptx"))
_HTML = re.compile(
    rb"""
    ^ \s*
    (?: <!-- .{0,2000}? --> \s* )*
    <
    (?:
        !doctype \s+ html
      | html | head | body | title | meta | script
      | table | div | p | h[1-6] | span | a | b | ul | br
    )
    \b
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_HEAD_BYTES = 4096


def detect_kind(data: bytes, declared: str = "", name: str = "") -> DocumentKind:
    """The kind; "" where there is no text to be had. `declared`: a media type, `name`: a file's."""
    head = data[:_HEAD_BYTES]
    if _is_pdf(head, name):
        return "pdf"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _detect_zip_kind(data)
    if head.startswith(b"{\\rtf"):
        return "rtf"

    media = declared.partition(";")[0].strip().lower()
    has_binary_start = any(head.startswith(start) for start, _ in _BINARY)
    if has_binary_start or media.startswith(("image/", "audio/", "video/", "font/")):
        return "text" if media == "image/svg+xml" else ""
    if _is_called_html(media, name):
        return "html"
    can_be_html = media in ("", "application/octet-stream", "text/plain") and not name
    if can_be_html and _HTML.match(head):
        return "text" if media == "text/plain" else "html"
    if b"\0" in head and not _is_utf16(head):
        return ""
    return "text"


def _is_pdf(head: bytes, name: str) -> bool:
    if head.lstrip().startswith(b"%PDF-"):
        return True
    # Readers take some rubbish before it; a program's source may speak of it.
    return b"%PDF-" in head[:1024] and name.lower().endswith(".pdf")


def _is_called_html(media: str, name: str) -> bool:
    if media in ("text/html", "application/xhtml+xml"):
        return True
    suffix = name.lower().rpartition(".")[2]
    return not media and suffix in ("html", "htm", "xhtml")


def explain_no_text(data: bytes) -> str:
    """Why there is no text in bytes of no kind, as a clause."""
    for start, why in _BINARY:
        if data.startswith(start):
            return why
    return "it is neither text nor a supported document"


def _detect_zip_kind(data: bytes) -> DocumentKind:
    """By its first entries, which each of these formats prescribes or writes in every version."""
    if data[30:38] == b"mimetype":
        said = data[38:120]
        if said.startswith(b"application/epub+zip"):
            return "epub"
        if said.startswith(b"application/vnd.oasis.opendocument."):
            return "odf"
    tail = data[-(1 << 16) :]  # the directory of entries is at the end
    for start, kind in _OFFICE_FOLDERS:
        if b"[Content_Types].xml" in tail and start in tail:
            return kind  # type: ignore[return-value]  # one of the three
    return "odf" if b"META-INF/manifest.xml" in tail and b"content.xml" in tail else "zip"


def _is_utf16(head: bytes) -> bool:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    every_second = head[1::2]
    return every_second.count(0) > 0.9 * len(every_second)
