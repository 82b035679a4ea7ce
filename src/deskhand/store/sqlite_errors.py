"""What SQLite and the disk may answer, as our errors: what is wrong, and the next step."""

from __future__ import annotations

import os
from pathlib import Path

import apsw
import msgspec

from ..types.errors import StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreReadOnly

_TRANSLATED = (apsw.Error, msgspec.DecodeError, UnicodeDecodeError)
_NO_SPACE = "no space left for {!r}: free some space, and work goes on by itself"


class FsyncFailed(BaseException):
    """The disk did not confirm a write. What the file holds now is unknown: the process must stop,
    not retry.

    See "Can Applications Recover from fsync Failures?", USENIX ATC 2020. Not an Exception, so that
    nothing survives it.
    """


class SqliteErrors:
    """Within it, what SQLite raises for the file `path` becomes one of our errors, with the path
    and the next step. May be entered again and again, at once too: one for a file will do."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, _TRANSLATED):
            # In no variable: its traceback would hold it, and so the connection, until the garbage
            # is collected.
            raise _translate(error, self._path) from error


def _translate(error: BaseException, path: Path) -> BaseException:
    match error:
        case apsw.FullError():
            return StoreFull(_NO_SPACE.format(str(path)))
        case apsw.ReadOnlyError():
            return StoreReadOnly(
                f"cannot write {str(path)!r}: check its permissions and how the disk is mounted"
            )
        case apsw.CantOpenError():
            return StoreReadOnly(
                f"cannot open {str(path)!r}: check that its folder exists and is writable"
            )
        case apsw.BusyError() | apsw.LockedError():
            return StoreBusy(f"another process holds {str(path)!r}")
        case (
            apsw.CorruptError() | apsw.NotADBError() | msgspec.DecodeError() | UnicodeDecodeError()
        ):
            return StoreCorrupt(
                f"{str(path)!r} is damaged ({error}): restore a backup, or move the file away "
                "to start afresh"
            )
        case apsw.IOError():
            return _translate_disk_error(error, path)
        case _:
            return StoreError(f"{str(path)!r}: {error}")


def _translate_disk_error(error: apsw.IOError, path: Path) -> BaseException:
    result = error.extendedresult  # type: ignore[attr-defined]  # apsw sets it, its stubs do not know it
    if result in (apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC):
        return FsyncFailed(f"the disk did not confirm a write to {str(path)!r}")
    if _is_full(path):  # the shared memory beside the file could not grow
        return StoreFull(_NO_SPACE.format(str(path)))
    return StoreFull(f"the disk failed under {str(path)!r} ({error}): check it with `dmesg`")


def _is_full(path: Path) -> bool:
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < 65_536
