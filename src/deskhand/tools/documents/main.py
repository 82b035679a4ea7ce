"""The program that reads one document: a line of JSON and the bytes come in, a line of JSON goes
out."""

from __future__ import annotations

import json
import re
import sys
from importlib import import_module

from .archive import Archive
from .encodings import decode_text
from .found import MAX_TEXT_CHARS, ExtractedText, Full, Unreadable
from .invisible_characters import strip_invisible
from .kinds import DocumentKind, explain_no_text

_BLANKS = re.compile(r"\n{3,}")
MAX_LISTED = 300
"""The names that are given of an archive."""


def main() -> None:
    """Read stdin, write stdout. What cannot be read is an answer too: `{"unreadable": "it …"}`."""
    asked = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read()
    try:
        answer = read_document(
            data, asked["kind"], asked["charset"], asked["url"], asked["selector"]
        )
    except Unreadable as error:
        answer = {"unreadable": str(error)}
    except MemoryError:
        answer = {
            "unreadable": (
                "needs more memory than one document may have: a decompression bomb, or too large"
            )
        }
    except ModuleNotFoundError as error:
        answer = {"missing": error.name or ""}
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace"))


def read_document(
    data: bytes, kind: DocumentKind, charset: str = "", url: str = "", selector: str = ""
) -> dict[str, object]:
    """What there is to say of the document. Raises Unreadable."""
    found = ExtractedText()
    try:
        _read_by_kind(data, kind, charset, url, selector, found)
    except Full as full:
        found.notes.append(str(full))
    text, unseen = strip_invisible(_join_surrogates(found.text))
    title, more = strip_invisible(_join_surrogates(found.title))
    found.hidden["invisible characters"] += unseen + more
    hidden = {name: count for name, count in found.hidden.items() if count > 0}
    return {
        "text": _BLANKS.sub("\n\n", text).strip(),
        "title": title.strip(),
        "hidden": hidden,
        "notes": found.notes[:20],
    }


def _read_by_kind(
    data: bytes, kind: DocumentKind, charset: str, url: str, selector: str, found: ExtractedText
) -> None:
    match kind:
        case "html":
            import_module(f"{__package__}.html").read_html(
                decode_text(data, charset), url, selector, found
            )
        case "pdf":
            import_module(f"{__package__}.pdf").read_pdf(data, found)
        case "docx":
            import_module(f"{__package__}.word").read_word(Archive(data), found)
        case "xlsx":
            import_module(f"{__package__}.sheets").read_sheets(Archive(data), found)
        case "pptx":
            import_module(f"{__package__}.slides").read_slides(Archive(data), found)
        case "odf":
            import_module(f"{__package__}.odf").read_odf(Archive(data), found)
        case "epub":
            import_module(f"{__package__}.epub").read_epub(Archive(data), found)
        case "rtf":
            import_module(f"{__package__}.rtf").read_rtf(data, found)
        case "zip":
            _list_archive(Archive(data), found)
        case "text":
            text = decode_text(data, charset)
            found.add(text[:MAX_TEXT_CHARS])
            if len(text) > MAX_TEXT_CHARS:
                raise Full(f"only the first {MAX_TEXT_CHARS:,} characters are given")
        case _:
            raise Unreadable(explain_no_text(data).removeprefix("it "))


def _list_archive(archive: Archive, found: ExtractedText) -> None:
    """An archive is not unpacked: what is in it may be another."""
    found.add_block("A zip archive. It was not unpacked; these are the names in it:")
    for number, entry in enumerate(archive.entries.values()):
        if number == MAX_LISTED:
            raise Full(f"only {MAX_LISTED} of {len(archive.entries):,} names are given")
        found.add(f"- {' '.join(entry.filename.split())[:200]} ({entry.file_size:,} bytes)\n")


def _join_surrogates(text: str) -> str:
    """Halves of surrogate pairs put together, or replaced."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


if __name__ == "__main__":
    main()
