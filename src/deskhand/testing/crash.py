"""Crashes a Deskhand at a chosen boundary, to see that it comes back as it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..store.base import Store
from ..store.sqlite import SqliteStore


class Crash(BaseException):
    """The process died here. Not an Exception, so that nobody handles it."""


class Fuse:
    """Counts boundaries and blows at number `at` (0: never). `passed` are their names so far."""

    def __init__(self, at: int = 0) -> None:
        self.at = at
        self.passed: list[str] = []

    @property
    def has_blown(self) -> bool:
        return 0 < self.at <= len(self.passed)

    def tick(self, name: str) -> None:
        self.passed.append(name)
        if len(self.passed) == self.at:
            raise Crash(name)


WRITES = {"accept", "commit", "change", "begin_run", "drive_alone"}
WRITES |= {"outbox_sending", "outbox_sent", "outbox_retry", "outbox_failed"}


class FusedStore:
    """A store with a boundary before and after each write."""

    def __init__(self, store: Store, fuse: Fuse) -> None:
        self._store = store
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name == "end_run":
            return _nothing  # a crash never ends cleanly
        if name not in WRITES:
            return method

        async def fused(*args: Any, **more: Any) -> Any:
            self._fuse.tick(f"before {name}")
            result = await method(*args, **more)
            self._fuse.tick(f"after {name}")
            return result

        return fused


async def _nothing() -> None:
    """What a dead process does."""


OpenDatabase = Callable[[Path, Mapping[str, str]], Store]
"""Opens the store of a home, whose SQLite file would be at this path, with the statements of all
rooms as SQLite has them."""


def fused(fuse: Fuse, open_database: OpenDatabase = SqliteStore) -> Any:
    """For `Parts.store`: opens a store behind this fuse."""

    def open_store(path: Path, statements: Mapping[str, str]) -> Any:
        return FusedStore(open_database(path, statements), fuse)

    return open_store
