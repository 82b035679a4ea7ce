"""Names beneath a folder that is held open, with no link followed anywhere: what undo looks at, and
puts back."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import IO

from .paths import openat2_beneath, walk_beneath

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
_NOATIME = os.O_NOATIME
"""Our own looks must not be taken for those of a command. Only the owner of a file may do this."""
BLOCK_BYTES = 1 << 20
_OLD_KERNEL_ERRORS = (errno.ENOSYS, errno.EPERM)

OpenDigest = Callable[[str], IO[bytes]]
"""Opens the kept bytes of a digest. Raises OSError where they are gone."""


def open_folder(root: int, path: str, flags: int = FOLDER_FLAGS) -> int:
    """A descriptor for the folder at `path` ('' is the root itself). Raises OSError."""
    try:
        return openat2_beneath(root, path or ".", flags | _NOATIME, links=False)
    except OSError as error:
        if error.errno not in _OLD_KERNEL_ERRORS:
            raise
        try:
            return openat2_beneath(root, path or ".", flags, links=False)
        except OSError as old:
            if old.errno not in _OLD_KERNEL_ERRORS:
                raise
            return walk_beneath(root, path or ".", flags)


@contextmanager
def scan_folder(path: str) -> Iterator[Iterator[os.DirEntry[str]]]:
    """What lies in a folder; looking leaves no trace. Entries are good as long as it is open.
    Raises OSError."""
    descriptor = _open_folder_noatime(path)
    try:
        with os.scandir(descriptor) as entries:
            yield entries
    finally:
        os.close(descriptor)


def walk_tree(top: str) -> Iterator[tuple[str, os.stat_result]]:
    """All that lies beneath a folder, and the folder itself, each by its path and as itself. No
    link is followed, and looking leaves no trace. What cannot be looked at is passed over."""
    todo = [top]
    for at in todo:
        with suppress(OSError):
            descriptor = _open_folder_noatime(at)
            try:
                yield at, os.fstat(descriptor)
                with os.scandir(descriptor) as entries:
                    names = [entry.name for entry in entries]
                for name in names:
                    with suppress(OSError):
                        status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                        if stat.S_ISDIR(status.st_mode):
                            todo.append(f"{at}/{name}")
                        else:
                            yield f"{at}/{name}", status
            finally:
                os.close(descriptor)


def _open_folder_noatime(path: str) -> int:
    try:
        return os.open(path, FOLDER_FLAGS | _NOATIME)
    except PermissionError:
        return os.open(path, FOLDER_FLAGS)


@contextmanager
def open_parent(root: int, path: str) -> Iterator[tuple[int, str]]:
    """The open folder in which `path` stands, and its name there. Raises OSError."""
    above, _, name = path.rpartition("/")
    descriptor = open_folder(root, above)
    try:
        yield descriptor, name
    finally:
        os.close(descriptor)


def stat_path(root: int, path: str) -> os.stat_result | None:
    """What stands at `path`, a link as itself; None for nothing."""
    try:
        with open_parent(root, path) as (above, name):
            return os.stat(name, dir_fd=above, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EXDEV):  # a link stands where a folder was
            return None
        raise


def open_file(above: int, name: str) -> int:
    """A descriptor to read the regular file `name` in the folder `above`. Raises OSError; never
    waits for a FIFO."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags | _NOATIME, dir_fd=above)
    except PermissionError:
        descriptor = os.open(name, flags, dir_fd=above)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return descriptor


def write_file(above: int, name: str, mode: int, source: IO[bytes]) -> None:
    """Put a file there in one step, whole or not at all. What a kill leaves, the next try removes.
    Raises OSError."""
    temporary = f".deskhand-{sha256(os.fsencode(name)).hexdigest()[:16]}"
    with suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=above)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600, dir_fd=above)
    try:
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            while block := source.read(BLOCK_BYTES):
                view = memoryview(block)
                while view:
                    view = view[file.write(view) :]
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        os.rename(temporary, name, src_dir_fd=above, dst_dir_fd=above)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=above)
        raise


def apply_states(root: int, wanted: Mapping[str, str | None], source: OpenDigest) -> dict[str, str]:
    """Make each path what its state says (`shadow.state_of`; None: nothing is there): what must go
    first, then what must come. Returns what could not be done, by path, and why."""
    failed: dict[str, str] = {}

    def attempt(path: str, one: Callable[[], None]) -> None:
        try:
            one()
        except OSError as error:
            failed[path] = error.strerror or str(error)

    deepest = sorted(wanted, key=lambda path: (path.count("/"), path), reverse=True)
    for path in deepest:
        attempt(path, lambda path=path: _remove_path(root, path, wanted[path]))  # type: ignore[misc]
    for path in reversed(deepest):
        state = wanted[path]
        if state is not None and path not in failed:
            attempt(path, lambda path=path, state=state: _create_path(root, path, state, source))  # type: ignore[misc]
    for path in deepest:
        state = wanted[path]
        if state is not None and state[0] == "d" and path not in failed:
            attempt(path, lambda path=path, state=state: _set_mode(root, path, int(state[1:5], 8)))  # type: ignore[misc]
    return failed


def _remove_path(root: int, path: str, state: str | None) -> None:
    """Remove what stands at `path`, unless it is a folder and is to be one. A folder must be
    empty."""
    there = stat_path(root, path)
    if there is None:
        return
    is_folder = stat.S_ISDIR(there.st_mode)
    if is_folder and state is not None and state[0] == "d":
        return
    if state is not None and state[0] == "f" and stat.S_ISREG(there.st_mode):
        return  # it is replaced in one step
    with open_parent(root, path) as (above, name), _make_writable(above):
        (os.rmdir if is_folder else os.unlink)(name, dir_fd=above)


def _create_path(root: int, path: str, state: str, source: OpenDigest) -> None:
    with open_parent(root, path) as (above, name), _make_writable(above):
        if state[0] == "d":
            with suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=above)
        elif state[0] == "l":
            os.symlink(bytes.fromhex(state[2:]), name, dir_fd=above)
        elif state[0] == "f":
            with source(state[6:]) as file:
                write_file(above, name, int(state[1:5], 8), file)
        else:
            raise OSError(errno.ENODATA, "it was not saved")


def _set_mode(root: int, path: str, mode: int) -> None:
    with open_parent(root, path) as (above, name):
        descriptor = os.open(
            name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above
        )
        try:
            os.chmod(f"/proc/self/fd/{descriptor}", mode)  # noqa: PTH101 -- by descriptor
        finally:
            os.close(descriptor)


@contextmanager
def _make_writable(above: int) -> Iterator[None]:
    """A folder of ours that may not be written is, for as long as this takes."""
    mode = stat.S_IMODE(os.fstat(above).st_mode)
    if mode & 0o300 == 0o300:
        yield
        return
    os.fchmod(above, mode | 0o700)
    try:
        yield
    finally:
        os.fchmod(above, mode)
