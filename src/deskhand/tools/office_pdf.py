"""Office documents as PDF: LibreOffice makes it in the sandbox, where it is installed."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import sha256
from pathlib import Path
from shutil import which

import anyio
import msgspec

from ..sandbox.base import Mount, SandboxCommand
from ..types.errors import SandboxError, ToolError
from .convert import MAX_DOCUMENT_BYTES, make_python_command
from .documents.kinds import detect_kind
from .pdf_pages import OpenSandbox

MODULE = "deskhand.tools.documents.office"
TIMEOUT_S = 120.0
MEMORY_BYTES = 2 << 30
PROCESSES = 200
MAX_PDF_BYTES = MAX_DOCUMENT_BYTES
MAX_KEPT_BYTES = 64 << 20
"""So much of what was made is kept in memory, the latest."""
_ENDINGS = {"docx": ".docx", "xlsx": ".xlsx", "pptx": ".pptx"}
_ODF_ENDINGS = (
    (b"opendocument.text", ".odt"),
    (b"opendocument.spreadsheet", ".ods"),
    (b"opendocument.presentation", ".odp"),
)
_HEAD_BYTES = 200
"""An OpenDocument file begins with its media type (OpenDocument 1.3, part 2, 3.3)."""
_SETTINGS = ("/etc/libreoffice", "/etc/fonts")


class _Refusal(msgspec.Struct, frozen=True):
    unreadable: str = ""


def find_ending(data: bytes, name: str = "") -> str:
    """How LibreOffice calls a document of this kind; '' for what is no Office document."""
    kind = detect_kind(data, name=name)
    if kind == "odf":
        head = data[:_HEAD_BYTES]
        return next((ending for mark, ending in _ODF_ENDINGS if mark in head), "")
    return _ENDINGS.get(kind, "")


def find_soffice() -> str:
    """The program; '' where it is not installed."""
    return which("soffice") or ""


class OfficePdfs:
    """Makes PDFs of documents, one at a time, and keeps the latest by the digest of the
    document. LibreOffice is looked for once: what is installed later is used after a restart."""

    def __init__(self) -> None:
        self._soffice = find_soffice()
        self._turn = anyio.CapacityLimiter(1)
        self._made = OrderedDict[bytes, bytes | str]()

    @property
    def is_available(self) -> bool:
        """Whether LibreOffice is installed."""
        return self._soffice != ""

    async def make_pdf(self, data: bytes, ending: str, sandbox: OpenSandbox) -> bytes:
        """The document as PDF. Raises ToolError with a sentence that says why there is none."""
        digest = sha256(ending.encode() + data).digest()
        async with self._turn:
            made = self._made.pop(digest, None)
            if made is None:
                made = await _convert(data, ending, sandbox, soffice=self._soffice)
            self._made[digest] = made
            while sum(len(each) for each in self._made.values()) > MAX_KEPT_BYTES:
                self._made.popitem(last=False)
        if isinstance(made, str):
            raise ToolError(made)
        return made


async def _convert(data: bytes, ending: str, sandbox: OpenSandbox, *, soffice: str) -> bytes | str:
    """The PDF, or why the document cannot be one. Raises ToolError for what another try could
    change."""
    if len(data) > MAX_DOCUMENT_BYTES:
        return f"the document is larger than {MAX_DOCUMENT_BYTES >> 20} MB"
    said = bytearray()

    def on_output(piece: bytes, is_error: bool) -> None:
        if not is_error and len(said) <= MAX_PDF_BYTES:
            said.extend(piece)

    try:
        ended = await (await sandbox()).run(_make_command(data, ending, soffice=soffice), on_output)
    except SandboxError as error:
        raise ToolError(
            f"documents are only drawn in the sandbox, which is not available: {error}"
        ) from error
    if ended.timeout or ended.limit or ended.signal or len(said) > MAX_PDF_BYTES:
        return "the document takes too long or too much memory to draw"
    if said.startswith(b"%PDF-"):
        return bytes(said)
    try:
        why = msgspec.json.decode(bytes(said), type=_Refusal).unreadable[:200]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        why = ""
    return f"LibreOffice could not draw the document{why and f': {why}'}"


def _make_command(data: bytes, ending: str, *, soffice: str) -> SandboxCommand:
    if not soffice:
        raise ToolError("LibreOffice is not installed")
    asked = msgspec.json.encode({"soffice": soffice, "ending": ending})
    command = make_python_command(MODULE, asked + b"\n" + data)
    settings = tuple(Mount(path) for path in _SETTINGS if Path(path).is_dir())
    return msgspec.structs.replace(
        command,
        mounts=(*command.mounts, *settings),
        timeout_s=TIMEOUT_S,
        memory_bytes=MEMORY_BYTES,
        file_bytes=4 * MAX_PDF_BYTES,
        processes=PROCESSES,
    )
