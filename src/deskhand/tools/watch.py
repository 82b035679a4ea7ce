"""One look at the workspace before a command, and one after it: what it changed, how to undo it,
what was put back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Self

import anyio
import anyio.to_thread
import msgspec

from ..types.commit import Change
from ..types.errors import ToolError
from ..types.labels import LOCAL, Label, join_labels
from .base import Context, ToolScope
from .journal import allowed_folder_key, find_entry_number
from .label_marks import (
    LabelMarks,
    accessed_label,
    encode_path,
    join_private_label,
    load_marks,
    load_scope_marks,
    needs_mark,
)
from .notes import By, PendingLabel, RunningEffect
from .path_states import parse_digest
from .read_tracking import AccessTimes, iter_changed_since
from .watched_folder import (
    FolderLook,
    WatchedFolder,
    find_watched_folder,
    list_owned_folders,
    list_writable_beside,
    make_by,
    mark_effect,
    mark_effect_by,
)
from .written import explain_read_only, list_read_only, list_writable, make_review_rows

MAX_REMEMBERED = 16
"""So many effects may stay in memory before an agent that only writes files forgets those that are
committed."""
NO_FOLDERS: Mapping[str, str] = MappingProxyType({})


async def change_file(
    context: Context, tool: str, path: str, act: Callable[[], str], label: Label = LOCAL
) -> tuple[Change, ...]:
    """Do something to the file at `path`, in a thread, after which it has this label; `act` returns
    the real path of the file. Returns the rows that undo it. The mark is written before anybody is
    told, as others read the file from now on."""
    shut = {each.path: explain_read_only(context) for each in list_read_only(context)}
    return await change_file_as(
        context.reach, make_by(context, tool, path), path, act, (label, context.label), shut
    )


async def change_file_as(
    reach: ToolScope,
    doer: By,
    path: str,
    act: Callable[[], str],
    labels: tuple[Label, Label],
    shut: Mapping[str, str] = NO_FOLDERS,
) -> tuple[Change, ...]:
    """The same for somebody. `labels` are that of the file then, and that of the line about it in
    the journal; `shut` are the folders in which nothing may be written, and why."""
    label, told = labels
    whose = join_private_label(reach.files.roots[0][0], path, label)

    def run_change() -> tuple[str, WatchedFolder, FolderLook, RunningEffect]:
        where, place = find_watched_folder(reach, path)
        why = shut.get(where.real)
        if why:
            raise ToolError(f"{path!r} was not written, because its folder is {why}")
        real, looked, one = where.change_file(doer, place, act, whose)
        return real, where, looked, one

    try:
        real, where, looked, one = await anyio.to_thread.run_sync(run_change)
    except OSError as error:
        raise ToolError(
            f"{path!r} was not written, because its previous content could not be saved: "
            f"{error.strerror}"
        ) from error
    if reach.shadow is not None:
        with anyio.CancelScope(shield=True):
            marks = await load_scope_marks(reach, doer.key)
            noted = (doer.session, doer.at)
            own = label if marks.is_private_file(real) else whose
            rows = (*marks.update_mark(real, own, noted), *mark_effect_by(doer, told))
            if rows:
                await reach.shadow.commit((*looked.rows, *rows))
    where.release(one)
    if len(where.shadow.running) > MAX_REMEMBERED:
        await _forget_committed(reach, where, doer.at)
    review = _review_rows(where, doer, looked, join_labels((told, label)))
    _note_unreported(reach, doer, review)
    return (*looked.rows, *review)


async def _forget_committed(reach: ToolScope, where: WatchedFolder, now: float) -> None:
    """Forget what is over and committed. The next command looks after what is owed."""
    for one in await anyio.to_thread.run_sync(where.list_owed, now):
        if one.marked and await find_entry_number(reach.reader, one.by.key) is not None:
            await anyio.to_thread.run_sync(where.mark_committed, one)


def _review_rows(
    where: WatchedFolder, by: By, looked: FolderLook, label: Label
) -> tuple[Change, ...]:
    """The rows that note for review what was found; `label` is that of all that may have gone into
    it."""
    outside = label.integrity == "untrusted"
    return make_review_rows(
        by, where.real, looked.review, outside=outside, has=where.shadow.has_blob
    )


def _note_unreported(reach: ToolScope, by: By, review: Sequence[Change]) -> None:
    """Have the conversation tell, at the end of its turn, that there is something to review."""
    if review:
        reach.untold.add(by.session)


class WatchedCommand(msgspec.Struct, frozen=True):
    """A folder in which a command runs, and what it does there."""

    where: WatchedFolder
    one: RunningEffect


class FileWatch:
    """A workspace, and the folders of the owner beside it, while a command runs there. It ends by
    `over`; where its `async with` ends before, by `cut`. `so_far` may be asked in between."""

    def __init__(
        self,
        context: Context,
        here: WatchedCommand,
        owned: Sequence[WatchedCommand],
        reads: AccessTimes,
    ) -> None:
        self._context = context
        self._here = here
        self._owned = owned
        self._reads = reads
        self._ended = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._ended:
            await self.abort()

    @classmethod
    async def start(cls, context: Context, what: str, tool: str = "shell") -> FileWatch:
        """Look before the command. Raises ToolError."""
        where, _ = find_watched_folder(context.reach)
        owned = list[WatchedFolder]()
        if context.reach.owned:
            owned = list_owned_folders(context.reach, list_writable(context))
        for each in (where, *owned):
            await commit_owed(context.reach, each, context.clock.now())
        marks = await load_marks(context)
        doer = make_by(context, tool, what)

        def begin() -> tuple[AccessTimes, list[WatchedCommand]]:
            reads = AccessTimes.start_sync(marks, context, where.notify_read)
            return reads, _begin_all((where, *owned), doer, context.label)

        try:
            if not owned and not marks.stored and where.is_unchanged():
                reads = AccessTimes.start_sync(marks, context, where.notify_read)
                begun = [WatchedCommand(where, where.register(doer, context.label))]
            else:
                reads, begun = await anyio.to_thread.run_sync(begin)
        except OSError as error:
            raise ToolError(
                f"nothing was run, because the files could not be saved for undo: {error.strerror}"
            ) from error
        for found in begun:
            found.one.current_label = reads.current_label
            found.one.arm_file = reads.arm_file
            found.one.note_reads = reads.note_reads
        return cls(context, begun[0], begun[1:], reads)

    async def checkpoint(self) -> FolderLook:
        """Look while it runs, and mark what it has done: its rows may be committed now, and again
        later."""
        looked = await anyio.to_thread.run_sync(self._collect_changes, None)
        return await self._merge_looks(looked)

    @property
    def _folders(self) -> tuple[WatchedCommand, ...]:
        """The workspace, and each folder of the owner."""
        return (self._here, *self._owned)

    def _collect_changes(self, now: float | None) -> list[FolderLook]:
        """What it has done until now, in each of them; at its end, `now`."""
        return [each.where.collect_changes(each.one, now) for each in self._folders]

    async def read_label(self) -> Label:
        """The label of the files that it has read until now, and of what others wrote that it may
        have."""
        await self._update_reads()
        return self._reads.files_label()

    async def _update_reads(self) -> None:
        """See what it has read."""
        found = list[PendingLabel]()
        if self._has_concurrent:
            found = await anyio.to_thread.run_sync(self._pending_labels)
        marks = await load_scope_marks(self._context.reach, self._context.key)
        await self._reads.update_reads(marks, found)

    def _pending_labels(self) -> list[PendingLabel]:
        """Whose words it may have read that nobody has marked. It blocks."""
        found = list[PendingLabel]()
        for each in self._folders:
            found += each.where.other_pending_labels(each.one)
        return found

    @property
    def _has_concurrent(self) -> bool:
        """Whether anything else ran while it did."""
        for each in self._folders:
            if len(each.where.shadow.running) > 1 or each.one.concurrent_labels:
                return True
        return False

    def set_network_label(self, label: Label) -> None:
        """The command has heard from elsewhere, by the network."""
        self._reads.network_label = label

    async def _merge_looks(self, looked: Sequence[FolderLook]) -> FolderLook:
        """All of that together, with whose word it is. The marks are written now."""
        await self._update_reads()
        label = self._reads.label()
        shadow = self._context.reach.shadow
        changed = list[str]()
        rows = list[Change]()
        for each in looked:
            changed += each.changed
            rows += each.rows
        marks = (
            *self._reads.mark_changed(changed, self._context),
            *mark_effect(self._context, label),
        )
        if marks and shadow is not None:
            await shadow.commit((*rows, *marks))
        review = list[Change]()
        reviewed_label = join_labels((self._context.label, label))
        for owned, found in zip(self._owned, looked[1:], strict=True):
            review += _review_rows(owned.where, owned.one.by, found, reviewed_label)
        _note_unreported(self._context.reach, self._here.one.by, review)

        said = "".join(each.said for each in looked)
        return FolderLook(tuple(changed), (*rows, *review), said, label)

    async def finish(self) -> FolderLook:
        """Look after it, when nothing that it started is left, and mark what it has done."""
        now = self._context.clock.now()
        here = self._here
        with anyio.CancelScope(shield=True):
            has_done = self._owned or here.one.items or here.one.touched
            if not has_done and here.where.is_unchanged():
                here.where.mark_ended(here.one, now)
                looked = [FolderLook()]
            else:
                looked = await anyio.to_thread.run_sync(self._collect_changes, now)
            self._ended = True
            told = await self._merge_looks(looked)
            for each in self._folders:
                each.where.release(each.one)
        return told

    async def abort(self) -> FolderLook:
        """The same where there will be no result: the rows are committed now."""
        for each in self._owned:
            each.one.noted_for_review.clear()
        with anyio.CancelScope(shield=True):
            looked = await self.finish()
            if looked.rows and self._context.reach.shadow is not None:
                await self._context.reach.shadow.commit(looked.rows)
        return looked


def _begin_all(grounds: Sequence[WatchedFolder], doer: By, label: Label) -> list[WatchedCommand]:
    """It begins in all these folders, of which the first is the workspace, or nowhere. Raises
    OSError."""
    begun = list[WatchedCommand]()
    try:
        for where in grounds:
            key = allowed_folder_key(doer.key, where.real) if where.owned else doer.key
            one = where.begin(msgspec.structs.replace(doer, key=key), label)
            begun.append(WatchedCommand(where, one))
    except OSError:
        for each in begun:
            each.where.release(each.one, doer.at)
        raise
    return begun


async def commit_owed(reach: ToolScope, where: WatchedFolder, now: float | None = None) -> None:
    """Commit what is owed: of commands that were killed with their process, and of calls whose
    result was lost by `now`."""
    shadow = where.shadow
    is_first = not shadow.is_recovered
    found = list[RunningEffect]()
    if is_first:
        found += await anyio.to_thread.run_sync(where.recover_killed)
    if now is not None:
        found += where.list_owed(now)

    marks = LabelMarks(where.real, {})
    if found and not where.owned:
        marks = await load_scope_marks(reach, others=False)
    for one in found:
        await _commit_owed_effect(reach, where, one, marks)

    if is_first:
        await anyio.to_thread.run_sync(shadow.notes.delete_leftover)
        shadow.is_recovered = True


async def _commit_owed_effect(
    reach: ToolScope, where: WatchedFolder, one: RunningEffect, marks: LabelMarks
) -> None:
    """Commit its marks, its rows and what is to be reviewed of it, as far as they are owed."""
    known = await find_entry_number(reach.reader, one.by.key)
    if not where.owned and not one.marked and one.by.undoes is None:
        mark_rows = await anyio.to_thread.run_sync(_interrupted_mark_rows, one, reach, marks)
        if mark_rows:
            await where.shadow.commit(mark_rows)

    if known is None:
        effect_rows = where.effect_rows(one)
        if effect_rows:
            await where.shadow.commit(effect_rows)

    if where.owned and (one.is_interrupted or known is None):
        review_rows = await anyio.to_thread.run_sync(_lost_review_rows, where, one)
        if review_rows:
            reach.untold.add(one.by.session)
            await where.shadow.commit(review_rows)

    where.mark_committed(one)


def _lost_review_rows(where: WatchedFolder, one: RunningEffect) -> tuple[Change, ...]:
    """The rows that note for review what it did. What it had read by then, nobody knows any
    more."""
    one.noted_for_review.clear()
    return make_review_rows(
        one.by, where.real, where.list_for_review(one), outside=True, has=where.shadow.has_blob
    )


def _interrupted_mark_rows(
    one: RunningEffect, reach: ToolScope, marks: LabelMarks
) -> tuple[Change, ...]:
    """The rows of what a command may have written that was killed with its process: on the word of
    which it began, and of all that was read since."""
    root = reach.files.roots[0][0]
    label = join_labels((one.label, one.current_label(), *one.concurrent_labels))
    if one.over_at is None:
        label = join_labels((label, accessed_label(marks, root)))
    if not needs_mark(label):
        return ()
    until_ns = one.over_ns if one.over_ns is not None else 1 << 63
    paths = set[str]()
    for folder in (root, *list_writable_beside(reach, root)):
        for path, changed_ns in iter_changed_since(folder, one.begun_ns):
            if changed_ns <= until_ns:
                paths.add(path)
    paths -= {f"{root}/{path}" for path in _list_kept(reach)}  # it is as it was, or one of the next
    paths |= {f"{root}/{path}" for path in one.touched}

    rows = list(mark_effect_by(one.by, label))
    noted = (one.by.session, one.by.at)
    for path in sorted(paths):
        stored = marks.stored.get(encode_path(path), LOCAL)
        rows += marks.set_mark(path, join_labels((label, stored)), noted)
    return tuple(rows)


def _list_kept(reach: ToolScope) -> list[str]:
    """The files of which the bytes are known, so that looking has told whether they were
    changed."""
    if reach.shadow is None:
        return []
    return [path for path, seen in list(reach.shadow.entries.items()) if parse_digest(seen.state)]
