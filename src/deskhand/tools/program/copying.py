"""A copy of the workspace to rehearse on, and what is different in it afterwards. All of it
blocks."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from ...types.errors import ToolError
from ...types.marked_texts import mark_text
from ...types.programs import ChangeKind, FileChange
from .. import tree
from ..access_time import LONG_AGO_NS
from ..diffs import decode_text, unified_diff
from ..paths import Place
from ..read_tracking import keeps_access_times
from .source import NamedFile, Source

MAX_FILES = 5_000
MAX_BYTES = 200 << 20
MAX_MADE_BYTES = 50 << 20
MAX_DIFF_LINES = 40
MAX_DIFF_CHARS = 2_000
MAX_DIFFS = 12


class Was(msgspec.Struct, frozen=True, gc=False):
    """A file of the copy as it was made: nothing that is the same in all of this has been
    changed."""

    size: int
    changed_ns: int
    inode: int


class Copy(msgspec.Struct, frozen=True):
    """`root` is the copy of `source`; `files` and `folders` are what lies in it, by paths below
    both, `times` when the files of the source were changed last (ns), and `places` where all of it
    lay when it was read. `armed` are files whose readers we want to know, and the folders around
    them."""

    source: Source
    root: Path
    files: Mapping[str, Was]
    times: Mapping[str, int]
    folders: frozenset[str]
    places: Mapping[str, Place]
    armed: Mapping[str, int | None] = {}


def copy_source(source: Source, root: Path) -> Copy:
    """Copy what programs see of `source` into `root`. Raises ToolError where it is too much, or
    changes meanwhile."""
    times = dict[str, int]()
    folders = set[str]()
    size = 0
    places = dict[str, Place]()
    try:
        for each in source.iter_entries():
            places[each.path] = each.place
            if each.folder:
                folders.add(each.path)
                (root / each.path).mkdir()
                continue
            size += each.size
            if len(times) >= MAX_FILES or size > MAX_BYTES:
                raise ToolError(
                    f"this folder holds more than {MAX_FILES:,} files or {MAX_BYTES >> 20} MB: "
                    "too much to rehearse in. Name a smaller workspace for the agent, or choose "
                    "a bigger model."
                )
            places[each.path], times[each.path] = source.copy(each.path, root / each.path)
    except OSError as error:
        raise ToolError(f"the folder cannot be copied: {error.strerror}") from error
    return Copy(
        source,
        root,
        {path: _stat_copied(root / path) for path in times},
        times,
        frozenset(folders),
        places,
    )


def arm_marked(copy: Copy, marked: Collection[str]) -> Copy:
    """The same, with `marked` as the paths whose readers matter."""
    files = [path for path in marked if path in copy.files]
    folders = [path for path in marked if path in copy.folders]
    around = {path.rpartition("/")[0] for path in (*files, *folders)}
    armed = {path: _arm_file(copy.root / path) for path in (*files, *around)}
    was = {path: _stat_copied(copy.root / path) for path in files}
    return msgspec.structs.replace(copy, files={**copy.files, **was}, armed=armed)


def _stat_copied(path: Path) -> Was:
    status = path.lstat()
    return Was(status.st_size, status.st_ctime_ns, status.st_ino)


def _arm_file(path: Path) -> int | None:
    """Give it a last access long ago; its change time then, None where reads leave no trace."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if not keeps_access_times(descriptor, path.lstat()):
            return None
    finally:
        os.close(descriptor)
    os.utime(path, ns=(LONG_AGO_NS, path.lstat().st_mtime_ns))
    return path.lstat().st_ctime_ns


def find_read_paths(copy: Copy) -> list[str]:
    """The marked files that were read, or may have been, and the folders around them of which the
    names were."""

    def is_untouched(path: str, changed_ns: int | None) -> bool:
        try:
            now = (copy.root / path).lstat()
        except OSError:
            return False
        same = now.st_ctime_ns == changed_ns or path in copy.folders or not path
        return changed_ns is not None and now.st_atime_ns == LONG_AGO_NS and same

    return [path for path, changed_ns in copy.armed.items() if not is_untouched(path, changed_ns)]


class CopiedChanges(msgspec.Struct, frozen=True):
    """What a program has changed, the bytes of the files that it has made or changed, and the
    digests of those that it has found there, by path."""

    changes: tuple[FileChange, ...]
    content: Mapping[str, bytes]
    before: Mapping[str, str]


