"""Files beneath a workspace, and never elsewhere: the kernel resolves every path from a directory
that we hold open.

Checking a name and then opening it leaves a moment to swap a link in between. Here the check *is*
the opening: openat2 with RESOLVE_BENEATH, or a walk that follows no link where the kernel has no
openat2 (before Linux 5.6).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import secrets
import shlex
import stat
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Literal, Self, TypeVar

import msgspec

from ..types.errors import OutsideWorkspace, ProtectedPath, ToolError
from .protected import why_protected

_SYS_OPENAT2 = 437  # the same number on every machine
_BENEATH = 0x08
_NO_MAGICLINKS = 0x02
_NO_XDEV = 0x01
_NO_LINKS = 0x04
_MAX_TRIES = 64  # tries: a rename elsewhere may make the kernel unsure (EAGAIN)
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_BLOCK_BYTES = 1 << 20
_MAX_PATH_CHARS = 4000
_MAX_FOLDERS = 100

T = TypeVar("T")
Opener = Callable[[int, str, int], int]
"""Opens a relative path beneath a directory descriptor, with flags. Raises OSError; EXDEV: it would
leave."""


class Allowed(msgspec.Struct, frozen=True, gc=False):
    """A further folder that the tools may reach, to read, or to `write` too.

    `owned`: a person works there with programs of their own, so that what is written there is
    reviewed by them; `outside`: it may be written also by conversations that have read something
    from outside.
    """

    path: str
    write: bool = False
    owned: bool = False
    outside: bool = False


class Entry(msgspec.Struct, frozen=True, gc=False):
    """What a name stands for. `modified_s` is Unix time; `changed_ns` is when anything of it was
    changed last, which nobody can set."""

    name: str
    kind: Literal["file", "folder", "link", "other"]
    size_bytes: int
    modified_s: float
    changed_ns: int = 0
    inode: int = 0


class Place(msgspec.Struct, frozen=True, gc=False):
    """What was read, as the kernel knows it: its `real` path while it was open, its inode, and when
    anything of it was changed last. `asked` is the path by which it was asked for. Names may lead
    elsewhere a moment later, so whose word something is that was read is asked of its place.
    Without an inode nobody has opened it."""

    real: str
    asked: str = ""
    inode: int = 0
    changed_ns: int = 0

    def is_at(self, path: str) -> bool:
        """Whether this name leads to it just now: then what is known of the name is known of it."""
        try:
            return os.stat(path).st_ino == self.inode  # noqa: PTH116 -- of each skill, before many a model call
        except OSError:
            return False


class OpenedFile(msgspec.Struct, frozen=True):
    """A file that was read: its place, its size, and as much of it as was asked for."""

    place: Place
    size_bytes: int
    data: bytes


class Listed(msgspec.Struct, frozen=True):
    """A folder that was read: its place, and the names in it."""

    place: Place
    entries: list[Entry]

    def place_of(self, entry: Entry) -> Place:
        """Where one of them lies, as itself: of a link, and not of what it leads to."""
        return Place(f"{self.place.real}/{entry.name}", "", entry.inode, entry.changed_ns)


class _Root(msgspec.Struct, frozen=True):
    given: str
    real: str
    descriptor: int
    write: bool


def openat2_beneath(directory: int, path: str, flags: int, links: bool = True) -> int:
    """Open `path` so that no link, mount or `..` leads out of `directory`; without `links` none is
    followed at all. Raises OSError; ENOSYS: an old kernel."""
    resolve = _BENEATH | _NO_MAGICLINKS | _NO_XDEV | (0 if links else _NO_LINKS)
    how = struct.pack("<QQQ", flags, 0, resolve)
    name = os.fsencode(path)
    for _ in range(_MAX_TRIES):
        descriptor: int = _syscall(
            _SYS_OPENAT2, ctypes.c_int(directory), name, how, ctypes.c_size_t(len(how))
        )
        if descriptor >= 0:
            return descriptor
        code = ctypes.get_errno()
        if code not in (errno.EAGAIN, errno.EINTR):
            raise OSError(code, os.strerror(code))
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))


def walk_beneath(directory: int, path: str, flags: int) -> int:
    """The same without openat2: it follows no link at all (ELOOP), so it refuses some that would
    stay inside."""
    held = [os.dup(directory)]
    device = os.fstat(directory).st_dev
    parts = PurePosixPath(path).parts or (".",)
    try:
        for at, part in enumerate(parts):
            last = at == len(parts) - 1
            if part == ".." and len(held) == 1:
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
            if part == "..":
                os.close(held.pop())
                part = "."
            how = flags if last else os.O_PATH | os.O_DIRECTORY
            opened = os.open(part, how | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=held[-1])
            held.append(opened)
            status = os.fstat(opened)
            if status.st_dev != device:
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
            if stat.S_ISLNK(status.st_mode):  # O_PATH opens the link itself
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            if part == ".":
                os.close(held.pop(-2))  # the same folder, opened anew
        return held.pop()
    finally:
        for each in held:
            os.close(each)


def _choose_opener(directory: int) -> Opener:
    try:
        os.close(openat2_beneath(directory, ".", _DIRECTORY))
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EPERM):  # EPERM: some container filters
            raise
        return walk_beneath
    return openat2_beneath


class Workspace:
    """A folder and those allowed beside it, held open. Paths are relative to the folder, or
    absolute in any of them.

    Every method raises ToolError with a sentence for the model; OutsideWorkspace and ProtectedPath
    are two of them.
    """

    def __init__(
        self, folder: str, allowed: Sequence[Allowed] = (), opener: Opener | None = None
    ) -> None:
        """Raises ToolError where `folder` cannot be opened; an allowed folder that is gone, or
        whose path leads over a link, is passed over."""
        self._roots: list[_Root] = []  # first, for __del__
        for each in (Allowed(folder, write=True), *allowed):
            try:
                descriptor = os.open(each.path, _DIRECTORY)
            except OSError as error:
                if not self._roots:
                    raise ToolError(
                        f"the workspace {folder!r} cannot be opened: {error.strerror}"
                    ) from error
                continue
            real = descriptor_path(descriptor)
            if self._roots and real != each.path:
                os.close(
                    descriptor
                )  # a link stands where the allowed folder was: it may lead anywhere
                continue
            self._roots.append(_Root(str(Path(each.path).absolute()), real, descriptor, each.write))
        self._open = opener or _choose_opener(self._roots[0].descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()  # a tool may still hold it when a grant has made another take its place

    @property
    def is_current(self) -> bool:
        """Whether the paths still name the folders that are held open."""
        try:
            return all(
                os.path.samestat(Path(each.given).stat(), os.fstat(each.descriptor))
                for each in self._roots
            )
        except OSError:
            return False

    @property
    def roots(self) -> Sequence[tuple[str, int, bool]]:
        """The real path of each folder, a descriptor that is good as long as this is, and whether
        it may be written."""
        return [(root.real, root.descriptor, root.write) for root in self._roots]

    def target_path(self, path: str) -> str:
        """The real path of what `path` would be written to, whether it is there or not."""
        _check_path(path)
        asked = PurePosixPath(path)
        for parent in asked.parents:
            try:
                descriptor = self._open_path(str(parent), _DIRECTORY, write=True)
            except ToolError as error:
                if not isinstance(error.__cause__, FileNotFoundError):
                    raise
                continue
            try:
                return f"{descriptor_path(descriptor)}/{asked.relative_to(parent)}"
            finally:
                os.close(descriptor)
        raise ToolError(f"{path!r} is not the path of a file: add the file name")

    def close(self) -> None:
        """Let go of the folders."""
        while self._roots:
            os.close(self._roots.pop().descriptor)

    def open_beneath(self, path: str, flags: int = os.O_RDONLY) -> int:
        """A descriptor for `path`, which cannot lie outside. It neither waits for a FIFO nor
        creates anything."""
        return self._open_path(path, flags, write=False)

    def read(
        self, path: str, limit_bytes: int = 10 << 20, offset: int = 0, *, to_write: bool = False
    ) -> bytes:
        """At most `limit_bytes` of a regular file. It leaves no trace in the time of the last
        access. `to_write`: it must lie where it may be written too."""
        return self.read_opened(path, limit_bytes, offset, to_write=to_write).data

    def read_opened(
        self, path: str, limit_bytes: int = 10 << 20, offset: int = 0, *, to_write: bool = False
    ) -> OpenedFile:
        """The same, with what it was that the kernel has opened."""

        def read_once() -> OpenedFile | None:
            descriptor = self._open_path(path, os.O_RDONLY, write=to_write)
            set_noatime(descriptor)
            try:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode):
                    raise ToolError(
                        f"{path!r} is not a file that can be read: {_describe_kind(status.st_mode)}"
                    )
                pieces = bytearray()
                with _translate_errors(path):
                    os.lseek(descriptor, offset, os.SEEK_SET)
                    while piece := os.read(
                        descriptor, min(_BLOCK_BYTES, limit_bytes - len(pieces))
                    ):
                        pieces += piece
                place = place_of(descriptor, path)
            finally:
                os.close(descriptor)
            return OpenedFile(place, status.st_size, bytes(pieces)) if place is not None else None

        return _retry_until_stable(path, read_once)

    def write(
        self,
        path: str,
        content: bytes,
        approved: bool = False,
        judge: Callable[[str], None] = lambda real: None,
    ) -> str:
        """Put `content` there, whole or not at all, with its parent folders; a file's mode is kept.
        Returns the real path, in the folder that the kernel has opened.

        `approved`: a person agreed to write this protected file. `judge` is told the real path
        before anything is written; what it raises ends it.
        """
        with (
            self._open_parent(path, approved, make=True) as (folder, name),
            _translate_errors(path),
        ):
            real = f"{descriptor_path(folder)}/{name}"
            judge(real)
            try:
                before = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                before = None
            if before is not None:
                _check_replaceable(path, before)
            temporary = f".deskhand-{secrets.token_hex(8)}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(temporary, flags, 0o666, dir_fd=folder)
            try:
                with os.fdopen(descriptor, "wb", buffering=0) as file:
                    if before is not None:
                        os.fchmod(descriptor, stat.S_IMODE(before.st_mode) & 0o777)
                    view = memoryview(content)
                    while view:
                        view = view[file.write(view) :]
                    os.fsync(descriptor)
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.unlink(temporary, dir_fd=folder)
                raise
            os.fsync(folder)
        return real

    def prepare_write(self, path: str) -> str:
        """Check that a file may be written there, as `write` does, and make its folders. Returns
        its real path."""
        with (
            self._open_parent(path, approved=False, make=True) as (folder, name),
            _translate_errors(path),
        ):
            with suppress(FileNotFoundError):
                _check_replaceable(path, os.stat(name, dir_fd=folder, follow_symlinks=False))
            return f"{descriptor_path(folder)}/{name}"

    def make_folder(self, path: str) -> None:
        """Make the folder and its parents, where they are missing."""
        with self._open_parent(f"{path.rstrip('/')}/.", approved=False, make=True):
            pass

    def list(self, path: str = ".", limit: int = 1000) -> list[Entry]:
        """The first `limit` names in a folder, in order. Links are not followed."""
        return self.list_folder(path, limit).entries

    def list_folder(self, path: str = ".", limit: int = 1000) -> Listed:
        """The same, with what it was that the kernel has opened."""

        def list_once() -> Listed | None:
            descriptor = self.open_beneath(path, os.O_RDONLY | os.O_DIRECTORY)
            set_noatime(descriptor)
            try:
                with _translate_errors(path), os.scandir(descriptor) as found:
                    names = sorted(each.name for each in found)[:limit]
                entries = [
                    entry for name in names if (entry := _stat_entry(name, descriptor)) is not None
                ]
                place = place_of(descriptor, path)
            finally:
                os.close(descriptor)
            return Listed(place, entries) if place is not None else None

        return _retry_until_stable(path, list_once)

    def real_path(self, path: str) -> str:
        """The real path of what the kernel opens there; a link inside the workspace is followed."""
        descriptor = self.open_beneath(path, os.O_PATH)
        try:
            return descriptor_path(descriptor)
        finally:
            os.close(descriptor)

    def find_place(self, path: str) -> Place:
        """The place of what the kernel opens there."""

        def find_once() -> Place | None:
            descriptor = self.open_beneath(path, os.O_PATH)
            try:
                return place_of(descriptor, path)
            finally:
                os.close(descriptor)

        return _retry_until_stable(path, find_once)

    def relative_path(self, real: str) -> str:
        """The way to a real path from the folder in which it lies."""
        tops = [root.real for root in self._roots if PurePosixPath(real).is_relative_to(root.real)]
        return str(PurePosixPath(real).relative_to(max(tops, key=len))) if tops else real

    def stat(self, path: str) -> Entry:
        """What is there; a link inside the workspace is followed."""
        descriptor = self.open_beneath(path, os.O_PATH)
        try:
            return _make_entry(PurePosixPath(path).name, os.fstat(descriptor))
        finally:
            os.close(descriptor)

    def remove(self, path: str, approved: bool = False) -> None:
        """Delete a file, a link (not what it points to) or an empty folder."""
        with (
            self._open_parent(path, approved, make=False) as (folder, name),
            _translate_errors(path),
        ):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            (os.rmdir if stat.S_ISDIR(status.st_mode) else os.unlink)(name, dir_fd=folder)

    def _open_path(self, path: str, flags: int, write: bool) -> int:
        """Open `path` in the root where it lies; a link into another root is followed there."""
        holder = not flags & (os.O_DIRECTORY | os.O_PATH)
        root, inner = self._find_root(path, write, holder=holder)
        flags |= (
            os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK if not flags & os.O_PATH else os.O_CLOEXEC
        )
        with _translate_errors(path):
            try:
                return self._open(root.descriptor, inner, flags)
            except OSError as error:
                if error.errno not in (
                    errno.EXDEV,
                    errno.ELOOP,
                    errno.ENOTDIR,
                ):  # ENOTDIR: the walk met a link
                    raise
            # Where does it lead? The answer may be stale at once: it only chooses the root to open
            # beneath.
            real = os.path.realpath(f"{root.real}/{inner}")
            root, inner = self._find_root(real, write, shown=path, holder=holder)
            try:
                return self._open(root.descriptor, inner, flags)
            except OSError as error:
                if error.errno == errno.EXDEV:
                    raise _outside_error(path, real, write, holder=holder) from error
                raise

    def _find_root(
        self, path: str, write: bool, shown: str = "", *, holder: bool = False
    ) -> tuple[_Root, str]:
        """The root in which a path lies, and its way from there. `holder`: it names a file, so that
        what can be allowed is the folder that holds it."""
        _check_path(path)
        if not path.startswith("/"):
            path = f"{self._roots[0].real}/{path}"
        asked = PurePosixPath(path)
        inside = list[tuple[_Root, str]]()
        for root in self._roots:
            for top in (root.given, root.real):
                if asked.is_relative_to(top):
                    inside.append((root, str(asked.relative_to(top))))

        # The innermost root decides whether writing is allowed there.
        inside.sort(key=lambda found: (len(found[0].real), found[0].write), reverse=True)
        if not inside or (write and not inside[0][0].write):
            raise _outside_error(shown or path, os.path.normpath(path), write, holder=holder)
        return inside[0]

    @contextmanager
    def _open_parent(self, path: str, approved: bool, make: bool) -> Iterator[tuple[int, str]]:
        """The open folder that holds (or will hold) `path`, and its name there. Raises
        ProtectedPath."""
        _check_path(path)
        asked = PurePosixPath(path.removesuffix("/."))
        only_folder = path.endswith("/.")
        if asked.name in ("", ".."):
            raise ToolError(f"{path!r} is not the path of a file: add the file name")
        top = asked if only_folder else asked.parent
        folder = self._open_folder(str(top), approved, make)
        try:
            if not only_folder:
                self._check_writable(
                    path, PurePosixPath(descriptor_path(folder), asked.name), approved
                )
            yield folder, asked.name
        finally:
            os.close(folder)

    def _open_folder(self, path: str, approved: bool, make: bool) -> int:
        try:
            return self._open_path(path, _DIRECTORY, write=True)
        except ToolError as error:
            missing = isinstance(error.__cause__, FileNotFoundError) and make
            parent = PurePosixPath(path)
            if not missing or parent.name in ("", "..") or parent == parent.parent:
                raise
            above = self._open_folder(str(parent.parent), approved, make)
            try:
                self._check_writable(
                    path, PurePosixPath(descriptor_path(above), parent.name), approved
                )
                with _translate_errors(path):
                    with suppress(
                        FileExistsError
                    ):  # a dangling link, or another was quicker: the next line tells
                        os.mkdir(parent.name, 0o777, dir_fd=above)
                    return self._open(above, parent.name, _DIRECTORY)
            finally:
                os.close(above)

    def _check_writable(self, shown: str, real: PurePosixPath, approved: bool) -> None:
        """Raises ProtectedPath or OutsideWorkspace by where the path really lies: links and `..` do
        not help."""
        around = [root for root in self._roots if real.is_relative_to(root.real)]
        if not around or not max(around, key=lambda root: len(root.real)).write:
            raise _outside_error(shown, str(real), write=True, holder=True)
        reasons = (why_protected(real.relative_to(root.real).parts) for root in around)
        why = next(filter(None, reasons), "")
        if why and not approved:
            raise ProtectedPath(
                f"{shown!r} is protected: {why}. Ask the person to approve the change or to make "
                "it."
            )


def set_noatime(descriptor: int) -> None:
    """Have what is read by this descriptor not count as an access: what we read ourselves must not
    be taken for what a command reads meanwhile. Only the owner of a file may do this; of others
    every read counts."""
    with suppress(PermissionError):
        fcntl.fcntl(
            descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_NOATIME
        )


def place_of(descriptor: int, asked: str = "") -> Place | None:
    """Where what is open lies just now; None where it has no name any more, or is on its way to
    another."""
    status = os.fstat(descriptor)
    real = descriptor_path(descriptor)
    try:
        there = os.lstat(real)
    except OSError:
        return None
    if not os.path.samestat(there, status):
        return None
    return Place(real, asked, status.st_ino, status.st_ctime_ns)


def _retry_until_stable(path: str, once: Callable[[], T | None]) -> T:
    """What comes of it when nobody moves the file meanwhile. Raises ToolError where somebody always
    does."""
    for _ in range(_MAX_TRIES):
        found = once()
        if found is not None:
            return found
    raise ToolError(f"{path!r} keeps being moved or replaced; try again")


def descriptor_path(descriptor: int) -> str:
    """The real path of what is open."""
    return str(Path(f"/proc/self/fd/{descriptor}").readlink())


def _check_path(path: str) -> None:
    """Raises ToolError for what no file should be called: characters that a reader cannot see, or
    cannot be stored."""
    if not path:
        raise ToolError("the path is empty: name a file or folder")
    if len(path) > _MAX_PATH_CHARS or path.count("/") > _MAX_FOLDERS:
        raise ToolError(
            f"the path {path[:60]!r}... is too long: at most {_MAX_PATH_CHARS} characters and "
            f"{_MAX_FOLDERS} folders"
        )
    strange = next(
        (each for each in path if not each.isprintable()), ""
    )  # controls, NUL, direction marks, surrogates
    if strange:
        raise ToolError(
            f"the path {path!r} contains an invisible character, {strange!r}: use plain names"
        )


def _outside_error(path: str, target: str, write: bool, *, holder: bool) -> OutsideWorkspace:
    """What to do about a path outside. Nobody is told what is there: only its name says whether it
    is a folder."""
    holder = holder or bool(PurePosixPath(target).suffix)
    folder = str(PurePosixPath(target).parent) if holder else target
    command = f"deskhand allow path {shlex.quote(folder)}{' --write' if write else ''}"
    verb = "written" if write else "read"
    return OutsideWorkspace(
        f"{path!r} is outside the workspace, so it is not {verb}. The owner can allow it: {command}"
    )


def _check_replaceable(path: str, before: os.stat_result) -> None:
    if not stat.S_ISREG(before.st_mode):
        raise ToolError(
            f"{path!r} is not a file that can be written: {_describe_kind(before.st_mode)}"
        )
    if before.st_nlink > 1:
        raise ToolError(f"{path!r} is a hard link: remove it first, or write a new file")


def _describe_kind(mode: int) -> str:
    names = {
        stat.S_IFDIR: "a folder",
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
    }
    return names.get(stat.S_IFMT(mode), "a device")


def _stat_entry(name: str, folder: int) -> Entry | None:
    try:
        return _make_entry(name, os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return None  # it went away in between


def _make_entry(name: str, status: os.stat_result) -> Entry:
    kinds: dict[int, Literal["file", "folder", "link", "other"]] = {
        stat.S_IFREG: "file",
        stat.S_IFDIR: "folder",
        stat.S_IFLNK: "link",
    }
    kind = kinds.get(stat.S_IFMT(status.st_mode), "other")
    return Entry(name, kind, status.st_size, status.st_mtime, status.st_ctime_ns, status.st_ino)


@contextmanager
def _translate_errors(path: str) -> Iterator[None]:
    """Turn what the kernel says into a sentence for the model."""
    try:
        yield
    except FileNotFoundError as error:
        raise ToolError(f"there is no {path!r}") from error
    except OSError as error:
        raise ToolError(f"{path!r}: {error.strerror}") from error


_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long
