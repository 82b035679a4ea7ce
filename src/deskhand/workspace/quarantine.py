"""Files of a workspace that say nothing in a prompt: what untrusted words went into until a person
has seen it, what is for others to read, what somebody of lower rank had written, and what was
changed since a person approved it."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from ..policy.gate import list_other_authors, may_see
from ..policy.visible import escape_invisible
from ..store.base import Store
from ..tools import tree
from ..tools.approved import UNBOUND, Approvals, Bound
from ..tools.label_marks import OWNERS, is_private
from ..tools.notes import PendingLabel
from ..tools.queries import FileMarks, read_file_marks
from ..types.identity import Principal, responsible_person
from ..types.labels import Label

log = logging.getLogger(__name__)

_decode_label = msgspec.json.Decoder(Label).decode
_OWNERS = frozenset(OWNERS)
OWNER_PRINCIPAL = Principal("owner", ("owner",))


class Held(msgspec.Struct, frozen=True):
    """What is held back from somebody: files by their real paths, what is being written just then,
    by these, and where they are not for owners alone, what the `workspace` holds about the owner.
    `bound` is what a person has approved: it is not held back while it is as it was, and nobody
    hears it when not."""

    paths: frozenset[str] = frozenset()
    pending_labels: tuple[PendingLabel, ...] = ()
    workspace: str = ""
    bound: Bound = UNBOUND

    def allows(self, path: str, digest: bytes) -> bool:
        """Whether bytes of this SHA-256, read at this path, may be heard as far as approvals go."""
        return self.bound is UNBOUND or self.bound.allows(os.path.realpath(path), digest)


NOTHING_HELD = Held()


class Quarantine:
    """Which files those are, for whom. `refresh` brings it up to date; `version` changes with it.
    One that `tells` says in the log what was changed since it was approved."""

    def __init__(self, store: Store, tells: bool = False) -> None:
        self._store = store
        self._logs_changes = tells
        self._marks = FileMarks({}, {})
        self._labels: dict[str, Label] = {}
        self._approved: dict[str, bytes] = {}
        self._approvals = Approvals()
        self._bound = UNBOUND
        self._held: dict[tuple[tuple[str, ...], str], frozenset[str]] = {}
        self.version = 0

    def refresh(self) -> None:
        """Ask the database, at once: nothing that was read before is unmarked then. Raises
        StoreError."""
        marks = read_file_marks(self._store)
        if marks != self._marks:  # mostly they are the same: they are read before every call
            self._apply_marks(marks)
        if self._approved:
            self._check_approvals()

    def _apply_marks(self, marks: FileMarks) -> None:
        self._marks = marks
        self._labels = {path: _decode_label(label) for path, label in marks.labels.items()}
        self._approved = marks.approved
        self._held = {}
        if not self._approved:
            self._bound = UNBOUND
        self.version += 1

    def _check_approvals(self) -> None:
        """See whether what is approved is as it was, and say once when it is not."""
        bound = self._approvals.look(self._approved)
        if bound == self._bound:
            return
        for path in sorted(self._approved):
            if self._logs_changes and path in bound.changed and path not in self._bound.changed:
                log.warning(
                    "%s was changed since it was approved and is held back: see `deskhand held`",
                    escape_invisible(path),
                )
        self._bound = bound
        self.version = self.version + 1

    def find_held(
        self,
        audience: Collection[str] = OWNERS,
        principal: Principal = OWNER_PRINCIPAL,
        words: Sequence[PendingLabel] = (),
        workspace: str = "",
    ) -> Held:
        """What is held back from who speaks where these read: an owner is told nothing that others
        had written, and anybody else what they had written themselves. `words` are being written in
        the `workspace`, of which what is known of the owner is for owners."""
        if workspace and not _OWNERS.isdisjoint(audience):
            workspace = ""
        if not self._labels and not self._approved and not words and not workspace:
            return NOTHING_HELD
        if self._approved:
            self._check_approvals()
        key = (
            tuple(audience),
            responsible_person(principal) if "owner" not in principal.roles else "",
        )
        if key not in self._held:
            found = (
                path for path, label in self._labels.items() if _is_held(label, audience, principal)
            )
            self._held[key] = frozenset(found)
        paths = self._held[key]
        meant = tuple(word for word in words if _is_held(word.label, audience, principal))
        held = Held(paths, meant, workspace, self._bound)
        return held if paths or meant or workspace or self._approved else NOTHING_HELD


def _is_held(label: Label, audience: Collection[str], principal: Principal) -> bool:
    return (
        label.integrity == "untrusted"
        or not may_see(label, audience)
        or bool(list_other_authors(label, principal))
    )


def is_held_back(held: Held, path: str, inode: int = 0) -> bool:
    """Whether this file, or one in this folder, is held back. `inode` is that of the file that was
    read there: the name may have led elsewhere then."""
    if held is NOTHING_HELD:
        return False
    if inode and _is_from_held_place(held, inode):
        return True
    place = Path(path)
    real = str(place.resolve())
    own = f"{place.parent.resolve()}/{place.name}"
    if held.bound is not UNBOUND:
        if held.bound.differs(real) or held.bound.differs(own):
            return True
        if held.bound.covers(real) and not (held.workspace and is_private(held.workspace, real)):
            return False
    if not held.paths.isdisjoint((real, own)) or any(
        each.startswith(f"{real}/") for each in held.paths
    ):
        return True
    inside = list(_walk_paths(own))
    if any(_leads_to_held(held, each) for each in inside):
        return True
    return any(word.of(each) for word in held.pending_labels for each in inside)


def _is_from_held_place(held: Held, inode: int) -> bool:
    """Whether it lay where something is held back, before those began who may move files just
    then."""
    for word in held.pending_labels:
        if word.stood is not None:
            top = f"{word.root}/"
            if any(
                word.stood(each[len(top) :]) == inode for each in held.paths if each.startswith(top)
            ):
                return True
    return False


def _leads_to_held(held: Held, path: str) -> bool:
    """Whether this is, or leads to, what is held back: a link of ours says nothing else than what
    it leads to."""
    real = os.path.realpath(path)
    return real in held.paths or (bool(held.workspace) and is_private(held.workspace, real))


def _walk_paths(path: str) -> Iterator[str]:
    yield path
    yield from (each for each, _ in tree.beneath(path))
