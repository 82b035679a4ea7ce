"""Files of a workspace that say nothing in a prompt: what untrusted words went into until a person has seen it, what is
for others to read, and what somebody of lower rank had written."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from ..policy.gate import may_see
from ..store.base import Store
from ..tools import tree
from ..tools.marks import OWNERS, is_private, others
from ..tools.notes import Word
from ..types.identity import Principal, acts_for
from ..types.labels import Label

_decode = msgspec.json.Decoder(Label).decode
_ABOUT = Label("tool_local", OWNERS)
HOUSE = Principal("owner", ("owner",))


class Held(msgspec.Struct, frozen=True):
    """What is held back from somebody: files by their real paths, what is being written just then, by these, and where
    they are not for owners alone, what the `workspace` holds about the owner."""

    paths: frozenset[str] = frozenset()
    words: tuple[Word, ...] = ()
    workspace: str = ""


NOTHING = Held()


class Quarantine:
    """Which files those are, for whom. `refresh` brings it up to date; `version` changes with it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: list[tuple[str, bytes]] = []
        self._labels: dict[str, Label] = {}
        self._held: dict[tuple[tuple[str, ...], str], frozenset[str]] = {}
        self.version = 0

    def refresh(self) -> None:
        """Ask the database, at once: nothing that was read before is unmarked then. Raises StoreError."""
        rows = self._store.look("file_labels")
        if rows == self._rows:  # they are asked for before every call
            return
        labels = {path: _decode(label) for path, label in rows}
        self._rows = rows
        if labels != self._labels:
            self._labels, self._held, self.version = labels, {}, self.version + 1

    def held(
        self,
        audience: Collection[str] = OWNERS,
        principal: Principal = HOUSE,
        words: Sequence[Word] = (),
        workspace: str = "",
    ) -> Held:
        """What is held back from who speaks where these read: an owner is told nothing that others had written, and
        anybody else what they had written themselves. `words` are being written in the `workspace`, of which
        what is known of the owner is for owners."""
        workspace = "" if may_see(_ABOUT, audience) else workspace
        if not self._labels and not words and not workspace:
            return NOTHING
        key = tuple(audience), acts_for(principal) if "owner" not in principal.roles else ""
        if key not in self._held:
            found = (path for path, label in self._labels.items() if _is_held(label, audience, principal))
            self._held[key] = frozenset(found)
        paths, meant = self._held[key], tuple(word for word in words if _is_held(word.label, audience, principal))
        return Held(paths, meant, workspace) if paths or meant or workspace else NOTHING


def _is_held(label: Label, audience: Collection[str], principal: Principal) -> bool:
    return label.integrity == "untrusted" or not may_see(label, audience) or bool(others(label, principal))


def holds(held: Held, path: str) -> bool:
    """Whether this file, or one in this folder, is held back."""
    if held is NOTHING:
        return False
    place = Path(path)
    real, own = str(place.resolve()), f"{place.parent.resolve()}/{place.name}"
    if not held.paths.isdisjoint((real, own)) or any(each.startswith(f"{real}/") for each in held.paths):
        return True
    inside = list(_beneath(own))
    if any(_leads(held, each) for each in inside):
        return True
    return any(word.of(each) for word in held.words for each in inside)


def _leads(held: Held, path: str) -> bool:
    """Whether this is, or leads to, what is held back: a link of ours says nothing else than what it leads to."""
    real = os.path.realpath(path)
    return real in held.paths or (bool(held.workspace) and is_private(held.workspace, real))


def _beneath(path: str) -> Iterator[str]:
    yield path
    yield from (each for each, _ in tree.beneath(path))
