"""Which marked files a command read, by what the kernel notes of every read: the time of the last
access.

Before a command the marked files get a last access long ago; whoever reads one, by whatever way the
sandbox leaves open, changes that (`relatime` renews times that lie before the last change). A file
that was changed, renamed or removed meanwhile counts as read, since whoever read it may have hidden
that so. Where the file system keeps no such times, all marked files count as read.
"""

from __future__ import annotations

import os
import re
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Literal

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..types.commit import Change
from ..types.errors import ToolError
from ..types.labels import LOCAL, Label, join_labels
from . import tree
from .access_time import LONG_AGO_NS, has_content, was_accessed
from .base import Context
from .generated_folders import is_generated_folder
from .label_marks import (
    LabelMarks,
    encode_path,
    is_tainted,
    iter_private_files,
    load_marks,
    needs_mark,
)
from .notes import PendingLabel, external_change_ns

MAX_MARKED = 500
"""With more marked files than this all count as read: looking would take longer than the
command."""
MAX_INLINE = 32
"""So many are looked at where we are: going to a thread would take longer."""
CLOCK_TICK_NS = 20_000_000
"""The times of files are of the last tick of the kernel's clock."""


class _Armed(msgspec.Struct, frozen=True):
    """A marked file, or the folder around one, as it was when the command began. Of a link or a
    pipe only whether it is still that."""

    path: str
    device: int
    inode: int
    changed_ns: int
    kind: Literal["file", "folder", "name"] = "file"

    def was_touched(self) -> bool:
        """Whether it was read since, or changed, which may hide that."""
        try:
            now = os.lstat(self.path)
        except OSError:
            return True
        if (now.st_dev, now.st_ino) != (self.device, self.inode):
            return True
        if self.kind != "name" and now.st_atime_ns != LONG_AGO_NS:
            return True
        return self.kind != "folder" and now.st_ctime_ns != self.changed_ns


OnRead = Callable[[Collection[str]], None]
"""Is told of what was read since it was armed last, before it is armed anew, which takes the trace
of that away."""


