"""Makes documents, honest and hostile, as small as their formats allow."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterable, Mapping

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
SLIDE = "http://schemas.openxmlformats.org/presentationml/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
_TYPES = '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'


def archive(entries: Mapping[str, str | bytes], first: Mapping[str, str] = {}) -> bytes:
    """A zip file; `first` comes at the beginning, not compressed."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for name, text in first.items():
            made.writestr(name, text, zipfile.ZIP_STORED)
        for name, content in entries.items():
            made.writestr(name, content)
    return file.getvalue()


def relations(*each: tuple[str, str, str]) -> str:
    """(id, kind, target); a target that is an address is external."""
    rows = []
    for key, kind, to in each:
        mode = 'TargetMode="External"' if ":" in to else ""
        rows.append(f'<Relationship Id="{key}" Type="{LINKS}/{kind}" Target="{to}" {mode}/>')
    return f'<Relationships xmlns="{_PACKAGE}">{"".join(rows)}</Relationships>'


def word(body: str, *links: tuple[str, str, str], before: str = "") -> bytes:
    text = f'<w:document xmlns:w="{WORD}" xmlns:r="{LINKS}"><w:body>{body}</w:body></w:document>'
    return archive(
        {
            "[Content_Types].xml": _TYPES,
            "_rels/.rels": relations(("a", "officeDocument", "word/document.xml")),
            "word/_rels/document.xml.rels": relations(*links),
            "word/document.xml": before + text,
        }
    )


def paragraph(text: str, style: str = "", run: str = "") -> str:
    said = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{said}<w:r><w:rPr>{run}</w:rPr><w:t>{text}</w:t></w:r></w:p>"


def workbook(
    sheets: Iterable[tuple[str, str, str]], strings: Iterable[str] = (), styles: str = ""
) -> bytes:
    """Sheets as (name, state, their XML)."""
    given = list(sheets)
    rows = [
        f'<sheet name="{name}" state="{state}" r:id="r{n}"/>'
        for n, (name, state, _) in enumerate(given)
    ]
    entries = {
        "[Content_Types].xml": _TYPES,
        "xl/workbook.xml": (
            f'<workbook xmlns="{SHEET}" '
            f'xmlns:r="{LINKS}"><sheets>{"".join(rows)}</sheets></workbook>'
        ),
        "xl/_rels/workbook.xml.rels": relations(
            *((f"r{n}", "worksheet", f"sheets/{n}.xml") for n in range(len(given)))
        ),
        "xl/sharedStrings.xml": (
            f'<sst xmlns="{SHEET}">{"".join(f"<si><t>{each}</t></si>" for each in strings)}</sst>'
        ),
        "xl/styles.xml": f'<styleSheet xmlns="{SHEET}">{styles}</styleSheet>',
    }
    for number, (_, _, inner) in enumerate(given):
        entries[f"xl/sheets/{number}.xml"] = f'<worksheet xmlns="{SHEET}">{inner}</worksheet>'
    return archive(entries)


def slides(shown: Iterable[tuple[str, bool]], notes: str = "") -> bytes:
    given = list(shown)
    order = "".join(f'<p:sldId id="{n}" r:id="r{n}"/>' for n in range(len(given)))
    entries = {
        "[Content_Types].xml": _TYPES,
        "ppt/presentation.xml": f'<p:presentation xmlns:p="{SLIDE}" xmlns:r="{LINKS}">{order}</p:presentation>',  # noqa: E501
        "ppt/_rels/presentation.xml.rels": relations(
            *((f"r{n}", "slide", f"slides/{n}.xml") for n in range(len(given)))
        ),
    }
    for number, (text, seen) in enumerate(given):
        entries[f"ppt/slides/{number}.xml"] = _slide(text, seen)
        entries[f"ppt/slides/_rels/{number}.xml.rels"] = relations(
            ("n", "notesSlide", "../notes.xml")
        )
    if notes:
        entries["ppt/notes.xml"] = _slide(notes, True)
    return archive(entries)


