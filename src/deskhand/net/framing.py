"""HTTP/1 that can be read in one way only. h11 is lenient where another parser may be lenient in
another way: what one takes for a body is then the next request for the other.

What is refused is what the tests of parsers and the reports on request smuggling are about: RFC
9112 sections 2.2, 5.2, 6.1, 6.3, 7.1.1 and 11.2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import h11
from h11._receivebuffer import ReceiveBuffer

CHUNK_LINE_BYTES = 64
"""The size of a chunk and what is said beside it; nobody needs that."""

_BARE = re.compile(rb"(?<!\r)\n|\r(?!\n|\Z)")
_HEAD = re.compile(rb"\AHTTP/1\.[01] | HTTP/1\.[01]\Z")
_LENGTH = re.compile(rb"[0-9]{1,18}\Z")
_ONCE = frozenset(
    (
        b"host content-length transfer-encoding content-type authorization proxy-authorization "
        b"cookie origin"
    ).split()
)
"""Of these one reader takes the first and another the last."""
_LISTS = frozenset(
    (
        b"accept accept-charset accept-encoding accept-language cache-control connection "
        b"forwarded if-match if-none-match pragma prefer sec-websocket-extensions "
        b"sec-websocket-protocol te trailer upgrade via x-forwarded-for"
    ).split()
)
"""What may stand in several lines of a request to us (RFC 9110 section 5.3). No other may, least of
all what signs."""


def make_strict(connection: h11.Connection, *, own: bool = False) -> h11.Connection:
    """Have it refuse what can be read in two ways. `own`: it is asked for its own paths alone, not
    for addresses."""
    connection._receive_buffer = _StrictBuffer(own=own)
    return connection


class _StrictBuffer(ReceiveBuffer):
    """What came in. h11 reads from it by lines, and takes what it raises as the other side's
    fault."""

    def __init__(self, *, own: bool) -> None:
        super().__init__()
        self._own = own

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """The lines of a head, or of what trails a chunked body."""
        begins = max(0, self._multiple_lines_search - 1)
        is_empty = self._data[:2] == b"\r\n"
        end = 0 if is_empty else self._data.find(b"\r\n\r\n", max(0, begins - 3))
        whole = end + 2 if end >= 0 else len(self._data)
        if _BARE.search(self._data, begins, whole):
            raise h11.LocalProtocolError("a line ends in \\r or \\n alone")
        if end < 0:
            self._multiple_lines_search = len(self._data)
            return None
        if end == 0:
            self._extract(2)
            return []
        lines = self._extract(end + 4)[:end].split(b"\r\n")
        _check_head(lines, own=self._own)
        return lines

    def maybe_extract_next_line(self) -> bytearray | None:
        """The line before a chunk."""
        line = super().maybe_extract_next_line()
        if len(self._data if line is None else line) > CHUNK_LINE_BYTES:
            raise h11.LocalProtocolError(
                f"the line before a chunk is longer than {CHUNK_LINE_BYTES} bytes"
            )
        if line is not None and _BARE.search(line):
            raise h11.LocalProtocolError("a line ends in \\r or \\n alone")
        return line


def _check_head(lines: Sequence[bytearray], *, own: bool) -> None:
    first = bytes(lines[0])
    if not _HEAD.search(first):
        # what trails a body, of which nothing is taken; or no HTTP/1, which h11 or its user refuses
        return

    seen = dict[bytes, bytes]()
    for line in lines[1:]:
        name, _, value = bytes(line).partition(b":")
        name = name.lower()
        if name[:1] in (b" ", b"\t", b""):
            raise h11.LocalProtocolError("a header continues on the next line")
        if name in seen and (name in _ONCE or (own and name not in _LISTS)):
            raise h11.LocalProtocolError("a header occurs twice")
        seen[name] = value.strip(b" \t")

    if not _LENGTH.match(seen.get(b"content-length", b"0")):
        raise h11.LocalProtocolError("the length of the body is not a number")
    if b"transfer-encoding" in seen and (b"content-length" in seen or b"HTTP/1.0" in first):
        raise h11.LocalProtocolError("the length of the body is given in two ways")
    if own and first.split(b" ")[1][:1] not in (b"/", b"*"):
        raise h11.LocalProtocolError("it asks for a full address instead of a path")
