"""Files of a workspace that say nothing in a prompt: what untrusted words went into until a person has seen it, what is
for others to read, and what somebody of lower rank had written."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import msgspec

from ..policy.gate import may_see
from ..store.base import Store
from ..tools.marks import OWNERS, others
from ..types.identity import Principal, acts_for
from ..types.labels import Label

_decode = msgspec.json.Decoder(Label).decode
HOUSE = Principal("owner", ("owner",))
NOTHING: frozenset[str] = frozenset()
Held = frozenset[str]
"""The real paths of the files that are held back from somebody."""


class Quarantine:
    """Which files those are, for whom. `look` brings it up to date; `version` changes with it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: list[tuple[str, bytes]] = []
        self._labels: dict[str, Label] = {}
        self._held: dict[tuple[tuple[str, ...], str], Held] = {}
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
        labels = {path: _decode(label) for path, label in rows}
        self._rows = rows
        if labels != self._labels:
            self._labels, self._held, self.version = labels, {}, self.version + 1

    def held(self, audience: Collection[str] = OWNERS, principal: Principal = HOUSE) -> Held:
        """What is held back from who speaks where these read: an owner is told nothing that others had written, and
        anybody else what they had written themselves."""
        if not self._labels:
            return NOTHING
        key = tuple(audience), acts_for(principal) if "owner" not in principal.roles else ""
        if key not in self._held:
            self._held[key] = frozenset(
                path
                for path, label in self._labels.items()
                if label.integrity == "untrusted" or not may_see(label, audience) or others(label, principal)
            )
        return self._held[key]


def holds(held: Held, path: str) -> bool:
    """Whether this file, or one in this folder, is held back."""
    if not held:
        return False
    place = Path(path)
    real, own = str(place.resolve()), f"{place.parent.resolve()}/{place.name}"
    return not held.isdisjoint((real, own)) or any(each.startswith(f"{real}/") for each in held)
