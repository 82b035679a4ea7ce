"""Office documents as PDF, with the real LibreOffice where it is installed."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from docx import Document
from openpyxl import Workbook
from pptx import Presentation

from deskhand.sandbox.base import Exit, SandboxCommand
from deskhand.sandbox.choose import open_sandbox
from deskhand.tools.office_pdf import OfficePdfs, find_ending, find_soffice
from deskhand.tools.pdf_pages import read_words
from deskhand.types.errors import ToolError

NEEDS_OFFICE = pytest.mark.skipif(not find_soffice(), reason="needs LibreOffice")
LONG = pytest.mark.timeout(240)
NAMESPACE = "urn:oasis:names:tc:opendocument:xmlns:"
ODF = "application/vnd.oasis.opendocument."
ODF_BODIES = {
    "text": "<t:p>{}</t:p>",
    "spreadsheet": (
        '<b:table b:name="Sheet"><b:table-row><b:table-cell o:value-type="string"><t:p>{}</t:p>'
        "</b:table-cell></b:table-row></b:table>"
    ),
    "presentation": (
        '<d:page d:name="Slide"><d:frame s:width="20cm" s:height="3cm" s:x="2cm" s:y="2cm">'
        "<d:text-box><t:p>{}</t:p></d:text-box></d:frame></d:page>"
    ),
}


def word_document(text: str) -> bytes:
    document = Document()
    document.add_paragraph(text)
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def workbook(text: str) -> bytes:
    book = Workbook()
    for title, words in (("One", text), ("Two", "second sheet")):
        book.create_sheet(title)["A1"] = words
    book.remove(book["Sheet"])
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def slides(text: str) -> bytes:
    deck = Presentation()
    for words in (text, "second slide"):
        deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = words
    file = io.BytesIO()
    deck.save(file)
    return file.getvalue()


def open_document(text: str, kind: str = "text") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("mimetype", ODF + kind)
        entry = "<m:file-entry m:full-path={} m:media-type={}/>"
        entries = entry.format('"/"', f'"{ODF}{kind}"')
        entries += entry.format('"content.xml"', '"text/xml"')
        archive.writestr(
            "META-INF/manifest.xml",
            f'<m:manifest xmlns:m="{NAMESPACE}manifest:1.0">{entries}</m:manifest>',
        )
        archive.writestr(
            "content.xml",
            f'<o:document-content xmlns:o="{NAMESPACE}office:1.0" xmlns:t="{NAMESPACE}text:1.0"'
            f' xmlns:b="{NAMESPACE}table:1.0" xmlns:d="{NAMESPACE}drawing:1.0"'
            f' xmlns:s="{NAMESPACE}svg-compatible:1.0"><o:body><o:{kind}>'
            f"{ODF_BODIES[kind].format(text)}</o:{kind}></o:body></o:document-content>",
        )
    return file.getvalue()


class Counted:
    """The sandbox of this machine; `commands` are those that it ran."""

    def __init__(self) -> None:
        self.commands: list[SandboxCommand] = []
        self.running = self.most = 0

    @property
    def name(self) -> str:
        return "counted"

    @property
    def has_egress(self) -> bool:
        return False

    async def open(self) -> Counted:
        return self

    async def run(self, command: SandboxCommand, output: Callable[[bytes, bool], None]) -> Exit:
        self.commands.append(command)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            return await (await open_sandbox()).sandbox.run(command, output)
        finally:
            self.running -= 1


def test_documents_are_known_by_their_bytes() -> None:
    assert find_ending(word_document("x"), "x.pdf") == ".docx"
    assert find_ending(open_document("x")) == ".odt"
    assert find_ending(b"{\\rtf1 x}") == find_ending(b"%PDF-1.4") == find_ending(b"") == ""


@LONG
@NEEDS_OFFICE
async def test_a_document_is_drawn_once_without_a_network() -> None:
    sandbox = Counted()
    office = OfficePdfs()
    documents = [word_document("Dear Ada, come"), open_document("Dear Bob, stay")]
    made = dict[str, bytes]()

    async def make(name: str, data: bytes) -> None:
        made[name] = await office.make_pdf(data, find_ending(data), sandbox.open)

    async with anyio.create_task_group() as group:
        group.start_soon(make, "ada", documents[0])
        group.start_soon(make, "bob", documents[1])
        group.start_soon(make, "again", documents[0])
    assert len(sandbox.commands) == 2 and sandbox.most == 1, "one at a time, each once"
    assert made["again"] == made["ada"]
    assert all(not command.egress for command in sandbox.commands)
    assert not any(mount.write for command in sandbox.commands for mount in command.mounts)
    for name, words in (("ada", "Dear Ada, come"), ("bob", "Dear Bob, stay")):
        found = await read_words(made[name], sandbox.open)
        assert " ".join(word[0] for word in found.pages[0]) == words


@LONG
@NEEDS_OFFICE
@pytest.mark.parametrize(
    ("document", "ending", "pages"),
    [
        (workbook("Milk 2"), ".xlsx", ["Milk 2", "second sheet"]),
        (open_document("Milk 2", "spreadsheet"), ".ods", ["Milk 2"]),
        (slides("Milk 2"), ".pptx", ["Milk 2", "second slide"]),
        (open_document("Milk 2", "presentation"), ".odp", ["Milk 2"]),
    ],
    ids=["xlsx", "ods", "pptx", "odp"],
)
async def test_sheets_and_slides_are_pages(document: bytes, ending: str, pages: list[str]) -> None:
    assert find_ending(document) == ending
    sandbox = Counted()
    made = await OfficePdfs().make_pdf(document, ending, sandbox.open)
    found = await read_words(made, sandbox.open)
    drawn = [" ".join(word[0] for word in page) for page in found.pages]
    # LibreOffice may put a header above a sheet.
    assert all(page.endswith(words) for page, words in zip(drawn, pages, strict=True)), drawn


@LONG
@NEEDS_OFFICE
async def test_what_libreoffice_cannot_read_is_said_once() -> None:
    sandbox = Counted()
    office = OfficePdfs()
    broken = b"PK\x03\x04" + b"\0" * 30 + b"[Content_Types].xml word/document.xml"
    for _ in range(2):
        with pytest.raises(ToolError, match="could not draw the document"):
            await office.make_pdf(broken, ".docx", sandbox.open)
    assert len(sandbox.commands) == 1


async def test_libreoffice_is_looked_for_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    without = OfficePdfs()
    program = tmp_path / "soffice"
    program.touch(mode=0o755)
    assert OfficePdfs().is_available and not without.is_available
    with pytest.raises(ToolError, match="LibreOffice is not installed"):
        await without.make_pdf(word_document("x"), ".docx", Counted().open)
    program.unlink()
    assert not OfficePdfs().is_available


async def test_a_document_that_is_too_large_is_not_tried() -> None:
    sandbox = Counted()
    with pytest.raises(ToolError, match="larger than 20 MB"):
        await OfficePdfs().make_pdf(bytes(21 << 20), ".docx", sandbox.open)
    assert sandbox.commands == []
