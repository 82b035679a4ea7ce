"""One look at the workspace before a command, and one after it: what it changed, how to undo it, what was put back.

What is found while commands run is theirs: of several at once, it is told once, of the one that is looked after first.
A command that is killed with us is made up for at the next start: what runs is noted in a file, with what it has done.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Self, TypeVar

import anyio
import anyio.to_thread
import msgspec

from ..store.blobs import PREFIX
from ..store.sql import load_sql
from ..types.commit import Change
from ..types.errors import ToolError
from ..types.labels import LOCAL, Label, join
from . import tree
from .base import Context, Reach
from .guarded import put_back
from .marks import Marks, by_either_name, lasting, marks_in, marks_of, read_since, stored_as, words_in
from .notes import By, Running, Word
from .reads import COARSE_NS, Reads, changed_since
from .shadow import Seen, Shadow
from .states import Changed, digest_of

STATEMENTS = load_sql(__package__, "effects.sql")
WHAT_CHARS = 300
OWED_S = 5.0
"""The rows of a call that is over are committed with its result. After so long we look whether they were."""

T = TypeVar("T")


class Looked(msgspec.Struct, frozen=True):
    """What a look found. `changed` are the real paths that have changed since the command began, whoever did it; bytes
    that are no UTF-8 are written as escapes. `rows` are committed with the result. `said` is for the result too, and
    `label` that of whatever the command says: of what it read."""

    changed: tuple[str, ...] = ()
    rows: tuple[Change, ...] = ()
    said: str = ""
    label: Label = LOCAL


class Ground:
    """The folder that is watched, held open, with its shadow. `beside` are the folders that commands may write too. Its
    methods block."""

    def __init__(self, shadow: Shadow, root: int, real: str, beside: Sequence[str] = ()) -> None:
        self.shadow, self.root, self.real, self.beside = shadow, root, real, tuple(beside)

    @property
    def _running(self) -> list[Running]:
        return self.shadow.running

    def same(self) -> bool:
        """Whether nothing has changed, where that can be told at once; then there is nothing to do in a thread."""
        return self.shadow.same(self.root)

    def begin(self, by: By, label: Label = LOCAL) -> Running:
        """Look, and note that it begins, on whose word. What changed before is nobody's, unless something runs."""
        with self.shadow.lock:
            self._found(self.shadow.look(self.root), guard=True)
            self.shadow.save()
            return self.enter(by, label)

    def enter(self, by: By, label: Label = LOCAL) -> Running:
        """Note that it begins."""
        one = Running(by, label, time.time_ns() - COARSE_NS)
        self._running.append(one)
        self._write()
        return one

    def tell(self, paths: Collection[str]) -> None:
        """Somebody who runs has read these, of which the trace is taken away in a moment."""
        with self.shadow.lock:
            for each in self._running:
                each.noticed(paths)
            self._write()

    def others(self, one: Running) -> list[Word]:
        """Whose words what runs may have read that nobody has marked: of what runs beside it. It blocks."""
        found = [word for word in words_in(self.shadow, self.real, one.by.key) if lasting(word.label)]
        known = [Word(since_ns, None, label, armed=self.shadow.armed) for label, since_ns in one.beside.items()]
        return [*found, *known]

    def _write(self) -> None:
        """Note what runs and how far it has come, for the next process if this one is killed."""
        self.shadow.notes.write(self._running)

    def _found(self, changes: Sequence[Changed], guard: bool, by: Running | None = None) -> list[str]:
        """Say whose these changes are, after putting back what is protected. Returns what to say of that."""
        alive = [each for each in self._running if each.over_at is None]
        said: list[str] = []
        if not changes or not alive:
            return said
        kept = list(changes)
        if guard:
            kept, said = put_back(self.shadow, self.root, self.real, changes)
        for each in alive:
            each.touched.update(change.path for change in kept)
        whose = by or alive[0]
        whose.add(kept)
        self.shadow.into_blobs([digest for each in kept if (digest := digest_of(each.before))])
        self._write()
        return said

    def look_at(self, paths: Sequence[str]) -> None:
        """See what these are now. What has changed is nobody's, unless something runs."""
        self._found(self.shadow.look_at(self.root, paths), guard=True)

    def look(self, one: Running, now: float | None = None) -> Looked:
        """What the command has done until now; at its end, `now`."""
        with self.shadow.lock:
            said = self._found(self.shadow.look(self.root), guard=True, by=one)
            looked = self._looked(one, said)
            self.shadow.save()
            if now is not None:
                self.end(one, now)
        return looked

    def end(self, one: Running, now: float) -> None:
        """It does nothing any more. What others that run may have read of it, they have."""
        one.over_ns, one.over_at = time.time_ns() + COARSE_NS, now
        for word in one.words():
            word = msgspec.structs.replace(word, armed=self.shadow.armed)
            if lasting(word.label) and not one.marked and word.anywhere((self.real, *self.beside)):
                for each in self._running:
                    if each is not one and each.over_at is None:
                        each.beside.setdefault(word.label, one.over_ns - 2 * COARSE_NS)
        self._write()

    def leave(self, one: Running, now: float = 0.0) -> None:
        """It is over, and the marks are written."""
        if one.over_at is None:
            self.end(one, now)
        one.marked = True
        if not one.rows and one in self._running:
            self._running.remove(one)
        self._write()

    def change(self, by: By, place: str, act: Callable[[], T], label: Label = LOCAL) -> tuple[T, Looked, Running]:
        """Do something to one file, on the word of this label, and tell what it came to. It is to `leave` when the file
        is marked."""
        above = place.split("/")
        paths = ["/".join(above[: n + 1]) for n in range(len(above))]
        with self.shadow.lock:
            self._found(self.shadow.look_at(self.root, paths), guard=True)
            one = self.enter(by, label)
            try:
                done = act()
            except BaseException:
                self.leave(one, by.at)
                raise
            finally:
                for each in self._running if lasting(label) else ():
                    if each is not one and each.over_at is None:
                        each.arm(f"{self.real}/{place}", label)
                changes = self.shadow.look_at(self.root, paths)
                for each in self._running:
                    each.touched.update(change.path for change in changes)
                one.add(changes)
                self.shadow.into_blobs([digest for each in changes if (digest := digest_of(each.before))])
                self.shadow.save()
                one.over_ns, one.over_at = time.time_ns() + COARSE_NS, by.at
                self._write()
        return done, self._looked(one, []), one

    def _looked(self, one: Running, said: Sequence[str]) -> Looked:
        paths = (os.fsencode(f"{self.real}/{path}").decode(errors="backslashreplace") for path in sorted(one.touched))
        lost = [each for each in one.rows if each.before is not None and each.before[0] in "uoh"]
        words = [*said, *self._lost(lost)]
        return Looked(tuple(paths), self.rows(one), "".join(f"\n[{each}]" for each in words))

    def _lost(self, lost: Sequence[Changed]) -> list[str]:
        """What of it cannot be undone."""
        large = [each for each in lost if (each.before or "")[0] == "u"]
        folders = [each.path for each in lost if (each.before or "")[0] == "h" and each.after is None]
        said = []
        if large:
            limit = self.shadow.limits.file_mb
            over = sum(int((each.before or "").split()[1]) > limit << 20 for each in large)
            why = f"over {limit} MB" if over == len(large) else "of a workspace that is too large to be kept"
            said.append(f"not undoable: {len(large)} file{'s' if len(large) > 1 else ''} {why}")
        if folders:
            said.append(f"not undoable: {', '.join(sorted(folders)[:3])}, which is not kept because programs make it")
        return said

    def rows(self, one: Running) -> tuple[Change, ...]:
        """The rows of what it has done; none where that is nothing."""
        return rows_of(one.by, self.real, one.rows, self.shadow.has)

    def lost(self) -> list[Running]:
        """What was running when a process was killed, with all that has changed since; and what ended then."""
        with self.shadow.lock:
            found = self.shadow.notes.left()
            for one in found:
                if one.over_at is None and one.by.undoes is not None:
                    self.bring_about(one)
            cut = [one for one in found if _is_cut(one)]
            if cut and self.shadow.whole:
                self._running.extend(cut)
                self._found(self.shadow.look(self.root), guard=True, by=cut[0])
                self.shadow.save()
                self._running[:] = [one for one in self._running if one not in cut]
        return found

    def bring_about(self, one: Running) -> dict[str, str]:
        """Do what an undo has noted that it wants, and note what came of it. Returns what failed, and why."""
        self._write()
        failed = tree.put(self.root, {path: each.after for path, each in one.items.items()}, self.shadow.open)
        self.shadow.look_at(self.root, list(one.items))
        for path, each in one.items.items():
            seen = self.shadow.seen.get(path)
            one.items[path] = Changed(path, each.before, seen.state if seen is not None else None)
        self.shadow.save()
        return failed

    def owed(self, now: float) -> list[Running]:
        """What is over, and should have been committed."""
        with self.shadow.lock:
            return [one for one in self._running if one.over_at is not None and abs(now - one.over_at) > OWED_S]

    def settled(self, one: Running) -> None:
        """Its rows are committed."""
        with self.shadow.lock:
            self._running[:] = [each for each in self._running if each is not one]
            self._write()


