"""What SQLite and the disk may answer, as our errors: what is wrong, and the next step."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import msgspec

from ..types.errors import StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreReadOnly

_NO_SPACE = "no space left for {!r}: free some space, and work goes on by itself"


class FsyncFailed(BaseException):
    """The disk did not confirm a write. What the file holds now is unknown: the process must stop,
    not retry.

    See "Can Applications Recover from fsync Failures?", USENIX ATC 2020. Not an Exception, so that
    nothing survives it.
    """


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Turn what SQLite raises into our tree, with the path and the next step."""
    try:
        yield
    except apsw.FullError as error:
        raise StoreFull(_NO_SPACE.format(str(path))) from error
    except apsw.ReadOnlyError as error:
        raise StoreReadOnly(
            f"cannot write {str(path)!r}: check its permissions and how the disk is mounted"
        ) from error
    except apsw.CantOpenError as error:
        raise StoreReadOnly(
            f"cannot open {str(path)!r}: check that its folder exists and is writable"
        ) from error
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StoreBusy(f"another process holds {str(path)!r}") from error
    except (apsw.CorruptError, apsw.NotADBError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StoreCorrupt(
            f"{str(path)!r} is damaged ({error}): restore a backup, or move the file away "
            "to start afresh"
        ) from error
    except apsw.IOError as error:
        result = error.extendedresult  # type: ignore[attr-defined]  # apsw sets it, its stubs do not know it
        if result in (apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC):
            raise FsyncFailed(f"the disk did not confirm a write to {str(path)!r}") from error
        if _is_full(path):  # the shared memory beside the file could not grow
            raise StoreFull(_NO_SPACE.format(str(path))) from error
        raise StoreFull(
            f"the disk failed under {str(path)!r} ({error}): check it with `dmesg`"
        ) from error
    except apsw.Error as error:
        raise StoreError(f"{str(path)!r}: {error}") from error


def _is_full(path: Path) -> bool:
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < 65_536
