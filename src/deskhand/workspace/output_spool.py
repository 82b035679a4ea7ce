"""The output of a process: the end of it in memory, the first 32 MB in a file that survives a
crash."""

from __future__ import annotations

import os
from pathlib import Path

import anyio

MAX_FILE_BYTES = 32 << 20
TAIL_BYTES = 64 << 10


class Spool:
    """The output of one process. A sandbox calls `add`. Standard error is marked as in `shell`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self.tail = bytearray()
        self.news = anyio.Event()
        self._on_stderr = False
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)

    def add(self, data: bytes, stderr: bool) -> None:
        """Add output. Blocks no longer than a write to the page cache."""
        if stderr != self._on_stderr:
            self._on_stderr = stderr
            fresh = not self.size or self.tail.endswith(b"\n")
            self._add((b"" if fresh else b"\n") + (b"[stderr]\n" if stderr else b"[stdout]\n"))
        self._add(data)
        self.news.set()

    def _add(self, data: bytes) -> None:
        if (room := MAX_FILE_BYTES - self.size) > 0 and self._file >= 0:
            os.write(self._file, data[:room])
        self.size += len(data)
        self.tail += data[-TAIL_BYTES:]
        del self.tail[:-TAIL_BYTES]

    def read(self, at: int, size: int) -> tuple[int, bytes]:
        """(where it begins, bytes): from `at` on, or from the first byte that is still in
        memory."""
        if (
            at < MAX_FILE_BYTES
            and (data := self._piece(at, min(size, MAX_FILE_BYTES - at))) is not None
        ):
            return at, data
        at = max(at, self.size - len(self.tail))
        skipped = at - (self.size - len(self.tail))
        return at, bytes(self.tail[skipped : skipped + size])

    def read_all(self) -> bytes:
        """Everything in the file."""
        return self._piece(0, MAX_FILE_BYTES) or b""

    def _piece(self, at: int, size: int) -> bytes | None:
        """Bytes of the file, or None when it is gone. It is opened each time, so that ended
        processes whose output is still read hold no descriptor."""
        try:
            with self.path.open("rb") as file:
                file.seek(at)
                return file.read(size)
        except FileNotFoundError:
            return None

    def close(self) -> None:
        """Nothing more is printed. What was printed can still be read."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def read_leftover(path: Path) -> bytes:
    """What a process of an earlier run had printed."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES)
    except OSError:
        return b""
