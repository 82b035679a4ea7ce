"""The archive of a backup: a compressed tar with the files of a home, and a list of them with their
digests at its end."""

from __future__ import annotations

import errno
import gzip
import os
import stat
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from io import BytesIO
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import IO, Literal

import msgspec

from ..types.errors import DeskhandError
from ..types.folders import make_private_folder

LIST = "backup.json"
INSIDE = "home/"
FORMAT = 1
IN_MEMORY = 16_000_000
MAX_LIST_BYTES = 256_000_000
_BLOCK = 1 << 20


class BackupBroken(DeskhandError):
    """An archive that is no backup, or is damaged; the message says what is wrong."""


class BackupList(msgspec.Struct, frozen=True):
    """What is in a backup. `files` are (bytes, SHA-256) by their path in the home. `at` is when it
    was begun, in seconds since the epoch; `events` and `heads` are those of the log: how many, and
    the digest of the ends of all conversations. `left_out` says what is not in it, and why. `roots`
    are the real paths of the home and of what links in it led to, with the place in the home: files
    have their labels by their real paths."""

    format: int
    version: str
    at: float
    database: str
    events: int
    heads: str
    files: dict[str, tuple[int, str]]
    left_out: tuple[str, ...] = ()
    roots: dict[str, str] = {}


class ArchiveWriter:
    """Writes the files of a home into a new archive. `work` is a folder for copies of large files.
    `unreadable` are the paths of what could not be read."""

    def __init__(self, path: Path, work: Path) -> None:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        self._file = os.fdopen(descriptor, "wb")
        self._tar = tarfile.open(  # noqa: SIM115 -- `close` closes it
            fileobj=self._file, mode="w:gz", compresslevel=6, format=tarfile.PAX_FORMAT
        )
        self._work = work
        self.files: dict[str, tuple[int, str]] = {}
        self.unreadable: list[str] = []

    def add(self, found: FolderEntry) -> None:
        """Add a file, a folder or a link as it is now. What is gone meanwhile, or has become
        something else, is left out: an agent may be working there."""
        if os.path.realpath(found.path.parent) != found.real_parent:
            return
        entry = tarfile.TarInfo(f"{INSIDE}{found.inner}")
        if found.kind == "link":
            try:
                entry.linkname = str(found.path.readlink())
            except OSError:
                return
            entry.type = tarfile.SYMTYPE
            self._tar.addfile(entry)
            return
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        flags |= 0 if found.follow else os.O_NOFOLLOW
        try:
            descriptor = os.open(found.path, flags)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            if error.errno != errno.ELOOP:
                self.unreadable.append(found.inner)
            return
        with os.fdopen(descriptor, "rb") if found.kind == "file" else _closing(descriptor) as file:
            status = os.fstat(descriptor)
            at = Path(f"/proc/self/fd/{descriptor}").readlink()
            if not found.follow and str(at.parent) != found.real_parent:
                return
            entry.mode = stat.S_IMODE(status.st_mode) & 0o777
            entry.mtime = int(status.st_mtime)
            if stat.S_ISDIR(status.st_mode) and found.kind == "folder":
                entry.type = tarfile.DIRTYPE
                self._tar.addfile(entry)
            elif stat.S_ISREG(status.st_mode) and file is not None:
                self._add_file(entry, file, status.st_size)

    def add_bytes(self, data: bytes, inner: str) -> None:
        """Add a file with this content."""
        entry = tarfile.TarInfo(f"{INSIDE}{inner}")
        entry.mode = 0o600
        self._add_file(entry, BytesIO(data), len(data))

    def _add_file(self, entry: tarfile.TarInfo, file: IO[bytes], size: int) -> None:
        """A file that is written meanwhile: as much as there is, by a copy of it."""
        with BytesIO() if size <= IN_MEMORY else TemporaryFile(dir=self._work) as copy:
            digest = sha256()
            while block := file.read(_BLOCK):
                digest.update(block)
                copy.write(block)
            entry.size = copy.tell()
            copy.seek(0)
            self._tar.addfile(entry, copy)
        self.files[_listed_name(entry.name)] = (entry.size, digest.hexdigest())

    def close(self, listed: BackupList | None) -> None:
        """Write the list, without which it is no backup, and close the archive."""
        try:
            if listed is not None:
                data = msgspec.json.format(msgspec.json.encode(listed))
                entry = tarfile.TarInfo(LIST)
                entry.size = len(data)
                self._tar.addfile(entry, BytesIO(data))
        finally:
            self._tar.close()
            self._file.close()


