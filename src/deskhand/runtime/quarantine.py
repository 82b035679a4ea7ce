"""Files that untrusted words went into do not speak to the next conversation, until a person has seen them."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ..store.base import Store
from ..types.labels import Label

_decode = msgspec.json.Decoder(Label).decode


class Quarantine:
    """Which files those are. `look` brings it up to date; `version` changes with it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: list[tuple[str, bytes]] = []
        self._paths: frozenset[str] = frozenset()
        self.version = 0

    async def look(self) -> None:
        """Ask the database. Raises StoreError."""
        self._take(await self._store.rows("file_labels", ()))

    def refresh(self) -> None:
        """The same, at once."""
        self._take(self._store.look("file_labels"))

    def _take(self, rows: list[tuple[str, bytes]]) -> None:
        if rows == self._rows:  # they are asked for before every call
            return
        self._rows = rows
        paths = frozenset(path for path, label in rows if _decode(label).integrity == "untrusted")
        if paths != self._paths:
            self._paths, self.version = paths, self.version + 1

    def holds(self, path: str) -> bool:
        """Whether this file, or one in this folder, is held back."""
        if not self._paths:
            return False
        real = str(Path(path).resolve())
        return real in self._paths or any(each.startswith(f"{real}/") for each in self._paths)
