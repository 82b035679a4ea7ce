"""The folder in which commands run, held open with its shadow: what was there before, whose changes
are found, how to undo them, what is put back.

What is found while commands run is theirs: of several at once, it is told once, of the one that is
looked after first. A command that is killed with us is made up for at the next start: what runs is
noted in a file, with what it has done.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import TypeVar

import msgspec

from ..store.blobs import DIGEST_PREFIX
from ..types.commit import Change
from ..types.errors import ToolError
from ..types.labels import LOCAL, Label, join_labels
from . import tree
from .base import Context, ToolScope
from .file_snapshots import FileSnapshots
from .journal import UndoItem, add_entry, add_item, mark_undone
from .label_marks import encode_path, list_pending_labels, needs_mark
from .notes import By, PendingLabel, RunningEffect
from .path_states import ChangedPath, parse_digest
from .paths import Allowed
from .queries import drop_label, keep_label_of_bytes, restore_label, set_label
from .read_tracking import CLOCK_TICK_NS
from .revert_protected import restore_protected
from .written import newest_change_ns

MAX_WHAT_CHARS = 300
OWED_AFTER_S = 5.0
"""The rows of a call that is over are committed with its result. After so long we look whether they
were."""

T = TypeVar("T")


class FolderLook(msgspec.Struct, frozen=True):
    """What a look found. `changed` are the real paths that have changed since the command began,
    whoever did it; bytes that are no UTF-8 are written as escapes. `rows` are committed with the
    result. `said` is for the result too, and `label` that of whatever the command says: of what it
    read. `review` is what of it a person has to review."""

    changed: tuple[str, ...] = ()
    rows: tuple[Change, ...] = ()
    said: str = ""
    label: Label = LOCAL
    review: tuple[ChangedPath, ...] = ()


class WatchedFolder:
    """The folder that is watched, held open, with its shadow. `beside` are the folders that
    commands may write too; `owned`: it is one of the owner's beside the workspace. Its methods
    block."""

    def __init__(
        self,
        shadow: FileSnapshots,
        root: int,
        real: str,
        beside: Sequence[str] = (),
        *,
        owned: bool = False,
    ) -> None:
        self.shadow = shadow
        self.root = root
        self.real = real
        self.extra_folders = tuple(beside)
        self.owned = owned

    @property
    def _running(self) -> list[RunningEffect]:
        return self.shadow.running

    def is_unchanged(self) -> bool:
        """Whether nothing has changed, where that can be told at once; then there is nothing to do
        in a thread."""
        return self.shadow.is_unchanged(self.root)

    def begin(self, by: By, label: Label = LOCAL) -> RunningEffect:
        """Look, and note that it begins, on whose word. What changed before is nobody's, unless
        something runs."""
        with self.shadow.lock:
            self._attribute_changes(self.shadow.scan(self.root), guard=True)
            self.shadow.save()
            return self.register(by, label, whole=True)

    def register(self, by: By, label: Label = LOCAL, *, whole: bool = False) -> RunningEffect:
        """Note that it begins."""
        begun_ns = time.time_ns() - CLOCK_TICK_NS
        one = RunningEffect(by, label, begun_ns, whole=whole or self.shadow.whole)
        self._running.append(one)
        self.shadow.programs_begun += by.runs_program
        self._write_notes()
        return one

    def notify_read(self, paths: Collection[str]) -> None:
        """Somebody who runs has read these, of which the trace is taken away in a moment."""
        with self.shadow.lock:
            for each in self._running:
                each.note_reads(paths)
            self._write_notes()

    def other_pending_labels(self, one: RunningEffect) -> list[PendingLabel]:
        """Whose words what runs may have read that nobody has marked: of what runs beside it. It
        blocks."""
        words = list_pending_labels(self.shadow, self.real, one.by.key)
        found = [word for word in words if needs_mark(word.label)]
        for label, since_ns in list(one.concurrent_labels.items()):
            found.append(PendingLabel(since_ns, None, label, armed=self.shadow.armed))
        return found

    def _write_notes(self) -> None:
        """Note what runs and how far it has come, for the next process if this one is killed."""
        self.shadow.notes.write(self._running)

    def _attribute_changes(
        self, changes: Sequence[ChangedPath], guard: bool, by: RunningEffect | None = None
    ) -> list[str]:
        """Say whose these changes are, after putting back what is protected. Returns what to say of
        that."""
        alive = [each for each in self._running if each.over_at is None]
        said: list[str] = []
        if not changes or not alive:
            return said
        kept = list(changes)
        if guard:
            kept, said = restore_protected(self.shadow, self.root, self.real, changes)
            if self.owned and said:
                said += self._keep_aside(changes, kept)
        for each in alive:
            each.touched.update(change.path for change in kept)
        whose = by or alive[0]
        whose.add(kept)
        self._keep_before(kept)
        self._write_notes()
        return said

    def _keep_before(self, changes: Sequence[ChangedPath]) -> None:
        """Make blobs of what these files held before."""
        digests = [parse_digest(each.before) for each in changes]
        self.shadow.move_to_blobs([digest for digest in digests if digest])

    def _keep_aside(self, changes: Sequence[ChangedPath], kept: Sequence[ChangedPath]) -> list[str]:
        """Keep what was put back, as a file: it may be what the owner saved just then. Returns what
        to say of that."""
        now = {each.path: each.after for each in kept}
        put_back = [each for each in changes if now.get(each.path, each.before) != each.after]
        gone = [each for each in put_back if parse_digest(each.after)]
        for each in gone:
            with suppress(OSError):
                self.shadow.set_aside(each.path, parse_digest(each.after))
        return [f"the previous content is saved in {self.shadow.aside_folder}"] if gone else []

    def scan_paths(self, paths: Sequence[str]) -> None:
        """See what these are now. What has changed is nobody's, unless something runs."""
        self._attribute_changes(self.shadow.scan_paths(self.root, paths), guard=True)

    def collect_changes(self, one: RunningEffect, now: float | None = None) -> FolderLook:
        """What the command has done until now; at its end, `now`."""
        with self.shadow.lock:
            if self.owned and now is not None:
                self._mark_unsettled(one)
            said = self._attribute_changes(self.shadow.scan(self.root), guard=True, by=one)
            looked = self._make_look(one, said)
            self.shadow.save()
            if now is not None:
                self.mark_ended(one, now)
        return looked

    def _mark_unsettled(self, one: RunningEffect) -> None:
        """Read again at the end what was changed while it ran: what is written through a mapping
        may not tell by its times."""
        for path in one.touched:
            seen = self.shadow.entries.get(path)
            if seen is not None:
                seen.settled = False

    def mark_ended(self, one: RunningEffect, now: float) -> None:
        """It does nothing any more. What others that run may have read of it, they have."""
        one.over_ns = time.time_ns() + CLOCK_TICK_NS
        one.over_at = now
        since_ns = one.over_ns - 2 * CLOCK_TICK_NS
        for word in one.pending_labels():
            if one.marked or not needs_mark(word.label):
                continue
            word = msgspec.structs.replace(word, armed=self.shadow.armed)
            if not word.covers_any_in((self.real, *self.extra_folders)):
                continue
            for each in self._running:
                if each is not one and each.over_at is None:
                    each.concurrent_labels.setdefault(word.label, since_ns)
        self._write_notes()

    def release(self, one: RunningEffect, now: float = 0.0) -> None:
        """It is over, and the marks are written."""
        if one.over_at is None:
            self.mark_ended(one, now)
        one.marked = True
        if not one.net_changes and one in self._running:
            self._running.remove(one)
        self._write_notes()

    def change_file(
        self, by: By, place: str, act: Callable[[], T], label: Label = LOCAL
    ) -> tuple[T, FolderLook, RunningEffect]:
        """Do something to one file, on the word of this label, and tell what it came to. It is to
        `leave` when the file is marked."""
        parts = place.split("/")
        paths = ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
        with self.shadow.lock:
            self._attribute_changes(self.shadow.scan_paths(self.root, paths), guard=True)
            one = self.register(by, label)
            try:
                done = act()
            except BaseException:
                self.release(one, by.at)
                raise
            finally:
                for each in self._running if needs_mark(label) else ():
                    if each is not one and each.over_at is None:
                        each.arm_file(f"{self.real}/{place}", label)
                changes = self.shadow.scan_paths(self.root, paths)
                for each in self._running:
                    if each.over_at is None:
                        each.touched.update(change.path for change in changes)
                one.add(changes)
                self._keep_before(changes)
                self.shadow.save()
                one.over_ns = time.time_ns() + CLOCK_TICK_NS
                one.over_at = by.at
                self._write_notes()
        return done, self._make_look(one, []), one

    def _make_look(self, one: RunningEffect, said: Sequence[str]) -> FolderLook:
        paths = (
            os.fsencode(f"{self.real}/{path}").decode(errors="backslashreplace")
            for path in sorted(one.touched)
        )
        words = [*said, *self._describe_not_undoable(one.net_changes)]
        review = self.list_for_review(one) if self.owned else ()
        return FolderLook(
            tuple(paths),
            self.effect_rows(one),
            "".join(f"\n[{each}]" for each in words),
            review=review,
        )

    def list_for_review(self, one: RunningEffect) -> tuple[ChangedPath, ...]:
        """What it has changed, and is not noted for review yet. Of folders into which no look goes
        it is told that something in them was changed."""
        found = dict(one.items)
        for path in self.shadow.skipped_folders if one.whole else ():
            newest_ns = newest_change_ns(f"{self.real}/{path}", one.begun_ns)
            if newest_ns:
                seen = self.shadow.entries.get(path)
                state = seen.state if seen is not None else "h"
                known = one.items.get(path)
                before = known.before if known is not None else state
                found[path] = ChangedPath(path, before, f"{state} {newest_ns}")

        noted = one.noted_for_review
        fresh = [each for each in found.values() if noted.get(each.path, each.before) != each.after]
        noted.update((each.path, each.after) for each in fresh)
        return tuple(sorted(fresh, key=lambda each: each.path))

    def _describe_not_undoable(self, changes: Sequence[ChangedPath]) -> list[str]:
        """What of it cannot be undone."""
        sizes = list[int]()
        folders = list[str]()
        for each in changes:
            before = each.before or ""
            if before.startswith("u"):
                sizes.append(int(before.split()[1]))
            elif before.startswith("h") and each.after is None:
                folders.append(each.path)

        said = []
        if sizes:
            limit = self.shadow.limits.file_mb
            files = f"{len(sizes)} file{'s' if len(sizes) > 1 else ''}"
            why = "in a workspace that is too large to be saved"
            if all(size > limit << 20 for size in sizes):
                why = f"over {limit} MB"
            said.append(f"not undoable: {files} {why}")
        if folders:
            said.append(
                f"not undoable: {', '.join(sorted(folders)[:3])}, which is not saved because "
                "programs recreate it"
            )
        return said

    def effect_rows(self, one: RunningEffect) -> tuple[Change, ...]:
        """The rows of what it has done; none where that is nothing."""
        return make_effect_rows(one.by, self.real, one.net_changes, self.shadow.has_blob)

    def recover_killed(self) -> list[RunningEffect]:
        """What was running when a process was killed, with all that has changed since; and what
        ended then."""
        with self.shadow.lock:
            found = self.shadow.notes.read_leftover()
            for one in found:
                if one.over_at is None and one.by.undoes is not None:
                    self.apply_planned(one)
            cut = [one for one in found if one.is_interrupted]
            if cut and (self.shadow.whole or any(one.whole for one in cut)):
                self._running.extend(cut)
                self._attribute_changes(self.shadow.scan(self.root), guard=True, by=cut[0])
                self.shadow.save()
                self._running[:] = [one for one in self._running if one not in cut]
        return found

    def apply_planned(self, one: RunningEffect) -> dict[str, str]:
        """Do what an undo has noted that it wants, and note what came of it. Returns what failed,
        and why."""
        self._write_notes()
        wanted = {path: each.after for path, each in one.items.items()}
        failed = tree.apply_states(self.root, wanted, self.shadow.open)
        self.shadow.scan_paths(self.root, list(one.items))
        for path, each in one.items.items():
            seen = self.shadow.entries.get(path)
            now = seen.state if seen is not None else None
            one.items[path] = ChangedPath(path, each.before, now)
        self.shadow.save()
        return failed

    def list_owed(self, now: float) -> list[RunningEffect]:
        """What is over, and should have been committed."""
        with self.shadow.lock:
            over = [(one, one.over_at) for one in self._running if one.over_at is not None]
        return [one for one, at in over if abs(now - at) > OWED_AFTER_S]

    def mark_committed(self, one: RunningEffect) -> None:
        """Its rows are committed."""
        with self.shadow.lock:
            self._running[:] = [each for each in self._running if each is not one]
            self._write_notes()


