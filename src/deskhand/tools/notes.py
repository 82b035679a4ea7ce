"""What runs in a workspace and what it has done, noted in a file, so that it can be undone after a
kill too."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ..types.folders import make_private_folder
from ..types.labels import LOCAL, Label, join_labels
from . import tree
from .states import ChangedPath


class By(msgspec.Struct, frozen=True):
    """Who does something: a call, or an undo of the effect `undoes`, by which `revives` can be
    undone again. `what` is a line for people."""

    key: str
    agent: str
    session: str
    person: str
    tool: str
    what: str
    at: float
    undoes: int | None = None
    revives: int | None = None


class RunningEffect:
    """A command that runs, or that is over and whose rows may not be committed yet. What is changed
    since `begun_ns`, until `over_ns`, may be what it wrote, and on the word of `label` and of what
    it has `heard` since; when it is `marked`, the marks say so. `whole`: all that was there was
    looked at before it. `noted` is what of it is noted for review already, by path. `beside` are
    the labels of those that ran at the same time and are over, by when the first of each was: what
    they wrote it may have read. `arm` has it notice whether it reads a file that got a label just
    now, `noticed` tells it of files that somebody has read."""

    def __init__(
        self, by: By, label: Label = LOCAL, begun_ns: int = 0, *, whole: bool = False
    ) -> None:
        self.by = by
        self.label = label
        self.begun_ns = begun_ns
        self.whole = whole
        self.noted: dict[str, str | None] = {}
        self.over_ns: int | None = None
        self.marked = False
        self.beside: dict[Label, int] = {}
        self.arm: Callable[[str, Label], None] = lambda path, label: None
        self.noticed: Callable[[Collection[str]], None] = lambda paths: None
        self.heard: Callable[[], Label] = lambda: LOCAL
        self.items: dict[str, ChangedPath] = {}
        self.touched: set[str] = set()
        self.over_at: float | None = None

    @property
    def is_cut(self) -> bool:
        """Whether it did not come to its end, and is no undo, which is brought about again."""
        return self.over_at is None and self.by.undoes is None

    def add(self, changes: Sequence[ChangedPath]) -> None:
        """It has done this, too."""
        for each in changes:
            known = self.items.get(each.path)
            self.items[each.path] = ChangedPath(
                each.path, known.before if known else each.before, each.after
            )

    @property
    def rows(self) -> tuple[ChangedPath, ...]:
        """What it comes to."""
        return tuple(each for each in list(self.items.values()) if each.before != each.after)

    def words(self) -> list[PendingLabel]:
        """Whose word is in what was changed while it ran."""
        touched = frozenset(self.touched)
        beside = [
            PendingLabel(since_ns, self.over_ns, label, touched)
            for label, since_ns in list(self.beside.items())
        ]
        return [
            PendingLabel(
                self.begun_ns, self.over_ns, join_labels((self.label, self.heard())), touched
            ),
            *beside,
        ]


Armed = Mapping[str, tuple[int, int]]
"""Files whose readers are wanted, by their real paths: when it was changed by that, and when it was
before."""


def changed_at(path: str, changed_ns: int, armed: Armed) -> int:
    """When it was changed by others than us, who have only wanted to know who reads it."""
    by_us, before = armed.get(path, (0, 0))
    return before if changed_ns == by_us else changed_ns


class PendingLabel(msgspec.Struct, frozen=True):
    """The label of what was changed from `begun_ns` on, until `over_ns`. `touched` are the paths
    beneath the folder `root` that were found changed since, `stood` tells where what was when that
    was looked at last: by its path, its inode (0: there was nothing). What we have `armed` was not
    changed by that."""

    begun_ns: int
    over_ns: int | None
    label: Label
    touched: frozenset[str] = frozenset()
    root: str = ""
    stood: Callable[[str], int] | None = None
    armed: Armed = {}

    def of(self, path: str) -> bool:
        """Whether what lies there, or what it leads to, was changed or brought there then; what
        cannot be looked at may have been."""
        try:
            return any(self._of(each) for each in dict.fromkeys((path, os.path.realpath(path))))
        except FileNotFoundError:
            return False
        except OSError:
            return True

    def at(self, path: str, changed_ns: int) -> bool:
        """Whether what was read there when it had been changed last at this time may have been
        changed then; 0: nobody knows."""
        return changed_ns != 0 and self._in(changed_at(path, changed_ns, self.armed))

    def _of(self, path: str) -> bool:
        return self._at(path, os.lstat(path)) or self._brought(path)

    def named(self, path: str) -> bool:
        """Whether the name of what lies there may have come there then: it was made, or moved."""
        if not path.startswith(f"{self.root}/"):
            return self._at(path, os.lstat(path))
        inner = path[len(self.root) + 1 :]
        status = os.lstat(path)
        if inner in self.touched:
            return True
        return self._at(path, status) and (self.stood is None or self.stood(inner) != status.st_ino)

    def _brought(self, path: str) -> bool:
        """Whether it came there with a folder around it, which changes nothing of itself."""
        if not path.startswith(f"{self.root}/"):
            return False
        parts = path[len(self.root) + 1 :].split("/")
        if "/".join(parts) in self.touched:
            return True
        return any(self.named(f"{self.root}/{'/'.join(parts[:n])}") for n in range(1, len(parts)))

    def _in(self, changed_ns: int) -> bool:
        return self.begun_ns <= changed_ns and (self.over_ns is None or changed_ns <= self.over_ns)

    def _at(self, path: str, status: os.stat_result) -> bool:
        return self._in(changed_at(path, status.st_ctime_ns, self.armed))

    def anywhere(self, folders: Iterable[str]) -> bool:
        """Whether anything beneath these folders was changed then, or came or went. It blocks."""
        return any(
            self._at(path, status) for folder in folders for path, status in tree.beneath(folder)
        )


class _Note(msgspec.Struct):
    """A line of the file: by whom, and what it has done, as (path in hex, before, after)."""

    by: By
    items: list[tuple[str, str | None, str | None]]
    over: bool
    label: Label = LOCAL
    begun_ns: int = 0
    over_ns: int | None = None
    marked: bool = False
    touched: list[str] = []
    whole: bool = False


_encode = msgspec.json.Encoder().encode


class RunningNotes:
    """The notes of this process on a workspace. Their lock tells others that we live."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._held, self._read = folder, -1, list[tuple[int, Path]]()

    def write(self, running: Iterable[RunningEffect]) -> None:
        """Note these, and no others, in one write that a kill does not cut. Raises OSError."""
        notes = [_note(each) for each in running]
        if self._held < 0:
            if not notes:
                return
            make_private_folder(self._folder)
            self._held = _own_file(self._folder)
        os.pwrite(
            self._held, _encode(notes) + b"\n", 0
        )  # what a longer one leaves behind it is not read

    def left(self) -> list[RunningEffect]:
        """What processes that are gone have noted. It is theirs until `forget`."""
        found = list[RunningEffect]()
        for path in sorted(self._folder.glob("*")):
            with suppress(OSError, ValueError, RecursionError):
                held = os.open(path, os.O_RDWR | os.O_CLOEXEC)
                try:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    os.close(held)
                    continue
                self._read.append((held, path))
                found += _noted(path.read_bytes().partition(b"\n")[0])
        return found

    def others(self) -> list[RunningEffect]:
        """What other processes have noted, whether they live or are gone, and which is not in the
        database yet."""
        found = list[RunningEffect]()
        try:
            with os.scandir(self._folder) as entries:
                paths = [entry.path for entry in entries]
        except OSError:
            return found
        own = os.fstat(self._held).st_ino if self._held >= 0 else 0
        for path in sorted(paths):
            with suppress(OSError, ValueError, RecursionError), open(path, "rb") as file:  # noqa: PTH123 -- asked often
                if os.fstat(file.fileno()).st_ino != own:
                    found += _noted(file.readline())
        return found

    def forget(self) -> None:
        """What they noted is in the database now."""
        while self._read:
            held, path = self._read.pop()
            path.unlink(missing_ok=True)
            os.close(held)

    def close(self) -> None:
        """Nothing runs any more."""
        if self._held >= 0:
            os.close(self._held)
            self._held = -1


