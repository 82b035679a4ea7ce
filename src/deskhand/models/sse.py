"""Server-sent events, cut out of the chunks that a socket gives."""

from __future__ import annotations

# https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation. A lone
# CR as the end of a line is the one part of it that no provider uses and that we leave out.


class LineTooLong(ValueError):
    """A line of the stream is longer than the limit."""


class Splitter:
    """Chunks in, `data:` payloads out. Event names, ids and comments are dropped: every provider
    repeats in the payload what they say."""

    __slots__ = ("_data", "_limit", "_pieces", "_size")

    def __init__(self, line_bytes: int) -> None:
        self._limit = line_bytes
        self._pieces: list[bytes] = []
        self._size = 0
        self._data: bytes | None = None

    def feed(self, chunk: bytes) -> list[bytes]:
        """The payloads that this chunk completes. Raises LineTooLong."""
        if (
            chunk[:5] == b"data:"
            and chunk[-2:] == b"\n\n"
            and chunk.count(b"\n") == 2
            and not self._has_pending
        ):
            if len(chunk) > self._limit:
                raise LineTooLong
            return [chunk[5:-2].strip()]  # one event and nothing else, as nearly every chunk is
        if b"\n" not in chunk:
            # Kept in pieces: joining at every chunk would be quadratic for a server that drips.
            self._pieces.append(chunk)
            self._size += len(chunk)
            if self._size > self._limit:
                raise LineTooLong
            return []
        lines = chunk.split(b"\n")
        if self._pieces:
            self._pieces.append(lines[0])
            lines[0] = b"".join(self._pieces)
            self._pieces.clear()
        rest = lines.pop()
        if rest:
            self._pieces.append(rest)
        self._size = len(rest)
        if self._size > self._limit or len(lines[0]) > self._limit:
            raise LineTooLong
        return self._payloads(lines)

    @property
    def _has_pending(self) -> bool:
        """Something of what came before belongs to what comes next."""
        return bool(self._pieces) or self._data is not None

    def _payloads(self, lines: list[bytes]) -> list[bytes]:
        found: list[bytes] = []
        data = self._data
        for line in lines:
            if line[:5] == b"data:":
                piece = line[5:].strip()
                data = piece if data is None else data + b"\n" + piece
            elif data is not None and (not line or line == b"\r"):
                found.append(data)
                data = None
        self._data = data
        if data is not None and len(data) > self._limit:
            raise LineTooLong
        return found

    def close(self) -> list[bytes]:
        """What is left when the stream ends without its last blank line: some servers leave it
        out."""
        return self.feed(b"\n\n") if self._has_pending else []