def make_effect_rows(
    by: By, folder: str, changes: Sequence[ChangedPath], has: Callable[[str], bool]
) -> tuple[Change, ...]:
    """The rows of an effect; none where it changed nothing. `has` tells whether the bytes of a
    digest are a blob."""
    if not changes:
        return ()
    rows = [add_entry(msgspec.structs.replace(by, what=by.what[:MAX_WHAT_CHARS]), folder)]
    for each in sorted(changes, key=lambda each: each.path):
        digest = parse_digest(each.before)
        blob = DIGEST_PREFIX + digest if digest and has(digest) else None
        path = encode_path(f"{folder}/{each.path}")
        place = os.fsencode(each.path)
        if blob is not None:
            rows.append(keep_label_of_bytes(path, blob, by.key, place))
        rows.append(add_item(by.key, UndoItem(place, each.before, each.after, blob)))
        if by.undoes is not None:
            rows += _restore_label_rows(path, parse_digest(each.after), by.at)
    return (*rows, *make_undone_rows(by))


def _restore_label_rows(path: str, digest: str, at: float) -> list[Change]:
    """Whose word these bytes are: what it was when they were there before. What is no file keeps
    its mark: of its name and of where it leads nobody else knows, and what is gone may come
    back."""
    if not digest:
        return []
    return [drop_label(path), restore_label(path, DIGEST_PREFIX + digest, at)]