def _own_file(folder: Path) -> int:
    """A new file there, locked by us and by nobody before us: who takes it for one that was left
    removes it."""
    while True:
        held, _ = tempfile.mkstemp(prefix=f"{os.getpid()}-", dir=folder)
        fcntl.flock(held, fcntl.LOCK_EX)
        if os.fstat(held).st_nlink:
            return held
        os.close(held)


def _items(one: RunningEffect) -> list[tuple[str, str | None, str | None]]:
    return [(os.fsencode(each.path).hex(), each.before, each.after) for each in one.items.values()]


def _note(one: RunningEffect) -> _Note:
    label = one.label if one.marked else join_labels((one.label, one.heard(), *one.beside))
    touched = [] if one.marked else [os.fsencode(path).hex() for path in one.touched]
    over = one.over_at is not None
    times = (one.begun_ns, one.over_ns, one.marked)
    return _Note(one.by, _items(one), over, label, *times, touched, one.whole)


def _noted(line: bytes) -> list[RunningEffect]:
    """What stands in the line of a file of notes. Raises ValueError, RecursionError."""
    return [_running(note) for note in msgspec.json.decode(line.strip() or b"[]", type=list[_Note])]


def _running(note: _Note) -> RunningEffect:
    one = RunningEffect(note.by, note.label, note.begun_ns, whole=note.whole)
    one.over_ns = note.over_ns
    one.marked = note.marked
    one.touched.update(os.fsdecode(bytes.fromhex(name)) for name in note.touched)
    one.add(
        [
            ChangedPath(os.fsdecode(bytes.fromhex(name)), before, after)
            for name, before, after in note.items
        ]
    )
    one.over_at = 0.0 if note.over else None
    return one
