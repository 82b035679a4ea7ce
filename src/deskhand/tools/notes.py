"""What runs in a workspace and what it has done, noted in a file, so that it can be undone after a kill too."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from ..types.folders import make_private
from ..types.labels import LOCAL, Label, join
from .states import Changed


class By(msgspec.Struct, frozen=True):
    """Who does something: a call, or an undo of the effect `undoes`, by which `revives` can be undone again. `what`
    is a line for people."""

    key: str
    agent: str
    session: str
    person: str
    tool: str
    what: str
    at: float
    undoes: int | None = None
    revives: int | None = None


class Running:
    """A command that runs, or that is over and whose rows may not be committed yet. What is changed since `begun_ns`,
    until `over_ns`, may be what it wrote, and on the word of `label` and of what it has `heard` since. `whole`: all
    that was there was looked at before it. `noted` is what of it is noted for review already, by path."""

    def __init__(self, by: By, label: Label = LOCAL, begun_ns: int = 0, *, whole: bool = False) -> None:
        self.by, self.label, self.begun_ns, self.whole = by, label, begun_ns, whole
        self.noted: dict[str, str | None] = {}
        self.over_ns: int | None = None
        self.heard: Callable[[], Label] = lambda: LOCAL
        self.items: dict[str, Changed] = {}
        self.touched: set[str] = set()
        self.over_at: float | None = None

    def add(self, changes: Sequence[Changed]) -> None:
        """It has done this, too."""
        for each in changes:
            known = self.items.get(each.path)
            self.items[each.path] = Changed(each.path, known.before if known else each.before, each.after)

    @property
    def rows(self) -> tuple[Changed, ...]:
        """What it comes to."""
        return tuple(each for each in self.items.values() if each.before != each.after)

    def word(self) -> Word:
        """Whose word is in what was changed while it ran."""
        return Word(self.begun_ns, self.over_ns, join((self.label, self.heard())))


class Word(msgspec.Struct, frozen=True):
    """The label of what was changed from `begun_ns` on, until `over_ns`."""

    begun_ns: int
    over_ns: int | None
    label: Label

    def of(self, path: str) -> bool:
        """Whether what lies there, or what it leads to, was changed then; what cannot be looked at may have been."""
        try:
            changed = {os.lstat(path).st_ctime_ns, os.stat(path).st_ctime_ns}  # noqa: PTH116 -- strings, as marks are
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return any(self.begun_ns <= each and (self.over_ns is None or each <= self.over_ns) for each in changed)


class _Note(msgspec.Struct):
    """A line of the file: by whom, and what it has done, as (path in hex, before, after)."""

    by: By
    items: list[tuple[str, str | None, str | None]]
    over: bool
    label: Label = LOCAL
    begun_ns: int = 0
    whole: bool = False


_encode = msgspec.json.Encoder().encode


class Notes:
    """The notes of this process on a workspace. Their lock tells others that we live."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._held, self._read = folder, -1, list[tuple[int, Path]]()

    def write(self, running: Iterable[Running]) -> None:
        """Note these, and no others, in one write that a kill does not cut. Raises OSError."""
        notes = [_note(each) for each in running]
        if self._held < 0:
            if not notes:
                return
            make_private(self._folder)
            self._held = _own_file(self._folder)
        os.pwrite(self._held, _encode(notes) + b"\n", 0)  # what a longer one leaves behind it is not read

    def left(self) -> list[Running]:
        """What processes that are gone have noted. It is theirs until `forget`."""
        found = list[Running]()
        for path in sorted(self._folder.glob("*")):
            with suppress(OSError, ValueError):
                held = os.open(path, os.O_RDWR | os.O_CLOEXEC)
                try:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    os.close(held)
                    continue
                self._read.append((held, path))
                line = path.read_bytes().partition(b"\n")[0]
                found += [_running(note) for note in msgspec.json.decode(line or b"[]", type=list[_Note])]
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
    """A new file there, locked by us and by nobody before us: who takes it for one that was left removes it."""
    while True:
        held, _ = tempfile.mkstemp(prefix=f"{os.getpid()}-", dir=folder)
        fcntl.flock(held, fcntl.LOCK_EX)
        if os.fstat(held).st_nlink:
            return held
        os.close(held)


def _note(one: Running) -> _Note:
    return _Note(one.by, _items(one), one.over_at is not None, one.label, one.begun_ns, one.whole)


def _items(one: Running) -> list[tuple[str, str | None, str | None]]:
    return [(os.fsencode(each.path).hex(), each.before, each.after) for each in one.items.values()]


def _running(note: _Note) -> Running:
    one = Running(note.by, note.label, note.begun_ns, whole=note.whole)
    one.add([Changed(os.fsdecode(bytes.fromhex(name)), before, after) for name, before, after in note.items])
    one.over_at = 0.0 if note.over else None
    return one