def make_undone_rows(by: By) -> tuple[Change, ...]:
    """The rows that say that an undo has happened."""
    if by.undoes is None:
        return ()
    revived = () if by.revives is None else (mark_undone(by.revives, None),)
    return (mark_undone(by.undoes, by.at), *revived)


def mark_effect(context: Context, label: Label = LOCAL) -> tuple[Change, ...]:
    """The row that remembers whose word the journal's line about this call is: it names what was
    run, and files."""
    return mark_effect_by(make_by(context, "", ""), join_labels((context.label, label)))


def mark_effect_by(doer: By, label: Label) -> tuple[Change, ...]:
    """The same for somebody; none where that says nothing."""
    if not needs_mark(label):
        return ()
    return (set_label(f"effect:{doer.key}", label, doer.session, doer.at),)


def make_by(context: Context, tool: str, what: str) -> By:
    """The call that a tool is in."""
    who = context.principal.on_behalf_of or context.principal.id
    line = " ".join(what.split())
    return By(context.key, context.agent, context.session, who, tool, line, context.clock.now())


def find_watched_folder(reach: ToolScope, path: str = "") -> tuple[WatchedFolder, str]:
    """Where a file lies, as (folder that is watched, path in it); without a path, the workspace.
    Raises ToolError."""
    if reach.shadow is None:
        raise ToolError("nothing can be changed here: storage for undo is not set up")
    real, descriptor, _ = reach.files.roots[0]
    beside = list_writable_beside(reach, real)
    if not path:
        return WatchedFolder(reach.shadow, descriptor, real, beside), ""
    place = reach.files.target_path(path)
    inside = [root for root in reach.files.roots if place.startswith(f"{root[0]}/")]
    if not inside:
        raise ToolError(f"{path!r} is outside the workspace")
    if any(root[0] == real for root in inside):
        return WatchedFolder(reach.shadow, descriptor, real, beside), place[len(real) + 1 :]
    real, descriptor, _ = max(inside, key=lambda root: len(root[0]))
    return make_allowed_folder(reach, reach.shadow, (real, descriptor)), place[len(real) + 1 :]


def list_writable_beside(reach: ToolScope, workspace: str) -> list[str]:
    """The folders beside the workspace that commands may write."""
    writable = [mount.path for mount in reach.mounts if mount.write]
    return [path for path in writable if not path.startswith(f"{workspace}/")]


def make_allowed_folder(
    reach: ToolScope, shadow: FileSnapshots, root: tuple[str, int]
) -> WatchedFolder:
    """A folder beside the workspace: its real path, and a descriptor."""
    real, descriptor = root
    owned = any(each.path == real for each in reach.owned)
    return WatchedFolder(shadow.for_folder(real), descriptor, real, owned=owned)


def list_owned_folders(reach: ToolScope, folders: Sequence[Allowed]) -> list[WatchedFolder]:
    """These folders of the owner, as far as they can be reached."""
    if reach.shadow is None:
        return []
    names = {each.path for each in folders}
    found = [(real, descriptor) for real, descriptor, _ in reach.files.roots[1:] if real in names]
    return [make_allowed_folder(reach, reach.shadow, each) for each in found]