def rows_of(by: By, folder: str, changes: Sequence[Changed], has: Callable[[str], bool]) -> tuple[Change, ...]:
    """The rows of an effect; none where it changed nothing. `has` tells whether the bytes of a digest are a blob."""
    if not changes:
        return ()
    head = (by.key, by.agent, by.session, by.person, by.tool, folder, by.what[:WHAT_CHARS], by.at, by.undoes)
    rows = [Change("effect_add", head)]
    for each in sorted(changes, key=lambda each: each.path):
        digest = digest_of(each.before)
        blob = PREFIX + digest if digest and has(digest) else None
        path, place = stored_as(f"{folder}/{each.path}"), os.fsencode(each.path)
        if blob is not None:
            rows.append(Change("file_label_keep", (path, blob, by.key, place)))
        rows.append(Change("effect_item_add", (by.key, place, each.before, each.after, blob)))
        if by.undoes is not None:
            rows += _label_again(path, digest_of(each.after), by.at)
    return (*rows, *marked(by))


def _label_again(path: str, digest: str, at: float) -> list[Change]:
    """Whose word these bytes are: what it was when they were there before. What is no file keeps its mark: of its name
    and of where it leads nobody else knows, and what is gone may come back."""
    if not digest:
        return []
    return [Change("file_label_drop", (path,)), Change("file_label_restore", (path, PREFIX + digest, at))]