class AccessTimes:
    """Begin with `start`; when the command is over, ask for the labels."""

    def __init__(
        self,
        marks: LabelMarks,
        marked: Sequence[str],
        armed: Sequence[_Armed] | None,
        context: Context,
        heard: Label = LOCAL,
    ) -> None:
        self._marks = marks
        self._marked = set(marked)
        self._roots = _list_roots(context)
        self._lock = threading.Lock()
        self._armed = None if armed is None else list(armed)
        self.read_paths: frozenset[str] = frozenset()
        """The marked files that were read; a folder stands for those in it, whose names were."""
        self._begun_ns = time.time_ns() - CLOCK_TICK_NS
        self.network_label: Label = LOCAL
        """Whose word came to the command from elsewhere."""
        self._other_label = heard
        self._late_labels = dict[str, Label]()
        self._own_labels = dict[str, Label]()

    @classmethod
    async def start(cls, context: Context) -> AccessTimes:
        """Begin to look."""
        marks = await load_marks(context)
        return await anyio.to_thread.run_sync(cls.start_sync, marks, context)

    @classmethod
    def start_sync(
        cls, marks: LabelMarks, context: Context, tell: OnRead = lambda paths: None
    ) -> AccessTimes:
        """The same, which blocks. `tell` is told what others have read, if they run."""
        roots = _list_roots(context)
        stored = [path for path in marks.stored if _is_beneath(path, roots)]
        private = [path for path in iter_private_files(roots[0]) if path not in marks.stored]
        marked = [*stored, *private]
        if not marked:
            return cls(marks, (), (), context)
        if len(marked) <= MAX_MARKED:
            return cls._arm_all(marks, marked, stored, context, tell)

        # What people of the house had written is not looked at then, but counts as read.
        writers = (marks.stored[path].by for path in stored)
        heard = join_labels((LOCAL, *(replace(LOCAL, by=by) for by in writers)))
        tainted = [path for path in stored if is_tainted(marks.stored[path])]
        return cls._arm_all(marks, [*tainted, *private], tainted, context, tell, heard)

    @classmethod
    def _arm_all(
        cls,
        marks: LabelMarks,
        marked: Sequence[str],
        stored: Sequence[str],
        context: Context,
        tell: OnRead,
        heard: Label = LOCAL,
    ) -> AccessTimes:
        if len(marked) > MAX_MARKED:
            return cls(marks, marked, None, context, heard)
        unmarked = [path for path in marked if path not in marks.stored]
        telling = (*stored, *filter(_is_telling_name, unmarked))
        folders = {os.path.dirname(path) for path in telling}  # noqa: PTH120 -- strings, as the marks have them
        paths = dict.fromkeys((*marked, *folders))
        dirty = {path for path in paths if was_accessed(path, gone=False)}
        if dirty:
            tell(dirty)

        armed = list[_Armed]()
        sure = True
        known = context.reach.shadow.armed if context.reach.shadow is not None else {}
        for path in paths:
            name = _arm_name(path)
            if name is not None:
                armed.append(name)
                continue
            try:
                descriptor = context.reach.files.open_beneath(path)
            except ToolError:
                sure = sure and "\\x" not in path  # a name that is no text cannot be looked at
                continue  # it is gone, or another folder lies in the way: nobody reads it there
            try:
                tell_of_file = _tell_nobody if path in dirty else tell
                armed.append(_arm_file(path, descriptor, known, tell_of_file))
            except (OSError, ValueError):
                sure = False
            finally:
                os.close(descriptor)
        return cls(marks, marked, armed if sure else None, context, heard)

    def arm_file(self, path: str, label: Label) -> None:
        """This file has just got a label: see from now on whether the command reads it. It
        blocks."""
        self._late_labels[path] = label
        try:
            status = os.lstat(path)
        except OSError:
            return
        if self._armed is not None:
            armed = _Armed(path, status.st_dev, status.st_ino, status.st_ctime_ns)
            self._armed = [*(each for each in self._armed if each.path != path), armed]
        if status.st_atime_ns != LONG_AGO_NS or self._armed is None:
            self._add_reads((path,))

    def note_reads(self, paths: Collection[str]) -> None:
        """It may have read these: they were read since they were armed."""
        self._add_reads({each.path for each in self._armed or () if each.path in paths})

    def _add_reads(self, paths: Iterable[str]) -> None:
        with self._lock:
            self.read_paths |= frozenset(paths)

    async def update_reads(
        self, now: LabelMarks | None = None, words: Sequence[PendingLabel] = ()
    ) -> None:
        """The command is over, or has come so far: see what it read. `now` are the marks of this
        moment, `words` are those of others that ran at the same time: what was marked or written
        meanwhile, it may have read."""
        if len(self._armed or ()) <= MAX_INLINE and not words:
            self._update_reads()
        else:
            await anyio.to_thread.run_sync(self._update_reads, words)
        if now is not None:
            self._other_label = join_labels((self._other_label, *self._new_labels(now)))

    def _update_reads(self, words: Sequence[PendingLabel] = ()) -> None:
        if self._armed is None:
            self._add_reads((*self._marked, *self._late_labels))
        else:
            unread = [each for each in self._armed if each.path not in self.read_paths]
            self._add_reads([each.path for each in unread if each.was_touched()])
        labels = [word.label for word in words if word.covers_any_in(self._roots)]
        self._other_label = join_labels((self._other_label, *labels))

    def _new_labels(self, now: LabelMarks) -> Iterator[Label]:
        """The labels that were given since it began, by others than itself, for whatever was not
        armed then."""
        if now.stored == self._marks.stored:
            return
        for path, label in now.stored.items():
            known = (
                self._marks.stored.get(path),
                self._own_labels.get(path),
                self._late_labels.get(path),
            )
            if label not in known and _is_beneath(path, self._roots):
                yield label

    def current_label(self) -> Label:
        """The label of what it has read and heard until now. It blocks."""
        self._update_reads()
        return self.label()

    def label(self) -> Label:
        """The label of what the command may have said."""
        return join_labels((self.files_label(), self.network_label))

    def files_label(self) -> Label:
        """That of the files which it read."""
        read = self.read_paths
        files = {each for each in read if each in self._marked}
        unmarked = (path for path in self._marked if path not in self._marks.stored)
        private = filter(_is_telling_name, unmarked)
        named = {path for path in (*self._marks.stored, *private) if os.path.dirname(path) in read}  # noqa: PTH120
        given = list(self._late_labels.items())  # others may give more just now
        late = (label for path, label in given if path in read or os.path.dirname(path) in read)  # noqa: PTH120
        return join_labels((self._marks.join_labels(files | named), self._other_label, *late))

    def mark_changed(self, changed: Iterable[str], context: Context) -> tuple[Change, ...]:
        """The rows of the files that the command made or changed, given by their real paths: they
        carry what the conversation had read, and what the command read."""
        label = join_labels((context.label, self.label()))
        if not needs_mark(label) and not self._marked:
            return ()
        moved = dict[int, Label]()
        for each in self._armed or ():
            if each.kind != "folder" and each.path in self._marked:
                moved[each.inode] = self._marks.join_labels((each.path,))

        rows: list[Change] = []
        unwatched = _iter_unwatched(context, self._begun_ns) if needs_mark(label) else ()
        beside = (os.fsencode(path).decode(errors="backslashreplace") for path in unwatched)
        for path in (*changed, *beside):
            try:
                status = os.lstat(path)
            except OSError:
                if "\\x" in path:  # it is there, under a name that is no text
                    rows += self._marks.mark_content(path, label, context)
                continue  # what was removed keeps its mark: it may be put back
            said = join_labels((label, moved.get(status.st_ino, LOCAL)))
            self._own_labels[encode_path(self._marks.entry_path(path))] = said
            if stat.S_ISREG(status.st_mode):
                rows += self._marks.mark_content(path, said, context)
            else:
                rows += self._marks.mark_entry(path, said, context)
        return tuple(rows)


