"""Which marked files a command read, by what the kernel notes of every read: the time of the last access.

Before a command the marked files get a last access long ago; whoever reads one, by whatever way the sandbox leaves
open, changes that (`relatime` renews times that lie before the last change). A file that was changed, renamed or
removed meanwhile counts as read, since whoever read it may have hidden that so. Where the file system keeps no such
times, all marked files count as read.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..types.commit import Change
from ..types.errors import ToolError
from ..types.labels import LOCAL, Label, join
from .base import Context
from .heavy import is_heavy
from .marks import PRIVATE, Marks, lasting, marks_of, tainted

MOST = 500
"""With more marked files than this all count as read: looking would take longer than the command."""
FEW = 32
"""So many are looked at where we are: going to a thread would take longer."""
LONG_AGO_NS = 1_000_000_000
COARSE_NS = 20_000_000
"""The times of files are of the last tick of the kernel's clock."""


class _Armed(msgspec.Struct, frozen=True):
    """A marked file, or the folder around one, as it was when the command began."""

    path: str
    device: int
    inode: int
    changed_ns: int
    folder: bool = False


class Reads:
    """Begin with `of`; when the command is over, `look`, and then ask for the labels."""

    def __init__(
        self, marks: Marks, marked: Sequence[str], armed: Sequence[_Armed] | None, heard: Label = LOCAL
    ) -> None:
        self._marks, self._marked, self._armed = marks, marked, armed
        self.read: tuple[str, ...] = ()
        """The marked files that were read; a folder stands for those in it, whose names were."""
        self._begun_ns = time.time_ns() - COARSE_NS
        self.heard: Label = heard
        """Whose word came to the command from elsewhere."""

    @classmethod
    async def of(cls, context: Context) -> Reads:
        """Begin to look."""
        marks = await marks_of(context)
        return await anyio.to_thread.run_sync(cls.begun, marks, context)

    @classmethod
    def begun(cls, marks: Marks, context: Context) -> Reads:
        """The same, which blocks."""
        roots = (context.reach.files.roots[0][0], *(mount.path for mount in context.reach.mounts))
        stored = [path for path in marks.stored if any(path.startswith(f"{root}/") for root in roots)]
        marked = [*stored, *(path for path in _private(roots[0]) if path not in marks.stored)]
        if not marked:
            return cls(marks, (), ())
        if len(marked) <= MOST:
            return cls._armed_on(marks, marked, stored, context)
        # What people of the house had written is not looked at then, but counts as read.
        heard = join((LOCAL, *(replace(LOCAL, by=marks.stored[path].by) for path in stored)))
        stored = [path for path in stored if tainted(marks.stored[path])]
        marked = [path for path in marked if path not in marks.stored or tainted(marks.stored[path])]
        return cls._armed_on(marks, marked, stored, context, heard)

    @classmethod
    def _armed_on(
        cls, marks: Marks, marked: Sequence[str], stored: Sequence[str], context: Context, heard: Label = LOCAL
    ) -> Reads:
        if len(marked) > MOST:
            return cls(marks, marked, None, heard)
        folders = {os.path.dirname(path) for path in stored}  # noqa: PTH120 -- strings, as the marks have them
        armed, sure = list[_Armed](), True
        for path in dict.fromkeys((*marked, *folders)):
            if _is_name(path):
                continue
            try:
                descriptor = context.reach.files.open_beneath(path)
            except ToolError:
                sure = sure and "\\x" not in path  # a name that is no text cannot be looked at
                continue  # it is gone, or another folder lies in the way: nobody reads it there
            try:
                armed.append(_arm(path, descriptor))
            except (OSError, ValueError):
                sure = False
            finally:
                os.close(descriptor)
        return cls(marks, marked, armed if sure else None, heard)

    async def look(self) -> None:
        """The command is over, or has come so far: see what it read."""
        if self._armed is None:
            self.read = tuple(self._marked)
        elif len(self._armed) <= FEW:
            self.read = tuple(self._looked(self._armed))
        else:
            self.read = await anyio.to_thread.run_sync(lambda: tuple(self._looked(self._armed or ())))

    def _looked(self, armed: Sequence[_Armed]) -> Iterator[str]:
        for each in armed:
            try:
                now = os.lstat(each.path)
            except OSError:
                yield each.path
                continue
            same = (now.st_dev, now.st_ino) == (each.device, each.inode)
            if not same or now.st_atime_ns != LONG_AGO_NS or (now.st_ctime_ns != each.changed_ns and not each.folder):
                yield each.path

    def now(self) -> Label:
        """The label of what it has read and heard until now. It blocks."""
        if self._armed:
            self.read = tuple(self._looked(self._armed))
        elif self._armed is None:
            self.read = tuple(self._marked)
        return self.label()

    def label(self) -> Label:
        """The label of what the command may have said."""
        return join((self.files(), self.heard))

    def files(self) -> Label:
        """That of the files which it read."""
        files = {each for each in self.read if each in self._marked}
        named = {path for path in self._marks.stored if os.path.dirname(path) in self.read}  # noqa: PTH120
        return self._marks.joined(files | named)

    def marks(self, changed: Iterable[str], context: Context) -> tuple[Change, ...]:
        """The rows of the files that the command made or changed, given by their real paths: they carry what the
        conversation had read, and what the command read."""
        label = join((context.label, self.label()))
        if not lasting(label) and not self._marked:
            return ()
        moved = {each.inode: self._marks.of(each.path) for each in self._armed or () if not each.folder}
        rows: list[Change] = []
        unwatched = _unwatched(context, self._begun_ns) if tainted(label) else ()
        beside = (os.fsencode(path).decode(errors="backslashreplace") for path in unwatched)
        for path in (*changed, *beside):
            try:
                status = os.lstat(path)
            except OSError:
                if "\\x" in path:  # it is there, under a name that is no text
                    rows += self._marks.written(path, label, context)
                continue  # what was removed keeps its mark: it may be put back
            kind = self._marks.written if stat.S_ISREG(status.st_mode) else self._marks.named
            rows += kind(path, join((label, moved.get(status.st_ino, LOCAL))), context)
        return tuple(rows)


