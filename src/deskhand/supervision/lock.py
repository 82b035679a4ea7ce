"""Locks that one process holds for as long as it lives, and who that is."""

from __future__ import annotations

import fcntl
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec

TRY_LOCK_S = 1.0
HANDOVER_S = 15.0
"""So long a service may take from one worker to the next."""


class Holder(msgspec.Struct, frozen=True):
    """The process that holds a lock, and since when (seconds since the epoch; 0 where it did not
    say)."""

    pid: int = 0
    since: float = 0.0


def acquire_lock(path: Path, holder: Holder) -> int | None:
    """Take the lock and say whose it is: a file descriptor that holds it until it is closed; None:
    it is taken. Raises OSError."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    except BaseException:
        os.close(fd)
        raise
    try:  # who it is only serves sentences: a full disk is no reason not to work
        os.ftruncate(fd, 0)
        os.pwrite(fd, msgspec.json.encode(holder), 0)
    except OSError:
        pass
    return fd


def read_holder(path: Path) -> Holder | None:
    """Who holds the lock now; None where nobody does."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        try:
            return msgspec.json.decode(os.pread(fd, 200, 0), type=Holder)
        except (msgspec.MsgspecError, RecursionError):
            return Holder()
    finally:
        os.close(fd)
    return None


@asynccontextmanager
async def hold_lock(
    path: Path,
    holder: Holder,
    first: Callable[[], bool] = lambda: False,
    patience_s: float = HANDOVER_S,
    waits: Callable[[], None] = lambda: None,
) -> AsyncIterator[None]:
    """Hold the lock; waits until it is free, looking every TRY_LOCK_S, and calls `waits` each time.
    While somebody else is to have it `first`, it is left to them, until it was free for
    `patience_s` all the same. Raises OSError."""
    free_s = 0.0
    fd = None
    while fd is None:  # a lock of the kernel tells nobody
        if free_s < patience_s and first():
            free_s = free_s + TRY_LOCK_S if read_holder(path) is None else 0.0
        else:
            fd = acquire_lock(path, holder)
        if fd is None:
            waits()
            await anyio.sleep(TRY_LOCK_S)
    try:
        yield
    finally:
        os.close(fd)
