"""Snapshots of files and their changes. Only names, times and sizes are read."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from hashlib import sha256
from itertools import islice

import msgspec

from ...tools import tree

MAX_FILES = 2_000
MAX_DEPTH = 8
MAX_SCANNED = 10_000
"""How many files one path may cover, how deep, and how many are looked at to find them."""
SETTLE_S = 1.5
"""A change is over when nothing has changed for this long."""
MAX_LISTED = 20
IGNORED_FOLDERS = frozenset({".git", "__pycache__", "node_modules", ".venv"})

PATH_CHARS = 1_000
"""Longer paths cover no files."""

FilesSnapshot = Mapping[str, tuple[int, int, int]]
"""path -> (time of the last change in ns, size, inode). Empty when there are no files."""


def snapshot_files(folder: str, path: str) -> FilesSnapshot:
    """The files at this path of the folder. It may contain `*`, `?` and `[`; `*` also covers files
    in folders below. Links are never followed."""
    found: dict[str, tuple[int, int, int]] = {}
    if len(path) > PATH_CHARS:
        return found
    wild = re.search(r"[*?[]", path)
    above = path[: wild.start()].rpartition("/")[0] if wild else path
    for name, status in islice(_walk(folder, above, MAX_DEPTH), MAX_SCANNED):
        if wild and not fnmatchcase(name, path):
            continue
        found[name] = (status.st_mtime_ns, status.st_size, status.st_ino)
        if len(found) == MAX_FILES:
            break
    return found


def _walk(folder: str, path: str, deep: int) -> Iterator[tuple[str, os.stat_result]]:
    here = f"{folder}/{path}" if path else folder
    try:
        status = os.lstat(here)
    except OSError:
        return
    if any(os.path.islink(f"{folder}/{part}") for part in _parent_folders(path)):  # noqa: PTH114 -- a string, thousands of times
        return
    if not stat.S_ISDIR(status.st_mode):
        yield path, status
    elif deep:
        yield from _walk_folder(here, path, deep)


def _parent_folders(path: str) -> Iterator[str]:
    """The folders that contain the path, from the top."""
    parts = path.split("/")
    return ("/".join(parts[: i + 1]) for i in range(len(parts) - 1))


def _walk_folder(here: str, path: str, deep: int) -> Iterator[tuple[str, os.stat_result]]:
    found = list[tuple[str, os.stat_result]]()
    with suppress(OSError), tree.scan_folder(here) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            with suppress(OSError):
                found.append((entry.name, entry.stat(follow_symlinks=False)))
    for name, status in found:
        place = f"{path}/{name}".lstrip("/")
        if not stat.S_ISDIR(status.st_mode):
            yield place, status
        elif deep > 1 and name not in IGNORED_FOLDERS:
            yield from _walk_folder(f"{here}/{name}", place, deep - 1)


def digest_files(seen: FilesSnapshot) -> str:
    """A digest of the snapshot."""
    return sha256(repr(sorted(seen.items())).encode(errors="surrogateescape")).hexdigest()[:32]


def describe_changes(before: FilesSnapshot, now: FilesSnapshot) -> str:
    """What has changed, for people and models: a line for each file, MAX_LISTED at most."""
    lines = [
        f"- {_printable_name(path)} ({'changed' if path in before else 'new'})"
        for path in changed_paths(before, now)
    ]
    lines += [f"- {_printable_name(path)} (gone)" for path in before if path not in now]
    more = f"\n… and {len(lines) - MAX_LISTED} more" if len(lines) > MAX_LISTED else ""
    return "\n".join(lines[:MAX_LISTED]) + more


def changed_paths(before: FilesSnapshot, now: FilesSnapshot) -> tuple[str, ...]:
    """The paths that are new or changed."""
    return tuple(path for path in now if before.get(path) != now[path])


def _printable_name(path: str) -> str:
    """A name that is safe to show: anybody may have chosen it."""
    plain = path.encode(errors="surrogateescape").decode(errors="replace")
    return plain if plain.isprintable() and len(plain) <= 200 else repr(plain)[:200]


class FolderChange(msgspec.Struct, frozen=True):
    """A change that is over. `state` is the digest of `now`."""

    before: FilesSnapshot
    now: FilesSnapshot
    state: str


class WatchedFiles:
    """One path over time. `known` is the digest when Deskhand last looked, '' when it never did."""

    def __init__(self, known: str) -> None:
        self._known = known
        self._before: FilesSnapshot | None = None
        self._latest: FilesSnapshot = {}
        self._still_since = 0.0

    def observe(self, now: FilesSnapshot, at: float) -> FolderChange | None:
        """Compare a snapshot taken at this monotonic time. Returns the change once it is over."""
        if self._before is None:
            state = digest_files(now)
            self._before = now if self._known in ("", state) else {}
            self._latest = now
            self._still_since = at
            self._known = self._known or state
        if now != self._latest:
            self._latest = now
            self._still_since = at
        if now == self._before or at - self._still_since < SETTLE_S:
            return None
        change = FolderChange(self._before, now, digest_files(now))
        self._before = now
        if change.state == self._known:
            return None
        self._known = change.state
        return change

    @property
    def state(self) -> str:
        """The digest to be stored."""
        return self._known