def find_changes(
    copy: Copy, read: Collection[str] = (), blind: Collection[str] = (), made: Collection[str] = ()
) -> CopiedChanges:
    """What is different in the copy now. `read` are files that were read by our functions, `blind`
    those that were written over by them without that, `made` those that the agent itself has made
    in this conversation. Raises ToolError where it cannot be told, or must not be done."""
    try:
        now, fresh = _read_current(copy)
        files = {path for path, each in now.items() if not each.folder}
        gone = [path for path in copy.files if path not in files]
        touched = [path for path in copy.files if path in fresh or path not in files]
        before = {path: _read_original(copy, path) for path in touched}
    except OSError as error:
        raise ToolError(f"what the program has made cannot be read: {error.strerror}") from error

    content = {path: data for path, data in fresh.items() if before.get(path) != data}
    folders = now.keys() - files
    _check_folders(copy, folders, gone)

    changes = list[FileChange]()
    for path in sorted(folders - copy.folders):
        is_empty = not any(other.startswith(f"{path}/") for other in content)
        if is_empty:
            changes.append(FileChange(path, "folder"))

    added = {path: data for path, data in content.items() if path not in copy.files}
    moved = _find_moves(gone, before, added)
    for path in sorted({*gone, *content} - set(moved.values())):
        if path in moved:
            target = moved[path]
            changes.append(FileChange(path, "moved", _hash_bytes(content[target]), to=target))
            continue
        old = before.get(path)
        new = content.get(path)
        diff = ""
        if len(changes) < MAX_DIFFS:
            diff = unified_diff(
                path, old, new, lines=MAX_DIFF_LINES, chars=MAX_DIFF_CHARS, around=2
            )
        lost = ""
        if old is not None and path not in made:
            lost = _describe_loss(path, old, new, blind=path in blind, read=path in read)
        digest = "" if new is None else _hash_bytes(new)
        changes.append(FileChange(path, _change_kind(old, new), digest, diff, loses=lost))

    for path in sorted(copy.folders - folders, reverse=True):
        changes.append(FileChange(path, "deleted"))
    digests = {path: _hash_bytes(data) for path, data in before.items()}
    return CopiedChanges(tuple(changes), content, digests)


def _change_kind(old: bytes | None, new: bytes | None) -> ChangeKind:
    if old is None:
        return "new"
    return "deleted" if new is None else "changed"


def _read_current(copy: Copy) -> tuple[dict[str, NamedFile], dict[str, bytes]]:
    """What is in the copy, and the bytes of the files that are not as they were copied."""
    root = os.open(copy.root, tree.FOLDER_FLAGS)
    try:
        here = Source(root)
        now = {each.path: each for each in here.iter_entries()}
        files = [path for path, each in now.items() if not each.folder]
        fresh = [path for path in files if _stat_copied(copy.root / path) != copy.files.get(path)]
        if sum(now[path].size for path in fresh) > MAX_MADE_BYTES:
            raise ToolError(f"it makes more than {MAX_MADE_BYTES >> 20} MB")
        return now, {path: here.read(path).data for path in fresh}
    finally:
        os.close(root)


def _read_original(copy: Copy, path: str) -> bytes:
    data = copy.source.read(path).data
    if copy.source.modified_ns(path) != copy.times[path]:
        raise ToolError(f"{path} was changed by somebody else meanwhile: try again")
    return data


def _check_folders(copy: Copy, folders: Collection[str], gone: Sequence[str]) -> None:
    """Raises ToolError where a file became a folder, or a folder is gone that holds what programs
    do not see."""
    for path in gone:
        if path in folders:
            raise ToolError(f"it makes a folder of the file {path}")
    for path in copy.folders - set(folders):
        names = copy.source.list_names(path)
        unseen = [name for name in names if f"{path}/{name}" not in (*copy.files, *copy.folders)]
        if unseen:
            raise ToolError(
                f"{path} holds {unseen[0]!r}, which programs do not touch: it stays as it is"
            )


def _find_moves(
    gone: Sequence[str], before: Mapping[str, bytes], new: Mapping[str, bytes]
) -> dict[str, str]:
    """Where each file went that is elsewhere with the same bytes."""
    free = dict(new)
    moved = dict[str, str]()
    for path in gone:
        same = [other for other, data in free.items() if data == before[path]]
        same.sort(key=lambda other: (os.path.basename(other) != os.path.basename(path), other))  # noqa: PTH119
        if same:
            moved[path] = same[0]
            del free[same[0]]
    return moved


def _describe_loss(path: str, old: bytes, new: bytes | None, *, blind: bool, read: bool) -> str:
    if not old.strip():
        return ""
    lines = old.count(b"\n") + (not old.endswith(b"\n"))
    if decode_text(old) is None:
        many = mark_text("its {count_number} bytes").format(count_number=f"{len(old):,}")
    elif lines == 1:
        many = mark_text("its 1 line")
    else:
        many = mark_text("its {lines_number} lines").format(lines_number=lines)

    if new is None:
        return mark_text("deletes {path} with {what_text}").format(path=path, what_text=many)
    if not new.strip():
        return mark_text("empties {path} of {what_text}").format(path=path, what_text=many)
    kept = len(set(old.splitlines()) & set(new.splitlines()))
    over = (blind and kept < lines) or (not read and 2 * kept < lines)
    if not over:
        return ""
    return mark_text("overwrites {path} and {what_text}").format(path=path, what_text=many)


def _hash_bytes(data: bytes) -> str:
    return sha256(data).hexdigest()
