"""Replaces a file that somebody may be saving at the same moment, without losing what they save."""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import PurePosixPath

from ..tools.paths import Workspace, descriptor_path
from ..types.errors import ToolError

# renameat2(2)
_RENAME_NOREPLACE = 1
_RENAME_EXCHANGE = 2
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.EPERM)


def replace_if_unchanged(
    files: Workspace,
    path: str,
    before: bytes | None,
    content: bytes,
    judge: Callable[[str], None] = lambda real: None,
) -> bool:
    """Write `content` if the file still holds `before` (None: if there is no file).

    Returns False when it holds anything else; it is then left as it is. The files are exchanged
    atomically, and what somebody saved in between is put back. On a file system that cannot do that
    the file is only compared before it is written. `judge` gets the real path before anything is
    written. Raises ToolError.
    """
    parent = str(PurePosixPath(path).parent)
    name = PurePosixPath(path).name
    if before is None:
        files.make_folder(parent)
    folder = files.open_beneath(parent, os.O_RDONLY | os.O_DIRECTORY)
    new = f".deskhand-{secrets.token_hex(8)}"
    try:
        judge(f"{descriptor_path(folder)}/{name}")
        _write(folder, new, content, _read_mode(folder, name, path, before))
        if before is None:
            return _move_into_place(folder, new, name)
        return _exchange(folder, new, name, before=before, content=content)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise ToolError(f"{path!r}: {error.strerror}") from error
    finally:
        with suppress(FileNotFoundError):
            os.unlink(new, dir_fd=folder)
        os.close(folder)
    if _read_or_none(files, path) != before:
        return False
    files.write(path, content, judge=judge)
    return True


def _read_mode(folder: int, name: str, path: str, before: bytes | None) -> int:
    """The mode of the file that is there. Raises ToolError when it is not a plain file, or has
    several hard links."""
    if before is None:
        return 0o666
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise ToolError(f"{path!r} is a link: put a plain file in its place")
    return stat.S_IMODE(status.st_mode) & 0o777


def _write(folder: int, name: str, content: bytes, mode: int) -> None:
    descriptor = os.open(
        name,
        os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
        mode,
        dir_fd=folder,
    )
    with os.fdopen(descriptor, "wb") as file:
        if mode != 0o666:
            os.fchmod(descriptor, mode)
        file.write(content)
        file.flush()
        os.fsync(descriptor)


def _move_into_place(folder: int, new: str, name: str) -> bool:
    _rename(folder, new, name, _RENAME_NOREPLACE)
    os.fsync(folder)
    return True


def _exchange(folder: int, new: str, name: str, *, before: bytes, content: bytes) -> bool:
    _rename(folder, new, name, _RENAME_EXCHANGE)
    if _read(folder, new) == before:
        os.fsync(folder)
        return True
    _rename(folder, new, name, _RENAME_EXCHANGE)  # somebody saved it meanwhile: theirs goes back
    if _read(folder, new) != content:  # and once more: the later one counts
        _rename(folder, new, name, _RENAME_EXCHANGE)
    return False


def _read(folder: int, name: str) -> bytes:
    with os.fdopen(
        os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder), "rb"
    ) as file:
        return file.read()


def _read_or_none(files: Workspace, path: str) -> bytes | None:
    try:
        return files.read(path)
    except ToolError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise


def _rename(folder: int, old: str, new: str, flags: int) -> None:
    names = (os.fsencode(old), os.fsencode(new))
    try:
        done = _libc.renameat2(
            ctypes.c_int(folder), names[0], ctypes.c_int(folder), names[1], ctypes.c_uint(flags)
        )
    except AttributeError as error:  # a C library without it
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS)) from error
    if done != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


_libc = ctypes.CDLL(None, use_errno=True)
