"""Unpacks archives that somebody else has made: plain files alone, few and small, all of them
inside the folder, or nothing at all."""

from __future__ import annotations

import bz2
import gzip
import lzma
import stat
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import IO, Any

from ..types.errors import Refused

MAX_FILES = 500
MAX_BYTES = 20 << 20
MAX_RATIO = 100
RATIO_FROM_BYTES = 1 << 20
"""Below that, a high ratio is only an empty file."""
MAX_FOLDERS = 1_000
MAX_PACKED_BYTES = 3 * MAX_BYTES
MAX_DEPTH = 6
MAX_NAME_CHARS = 200
REFUSED_SUFFIXES = (".pth", ".so", ".pyc", ".pyd", ".dll", ".dylib", ".exe")
_PIECE_BYTES = 1 << 16


def unpack_archive(archive: Path, folder: Path) -> None:
    """Write its files into this empty folder. Raises Refused with a sentence for an archive that
    cannot be trusted or read; then some of its files may be there, and none lies elsewhere."""
    size = max(archive.stat().st_size, 1)
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as opened, closing(_iter_zip(opened)) as members:
                _write_all(members, folder, size)
        else:
            with (
                _open_packed(archive) as packed,
                tarfile.open(mode="r|", fileobj=_Bounded(packed)) as opened_tar,
                closing(_iter_tar(opened_tar)) as members,
            ):
                _write_all(members, folder, size)
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError) as error:
        raise Refused(f"{archive.name} cannot be read: {error}") from error
    except OSError as error:
        raise Refused(f"{archive.name} cannot be read: {error}") from error
    except (NotImplementedError, RuntimeError, ValueError) as error:
        raise Refused(f"{archive.name} cannot be read: {error}") from error


class _Bounded:
    """A tar that is read in its order, and not further than MAX_PACKED_BYTES: what stands before a
    file may be as long as the file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._read = 0

    def close(self) -> None:
        """Whoever has opened it closes it."""

    def write(self, data: bytes) -> int:
        """See `tarfile`; it is only read."""
        raise OSError("it is only read")

    def seek(self, at: int) -> int:
        """See `tarfile`; it is read in its order."""
        raise OSError("it is read in its order")

    def tell(self) -> int:
        return self._read

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size if 0 <= size < _PIECE_BYTES else _PIECE_BYTES)
        self._read += len(data)
        if self._read > MAX_PACKED_BYTES:
            raise Refused("it grows too much when it is unpacked")
        return data


def _open_packed(archive: Path) -> IO[bytes]:
    """What a tar is packed in, opened: by its first bytes."""
    with archive.open("rb") as file:
        head = file.read(6)
    opener: Any = next((each for start, each in _PACKERS.items() if head.startswith(start)), open)
    opened: IO[bytes] = opener(archive, "rb")
    return opened


_PACKERS = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
Member = tuple[str, IO[bytes]]


def _iter_zip(opened: zipfile.ZipFile) -> Generator[Member]:
    folders = 0
    for member in opened.infolist():
        if member.is_dir():
            _check_name(member.filename.rstrip("/"))
            folders = _count_folder(folders)
            continue
        kind = stat.S_IFMT(member.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            raise Refused(f"{member.filename!r} is a link or a device")
        if member.flag_bits & 1:
            raise Refused(f"{member.filename!r} is encrypted")
        with opened.open(member) as file:
            yield member.filename, file


def _iter_tar(opened: tarfile.TarFile) -> Generator[Member]:
    folders = 0
    for member in opened:
        if member.isdir():
            _check_name(member.name.rstrip("/"))
            folders = _count_folder(folders)
            continue
        if not member.isreg() or member.issparse():
            raise Refused(f"{member.name!r} is a link or a device")
        file = opened.extractfile(member)
        if file is not None:
            yield member.name, file


def _count_folder(before: int) -> int:
    if before >= MAX_FOLDERS:
        raise Refused(f"it holds more than {MAX_FOLDERS:,} folders")
    return before + 1


def _write_all(members: Iterator[Member], folder: Path, packed_bytes: int) -> None:
    seen: set[str] = set()
    written = 0
    for name, file in members:
        inner = _check_name(name)
        key = unicodedata.normalize("NFC", str(inner)).casefold()
        if key in seen:
            raise Refused(f"{name!r} occurs twice")
        seen.add(key)
        if len(seen) > MAX_FILES:
            raise Refused(f"it holds more than {MAX_FILES} files")
        place = folder / inner
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with place.open("xb") as target:
            while piece := file.read(_PIECE_BYTES):
                written += len(piece)
                if written > MAX_BYTES:
                    raise Refused(f"it holds more than {MAX_BYTES >> 20} MB")
                if written > RATIO_FROM_BYTES and written > MAX_RATIO * packed_bytes:
                    raise Refused("it grows too much when it is unpacked")
                target.write(piece)


def _check_name(name: str) -> PurePosixPath:
    """The path of a member. Raises Refused for one that could lie outside, or means something to a
    program that only looks."""
    inner = PurePosixPath(name)
    parts = inner.parts
    if (
        not parts
        or inner.is_absolute()
        or ".." in parts
        or "\\" in name
        or ":" in name
        or not name.isprintable()
        or len(name) > MAX_NAME_CHARS
    ):
        raise Refused(f"{name[:80]!r} is no name of a file in it")
    if len(parts) > MAX_DEPTH:
        raise Refused(f"{name[:80]!r} lies deeper than {MAX_DEPTH} folders")
    if name.lower().endswith(REFUSED_SUFFIXES):
        raise Refused(f"{name[:80]!r} is a program that cannot be read")
    return inner