def _slide(text: str, seen: bool) -> str:
    show = "" if seen else ' show="0"'
    return (
        f'<p:sld xmlns:p="{SLIDE}" '
        f'xmlns:a="{DRAWING}"{show}><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:sld>'
    )


def opendocument(kind: str, body: str, styles: str = "") -> bytes:
    names = ("office", "text", "table", "style", "drawing")
    spaces = " ".join(
        f'xmlns:{each[:5]}="urn:oasis:names:tc:opendocument:xmlns:{each}:1.0"' for each in names
    )
    content = (
        f'<offic:document-content {spaces} xmlns:x="http://www.w3.org/1999/xlink">{styles}'
        f"<offic:body>{body}</offic:body></offic:document-content>"
    )
    return archive(
        {"content.xml": content}, {"mimetype": f"application/vnd.oasis.opendocument.{kind}"}
    )


def ebook(chapters: Mapping[str, str]) -> bytes:
    manifest = "".join(f'<item id="{name}" href="{name}.xhtml"/>' for name in chapters)
    spine = "".join(f'<itemref idref="{name}"/>' for name in reversed(list(chapters)))
    listed = f"<manifest>{manifest}</manifest><spine>{spine}</spine>"
    book = f"<package xmlns:d='d'><metadata><d:title>A book</d:title></metadata>{listed}</package>"
    found = "<container><rootfiles><rootfile full-path='in/book.opf'/></rootfiles></container>"
    entries = {"META-INF/container.xml": found, "in/book.opf": book}
    entries |= {
        f"in/{name}.xhtml": f"<html><body>{text}</body></html>" for name, text in chapters.items()
    }
    return archive(entries, {"mimetype": "application/epub+zip"})


def pdf(pages: Iterable[str | bytes], title: str = "") -> bytes:
    """Pages as their content: operators of ISO 32000-1, 9.4. Bytes are taken as a compressed stream
    already."""
    streams = [each.encode("cp1252") if isinstance(each, str) else each for each in pages]
    packed = ["" if isinstance(each, str) else "/Filter/FlateDecode" for each in pages]
    kids = " ".join(f"{5 + 2 * n} 0 R" for n in range(len(streams)))
    font = "/Resources<</Font<</F 3 0 R>>>>"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {len(streams)}/MediaBox[0 0 600 800]{font}>>".encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        f"<</Title({title})>>".encode(),
    ]
    for number, (stream, how) in enumerate(zip(streams, packed, strict=True)):
        objects.append(f"<</Type/Page/Parent 2 0 R/Contents {6 + 2 * number} 0 R>>".encode())
        objects.append(f"<</Length {len(stream)}{how}>>stream\n".encode() + stream + b"\nendstream")
    return _numbered(objects)


def shown(text: str, at: tuple[int, int] = (70, 700), size: float = 12, mode: int = 0) -> str:
    """The operators that write a line of text."""
    return f"BT /F {size} Tf {mode} Tr {at[0]} {at[1]} Td ({text}) Tj ET\n"


def _numbered(objects: list[bytes]) -> bytes:
    made = bytearray(b"%PDF-1.7\n")
    places = []
    for number, each in enumerate(objects, 1):
        places.append(len(made))
        made += f"{number} 0 obj".encode() + each + b"endobj\n"
    start = len(made)
    made += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    made += b"".join(f"{place:010} 00000 n \n".encode() for place in places)
    return (
        bytes(made)
        + f"trailer<</Root 1 0 R/Info 4 0 R/Size {len(objects) + 1}>>startxref\n{start}\n%%EOF".encode()  # noqa: E501
    )


def swollen(megabytes: int, piece: bytes = b" ") -> bytes:
    """A compressed stream of so many megabytes."""
    packer = zlib.compressobj(9)
    block = piece * ((1 << 20) // len(piece))
    return b"".join(packer.compress(block) for _ in range(megabytes)) + packer.flush()
