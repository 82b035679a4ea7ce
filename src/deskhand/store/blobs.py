"""Bytes too large for the log, kept as files under the hash of their content."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import anyio.to_thread

from ..types.errors import BlobMissing, StoreFull
from ..types.folders import make_private_folder

DIGEST_PREFIX = "sha256:"
MIN_AGE_S = 3600.0
"""An unreferenced file is kept this long: the commit that names it may still be on its way."""


class Blobs:
    """A folder of files, each named by the SHA-256 of its bytes. The same bytes are kept once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, digest: str) -> Path:
        """Where the bytes of `digest` are, if they are. Raises BlobMissing for what is no
        digest."""
        name = digest.removeprefix(DIGEST_PREFIX)
        if len(name) != 64 or not all(c in "0123456789abcdef" for c in name):
            raise BlobMissing(f"{digest!r} is not the name of a stored file")
        return self.folder / name[:2] / name

    async def put(self, data: bytes) -> str:
        """Store the bytes and return their name `sha256:…` once they are on disk. Raises
        StoreFull."""
        return await anyio.to_thread.run_sync(self._put, data)

    async def get(self, digest: str) -> bytes:
        """The bytes. Raises BlobMissing when they are gone or are no longer what their name
        says."""
        return await anyio.to_thread.run_sync(self._get, digest)

    def _put(self, data: bytes) -> str:
        digest = DIGEST_PREFIX + sha256(data).hexdigest()
        path = self.path(digest)
        part = path.with_suffix(
            f".{os.getpid()}-{threading.get_ident()}.part"
        )  # no two writers share one
        try:
            if path.exists():
                os.utime(path)  # the collector's hour starts anew
                return digest
            make_private_folder(path.parent)
            with part.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
            for folder in (path.parent, self.folder):
                _sync_folder(folder)
        except OSError as error:
            with suppress(OSError):
                part.unlink()
            raise StoreFull(f"{str(path)!r} could not be written: {error.strerror}") from error
        return digest

    def _get(self, digest: str) -> bytes:
        try:
            data = self.path(digest).read_bytes()
        except FileNotFoundError as error:
            raise BlobMissing(f"the file behind {digest!r} is no longer there") from error
        if DIGEST_PREFIX + sha256(data).hexdigest() != digest:
            raise BlobMissing(f"the file behind {digest!r} was changed on disk")
        return data

    def size(self, digest: str) -> int:
        """How many bytes are kept under this name; 0 for none."""
        try:
            return self.path(digest).stat().st_size
        except (FileNotFoundError, BlobMissing):
            return 0

    def adopt(self, copy: Path, digest: str) -> None:
        """Make a blob of a file beside us whose bytes should have this digest; it is shared, not
        copied. It is safe on disk after the next `sync`. Raises BlobMissing where it is gone, or
        holds something else; StoreFull."""
        path = self.path(digest)
        try:
            if path.exists():
                os.utime(path)
                return
            whole = sha256()
            with copy.open("rb") as file:
                while block := file.read(1 << 20):
                    whole.update(block)
                if DIGEST_PREFIX + whole.hexdigest() != digest:
                    raise BlobMissing(f"the copy of {digest!r} was changed on disk")
                os.fsync(file.fileno())
            make_private_folder(path.parent)
            with suppress(FileExistsError):
                os.link(copy, path)
            os.utime(path)  # the collector's hour begins now
            _sync_folder(path.parent)
        except FileNotFoundError as error:
            raise BlobMissing(f"the copy of {digest!r} is gone") from error
        except OSError as error:
            raise StoreFull(f"{str(path)!r} could not be written: {error.strerror}") from error

    def sync(self) -> None:
        """See to it that the names of what was adopted are on disk. Raises StoreFull."""
        try:
            _sync_folder(self.folder)
        except OSError as error:
            raise StoreFull(
                f"{str(self.folder)!r} could not be written: {error.strerror}"
            ) from error

    def collect(self, used: Callable[[str], bool], now: float) -> int:
        """Remove files that nothing uses and that are older than an hour. `now` is wall time.
        Returns how many."""
        removed = 0
        for path in self.folder.glob("??/*"):
            with suppress(FileNotFoundError):  # a part that has just become whole
                unused = path.suffix == ".part" or not used(DIGEST_PREFIX + path.name)
                # Its age is read last: whoever stores the same bytes meanwhile has made it young
                # again.
                if unused and now - path.stat().st_mtime >= MIN_AGE_S:
                    path.unlink()
                    removed += 1
        return removed


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