def read_since(marks: Marks, root: str) -> Label:
    """The label of the marked files beneath `root` that were read since a command began there that cannot be asked any
    more, as nothing is known of it but that."""
    paths = [*(path for path in marks.stored if path.startswith(f"{root}/")), *_private(root)]
    return marks.joined(path for path in paths if _accessed(path))


def _accessed(path: str) -> bool:
    try:
        return os.lstat(path).st_atime_ns != LONG_AGO_NS
    except OSError:
        return True


def _is_name(path: str) -> bool:
    """Whether only its name and where it leads can be read there: who looks at those reads the folder around it."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _unwatched(context: Context, since_ns: int) -> Iterator[str]:
    """The files that were changed since then where nobody watches: in folders that programs make again, and in those
    allowed beside the workspace. What goes on there is looked at only where it must be marked."""
    root = context.reach.files.roots[0][0]
    for at, folders, _ in os.walk(root):
        inside = at[len(root) + 1 :]
        for name in [name for name in folders if is_heavy(f"{inside}/{name}".lstrip("/"))]:
            folders.remove(name)
            yield from changed_since(f"{at}/{name}", since_ns)
    for mount in context.reach.mounts:
        if mount.write and not mount.path.startswith(f"{root}/"):
            yield from changed_since(mount.path, since_ns)


def changed_since(folder: str, since_ns: int) -> Iterator[str]:
    """What lies beneath a folder and was changed since then, folders and links too."""
    for at, folders, names in os.walk(folder):
        for name in (*folders, *names):
            with suppress(OSError):
                if os.lstat(f"{at}/{name}").st_ctime_ns >= since_ns:
                    yield f"{at}/{name}"


def _arm(path: str, descriptor: int) -> _Armed:
    """Give it a last access long ago. Raises OSError; ValueError where reads leave no trace."""
    status = os.fstat(descriptor)
    folder = stat.S_ISDIR(status.st_mode)
    if not (folder or stat.S_ISREG(status.st_mode)) or not keeps_times(descriptor, status):
        raise ValueError(path)
    if status.st_atime_ns != LONG_AGO_NS:
        os.utime(descriptor, ns=(LONG_AGO_NS, status.st_mtime_ns))
        status = os.fstat(descriptor)
    return _Armed(path, status.st_dev, status.st_ino, status.st_ctime_ns, folder)


_known: dict[int, bool] = {}


def keeps_times(descriptor: int, status: os.stat_result) -> bool:
    """Whether a read leaves a trace here, tried once for each file system, on what is marked first there."""
    if status.st_dev not in _known:
        folder = stat.S_ISDIR(status.st_mode)
        if not folder and not status.st_size:
            return False
        os.utime(descriptor, ns=(LONG_AGO_NS, status.st_mtime_ns))
        if folder:
            os.listdir(descriptor)
        else:
            os.pread(descriptor, 1, 0)
        _known[status.st_dev] = os.fstat(descriptor).st_atime_ns != LONG_AGO_NS
    return _known[status.st_dev]


def _private(folder: str) -> Iterator[str]:
    """The files about the owner in a workspace."""
    try:
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if entry.name.casefold().rstrip(". ") in PRIVATE]
    except OSError:
        return
    for entry in found:
        if entry.is_file(follow_symlinks=False):
            yield entry.path
        elif entry.is_dir(follow_symlinks=False):
            for at, _, names in os.walk(entry.path):
                yield from (f"{at}/{name}" for name in names)
