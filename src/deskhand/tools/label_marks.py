"""Whose word a file is: what untrusted words went into stays untrusted, and what is the owner's
alone stays that.

A file that nobody marked is this machine's own. Marks lie in the database by real path; memories
and what is known of the owner are the owner's wherever they lie in a workspace.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePosixPath

import anyio.to_thread
from msgspec.structs import replace

from ..policy.information_flow import may_see
from ..types.commit import Change
from ..types.labels import LOCAL, Label, join_labels
from ..types.marked_texts import mark_text
from . import tree
from .access_time import was_accessed
from .base import Context, ToolScope
from .file_snapshots import FileSnapshots
from .notes import PendingLabel, RunningEffect
from .paths import Place
from .queries import drop_label, find_label, list_file_labels, set_label

PRIVATE_NAMES = ("user.md", "memory.md", "memory")
"""Beneath a workspace: what only its owner reads, case apart."""
OWNER_READERS = ("role:owner",)


MAX_PATH_CHARS = 4_096
MAX_DEPTH = 120
"""Of a path that is looked at: each folder on the way may be a link, and leads to where all of it
is walked again."""
TOO_LONG_LABEL = Label(
    "untrusted", source=mark_text("a file whose path is too long to be looked at")
)


NO_PATHS: Mapping[int, Sequence[str]] = {}


def _is_too_long(path: str) -> bool:
    return len(path) > MAX_PATH_CHARS or path.count("/") > MAX_DEPTH


def _is_unusable(path: str) -> bool:
    """Whether nothing is called so, or nobody looks."""
    return "\0" in path or _is_too_long(path)


def needs_mark(label: Label) -> bool:
    """Whether what is written under this label has to be marked."""
    return is_tainted(label) or bool(label.by)


def is_tainted(label: Label) -> bool:
    """Whether it is not the own word of this installation, or not for everybody in it."""
    return label.integrity == "untrusted" or label.readers is not None


def is_private(folder: str, real: str) -> bool:
    """Whether this file of a workspace is about the owner."""
    if not real.startswith(f"{folder}/"):
        return False
    return PurePosixPath(real[len(folder) + 1 :]).parts[0].casefold().rstrip(". ") in PRIVATE_NAMES


def _owner_label(folder: str, name: str) -> Label:
    return Label("tool_local", OWNER_READERS, f"file {name.removeprefix(folder).lstrip('/')}")


def join_private_label(folder: str, path: str, label: Label) -> Label:
    """The label of what is written to a path of the workspace `folder`: where that is in what is
    about the owner, it is for the owner also where a link leads elsewhere from there."""
    name = os.path.normpath(path if path.startswith("/") else f"{folder}/{path}")
    return join_labels((label, _owner_label(folder, name))) if is_private(folder, name) else label


def iter_private_files(folder: str) -> Iterator[str]:
    """The files about the owner in a workspace."""
    try:
        with tree.scan_folder(folder) as entries:
            found = [
                entry for entry in entries if entry.name.casefold().rstrip(". ") in PRIVATE_NAMES
            ]
    except OSError:
        return
    for entry in found:
        if entry.is_file(follow_symlinks=False):
            yield f"{folder}/{entry.name}"
        elif entry.is_dir(follow_symlinks=False):
            inside = tree.walk_tree(f"{folder}/{entry.name}")
            yield from (path for path, status in inside if not stat.S_ISDIR(status.st_mode))


class LabelMarks:
    """The marks of all files, as they were at one moment. Paths are as tools take them: absolute,
    or in the workspace, whose real path is `folder`. `words` are labels of what may be written
    there just then, and is not marked yet. `stood` tells, while anything runs that may move files,
    where what is marked or about the owner lay before: by its inode.

    Whose word something is that was read is asked of its `Place`, when it has been read: a name may
    lead elsewhere by then. `listing_label_by_name` is for names that were told, and behind which
    nobody has looked.
    """

    def __init__(
        self,
        folder: str,
        stored: Mapping[str, Label],
        words: Sequence[PendingLabel] = (),
        stood: Mapping[int, Sequence[str]] = NO_PATHS,
    ) -> None:
        self._folder = folder
        self.stored = stored
        self._pending_labels = words
        self._paths_by_inode = stood

    def real_path(self, path: str) -> str:
        """The one name of a file, however it is written."""
        return os.path.realpath(self._absolute_path(path))

    def entry_path(self, path: str) -> str:
        """The one name of what lies there itself: of a link, and not of what it leads to."""
        folder, _, name = self._absolute_path(path).rpartition("/")
        if name in ("", ".", ".."):
            return self.real_path(path)
        return f"{os.path.realpath(folder or '/')}/{name}"

    def _absolute_path(self, path: str) -> str:
        return path if path.startswith("/") else f"{self._folder}/{path}"

    def resolve_place(self, path: str) -> Place:
        """What this name leads to just now."""
        return Place(path if _is_unusable(path) else self.real_path(path), path)

    def file_label(self, place: Place) -> Label:
        """The label of what stands in this file, and of the link to it."""
        if "\0" in place.real:
            return LOCAL  # nothing is called so
        if _is_too_long(place.real) or _is_too_long(place.asked):
            return TOO_LONG_LABEL
        found = self.marked_label(place)
        for path in self._possible_paths(place):
            if self.is_private_file(path):
                return join_labels((found, _owner_label(self._folder, path)))
        return found

    def marked_label(self, place: Place) -> Label:
        """The same as far as marks tell, or will."""
        moved = self._paths_by_inode.get(place.inode, ())
        labels = [self._stored_label(path) for path in (place.real, *moved)]

        own = self._own_path(place)
        if own != place.real:
            labels.append(self._stored_label(own))
            labels.append(self._links_label(place.asked, place.real))

        names = dict.fromkeys((own, place.real))
        for word in self._pending_labels:
            was_read = word.covers_read(place.real, place.changed_ns)
            if was_read or any(map(word.covers_path, names)):
                labels.append(word.label)
        return join_labels((LOCAL, *labels))

    def _own_path(self, place: Place) -> str:
        """Where the name lies that was asked for; it may be a link."""
        return self.entry_path(place.asked) if place.asked else place.real

    def _possible_paths(self, place: Place) -> Iterator[str]:
        """By which it may be about the owner: by where it lies, by where it lay, or as it was asked
        for."""
        yield place.real
        yield from self._paths_by_inode.get(place.inode, ())
        if place.asked:
            yield os.path.normpath(self._absolute_path(place.asked))

    def _stored_label(self, name: str) -> Label:
        return self.stored.get(encode_path(name), LOCAL)

    def _links_label(self, path: str, real: str) -> Label:
        """The label of the links over which a path leads to what really lies there."""
        at = self._absolute_path(path)
        found = LOCAL
        while at not in ("", self._folder) and self.stored:
            own = self.entry_path(at)
            if own != real:
                found = join_labels((found, self._stored_label(own)))
            at = at.rpartition("/")[0]
        return found

    def listing_label(self, places: Iterable[Place]) -> Label:
        """The label of what is told of these files by their paths: of what stands in them, and of
        the names of the folders in which they lie."""
        if not self.stored and not self._pending_labels:
            return join_labels((LOCAL, *map(self.file_label, places)))
        labels = list[Label]()
        around = set[str]()
        for place in places:
            labels.append(self.file_label(place))
            if _is_unusable(place.real) or _is_unusable(place.asked):
                continue
            for path in dict.fromkeys((place.real, self._own_path(place))):
                at = path.rpartition("/")[0]
                while at.startswith(f"{self._folder}/") and at not in around:
                    around.add(at)
                    at = at.rpartition("/")[0]
        for each in around:
            labels.append(self._stored_label(each))
            with suppress(OSError):
                labels += [word.label for word in self._pending_labels if word.covers_name(each)]
        return join_labels((LOCAL, *labels))

    def listing_label_by_name(self, paths: Iterable[str]) -> Label:
        """The same, of what these names lead to just now."""
        return self.listing_label([self.resolve_place(path) for path in paths])

    def is_private_file(self, real: str) -> bool:
        """Whether this is a file about the owner."""
        return is_private(self._folder, real)

    def join_labels(self, paths: Iterable[str]) -> Label:
        """The label of content from all these files, which lie there just now."""
        places = map(self.resolve_place, paths)
        return join_labels((LOCAL, *map(self.file_label, places)))

    def is_hidden_from(self, place: Place, context: Context) -> bool:
        """Whether those who read this conversation may not all see the file."""
        return not may_see(self.file_label(place), context.audience)

    def mark_content(self, path: str, label: Label, context: Context) -> tuple[Change, ...]:
        """The rows of a file whose content now has this label."""
        return self._mark_path(self.real_path(path), label, context)

    def mark_entry(self, path: str, label: Label, context: Context) -> tuple[Change, ...]:
        """The rows of a name whose words have this label: of a link, with where it leads to, or of
        what is no file."""
        return self._mark_path(self.entry_path(path), label, context)

    def _mark_path(self, name: str, label: Label, context: Context) -> tuple[Change, ...]:
        return self.update_mark(name, label, (context.session, context.clock.now()))

    def update_mark(self, name: str, label: Label, noted: tuple[str, float]) -> tuple[Change, ...]:
        """The rows of a name that has this label now, lasting or not: in which session, and since
        when."""
        if not needs_mark(label):
            stored = encode_path(name)
            return (drop_label(stored),) if stored in self.stored else ()
        return self.set_mark(name, label, noted)

    def set_mark(self, name: str, label: Label, noted: tuple[str, float]) -> tuple[Change, ...]:
        """The rows of a name that has this label from now on: in which session, and since when."""
        session, at = noted
        return (set_label(encode_path(name), label, session, at),)


def encode_path(name: str) -> str:
    """A path as the database has it: bytes that are no UTF-8 are written as escapes."""
    return name if name.isascii() else os.fsencode(name).decode(errors="backslashreplace")


async def load_marks(context: Context) -> LabelMarks:
    """The marks as they are now, for this call."""
    return await load_scope_marks(context.reach, context.key)


async def load_scope_marks(reach: ToolScope, but: str = "", *, others: bool = True) -> LabelMarks:
    """The marks as they are now, with what is being written by others than the call `but`, and with
    `others` by what other processes have noted: also where one of them was killed, and nobody has
    made up for it yet."""
    root = reach.files.roots[0][0]
    shadow = reach.shadow
    if shadow is None:
        return LabelMarks(root, await list_file_labels(reach.reader))

    runs = any(one.by.key != but for one in shadow.running)
    words = list[PendingLabel]()
    if runs:
        words += await anyio.to_thread.run_sync(list_pending_labels, shadow, root, but)
    noted = shadow.notes.read_others() if others else []

    # after that: what is over by now has its marks written
    stored = await list_file_labels(reach.reader)
    if not runs and not noted:
        return LabelMarks(root, stored)

    if noted:
        marks = LabelMarks(root, stored)
        words += await anyio.to_thread.run_sync(_pending_labels_of_others, noted, marks, root)
    stood = await anyio.to_thread.run_sync(marked_paths_by_inode, shadow, root, stored)
    return LabelMarks(root, stored, words, stood)


def _pending_labels_of_others(
    noted: Sequence[RunningEffect], marks: LabelMarks, root: str
) -> list[PendingLabel]:
    """Whose words those may be that other processes have noted: of what cannot be asked any more,
    nothing is known but what was read since."""
    read = LOCAL
    if any(one.over_at is None for one in noted):
        read = accessed_label(marks, root)

    words = list[PendingLabel]()
    for one in noted:
        if one.marked:
            continue
        label = join_labels((one.label, read)) if one.over_at is None else one.label
        if needs_mark(label):
            touched = frozenset(one.touched)
            words.append(PendingLabel(one.begun_ns, one.over_ns, label, touched, root))
    return words


async def listing_label(places: Iterable[Place], context: Context) -> Label:
    """The label of what was told of these files just now, by their paths and by what stands in
    them."""
    marks = await load_marks(context)
    given = list(places)
    return await anyio.to_thread.run_sync(marks.listing_label, given)


def accessed_label(marks: LabelMarks, root: str) -> Label:
    """The label of the marked files beneath `root` that were read since a command began there that
    cannot be asked any more, as nothing is known of it but that."""
    paths = [
        *(path for path in marks.stored if path.startswith(f"{root}/")),
        *iter_private_files(root),
    ]
    around = {os.path.dirname(path) for path in marks.stored if was_accessed(os.path.dirname(path))}  # noqa: PTH120
    named = (path for path in marks.stored if os.path.dirname(path) in around)  # noqa: PTH120
    return marks.join_labels({*(path for path in paths if was_accessed(path)), *named})


def marked_paths_by_inode(
    shadow: FileSnapshots, root: str, stored: Collection[str]
) -> dict[int, list[str]]:
    """Where what is marked, or about the owner, lay in the workspace `root` at the last look, by
    its inode."""
    found = dict[int, list[str]]()
    for inner, seen in list(shadow.entries.items()):
        path = f"{root}/{inner}"
        if is_private(root, path) or encode_path(path) in stored:
            found.setdefault(seen.inode, []).append(path)
    return found


def list_pending_labels(shadow: FileSnapshots, root: str, but: str = "") -> list[PendingLabel]:
    """Whose words may just now be written in the workspace `root`, and are not marked yet: of all
    that runs but the call `but`. It blocks."""
    others = [one for one in list(shadow.running) if not one.marked and one.by.key != but]
    words = [word for one in others for word in one.pending_labels() if needs_mark(word.label)]
    return [replace(word, root=root, stood=shadow.inode_at, armed=shadow.armed) for word in words]


async def load_blob_label(digest: str, context: Context) -> Label:
    """The label of bytes that were kept under this name."""
    return await find_label(context.reach.reader, f"blob:{digest}") or LOCAL


def mark_blob(digest: str, label: Label, context: Context) -> tuple[Change, ...]:
    """The row that remembers whose word these bytes are."""
    if not needs_mark(label):
        return ()
    return (set_label(f"blob:{digest}", label, context.session, context.clock.now()),)