def _tell_nobody(paths: Collection[str]) -> None:
    pass


def _arm_name(path: str) -> _Armed | None:
    """A link, a pipe or the like as it is now; None for anything else, and for nothing."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    if has_content(status):
        return None
    return _Armed(path, status.st_dev, status.st_ino, status.st_ctime_ns, "name")


def _list_roots(context: Context) -> tuple[str, ...]:
    return context.reach.files.roots[0][0], *(mount.path for mount in context.reach.mounts)


def _is_beneath(path: str, roots: Iterable[str]) -> bool:
    return any(path.startswith(f"{root}/") for root in roots)


def _iter_unwatched(context: Context, since_ns: int) -> Iterator[str]:
    """The files that were changed since then where nobody watches: in folders that programs make
    again, and in those allowed beside the workspace. What goes on there is looked at only where it
    must be marked."""
    root = context.reach.files.roots[0][0]
    for path, _ in iter_changed_since(root, since_ns):
        parts = path[len(root) + 1 :].split("/")
        if any(is_generated_folder("/".join(parts[:n])) for n in range(1, len(parts))):
            yield path
    for mount in context.reach.mounts:
        if mount.write and not mount.path.startswith(f"{root}/"):
            yield from (path for path, _ in iter_changed_since(mount.path, since_ns))


def iter_changed_since(folder: str, since_ns: int) -> Iterator[tuple[str, int]]:
    """What lies beneath a folder and was changed since then, folders and links too, and when."""
    for path, status in tree.walk_tree(folder):
        if status.st_ctime_ns >= since_ns and path != folder:
            yield path, status.st_ctime_ns


def _arm_file(
    path: str, descriptor: int, known: dict[str, tuple[int, int]], tell: OnRead
) -> _Armed:
    """Give it a last access long ago, after telling that it has had another, and note in `known`
    that this has changed it. Raises OSError; ValueError where reads leave no trace."""
    status = os.fstat(descriptor)
    is_folder = stat.S_ISDIR(status.st_mode)
    if not is_folder and not stat.S_ISREG(status.st_mode):
        raise ValueError(path)
    if not keeps_access_times(descriptor, status):
        raise ValueError(path)
    if status.st_atime_ns != LONG_AGO_NS:
        tell((path,))
        changed_ns = external_change_ns(path, status.st_ctime_ns, known)
        os.utime(descriptor, ns=(LONG_AGO_NS, status.st_mtime_ns))
        status = os.fstat(descriptor)
        known[path] = (status.st_ctime_ns, changed_ns)
    kind: Literal["file", "folder"] = "folder" if is_folder else "file"
    return _Armed(path, status.st_dev, status.st_ino, status.st_ctime_ns, kind)


_keeps_times_cache: dict[int, bool] = {}
_STANDARD_NAMES = frozenset({"user.md", "memory.md", "knowledge.md", "learnings.md", "index.json"})
_DAY_FILE = re.compile(r"\d{4}-\d{2}-\d{2}\.md")


def keeps_access_times(descriptor: int, status: os.stat_result) -> bool:
    """Whether a read leaves a trace here, tried once for each file system, on what is marked first
    there."""
    if status.st_dev not in _keeps_times_cache:
        folder = stat.S_ISDIR(status.st_mode)
        if not folder and not status.st_size:
            return False
        os.utime(descriptor, ns=(LONG_AGO_NS, status.st_mtime_ns))
        if folder:
            os.listdir(descriptor)
        else:
            os.pread(descriptor, 1, 0)
        _keeps_times_cache[status.st_dev] = os.fstat(descriptor).st_atime_ns != LONG_AGO_NS
    return _keeps_times_cache[status.st_dev]


def _is_telling_name(path: str) -> bool:
    """Whether the name of a file about the owner says something: those that we give say nothing."""
    name = path.rpartition("/")[2].casefold()
    return name not in _STANDARD_NAMES and not _DAY_FILE.fullmatch(name)
