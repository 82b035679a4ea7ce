"""One look at the workspace before a command, and one after it: what it changed, how to undo it,
what was put back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Self

import anyio
import anyio.to_thread
import msgspec

from ..types.commit import Change
from ..types.errors import ToolError
from ..types.labels import LOCAL, Label, join_labels
from .base import Context, ToolScope
from .file_snapshots import FileSnapshot
from .label_marks import (
    LabelMarks,
    by_either_name,
    lasting,
    marks_in,
    marks_of,
    read_since,
    stored_as,
)
from .notes import By, PendingLabel, RunningEffect
from .read_tracking import AccessTimes, changed_since
from .states import digest_of
from .watched_folder import (
    FolderLook,
    WatchedFolder,
    beside_key,
    by,
    effect_mark,
    ground,
    mark_effect,
    owned_grounds,
)
from .written import closed, rows_of_written, watched, why_closed

NOWHERE: Mapping[str, str] = MappingProxyType({})


async def changing(
    context: Context, tool: str, path: str, act: Callable[[], str], label: Label = LOCAL
) -> tuple[Change, ...]:
    """Do something to the file at `path`, in a thread, after which it has this label; `act` returns
    the real path of the file. Returns the rows that undo it. The mark is written before anybody is
    told, as others read the file from now on."""
    shut = {each.path: why_closed(context) for each in closed(context)}
    return await changed_by(
        context.reach, by(context, tool, path), path, act, (label, context.label), shut
    )


async def changed_by(
    reach: ToolScope,
    doer: By,
    path: str,
    act: Callable[[], str],
    labels: tuple[Label, Label],
    shut: Mapping[str, str] = NOWHERE,
) -> tuple[Change, ...]:
    """The same for somebody. `labels` are that of the file then, and that of the line about it in
    the journal; `shut` are the folders in which nothing may be written, and why."""
    label, told = labels
    whose = by_either_name(reach.files.roots[0][0], path, label)

    def do() -> tuple[str, WatchedFolder, FolderLook, RunningEffect]:
        where, place = ground(reach, path)
        if why := shut.get(where.real):
            raise ToolError(f"{path!r} is not written, as its folder is {why}")
        real, looked, one = where.change(doer, place, act, whose)
        return real, where, looked, one

    try:
        real, where, looked, one = await anyio.to_thread.run_sync(do)
    except OSError as error:
        raise ToolError(
            f"{path!r} is not written, as what was there could not be kept: {error.strerror}"
        ) from error
    if reach.shadow is not None:
        with anyio.CancelScope(shield=True):
            marks = await marks_in(reach, doer.key)
            noted = (doer.session, doer.at)
            marked = marks.rows_of(real, label if marks.private(real) else whose, noted)
            if rows := (*marked, *effect_mark(doer, told)):
                await reach.shadow.commit((*looked.rows, *rows))
    where.leave(one)
    review = _for_review(where, doer, looked, join_labels((told, label)))
    _tell_later(reach, doer, review)
    return (*looked.rows, *review)


def _for_review(
    where: WatchedFolder, by: By, looked: FolderLook, label: Label
) -> tuple[Change, ...]:
    """The rows that note for review what was found; `label` is that of all that may have gone into
    it."""
    outside = label.integrity == "untrusted"
    return rows_of_written(by, where.real, looked.review, outside=outside, has=where.shadow.has)


def _tell_later(reach: ToolScope, by: By, rows: Sequence[Change]) -> None:
    """Have the conversation tell, at the end of its turn, that there is something to review."""
    if any(row.statement == "written_add" for row in rows):
        reach.untold.add(by.session)


class WatchedCommand(msgspec.Struct, frozen=True):
    """A folder in which a command runs, and what it does there."""

    where: WatchedFolder
    one: RunningEffect


class Watch:
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
            await self.cut()

    @classmethod
    async def of(cls, context: Context, what: str, tool: str = "shell") -> Watch:
        """Look before the command. Raises ToolError."""
        where, _ = ground(context.reach)
        owned = owned_grounds(context.reach, watched(context)) if context.reach.owned else []
        for each in (where, *owned):
            await make_up(context.reach, each, context.clock.now())
        marks, doer = await marks_of(context), by(context, tool, what)

        def begin() -> tuple[AccessTimes, list[WatchedCommand]]:
            return AccessTimes.begun(marks, context, where.tell), _begun(
                (where, *owned), doer, context.label
            )

        try:
            if not owned and not marks.stored and where.same():
                reads = AccessTimes.begun(marks, context, where.tell)
                begun = [WatchedCommand(where, where.enter(doer, context.label))]
            else:
                reads, begun = await anyio.to_thread.run_sync(begin)
        except OSError as error:
            raise ToolError(
                f"nothing is run, as what is there could not be kept: {error.strerror}"
            ) from error
        for one in [found.one for found in begun]:
            one.heard = reads.now
            one.arm = reads.add
            one.noticed = reads.note
        return cls(context, begun[0], begun[1:], reads)

    async def so_far(self) -> FolderLook:
        """Look while it runs, and mark what it has done: its rows may be committed now, and again
        later."""
        return await self._read(await anyio.to_thread.run_sync(self._changes, None))

    @property
    def _all(self) -> tuple[WatchedCommand, ...]:
        """The workspace, and each folder of the owner."""
        return (self._here, *self._owned)

    def _changes(self, now: float | None) -> list[FolderLook]:
        """What it has done until now, in each of them; at its end, `now`."""
        return [each.where.look(each.one, now) for each in self._all]

    async def read(self) -> Label:
        """The label of the files that it has read until now, and of what others wrote that it may
        have."""
        await self._look()
        return self._reads.files()

    async def _look(self) -> None:
        """See what it has read."""
        found = await anyio.to_thread.run_sync(self._others) if self._crowded else []
        await self._reads.look(await marks_in(self._context.reach, self._context.key), found)

    def _others(self) -> list[PendingLabel]:
        """Whose words it may have read that nobody has marked. It blocks."""
        return [word for each in self._all for word in each.where.others(each.one)]

    @property
    def _crowded(self) -> bool:
        """Whether anything else ran while it did."""
        return any(len(each.where.shadow.running) > 1 or each.one.beside for each in self._all)

    def hear(self, label: Label) -> None:
        """The command has heard from elsewhere, by the network."""
        self._reads.heard = label

    async def _read(self, looked: Sequence[FolderLook]) -> FolderLook:
        """All of that together, with whose word it is. The marks are written now."""
        await self._look()
        label = self._reads.label()
        shadow = self._context.reach.shadow
        changed = tuple(path for each in looked for path in each.changed)
        rows = [row for each in looked for row in each.rows]
        marks = (*self._reads.marks(changed, self._context), *mark_effect(self._context, label))
        if marks and shadow is not None:
            await shadow.commit((*rows, *marks))
        for each, found in zip(self._owned, looked[1:], strict=True):
            rows += _for_review(
                each.where, each.one.by, found, join_labels((self._context.label, label))
            )
        _tell_later(self._context.reach, self._here.one.by, rows)
        return FolderLook(changed, tuple(rows), "".join(each.said for each in looked), label)

    async def over(self) -> FolderLook:
        """Look after it, when nothing that it started is left, and mark what it has done."""
        now = self._context.clock.now()
        here = self._here
        with anyio.CancelScope(shield=True):
            if (
                not self._owned
                and not here.one.items
                and not here.one.touched
                and here.where.same()
            ):
                here.where.end(here.one, now)
                looked = [FolderLook()]
            else:
                looked = await anyio.to_thread.run_sync(self._changes, now)
            self._ended = True
            told = await self._read(looked)
            for each in self._all:
                each.where.leave(each.one)
        return told

    async def cut(self) -> FolderLook:
        """The same where there will be no result: the rows are committed now."""
        for each in self._owned:
            each.one.noted.clear()
        with anyio.CancelScope(shield=True):
            looked = await self.over()
            if looked.rows and self._context.reach.shadow is not None:
                await self._context.reach.shadow.commit(looked.rows)
        return looked


def _begun(grounds: Sequence[WatchedFolder], doer: By, label: Label) -> list[WatchedCommand]:
    """It begins in all these folders, of which the first is the workspace, or nowhere. Raises
    OSError."""
    begun = list[WatchedCommand]()
    try:
        for where in grounds:
            key = beside_key(doer.key, where.real) if where.owned else doer.key
            begun.append(
                WatchedCommand(where, where.begin(msgspec.structs.replace(doer, key=key), label))
            )
    except OSError:
        for each in begun:
            each.where.leave(each.one, doer.at)
        raise
    return begun


async def make_up(reach: ToolScope, where: WatchedFolder, now: float | None = None) -> None:
    """Commit what is owed: of commands that were killed with their process, and of calls whose
    result was lost by `now`."""
    shadow = where.shadow
    found = list[RunningEffect]()
    if first := not shadow.looked_back:
        found += await anyio.to_thread.run_sync(where.lost)
    found += where.owed(now) if now is not None else ()
    marks = (
        LabelMarks(where.real, {})
        if not found or where.owned
        else await marks_in(reach, others=False)
    )
    for one in found:
        known = await reach.rows("effect_known", (one.by.key,))
        unmarked = not where.owned and not one.marked and one.by.undoes is None
        if unmarked and (rows := await anyio.to_thread.run_sync(_marks_of_cut, one, reach, marks)):
            await shadow.commit(rows)
        if not known and (rows := where.rows(one)):
            await shadow.commit(rows)
        lost = where.owned and (one.is_cut or not known)
        if lost and (rows := await anyio.to_thread.run_sync(_review_of_lost, where, one)):
            reach.untold.add(one.by.session)
            await shadow.commit(rows)
        where.settled(one)
    if first:
        await anyio.to_thread.run_sync(shadow.notes.forget)
        shadow.looked_back = True


def _review_of_lost(where: WatchedFolder, one: RunningEffect) -> tuple[Change, ...]:
    """The rows that note for review what it did. What it had read by then, nobody knows any
    more."""
    one.noted.clear()
    return rows_of_written(
        one.by, where.real, where.for_review(one), outside=True, has=where.shadow.has
    )


def _marks_of_cut(one: RunningEffect, reach: ToolScope, marks: LabelMarks) -> tuple[Change, ...]:
    """The rows of what a command may have written that was killed with its process: on the word of
    which it began, and of all that was read since."""
    root = reach.files.roots[0][0]
    label = join_labels((one.label, one.heard(), *one.beside))
    if one.over_at is None:
        label = join_labels((label, read_since(marks, root)))
    if not lasting(label):
        return ()
    folders = (
        root,
        *(
            mount.path
            for mount in reach.mounts
            if mount.write and not mount.path.startswith(f"{root}/")
        ),
    )
    until_ns = one.over_ns if one.over_ns is not None else 1 << 63
    paths = {
        path
        for folder in folders
        for path, at in changed_since(folder, one.begun_ns)
        if at <= until_ns
    }
    paths -= {
        f"{root}/{path}" for path, seen in _kept(reach)
    }  # it is as it was, or one of the next
    paths |= {f"{root}/{path}" for path in one.touched}
    noted = (one.by.session, one.by.at)
    rows = (
        (path, join_labels((label, marks.stored.get(stored_as(path), LOCAL))))
        for path in sorted(paths)
    )
    marked = (change for path, joined in rows for change in marks.rows(path, joined, noted))
    return (*effect_mark(one.by, label), *marked)


def _kept(reach: ToolScope) -> Iterator[tuple[str, FileSnapshot]]:
    """The files of which the bytes are known, so that looking has told whether they were
    changed."""
    seen = reach.shadow.seen if reach.shadow is not None else {}
    return ((path, each) for path, each in list(seen.items()) if digest_of(each.state))
