"""Whose word a file is: what untrusted words went into stays untrusted, and what is the owner's alone stays that.

A file that nobody marked is this machine's own. Marks lie in the database by real path; memories and what is known of
the owner are the owner's wherever they lie in a workspace.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePosixPath

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..policy.gate import may_see
from ..store.sql import load_sql
from ..types.commit import Change
from ..types.labels import LOCAL, Label, join
from .base import Context, Reach
from .notes import Word
from .shadow import Shadow

STATEMENTS = load_sql(__package__, "marks.sql")
PRIVATE = ("user.md", "memory.md", "memory")
"""Beneath a workspace: what only its owner reads, case apart."""
OWNERS = ("role:owner",)
_decode = msgspec.json.Decoder(Label).decode


PATH_CHARS, DEEPEST = 4_096, 120
"""Of a path that is looked at: each folder on the way may be a link, and leads to where all of it is walked again."""
TOO_LONG = Label("untrusted", source="a file whose path is too long to be looked at")


def _is_too_long(path: str) -> bool:
    return len(path) > PATH_CHARS or path.count("/") > DEEPEST


def lasting(label: Label) -> bool:
    """Whether what is written under this label has to be marked."""
    return tainted(label) or bool(label.by)


def tainted(label: Label) -> bool:
    """Whether it is not this house's own word, or not for everybody in it."""
    return label.integrity == "untrusted" or label.readers is not None


def is_private(folder: str, real: str) -> bool:
    """Whether this file of a workspace is about the owner."""
    if not real.startswith(f"{folder}/"):
        return False
    return PurePosixPath(real[len(folder) + 1 :]).parts[0].casefold().rstrip(". ") in PRIVATE


class Marks:
    """The marks of all files, as they were at one moment. Paths are as tools take them: absolute, or in the workspace,
    whose real path is `folder`. `words` are those that may be written there just then, and are not marked yet."""

    def __init__(self, folder: str, stored: Mapping[str, Label], words: Sequence[Word] = ()) -> None:
        self._folder, self.stored, self._words = folder, stored, words

    def real(self, path: str) -> str:
        """The one name of a file, however it is written."""
        return os.path.realpath(self._whole(path))

    def own(self, path: str) -> str:
        """The one name of what lies there itself: of a link, and not of what it leads to."""
        folder, _, name = self._whole(path).rpartition("/")
        return f"{os.path.realpath(folder or '/')}/{name}" if name not in ("", ".", "..") else self.real(path)

    def _whole(self, path: str) -> str:
        return path if path.startswith("/") else f"{self._folder}/{path}"

    def of(self, path: str) -> Label:
        """The label of what stands in this file, and of the link to it."""
        if "\0" in path:
            return LOCAL  # nothing is called so
        if _is_too_long(path):
            return TOO_LONG
        real, found = self.real(path), self.marked(path)
        if not self.private(real):
            return found
        source = f"file {real.removeprefix(self._folder).lstrip('/')}"
        return join((found, Label("tool_local", OWNERS, source)))

    def marked(self, path: str) -> Label:
        """The same as far as marks tell, or will."""
        real, own = self.real(path), self.own(path)
        found = self._at(real)
        if own != real:
            found = join((found, self._at(own), self._links(path, real)))
        for word in self._words:
            if word.of(own):
                found = join((found, word.label))
        return found

    def _at(self, name: str) -> Label:
        return self.stored.get(stored_as(name), LOCAL)

    def _links(self, path: str, real: str) -> Label:
        """The label of the links over which a path leads to what really lies there."""
        at, found = self._whole(path), LOCAL
        while at not in ("", self._folder) and self.stored:
            own = self.own(at)
            if own != real:
                found = join((found, self._at(own)))
            at = at.rpartition("/")[0]
        return found

    def told(self, paths: Iterable[str]) -> Label:
        """The label of what is told of these files by their paths: of what stands in them, and of the names of the
        folders in which they lie."""
        if not self.stored and not self._words:
            return join((LOCAL, *(self.of(path) for path in paths)))
        labels, around = list[Label](), set[str]()
        for path in paths:
            labels.append(self.of(path))
            if _is_too_long(path):
                continue
            at = self.own(path).rpartition("/")[0]
            while at.startswith(f"{self._folder}/") and at not in around:
                around.add(at)
                at = at.rpartition("/")[0]
        for each in around:
            labels.append(self._at(each))
            with suppress(OSError):
                labels += [word.label for word in self._words if word.named(each)]
        return join((LOCAL, *labels))

    def private(self, real: str) -> bool:
        """Whether this is a file about the owner."""
        return is_private(self._folder, real)

    def joined(self, paths: Iterable[str]) -> Label:
        """The label of content from all these files."""
        return join((LOCAL, *(self.of(path) for path in paths)))

    def closed(self, path: str, context: Context) -> bool:
        """Whether those who read this conversation may not all see the file."""
        return not may_see(self.of(path), context.audience)

    def written(self, path: str, label: Label, context: Context) -> tuple[Change, ...]:
        """The rows of a file whose content now has this label."""
        return self._rows(self.real(path), label, context)

    def named(self, path: str, label: Label, context: Context) -> tuple[Change, ...]:
        """The rows of a name whose words have this label: of a link, with where it leads to, or of what is no file."""
        return self._rows(self.own(path), label, context)

    def _rows(self, name: str, label: Label, context: Context) -> tuple[Change, ...]:
        return self.rows_of(name, label, (context.session, context.clock.now()))

    def rows_of(self, name: str, label: Label, noted: tuple[str, float]) -> tuple[Change, ...]:
        """The rows of a name that has this label now, lasting or not: in which session, and since when."""
        if not lasting(label):
            return (Change("file_label_drop", (stored_as(name),)),) if stored_as(name) in self.stored else ()
        return self.rows(name, label, noted)

    def rows(self, name: str, label: Label, noted: tuple[str, float]) -> tuple[Change, ...]:
        """The rows of a name that has this label from now on: in which session, and since when."""
        return (Change("file_label_set", (stored_as(name), msgspec.json.encode(label), *noted)),)