def marked(by: By) -> tuple[Change, ...]:
    """The rows that say that an undo has happened."""
    if by.undoes is None:
        return ()
    revived = () if by.revives is None else (Change("effect_undone", (by.revives, None)),)
    return (Change("effect_undone", (by.undoes, by.at)), *revived)


def mark_effect(context: Context, label: Label = LOCAL) -> tuple[Change, ...]:
    """The row that remembers whose word the journal's line about this call is: it names what was run, and files."""
    return _effect_mark(by(context, "", ""), join((context.label, label)))


def _effect_mark(doer: By, label: Label) -> tuple[Change, ...]:
    if not lasting(label):
        return ()
    return (Change("file_label_set", (f"effect:{doer.key}", msgspec.json.encode(label), doer.session, doer.at)),)


def by(context: Context, tool: str, what: str) -> By:
    """The call that a tool is in."""
    who = context.principal.on_behalf_of or context.principal.id
    line = " ".join(what.split())
    return By(context.key, context.agent, context.session, who, tool, line, context.clock.now())


def ground(reach: Reach, path: str = "") -> tuple[Ground, str]:
    """Where a file lies, as (folder that is watched, path in it); without a path, the workspace. Raises ToolError."""
    if reach.shadow is None:
        raise ToolError("nothing can be changed here: no place to keep what was there before is set up")
    real, descriptor, _ = reach.files.roots[0]
    beside = [mount.path for mount in reach.mounts if mount.write and not mount.path.startswith(f"{real}/")]
    if not path:
        return Ground(reach.shadow, descriptor, real, beside), ""
    place = reach.files.place(path)
    inside = [root for root in reach.files.roots if place.startswith(f"{root[0]}/")]
    if not inside:
        raise ToolError(f"{path!r} is outside the workspace")
    if any(root[0] == real for root in inside):
        return Ground(reach.shadow, descriptor, real, beside), place[len(real) + 1 :]
    real, descriptor, _ = max(inside, key=lambda root: len(root[0]))
    return Ground(reach.shadow.beside(real), descriptor, real), place[len(real) + 1 :]


