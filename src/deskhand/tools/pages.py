"""What was fetched, as text that a model reads; and what was read lately, so that reading on asks
nobody again."""

from __future__ import annotations

import codecs
import re
from collections import OrderedDict

import anyio.to_thread
import msgspec

from ..net.client import Fetched
from .base import Context
from .convert import ConversionRequest, convert_document
from .documents.found import MAX_TEXT_CHARS
from .documents.invisible_characters import strip_invisible

_PLAIN_TYPES = frozenset(
    ("application/json", "application/x-ndjson", "application/yaml", "application/toml")
)
_MARKUP_TYPES = frozenset(("text/html", "text/xml", "text/rtf"))
_DOCUMENT_SIGNATURES = (b"%PDF-", b"PK\x03\x04", b"{\\rtf", b"\xd0\xcf\x11\xe0")
_MAX_AGE = re.compile(r"(?:^|,)\s*(?:s-maxage|max-age)\s*=\s*\"?(\d{1,9})", re.IGNORECASE)
_PRIVATE = re.compile(r"(?:^|,)\s*(?:no-store|no-cache)\b", re.IGNORECASE)


class FetchedPage(msgspec.Struct, frozen=True):
    """A page as text. `url` is where it came from in the end; `notes` are lines about what is not
    in the text."""

    url: str
    text: str
    title: str = ""
    notes: str = ""


async def read_page(fetched: Fetched, selector: str, context: Context) -> FetchedPage:
    """The text of a page, a document or a plain file. Raises ToolError where there is none.

    Markup and documents are taken apart in the sandbox; what is text already only loses what nobody
    would see.
    """
    url = str(fetched.url)
    if not selector and _is_plain_text(fetched):
        text, *notes = await anyio.to_thread.run_sync(_read_plain_text, fetched)
        return FetchedPage(url, text, notes="\n".join(notes))
    name = fetched.url.target.partition("?")[0].rpartition("/")[2]
    wanted = ConversionRequest(fetched.headers.get("content-type", ""), name[:200], url, selector)
    read = await convert_document(fetched.body, context.reach.host.open_sandbox, wanted)
    return FetchedPage(url, read.text, read.title, read.remarks)


def _read_plain_text(fetched: Fetched) -> list[str]:
    """The text, and a line for each thing that is not in it."""
    whole = _decode_body(fetched)
    text, hidden = strip_invisible(whole[:MAX_TEXT_CHARS])
    notes = list[str]()
    if hidden:
        notes.append(f"[removed because it is not visible to people: {hidden:,} characters]")
    if len(whole) > MAX_TEXT_CHARS:
        notes.append(f"[only the first {MAX_TEXT_CHARS:,} characters of {len(whole):,} are given]")
    return [text, *notes]


def _is_plain_text(fetched: Fetched) -> bool:
    kind = fetched.media_type
    is_text = kind.startswith("text/") and kind not in _MARKUP_TYPES
    if not is_text and kind not in _PLAIN_TYPES and not kind.endswith("+json"):
        return False
    start = fetched.body[:1024]
    return b"\0" not in start and not start.startswith(_DOCUMENT_SIGNATURES)


def _decode_body(fetched: Fetched) -> str:
    """The text in the charset that its server says, or in UTF-8; what does not fit is replaced."""
    body = fetched.body
    said = fetched.headers.get("content-type", "").lower().partition("charset=")[2]
    if body.startswith(codecs.BOM_UTF8):
        return body[3:].decode("utf-8", "replace")
    charset = said.partition(";")[0].strip(" \"'")[:40]
    try:
        return body.decode(charset or "utf-8", "replace")
    except (LookupError, ValueError):  # an unknown charset, or one that is none of text
        return body.decode("utf-8", "replace")


class Pages:
    """The pages that an agent has read lately: at most `size_bytes` of them, each for at most
    `keep_s`."""

    def __init__(self, keep_s: float, size_bytes: int = 8 << 20) -> None:
        self._keep_s = keep_s
        self._size_bytes = size_bytes
        self._kept: OrderedDict[tuple[str, ...], tuple[float, int, FetchedPage]] = OrderedDict()
        self._bytes = 0

    def get(self, key: tuple[str, ...], now: float) -> FetchedPage | None:
        found = self._kept.get(key)
        if found is None or found[0] <= now:
            return None
        self._kept.move_to_end(key)
        return found[2]

    def put(self, key: tuple[str, ...], page: FetchedPage, cache_control: str, now: float) -> None:
        """Keep a page, unless its server forbids it or lets it grow old at once."""
        self._drop(key)
        if _PRIVATE.search(cache_control):
            return
        keep_s = self._keep_s
        age = _MAX_AGE.search(cache_control)
        if age is not None:
            keep_s = min(keep_s, float(age[1]))
        size = 4 * len(page.text) + 1000  # at least what Python takes for it
        if keep_s <= 0 or size > self._size_bytes:
            return
        self._kept[key] = now + keep_s, size, page
        self._bytes += size
        while self._bytes > self._size_bytes:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: tuple[str, ...]) -> None:
        found = self._kept.pop(key, None)
        if found is not None:
            self._bytes -= found[1]
