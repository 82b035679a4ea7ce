"""Decides which files of a workspace are held back from the model: those with untrusted text that
nobody has reviewed, those for other readers, those that somebody with fewer rights wrote, and those
that were changed since they were approved."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from ..policy.information_flow import list_other_authors, may_see
from ..policy.visible import escape_invisible
from ..store.base import Store
from ..tools import tree
from ..tools.approved import NO_APPROVALS, Approvals, Bound
from ..tools.label_marks import OWNER_READERS, is_private
from ..tools.notes import PendingLabel
from ..tools.queries import FileMarks, read_file_marks
from ..types.identity import Principal, responsible_person
from ..types.labels import Label

log = logging.getLogger(__name__)

_decode_label = msgspec.json.Decoder(Label).decode
_OWNERS = frozenset(OWNER_READERS)
OWNER_PRINCIPAL = Principal("owner", ("owner",))


class HeldBack(msgspec.Struct, frozen=True):
    """What is held back from somebody: files by real path, those that are being written just now
    (`pending_labels`), and for everybody but owners what the `workspace` has about the owner.
    `bound` is what a person approved: it is shown while it is unchanged, and to nobody after
    that."""

    paths: frozenset[str] = frozenset()
    pending_labels: tuple[PendingLabel, ...] = ()
    workspace: str = ""
    bound: Bound = NO_APPROVALS

    def allows(self, path: str, digest: bytes) -> bool:
        """Whether approvals allow bytes with this SHA-256, read at this path, to be shown."""
        return self.bound is NO_APPROVALS or self.bound.allows(os.path.realpath(path), digest)


NOTHING_HELD = HeldBack()


class Quarantine:
    """Finds the files that are held back. `refresh` reads them from the store, and `version` grows
    when they change. With `tells` a change after an approval is logged."""

    def __init__(self, store: Store, tells: bool = False) -> None:
        self._store = store
        self._logs_changes = tells
        self._marks = FileMarks({}, {})
        self._labels: dict[str, Label] = {}
        self._approved: dict[str, bytes] = {}
        self._approvals = Approvals()
        self._bound = NO_APPROVALS
        self._held: dict[tuple[tuple[str, ...], str], frozenset[str]] = {}
        self.version = 0

    def refresh(self) -> None:
        """Read labels and approvals from the store. Everything read before this has its label then.
        Raises StoreError."""
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
            self._bound = NO_APPROVALS
        self.version += 1

    def _check_approvals(self) -> None:
        """Compare approved files with what was approved, and log once when one has changed."""
        bound = self._approvals.check_files(self._approved)
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
        audience: Collection[str] = OWNER_READERS,
        principal: Principal = OWNER_PRINCIPAL,
        words: Sequence[PendingLabel] = (),
        workspace: str = "",
    ) -> HeldBack:
        """What is held back from `principal` when `audience` reads along. An owner is shown nothing
        that others have written, and others only what they have written themselves. `words` are the
        labels of what is being written in the `workspace`, whose files about the owner are for
        owners only."""
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
        held = HeldBack(paths, meant, workspace, self._bound)
        return held if paths or meant or workspace or self._approved else NOTHING_HELD


def _is_held(label: Label, audience: Collection[str], principal: Principal) -> bool:
    return (
        label.integrity == "untrusted"
        or not may_see(label, audience)
        or bool(list_other_authors(label, principal))
    )


def is_held_back(held: HeldBack, path: str, inode: int = 0) -> bool:
    """Whether this file, or one in this folder, is held back. `inode` is that of the file that was
    read, as the name may have pointed elsewhere then."""
    if held is NOTHING_HELD:
        return False
    if inode and _is_from_held_place(held, inode):
        return True
    place = Path(path)
    real = str(place.resolve())
    own = f"{place.parent.resolve()}/{place.name}"
    if held.bound is not NO_APPROVALS:
        if held.bound.is_changed(real) or held.bound.is_changed(own):
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
    return any(word.covers_path(each) for word in held.pending_labels for each in inside)


def _is_from_held_place(held: HeldBack, inode: int) -> bool:
    """Whether the file was at a path that is held back before running commands could have moved
    it."""
    for word in held.pending_labels:
        if word.stood is not None:
            top = f"{word.root}/"
            if any(
                word.stood(each[len(top) :]) == inode for each in held.paths if each.startswith(top)
            ):
                return True
    return False


def _leads_to_held(held: HeldBack, path: str) -> bool:
    """Whether this is, or links to, what is held back."""
    real = os.path.realpath(path)
    return real in held.paths or (bool(held.workspace) and is_private(held.workspace, real))


def _walk_paths(path: str) -> Iterator[str]:
    yield path
    yield from (each for each, _ in tree.walk_tree(path))