async def changing(
    context: Context, tool: str, path: str, act: Callable[[], str], label: Label = LOCAL
) -> tuple[Change, ...]:
    """Do something to the file at `path`, in a thread, after which it has this label; `act` returns the real path of
    the file. Returns the rows that undo it. The mark is written before anybody is told, as others read the file from
    now on."""
    return await changed_by(context.reach, by(context, tool, path), path, act, (label, context.label))


async def changed_by(
    reach: Reach, doer: By, path: str, act: Callable[[], str], labels: tuple[Label, Label]
) -> tuple[Change, ...]:
    """The same for somebody. `labels` are that of the file then, and that of the line about it in the journal."""
    label, told = labels
    whose = by_either_name(reach.files.roots[0][0], path, label)

    def do() -> tuple[str, Ground, Looked, Running]:
        where, place = ground(reach, path)
        real, looked, one = where.change(doer, place, act, whose)
        return real, where, looked, one

    try:
        real, where, looked, one = await anyio.to_thread.run_sync(do)
    except OSError as error:
        raise ToolError(f"{path!r} is not written, as what was there could not be kept: {error.strerror}") from error
    if reach.shadow is not None:
        with anyio.CancelScope(shield=True):
            marks, noted = await marks_in(reach, doer.key), (doer.session, doer.at)
            marked = marks.rows_of(real, label if marks.private(real) else whose, noted)
            if rows := (*marked, *_effect_mark(doer, told)):
                await reach.shadow.commit((*looked.rows, *rows))
    where.leave(one)
    return looked.rows


class Watch:
    """A workspace while a command runs in it. It ends by `over`; where its `async with` ends before, by `cut`. `so_far`
    may be asked in between."""

    def __init__(self, context: Context, where: Ground, one: Running, reads: Reads) -> None:
        self._context, self._where, self._one, self._reads = context, where, one, reads
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
        await make_up(context.reach, where, context.clock.now())
        marks, doer = await marks_of(context), by(context, tool, what)

        def begin() -> tuple[Reads, Running]:
            return Reads.begun(marks, context, where.tell), where.begin(doer, context.label)

        try:
            if not marks.stored and where.same():
                reads, one = Reads.begun(marks, context, where.tell), where.enter(doer, context.label)
            else:
                reads, one = await anyio.to_thread.run_sync(begin)
        except OSError as error:
            raise ToolError(f"nothing is run, as what is there could not be kept: {error.strerror}") from error
        one.heard, one.arm, one.noticed = reads.now, reads.add, reads.note
        return cls(context, where, one, reads)

    async def so_far(self) -> Looked:
        """Look while it runs, and mark what it has done: its rows may be committed now, and again later."""
        return await self._read(await anyio.to_thread.run_sync(self._where.look, self._one))

    async def read(self) -> Label:
        """The label of the files that it has read until now, and of what others wrote that it may have."""
        await self._look()
        return self._reads.files()

    async def _look(self) -> None:
        """See what it has read."""
        found = await anyio.to_thread.run_sync(self._where.others, self._one) if self._crowded else []
        await self._reads.look(await marks_in(self._context.reach, self._context.key), found)

    @property
    def _crowded(self) -> bool:
        """Whether anything else ran while it did."""
        running = self._context.reach.shadow.running if self._context.reach.shadow is not None else ()
        return len(running) > 1 or bool(self._one.beside)

    def hear(self, label: Label) -> None:
        """The command has heard from elsewhere, by the network."""
        self._reads.heard = label

    async def _read(self, looked: Looked) -> Looked:
        """With whose word it all is."""
        await self._look()
        label = self._reads.label()
        marks = (*self._reads.marks(looked.changed, self._context), *mark_effect(self._context, label))
        if marks and self._context.reach.shadow is not None:
            await self._context.reach.shadow.commit((*looked.rows, *marks))
        return msgspec.structs.replace(looked, label=label)

    async def over(self) -> Looked:
        """Look after it, when nothing that it started is left, and mark what it has done."""
        now = self._context.clock.now()
        with anyio.CancelScope(shield=True):
            if not self._one.items and not self._one.touched and self._where.same():
                self._where.end(self._one, now)
                looked = Looked()
            else:
                looked = await anyio.to_thread.run_sync(partial(self._where.look, self._one, now))
            self._ended = True
            looked = await self._read(looked)
            self._where.leave(self._one)
        return looked

    async def cut(self) -> Looked:
        """The same where there will be no result: the rows are committed now."""
        with anyio.CancelScope(shield=True):
            looked = await self.over()
            if looked.rows and self._context.reach.shadow is not None:
                await self._context.reach.shadow.commit(looked.rows)
        return looked