@contextmanager
def _closing(descriptor: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(descriptor)


def _listed_name(name: str) -> str:
    """How a path is written in the list: what is no UTF-8 in it as `\\xe9`."""
    raw = name.removeprefix(INSIDE).encode("utf-8", "surrogateescape")
    return raw.decode("utf-8", "backslashreplace")


def extract_archive(file: IO[bytes], into: Path) -> BackupList:
    """Extract a backup into an empty folder, and compare every file with the list. Nothing is
    written outside of it. Raises BackupBroken, OSError."""
    extracted = _Extracted(into)
    listed: BackupList | None = None
    try:
        with gzip.GzipFile(fileobj=file) as whole, tarfile.open(fileobj=whole, mode="r:") as tar:
            for entry in tar:
                if entry.name == LIST:
                    listed = _read_list(tar, entry)
                else:
                    extracted.add(tar, entry)
            while whole.read(_BLOCK):  # to its end, where a checksum stands
                pass
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise BackupBroken(f"the archive is damaged or incomplete: {error}") from error
    extracted.finish()
    if listed is None:
        raise BackupBroken("the archive has no list of its files, so it is incomplete")
    if listed.format != FORMAT:
        raise BackupBroken(f"the archive has the format {listed.format}; a newer Deskhand made it")
    if wrong := next(iter(_differences(listed.files, extracted.files)), ""):
        raise BackupBroken(wrong)
    return listed


class _Extracted:
    """What of an archive lies in a folder by now."""

    def __init__(self, into: Path) -> None:
        self._into = into
        self._folders: list[tuple[Path, int]] = []
        self.files: dict[str, tuple[int, str]] = {}

    def add(self, tar: tarfile.TarFile, entry: tarfile.TarInfo) -> None:
        """Write one entry. Raises BackupBroken, OSError."""
        inner = _safe_name(entry.name)
        path = self._into / inner
        _check_not_behind_link(path, self._into)
        if os.path.lexists(path) and not entry.isdir():
            raise BackupBroken(f"{inner!r} is in it twice")
        if entry.issparse():
            raise BackupBroken(f"{inner!r} has holes, which no backup has")
        if entry.isdir():
            make_private_folder(path)
            self._folders.append((path, entry.mode))
        elif entry.issym() and inner.split("/")[0] == "state":
            raise BackupBroken(f"{inner!r} is a link; what Deskhand itself keeps is none")
        elif entry.issym():
            make_private_folder(path.parent)
            path.symlink_to(entry.linkname)  # as it was: nothing is written through it
        elif entry.isfile():
            self.files[_listed_name(entry.name)] = _extract_file(tar, entry, path)
        else:
            raise BackupBroken(f"{inner!r} is no file, folder or link")

    def finish(self) -> None:
        """Give folders their modes: until now they had to be written to."""
        for path, mode in reversed(self._folders):
            path.chmod(mode | 0o700)


def _differences(
    listed: dict[str, tuple[int, str]], found: dict[str, tuple[int, str]]
) -> Iterator[str]:
    for inner in sorted(listed.keys() | found.keys()):
        if inner not in found:
            yield f"{inner!r} is missing in the archive"
        elif listed.get(inner) != found[inner]:
            yield f"{inner!r} is not as it was when the backup was made"


def _read_list(tar: tarfile.TarFile, entry: tarfile.TarInfo) -> BackupList:
    if entry.size > MAX_LIST_BYTES:
        raise BackupBroken("the list of the archive is too large")
    file = tar.extractfile(entry)
    try:
        return msgspec.json.decode(file.read() if file else b"", type=BackupList)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BackupBroken(f"the list of the archive cannot be read: {error}") from error


def _safe_name(name: str) -> str:
    """The path in the home. Raises BackupBroken for one that leads elsewhere."""
    parts = PurePosixPath(name).parts
    if len(parts) < 2 or parts[0] != INSIDE.rstrip("/") or ".." in parts or "\0" in name:
        raise BackupBroken(f"{name!r} does not lie in the home")
    return "/".join(parts[1:])


def _extract_file(tar: tarfile.TarFile, entry: tarfile.TarInfo, path: Path) -> tuple[int, str]:
    source = tar.extractfile(entry)
    if source is None:
        raise BackupBroken(f"{entry.name!r} cannot be read")
    make_private_folder(path.parent)
    digest = sha256()
    size = 0
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with source, os.fdopen(descriptor, "wb") as target:
        while block := source.read(_BLOCK):
            digest.update(block)
            size += target.write(block)
        os.fchmod(target.fileno(), entry.mode & 0o777)
    os.utime(path, (entry.mtime, entry.mtime))
    return size, digest.hexdigest()


def _check_not_behind_link(path: Path, into: Path) -> None:
    """Nothing is written through a link, which may lead out of the home. Raises BackupBroken."""
    inside = [parent for parent in path.parents if parent.is_relative_to(into)]
    if path.is_symlink() or any(parent.is_symlink() for parent in inside if parent != into):
        raise BackupBroken(f"{str(path.relative_to(into))!r} lies behind a link")


class FolderEntry(msgspec.Struct, frozen=True):
    """Something in a folder. `real_parent` is where its folder really lies: what turns out to lie
    elsewhere when it is opened is something else. `follow`: it may be a link of the owner's to
    another disk."""

    inner: str
    path: Path
    kind: Literal["file", "folder", "link"]
    real_parent: str
    follow: bool = False


def iter_folder(
    root: Path, skip: Iterable[str], follow: Callable[[str], bool], unreadable: list[str]
) -> Iterator[FolderEntry]:
    """All that lies in a folder, each folder before what is in it. `skip` are names of folders that
    are left out wherever they lie; links of which `follow` says so are taken for what they lead
    to."""
    left = frozenset(skip)
    waiting = [("", os.path.realpath(root))]
    while waiting:
        folder, real = waiting.pop()
        try:
            with os.scandir(real) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            unreadable.append(folder or ".")
            continue
        for entry in entries:
            inner = f"{folder}/{entry.name}" if folder else entry.name
            own = follow(inner)
            if entry.is_symlink() and not own:
                yield FolderEntry(inner, Path(entry.path), "link", real)
            elif entry.is_dir(follow_symlinks=own):
                if entry.name not in left:
                    yield FolderEntry(inner, Path(entry.path), "folder", real, own)
                    place = os.path.realpath(entry.path) if own else f"{real}/{entry.name}"
                    waiting.append((inner, place))
            elif entry.is_file(follow_symlinks=own):
                yield FolderEntry(inner, Path(entry.path), "file", real, own)
