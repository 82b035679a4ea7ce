"""What is noted of the starts of `deskhand serve`: when the last good one was, and why the last bad
one failed."""

from __future__ import annotations

import json
import os
import stat
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime

import msgspec

from ..config.config import Home
from ..types.errors import DeskhandError, StoreCorrupt
from ..types.private_files import write_private_file

READY_VARIABLE = "DESKHAND_READY"
"""Names the open end of a pipe by which a worker says to its parent that it is ready."""


class StartupError(msgspec.Struct, frozen=True):
    """Why the worker ended. `time` is ISO 8601, UTC."""

    type: str
    message: str
    traceback: str
    time: str


class WorkerReady:
    """Says to the parent that this worker is ready: it is about to drive, or waits for another that
    does. Once; a parent that does not ask is told nothing."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._fd = -1
        with suppress(KeyError, ValueError, OSError):
            fd = int(environment[READY_VARIABLE])
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                os.set_inheritable(fd, False)
                self._fd = fd

    def __call__(self) -> None:
        fd = self._fd
        self._fd = -1
        if fd >= 0:
            with suppress(OSError):
                os.write(fd, b"1")
            os.close(fd)


def record_start(home: Home, now: float) -> None:
    """It drives now. Raises OSError."""
    write_private_file(home.last_start, f"{now}\n")


def read_last_start(home: Home) -> float | None:
    """When it last began to drive, in seconds since the epoch; None: never."""
    try:
        return float(home.last_start.read_text())
    except (OSError, ValueError):
        return None


def write_startup_error(
    home: Home, error: BaseException, now: float, redact: Callable[[str], str]
) -> StartupError:
    """Write down why the worker ended, as `redact` leaves it. Raises OSError."""
    innermost = find_cause(error)
    trace = "".join(traceback.format_exception(error))
    type_ = type(innermost).__name__
    time = datetime.fromtimestamp(now, UTC).isoformat()
    found = StartupError(type_, redact(str(innermost)), redact(trace), time)
    home.make_folder(home.process)
    write_private_file(home.startup_error, json.dumps(msgspec.to_builtins(found), indent=2) + "\n")
    return found


def read_startup_error(home: Home) -> StartupError | None:
    """Why it ended last, if it has not begun well since."""
    try:
        found = msgspec.json.decode(home.startup_error.read_bytes(), type=StartupError)
        at = datetime.fromisoformat(found.time).timestamp()
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
        return None
    began = read_last_start(home)
    return None if began is not None and began > at else found


def find_cause(error: BaseException) -> BaseException:
    """The exception that task groups wrapped. Of several that which people can be told: an order to
    end, a damaged database, or the first where all are such as people are told. Else the group:
    something broke that should not."""
    parts = _flatten_group(error)
    for kind in (KeyboardInterrupt, SystemExit, StoreCorrupt):
        for part in parts:
            if isinstance(part, kind):
                return part
    if len(parts) == 1:
        return parts[0]
    if not all(isinstance(part, DeskhandError | OSError) for part in parts):
        return error
    return next((part for part in parts if isinstance(part, DeskhandError)), parts[0])


def _flatten_group(error: BaseException) -> list[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [part for each in error.exceptions for part in _flatten_group(each)]
