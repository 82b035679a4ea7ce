"""Files to look at without keeping them: as text, as a table, as a picture, or as the pages of a
PDF."""

from __future__ import annotations

import csv
import io
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Literal

import msgspec

from ..sandbox.base import Sandbox
from ..tools.convert import ConversionRequest, convert_document
from ..tools.documents.kinds import detect_kind
from ..tools.office_pdf import find_ending
from ..tools.pdf_pages import draw_page, read_page_sizes
from ..types.errors import ToolError
from .errors import bad_request, to_sentence
from .media import picture_type
from .protocols import Web

PREVIEW_BYTES = 100_000
TABLE_BYTES = 5_000_000
"""How much of a text is shown, and how much is read of a table."""
DOCUMENTS = frozenset({"docx", "xlsx", "pptx", "odf", "epub", "rtf"})
DOCUMENT_NOTE = "This is the text of the document, without its layout and pictures."
INSTALL_OFFICE_NOTE = (
    "This is the text of the document, without its layout and pictures. To see its pages here, "
    "install LibreOffice where Deskhand runs (Debian and Ubuntu: libreoffice-nogui) and restart "
    "Deskhand."
)
_DOCUMENT_STARTS = (b"PK\x03\x04", b"{\\rtf")
ROWS = 500
COLUMNS = 100
CELL_CHARS = 1_000
_LANGUAGES = {
    **{
        ".py": "python",
        ".js": "javascript",
        ".mjs": "javascript",
        ".ts": "typescript",
        ".jsx": "jsx",
        ".tsx": "tsx",
    },
    **{
        ".html": "html",
        ".htm": "html",
        ".css": "css",
        ".md": "markdown",
        ".json": "json",
        ".jsonl": "json",
    },
    **{
        ".yaml": "yaml",
        ".yml": "yaml",
        ".toml": "toml",
        ".ini": "ini",
        ".sh": "bash",
        ".bash": "bash",
        ".sql": "sql",
    },
    **{
        ".c": "c",
        ".h": "c",
        ".cpp": "cpp",
        ".hpp": "cpp",
        ".rs": "rust",
        ".go": "go",
        ".java": "java",
        ".rb": "ruby",
    },
    **{
        ".php": "php",
        ".kt": "kotlin",
        ".swift": "swift",
        ".lua": "lua",
        ".r": "r",
        ".xml": "xml",
        ".svg": "xml",
    },
    **{".csv": "csv", ".tsv": "csv", ".txt": "text", ".log": "text", ".dockerfile": "dockerfile"},
}
Kind = Literal["text", "markdown", "table", "picture", "pdf", "none"]


class PreviewView(msgspec.Struct, frozen=True, kw_only=True):
    """A file to look at. `kind` says how; `none`: it can only be fetched. `why` says why, where
    that is to be said, or that it is a document of which only the text is shown.

    `content` is its text, None where it is none (`binary`); `truncated`: there is more of it.
    `rows` are the first of a table, after which there are `more_rows`, None where nobody counted
    them. `pages` are the width and height of the first pages of a PDF, in points, of `page_count`.
    `digest` is the SHA-256 of a text that is shown whole. `drawable`: it is a document whose pages
    can be drawn; what is here is its text.
    """

    path: str
    name: str
    size: int
    content: str | None
    binary: bool
    language: str
    truncated: bool
    kind: Kind
    rows: list[list[str]] = []
    more_rows: int | None = 0
    pages: list[tuple[float, float]] = []
    page_count: int = 0
    why: str = ""
    digest: str = ""
    drawable: bool = False


def make_preview(data: bytes, size: int, path: str) -> PreviewView:
    """A view of a file of which `data` is the beginning. The pages of a PDF are not looked at."""
    name = PurePosixPath(path).name
    suffix = PurePosixPath(name.lower()).suffix
    text = (
        None
        if b"\0" in data[:PREVIEW_BYTES]
        else _decode_text(data[:PREVIEW_BYTES], cut=size > PREVIEW_BYTES)
    )
    view = PreviewView(
        path=path,
        name=name,
        size=size,
        content=text,
        binary=text is None,
        language=_LANGUAGES.get(suffix, "text") if text is not None else "text",
        truncated=size > PREVIEW_BYTES,
        kind="none" if text is None else "text",
        digest=sha256(data).hexdigest() if text is not None and size <= PREVIEW_BYTES else "",
    )
    if picture_type(data):
        return msgspec.structs.replace(view, kind="picture")
    if detect_kind(data, name=name) == "pdf":
        return msgspec.structs.replace(view, kind="pdf", content=None, binary=True)
    if view.language == "markdown":
        return msgspec.structs.replace(view, kind="markdown")
    return _as_table(view, data, size) if view.language == "csv" and text else view


