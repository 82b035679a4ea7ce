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
from .path_states import ChangedPath

FILE_TOOLS = frozenset({"write_file", "edit_file", "manage_skill"})
"""Tools whose changes run no program."""


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

    @property
    def runs_program(self) -> bool:
        """Whether it is more than a change of one file of ours: a program may do anything."""
        return self.tool not in FILE_TOOLS


class RunningEffect:
    """A command that runs, or that is over and whose rows may not be committed yet. What is changed
    since `begun_ns`, until `over_ns`, may be what it wrote, and on the word of `label` and of what
    it has heard since (`current_label`); when it is `marked`, the marks say so. `whole`: all that
    was there was looked at before it. `noted_for_review` is what of it is noted already, by path.
    `concurrent_labels` are those of commands that ran at the same time and are over, by when the
    first of each was: what they wrote it may have read. `arm_file` has it notice whether it reads a
    file that got a label just now, `note_reads` tells it of files that somebody has read."""

    def __init__(
        self, by: By, label: Label = LOCAL, begun_ns: int = 0, *, whole: bool = False
    ) -> None:
        self.by = by
        self.label = label
        self.begun_ns = begun_ns
        self.whole = whole
        self.noted_for_review: dict[str, str | None] = {}
        self.over_ns: int | None = None
        self.marked = False
        self.concurrent_labels: dict[Label, int] = {}
        self.arm_file: Callable[[str, Label], None] = lambda path, label: None
        self.note_reads: Callable[[Collection[str]], None] = lambda paths: None
        self.current_label: Callable[[], Label] = lambda: LOCAL
        self.items: dict[str, ChangedPath] = {}
        self.touched: set[str] = set()
        self.over_at: float | None = None

    @property
    def is_interrupted(self) -> bool:
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
    def net_changes(self) -> tuple[ChangedPath, ...]:
        """What it comes to."""
        return tuple(each for each in list(self.items.values()) if each.before != each.after)

    def pending_labels(self) -> list[PendingLabel]:
        """Whose word is in what was changed while it ran."""
        touched = frozenset(self.touched)
        beside = [
            PendingLabel(since_ns, self.over_ns, label, touched)
            for label, since_ns in list(self.concurrent_labels.items())
        ]
        return [
            PendingLabel(
                self.begun_ns,
                self.over_ns,
                join_labels((self.label, self.current_label())),
                touched,
            ),
            *beside,
        ]


ArmedFiles = Mapping[str, tuple[int, int]]
"""Files whose readers are wanted, by their real paths: when it was changed by that, and when it was
before."""


