"""What a file or a folder was when a person approved it: bound by a digest of all that it holds.

A folder is approved with everything beneath it: names and bytes. Only plain files and folders can
be approved, and no more of them than are read again at once when one has changed.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Mapping
from hashlib import sha256

import anyio.to_thread
import msgspec

from ..types.commit import Change
from .base import Context
from .paths import set_noatime
from .queries import approve, approved_digests, drop_labels_beneath

MAX_FILES = 200
MAX_BYTES = 4 << 20
MAX_DEPTH = 8
SETTLED_NS = 60_000_000_000
"""What was changed less than this ago is read again at every look: the kernel notes no second
change within one tick of its clock, and of memory that is mapped none until it was written back."""

CHANGED_TEXT = (
    "{what} was changed since it was approved, so it is held back: an owner can review it with "
    "`deskhand held`"
)

FileStamp = tuple[str, int, int, int, int, int]
"""A file or folder beneath ('' for the top): its path, mode, inode, size, and when it and what is
known of it were changed, the last of which nobody can set."""


class Content(msgspec.Struct, frozen=True):
    """What lies at a path. `files` has the SHA-256 of each file by its path beneath, '' for the
    path itself."""

    digest: bytes
    files: Mapping[str, bytes]


class Bound(msgspec.Struct, frozen=True):
    """What is as it was approved, and what is not, by real paths. `files` are those that lie in the
    first, with the SHA-256 of each."""

    kept: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    files: Mapping[str, bytes] = msgspec.field(default_factory=dict)

    def covers(self, path: str) -> bool:
        """Whether this real path lies in something that is as it was approved."""
        return bool(self.kept) and not self.kept.isdisjoint(_iter_ancestors(path))

    def is_changed(self, path: str) -> bool:
        """Whether this real path lies in something that was changed since it was approved."""
        return bool(self.changed) and not self.changed.isdisjoint(_iter_ancestors(path))

    def allows(self, path: str, digest: bytes) -> bool:
        """Whether bytes of this SHA-256, read at this real path, are what was approved; yes where
        nothing was."""
        if self.is_changed(path):
            return False
        return not self.covers(path) or self.files.get(path) == digest


NO_APPROVALS = Bound()


class Approvals:
    """What is approved, looked at again when it could have changed. It blocks."""

    def __init__(self, settled_ns: int = SETTLED_NS) -> None:
        self._settled_ns = settled_ns
        self._seen: dict[str, tuple[tuple[FileStamp, ...], Content | None, int]] = {}

    def check_files(self, approved: Mapping[str, bytes]) -> Bound:
        """How these are now, by path and digest."""
        kept = set[str]()
        changed = set[str]()
        files = dict[str, bytes]()
        for path, digest in approved.items():
            real = os.path.realpath(path)
            content = self._read_content(path)
            if content is not None and content.digest == digest:
                kept |= {path, real}
                files |= {
                    f"{real}/{inner}" if inner else real: each
                    for inner, each in content.files.items()
                }
            elif os.path.lexists(path):
                changed |= {path, real}
        self._seen = {path: seen for path, seen in self._seen.items() if path in approved}
        return Bound(frozenset(kept), frozenset(changed), files)

    def _read_content(self, path: str) -> Content | None:
        looks = stat_tree(path)
        known = self._seen.get(path)
        if known is not None and known[0] == looks and known[2] > self._settled_ns:
            return known[1]
        content = read_content(path)
        age = time.time_ns() - max((each[5] for each in looks), default=0)
        self._seen[path] = looks, content, age
        return content


async def load_bound(context: Context) -> Bound:
    """How what is approved is now, for this call."""
    approved = await approved_digests(context.reach.reader)
    return await anyio.to_thread.run_sync(bound_from_rows, approved)


def bound_from_rows(approved: Mapping[str, bytes]) -> Bound:
    """How what is approved is now, by real path and the SHA-256 that was approved. It blocks."""
    return Approvals().check_files(approved) if approved else NO_APPROVALS


def read_content(path: str) -> Content | None:
    """What lies there now; None where that cannot be approved: it is not there, holds links or
    other things, or too much, or was being changed just then."""
    looks = stat_tree(path)
    if not looks or not all(stat.S_ISREG(mode) or stat.S_ISDIR(mode) for _, mode, *_ in looks):
        return None
    if sum(size for _, mode, _, size, *_ in looks if stat.S_ISREG(mode)) > MAX_BYTES:
        return None
    files = dict[str, bytes]()
    for each in looks:
        inner = each[0]
        if stat.S_ISREG(each[1]):
            data = _read_unchanged(f"{path}/{inner}" if inner else path, each)
            if data is None:
                return None
            files[inner] = sha256(data).digest()
    if stat_tree(path) != looks:
        return None
    return Content(files[""] if "" in files else digest_of_files(files), files)


def digest_of_files(files: Mapping[str, bytes]) -> bytes:
    """Of a folder that holds these: the SHA-256 of each by its path. Folders without any count for
    nothing."""
    whole = sha256(b"folder\0")
    for inner in sorted(files):
        name = os.fsencode(inner)
        whole.update(b"%d " % len(name) + name + files[inner])
    return whole.digest()


def stat_tree(path: str) -> tuple[FileStamp, ...]:
    """What changes whenever something there does, without reading it; empty where nothing is there,
    or too much."""
    found = list[FileStamp]()
    try:
        for look in _iter_stamps(path, "", MAX_DEPTH):
            found.append(look)
            if len(found) > MAX_FILES:
                return ()
    except OSError:
        return ()
    return tuple(found)


def _iter_stamps(path: str, inner: str, deeper: int) -> Iterator[FileStamp]:
    """Raises OSError; also where it is too deep."""
    status = os.lstat(f"{path}/{inner}" if inner else path)
    times = status.st_mtime_ns, status.st_ctime_ns
    yield inner, status.st_mode, status.st_ino, status.st_size, *times
    if not stat.S_ISDIR(status.st_mode):
        return
    if not deeper:
        raise OSError(f"{inner!r} is nested too deeply")
    for name in _list_names(f"{path}/{inner}"):
        yield from _iter_stamps(path, f"{inner}/{name}" if inner else name, deeper - 1)


def _list_names(path: str) -> list[str]:
    """What is in a folder, which is no link. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        set_noatime(descriptor)
        with os.scandir(descriptor) as found:
            return sorted(each.name for each in found)
    finally:
        os.close(descriptor)


def _read_unchanged(path: str, look: FileStamp) -> bytes | None:
    """The bytes of the file that was looked at; None where it is another one now."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        set_noatime(descriptor)
        with os.fdopen(descriptor, "rb") as file:
            same = os.fstat(descriptor).st_ino == look[2]
            return file.read(MAX_BYTES + 1) if same else None
    except OSError:
        return None


def _iter_ancestors(path: str) -> Iterator[str]:
    """The path and the folders around it."""
    while path and path != "/":
        yield path
        path = path.rpartition("/")[0]


def approval_rows(path: str, digest: bytes, by: str, at: float) -> tuple[Change, ...]:
    """The rows of a real path whose content is approved: what it was marked with does not count any
    more."""
    return approve(path, digest, by, at), drop_labels_beneath(path)