def _decode_text(data: bytes, cut: bool) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if cut and error.start >= len(data) - 3:  # a character that was cut through
            return data[: error.start].decode()
        return None


def _as_table(view: PreviewView, data: bytes, size: int) -> PreviewView:
    """The same as a table, where it can be read as one."""
    whole = _decode_text(data, cut=size > len(data))
    if whole is None:
        return view
    comma = "\t" if view.name.lower().endswith(".tsv") else _guess_separator(whole[:PREVIEW_BYTES])
    rows = list[list[str]]()
    more = 0
    try:
        for row in csv.reader(
            io.StringIO(whole.removeprefix("\ufeff"), newline=""), delimiter=comma
        ):
            if len(rows) < ROWS:
                rows.append([cell[:CELL_CHARS] for cell in row[:COLUMNS]])
            else:
                more += 1
    except csv.Error:  # a cell beyond all measure, or a byte that no table has
        return view
    return msgspec.structs.replace(
        view, kind="table", rows=rows, more_rows=more if size <= len(data) else None
    )


def _guess_separator(text: str) -> str:
    """What stands most often in the first line, outside of quotes."""
    first = "".join(text.lstrip("\ufeff\r\n").split("\n", 1)[0].split('"')[::2])
    return max(",;\t|", key=first.count)


def is_incomplete(view: PreviewView, data: bytes) -> bool:
    """Whether this is the view of a PDF or of another document, of which `data` is the beginning:
    those are read in the sandbox, as a whole."""
    return view.kind == "pdf" or data.startswith(_DOCUMENT_STARTS)


async def complete_preview(
    view: PreviewView,
    data: bytes,
    sandbox: Callable[[], Awaitable[Sandbox]],
    *,
    has_office: bool,
) -> PreviewView:
    """The view of a PDF with its pages, and of another document with its text; where there is
    none, with why. `has_office`: LibreOffice can draw the pages of documents."""
    if view.kind == "pdf":
        return await _add_pages(view, data, sandbox)
    if detect_kind(data, name=view.name) not in DOCUMENTS:
        return view
    try:
        found = await convert_document(data, sandbox, ConversionRequest(name=view.name))
    except ToolError as error:
        return msgspec.structs.replace(view, kind="none", why=to_sentence(str(error)))
    text = found.text[:PREVIEW_BYTES]
    is_office = find_ending(data, view.name) != ""
    drawable = is_office and has_office
    return msgspec.structs.replace(
        view,
        kind="markdown",
        language="markdown",
        content=text,
        truncated=len(text) < len(found.text),
        why=INSTALL_OFFICE_NOTE if is_office and not drawable else DOCUMENT_NOTE,
        digest="",
        drawable=drawable,
    )


async def _add_pages(
    view: PreviewView, data: bytes, sandbox: Callable[[], Awaitable[Sandbox]]
) -> PreviewView:
    try:
        found = await read_page_sizes(data, sandbox)
    except ToolError as error:
        return msgspec.structs.replace(view, kind="none", why=to_sentence(str(error)))
    return msgspec.structs.replace(view, pages=found.sizes, page_count=found.count)


async def read_as_pdf(web: Web, data: bytes, sandbox: Callable[[], Awaitable[Sandbox]]) -> bytes:
    """An Office document as PDF; all else as it is. Raises HttpProblem."""
    ending = find_ending(data)
    if not ending:
        return data
    try:
        return await web.office.make_pdf(data, ending, sandbox)
    except ToolError as error:
        raise bad_request(to_sentence(str(error))) from error


async def render_page(data: bytes, page: int, sandbox: Callable[[], Awaitable[Sandbox]]) -> bytes:
    """A page of a PDF as PNG. Raises HttpProblem."""
    try:
        return await draw_page(data, page, sandbox)
    except ToolError as error:
        raise bad_request(to_sentence(str(error))) from error