def external_change_ns(path: str, changed_ns: int, armed: ArmedFiles) -> int:
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
    armed: ArmedFiles = {}

    def covers_path(self, path: str) -> bool:
        """Whether what lies there, or what it leads to, was changed or brought there then; what
        cannot be looked at may have been."""
        try:
            names = dict.fromkeys((path, os.path.realpath(path)))
            return any(map(self._covers_entry, names))
        except FileNotFoundError:
            return False
        except OSError:
            return True

    def covers_read(self, path: str, changed_ns: int) -> bool:
        """Whether what was read there when it had been changed last at this time may have been
        changed then; 0: nobody knows."""
        if changed_ns == 0:
            return False
        return self._covers_time(external_change_ns(path, changed_ns, self.armed))

    def _covers_entry(self, path: str) -> bool:
        return self._covers_status(path, os.lstat(path)) or self._was_moved_in(path)

    def covers_name(self, path: str) -> bool:
        """Whether the name of what lies there may have come there then: it was made, or moved."""
        if not path.startswith(f"{self.root}/"):
            return self._covers_status(path, os.lstat(path))
        inner = path[len(self.root) + 1 :]
        status = os.lstat(path)
        if inner in self.touched:
            return True
        if not self._covers_status(path, status):
            return False
        return self.stood is None or self.stood(inner) != status.st_ino

    def _was_moved_in(self, path: str) -> bool:
        """Whether it came there with a folder around it, which changes nothing of itself."""
        if not path.startswith(f"{self.root}/"):
            return False
        inner = path[len(self.root) + 1 :]
        if inner in self.touched:
            return True
        parts = inner.split("/")
        above = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
        return any(self.covers_name(f"{self.root}/{folder}") for folder in above)

    def _covers_time(self, changed_ns: int) -> bool:
        return self.begun_ns <= changed_ns and (self.over_ns is None or changed_ns <= self.over_ns)

    def _covers_status(self, path: str, status: os.stat_result) -> bool:
        return self._covers_time(external_change_ns(path, status.st_ctime_ns, self.armed))

    def covers_any_in(self, folders: Iterable[str]) -> bool:
        """Whether anything beneath these folders was changed then, or came or went. It blocks."""
        for folder in folders:
            for path, status in tree.walk_tree(folder):
                if self._covers_status(path, status):
                    return True
        return False


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
        self._folder = folder
        self._descriptor = -1
        self._name = ""
        self._leftover: list[tuple[int, Path]] = []

    def write(self, running: Iterable[RunningEffect]) -> None:
        """Note these, and no others, in one write that a kill does not cut. Raises OSError."""
        notes = [_make_note(each) for each in running]
        if self._descriptor < 0:
            if not notes:
                return
            make_private_folder(self._folder)
            self._descriptor, path = _create_locked_file(self._folder)
            self._name = path.name
        # What a longer one leaves behind it is not read.
        os.pwrite(self._descriptor, _encode(notes) + b"\n", 0)

    def read_leftover(self) -> list[RunningEffect]:
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
                self._leftover.append((held, path))
                found += _decode_notes(path.read_bytes().partition(b"\n")[0])
        return found

    def read_others(self) -> list[RunningEffect]:
        """What other processes have noted, whether they live or are gone, and which is not in the
        database yet."""
        found = list[RunningEffect]()
        try:
            with os.scandir(self._folder) as entries:
                paths = [entry.path for entry in entries if entry.name != self._name]
        except OSError:
            return found
        for path in sorted(paths):
            with suppress(OSError, ValueError, RecursionError), open(path, "rb") as file:  # noqa: PTH123 -- asked often
                found += _decode_notes(file.readline())
        return found

    def delete_leftover(self) -> None:
        """What they noted is in the database now."""
        while self._leftover:
            held, path = self._leftover.pop()
            path.unlink(missing_ok=True)
            os.close(held)

    def close(self) -> None:
        """Nothing runs any more."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor, self._name = -1, ""


def _create_locked_file(folder: Path) -> tuple[int, Path]:
    """A new file there, locked by us and by nobody before us: who takes it for one that was left
    removes it."""
    while True:
        held, path = tempfile.mkstemp(prefix=f"{os.getpid()}-", dir=folder)
        fcntl.flock(held, fcntl.LOCK_EX)
        if os.fstat(held).st_nlink:
            return held, Path(path)
        os.close(held)


def _encode_items(one: RunningEffect) -> list[tuple[str, str | None, str | None]]:
    return [(os.fsencode(each.path).hex(), each.before, each.after) for each in one.items.values()]


def _make_note(one: RunningEffect) -> _Note:
    label = one.label
    touched = list[str]()
    if not one.marked:
        label = join_labels((one.label, one.current_label(), *one.concurrent_labels))
        touched = [os.fsencode(path).hex() for path in one.touched]
    return _Note(
        by=one.by,
        items=_encode_items(one),
        over=one.over_at is not None,
        label=label,
        begun_ns=one.begun_ns,
        over_ns=one.over_ns,
        marked=one.marked,
        touched=touched,
        whole=one.whole,
    )


def _decode_notes(line: bytes) -> list[RunningEffect]:
    """What stands in the line of a file of notes. Raises ValueError, RecursionError."""
    notes = msgspec.json.decode(line.strip() or b"[]", type=list[_Note])
    return [_to_running_effect(note) for note in notes]


def _to_running_effect(note: _Note) -> RunningEffect:
    one = RunningEffect(note.by, note.label, note.begun_ns, whole=note.whole)
    one.over_ns = note.over_ns
    one.marked = note.marked
    one.touched.update(map(_decode_path, note.touched))
    one.add([ChangedPath(_decode_path(path), before, after) for path, before, after in note.items])
    one.over_at = 0.0 if note.over else None
    return one


def _decode_path(path: str) -> str:
    return os.fsdecode(bytes.fromhex(path))