def stored_as(name: str) -> str:
    """A path as the database has it: bytes that are no UTF-8 are written as escapes."""
    return name if name.isascii() else os.fsencode(name).decode(errors="backslashreplace")


async def marks_of(context: Context) -> Marks:
    """The marks as they are now, for this call."""
    return await marks_in(context.reach, context.key)


async def marks_in(reach: Reach, but: str = "") -> Marks:
    """The marks as they are now, with what is being written by others than the call `but`."""
    words = list[Word]()
    if reach.shadow is not None and any(one.by.key != but for one in reach.shadow.running):
        words = await anyio.to_thread.run_sync(words_in, reach.shadow, reach.files.roots[0][0], but)
    rows = await reach.rows("file_labels", ())  # after that: what is over by now has its marks written
    return Marks(reach.files.roots[0][0], {path: _decode(label) for path, label in rows}, words)


async def label_of(paths: Iterable[str], context: Context) -> Label:
    """The label of what was told of these files just now, by their paths and by what stands in them."""
    marks, given = await marks_of(context), list(paths)
    return await anyio.to_thread.run_sync(marks.told, given)


def words_in(shadow: Shadow, root: str, but: str = "") -> list[Word]:
    """Whose words may just now be written in the workspace `root`, and are not marked yet: of all that runs but the
    call `but`. It blocks."""
    others = [one for one in list(shadow.running) if not one.marked and one.by.key != but]
    words = [word for one in others for word in one.words() if lasting(word.label)]
    return [replace(word, root=root, stood=shadow.stood, armed=shadow.armed) for word in words]


async def label_of_blob(digest: str, context: Context) -> Label:
    """The label of bytes that were kept under this name."""
    rows = await context.reach.rows("file_label_get", (f"blob:{digest}",))
    return _decode(rows[0][0]) if rows else LOCAL


def mark_blob(digest: str, label: Label, context: Context) -> tuple[Change, ...]:
    """The row that remembers whose word these bytes are."""
    if not lasting(label):
        return ()
    row = (f"blob:{digest}", msgspec.json.encode(label), context.session, context.clock.now())
    return (Change("file_label_set", row),)