async def make_up(reach: Reach, where: Ground, now: float | None = None) -> None:
    """Commit what is owed: of commands that were killed with their process, and of calls whose result was lost by
    `now`."""
    shadow, found = reach.shadow, list[Running]()
    if shadow is None:
        return
    if first := not shadow.looked_back:
        found += await anyio.to_thread.run_sync(where.lost)
    found += where.owed(now) if now is not None else ()
    marks = Marks(where.real, {}) if not found else await marks_in(reach, others=False)
    for one in found:
        unmarked = not one.marked and one.by.undoes is None
        if unmarked and (rows := await anyio.to_thread.run_sync(_marks_of_cut, one, reach, marks)):
            await shadow.commit(rows)
        if not await reach.rows("effect_known", (one.by.key,)) and (rows := where.rows(one)):
            await shadow.commit(rows)
        where.settled(one)
    if first:
        await anyio.to_thread.run_sync(shadow.notes.forget)
        shadow.looked_back = True


def _marks_of_cut(one: Running, reach: Reach, marks: Marks) -> tuple[Change, ...]:
    """The rows of what a command may have written that was killed with its process: on the word of which it began, and
    of all that was read since."""
    root = reach.files.roots[0][0]
    label = join((one.label, one.heard(), *one.beside))
    if one.over_at is None:
        label = join((label, read_since(marks, root)))
    if not lasting(label):
        return ()
    folders = (root, *(mount.path for mount in reach.mounts if mount.write and not mount.path.startswith(f"{root}/")))
    until_ns = one.over_ns if one.over_ns is not None else 1 << 63
    paths = {path for folder in folders for path, at in changed_since(folder, one.begun_ns) if at <= until_ns}
    paths -= {f"{root}/{path}" for path, seen in _kept(reach)}  # it is as it was, or one of the next
    paths |= {f"{root}/{path}" for path in one.touched}
    noted = (one.by.session, one.by.at)
    rows = ((path, join((label, marks.stored.get(stored_as(path), LOCAL)))) for path in sorted(paths))
    marked = (change for path, joined in rows for change in marks.rows(path, joined, noted))
    return (*_effect_mark(one.by, label), *marked)


def _kept(reach: Reach) -> Iterator[tuple[str, Seen]]:
    """The files of which the bytes are known, so that looking has told whether they were changed."""
    seen = reach.shadow.seen if reach.shadow is not None else {}
    return ((path, each) for path, each in list(seen.items()) if digest_of(each.state))


def _is_cut(one: Running) -> bool:
    """Whether it did not come to its end."""
    return one.over_at is None and one.by.undoes is None
