"""Pages of a PDF as pictures: drawn in the sandbox by a process of its own, so that no browser has
to open the file."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from ..sandbox.base import Exit, Sandbox
from ..types.errors import SandboxError, ToolError
from .convert import INSTALL_COMMAND, MAX_DOCUMENT_BYTES, make_python_command

MODULE = "deskhand.tools.documents.draw"
MAX_PAGES = 50
"""So many are shown of one PDF."""
MAX_PICTURE_BYTES = 16 << 20
PNG = b"\x89PNG\r\n\x1a\n"

OpenSandbox = Callable[[], Awaitable[Sandbox]]


class Sizes(msgspec.Struct, frozen=True):
    """How many pages there are, and how wide and high the first of them are, in points."""

    count: int
    sizes: list[tuple[float, float]]


Word = tuple[str, int, int, int, int, int]
"""A text; left, top, width and height of it, in ten thousandths of its page; and 1 where a line
ends behind it."""


class PageWords(msgspec.Struct, frozen=True):
    """The words of the first pages, a list for each, in the order in which the file has them."""

    pages: list[list[Word]]


class _Refusal(msgspec.Struct, frozen=True):
    unreadable: str = ""
    missing: str = ""


async def read_page_sizes(data: bytes, sandbox: OpenSandbox) -> Sizes:
    """Raises ToolError with a sentence that says why it cannot be shown."""
    said = await _run_drawing(data, sandbox, 0)
    try:
        return msgspec.json.decode(said, type=Sizes)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _make_error(said) from None


async def draw_page(data: bytes, page: int, sandbox: OpenSandbox) -> bytes:
    """That page as PNG; the first is 1. Raises ToolError."""
    said = await _run_drawing(data, sandbox, page)
    if not said.startswith(PNG):
        raise _make_error(said)
    return said


async def read_words(data: bytes, sandbox: OpenSandbox) -> PageWords:
    """Where the words stand on the first pages. Raises ToolError."""
    said = await _run_drawing(data, sandbox, -1)
    try:
        return msgspec.json.decode(said, type=PageWords)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _make_error(said) from None


def _make_error(said: bytes) -> ToolError:
    """Why; whoever made the PDF may have had a word in what the process says."""
    try:
        answer = msgspec.json.decode(said, type=_Refusal)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        answer = _Refusal()
    if answer.missing:
        return ToolError(f"support for drawing PDF pages is not installed: {INSTALL_COMMAND}")
    return ToolError(f"the PDF {answer.unreadable[:200] or 'could not be drawn'}")


async def _run_drawing(data: bytes, sandbox: OpenSandbox, page: int) -> bytes:
    if len(data) > MAX_DOCUMENT_BYTES:
        raise ToolError(f"the PDF is larger than {MAX_DOCUMENT_BYTES >> 20} MB")
    said = bytearray()

    def on_output(piece: bytes, is_error: bool) -> None:
        if not is_error and len(said) <= MAX_PICTURE_BYTES:
            said.extend(piece)

    asked = msgspec.json.encode({"page": page, "most": MAX_PAGES})
    try:
        ended: Exit = await (await sandbox()).run(
            make_python_command(MODULE, asked + b"\n" + data), on_output
        )
    except SandboxError as error:
        raise ToolError(
            f"PDF pages are only drawn in the sandbox, which is not available: {error}"
        ) from error
    if ended.timeout or ended.limit or ended.signal or len(said) > MAX_PICTURE_BYTES:
        raise ToolError("the PDF takes too long or too much memory to draw")
    return bytes(said)
