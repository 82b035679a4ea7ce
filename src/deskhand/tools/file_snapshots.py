"""What a workspace was when it was last looked at, with a copy of each file, so that what changes
can be put back.

A look stats every name, and reads only what is new by size, times and inode. What is read is copied
into `folder` (cloned where the file system can), named by its SHA-256; when it is changed later,
that copy becomes a blob.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import IO

import msgspec

from ..store.blobs import DIGEST_PREFIX, MIN_AGE_S, Blobs
from ..types.commit import Change
from ..types.errors import BlobMissing, StoreFull
from ..types.folders import make_private_folder
from . import tree
from .generated_folders import is_generated_folder
from .notes import RunningEffect, RunningNotes
from .path_states import ChangedPath, encode_state, parse_digest
from .protected import why_protected

SETTLED_NS = 50_000_000
"""A file that was changed this short before it was read may be changed again without a new time: it
is read again."""
MAX_NAMES = 200_000
SECOND_NS = 1_000_000_000
DAY_NS = 86_400_000_000_000
MAX_INLINE_NAMES = 200
SLOW_NS = 3_000_000
"""So few names are looked at without a thread, as long as that does not take longer: it costs half
of the look."""
_FICLONE = 0x40049409  # FICLONE, <linux/fs.h>
_CLONED_FROM_BYTES = 1 << 16


class UndoConfig(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is kept to undo changes, and for how long. Of each workspace files of up to `file_mb`
    are kept, `files` of them and `workspace_mb` together at most. What has been changed stays kept
    for `days`, the latest `mb` of it."""

    days: float = 30.0
    mb: int = 2000
    file_mb: int = 100
    workspace_mb: int = 1000
    files: int = 20_000


class FileSnapshot(msgspec.Struct, array_like=True, gc=False):
    """A name as it was: by what we know that it has not changed, and its state (`state_of`)."""

    mode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    state: str
    settled: bool = True


Commit = Callable[[Sequence[Change]], Awaitable[object]]
FolderTimes = dict[str, tuple[int, int]]
"""Of each folder that was looked into, by its path: its inode, and when a name in it, or its mode,
was changed last. The workspace itself is ''."""


class FileSnapshots:
    """The shadow of one workspace. Its methods block: they are called in threads, and wait for each
    other.

    `entries` is what was there at the last look. It is kept in a file too, to be good after a crash
    and after a restart. `running` are the commands in it, `armed` the files whose readers are
    wanted. `commit` writes rows outside of any call.
    """

    def __init__(
        self,
        folder: Path,
        blobs: Blobs,
        commit: Commit,
        limits: Callable[[], UndoConfig] = UndoConfig,
    ) -> None:
        self.folder = folder
        self.commit = commit
        self._blobs = blobs
        self._limits = limits
        self.entries: dict[str, FileSnapshot] = {}
        self.skipped_folders: tuple[str, ...] = ()
        """The folders into which the last look did not go."""
        self._folder_times: FolderTimes | None = None
        self.running: list[RunningEffect] = []
        self.programs_begun = 0
        """How many programs have begun to run here, those that are over too."""
        self.armed: dict[str, tuple[int, int]] = {}
        self.notes = RunningNotes(folder / "running")
        self.whole = True
        self.is_recovered = False
        self._beside: dict[str, FileSnapshots] = {}
        self.lock = threading.RLock()
        self.cut = False
        self._loaded = False
        self._stale = False
        self._slow = 0
        self._bytes = 0
        self._files = 0
        self._taken = 0
        self._clones = True

    @property
    def limits(self) -> UndoConfig:
        return self._limits()

    def inode_at(self, path: str) -> int:
        """The inode of what lay there at the last look; 0 for nothing."""
        seen = self.entries.get(path)
        return seen.inode if seen is not None else 0

    def forget_recovery(self) -> None:
        """Another process may have looked after this workspace: what it knew is read again, and
        what it left when it was killed is made up for."""
        with self.lock:
            self.is_recovered = False
            if not self.running:
                self._loaded = False
            for beside in self._beside.values():
                beside.forget_recovery()

    def for_folder(self, real: str) -> FileSnapshots:
        """The shadow of another folder, of which only files are looked at by their names."""
        if real not in self._beside:
            name = sha256(real.encode(errors="surrogateescape")).hexdigest()[:16]
            self._beside[real] = FileSnapshots(
                self.folder / "beside" / name, self._blobs, self.commit, self._limits
            )
            self._beside[real].whole = False
        return self._beside[real]

    # ------------------------------------------------------------------ looking

    def scan(self, root: int) -> list[ChangedPath]:
        """What has changed since the last look, in no order; it is remembered and copied."""
        with self.lock:
            self._load()
            walk = _Walk(self, root)
            walk.run()
            self._folder_times = walk.folder_times
            self.skipped_folders = tuple(walk.unlooked)
            gone = (
                self.entries.keys() - walk.found
                if len(walk.found) != len(self.entries) or walk.fresh
                else ()
            )
            changed = [ChangedPath(path, self.entries[path].state, None) for path in gone]
            for path, now in walk.fresh:
                was = self.entries.get(path)
                if was is None or was.state != now.state:
                    changed.append(ChangedPath(path, was.state if was else None, now.state))
            self._update_entries(dict(walk.fresh), gone)
            return changed

    def is_unchanged(self, root: int) -> bool:
        """Whether all is as at the last look, as far as that can be told at once, without a thread:
        the workspace is small, its disk quick, and nobody else looks."""
        self._slow -= self._slow > 0  # a disk that was slow once is tried again, after ten looks
        if not self._loaded or self._slow or len(self.entries) > MAX_INLINE_NAMES:
            return False
        if not self.lock.acquire(blocking=False):
            return False
        try:
            began = time.monotonic_ns()
            same = self._has_same_times(root) or self._has_same_names(root)
            self._slow = 10 * (time.monotonic_ns() - began > SLOW_NS)
            return same
        finally:
            self.lock.release()

    def _has_same_times(self, root: int) -> bool:
        """Whether each known name, and each folder, is as it was at the last look: a folder has a
        new time as soon as a name comes or goes. It costs half of a walk."""
        times = self._folder_times
        if times is None:
            return False
        try:
            here = os.fstat(root)
            if _folder_time(here) != times[""]:
                return False
            for path, was in self.entries.items():
                now = os.stat(path, dir_fd=root, follow_symlinks=False)
                if not stat.S_ISDIR(was.mode):
                    same = was.settled and _is_same(was, now)
                elif path in times:
                    same = times[path] == _folder_time(now)
                else:  # nobody looks into it, as long as it is what it was
                    is_other_disk = now.st_dev != here.st_dev
                    same = was.mode == now.st_mode and (is_other_disk or is_generated_folder(path))
                if not same:
                    return False
        except OSError:
            return False
        return True

    def _has_same_names(self, root: int) -> bool:
        """Whether a walk finds what the last look found."""
        walk = _Walk(self, root, peek=True)
        walk.run()
        if walk.differs or len(walk.found) != len(self.entries):
            return False
        self._folder_times = walk.folder_times
        return True

    def scan_paths(self, root: int, paths: Sequence[str]) -> list[ChangedPath]:
        """The same for these paths alone."""
        with self.lock:
            self._load()
            fresh = dict[str, FileSnapshot]()
            gone = list[str]()
            changed = list[ChangedPath]()
            for path in paths:
                status = tree.stat_path(root, path)
                was = self.entries.get(path)
                before = was.state if was is not None else None
                if status is None:
                    if was is not None:
                        gone.append(path)
                        changed.append(ChangedPath(path, before, None))
                    continue
                if was is not None and was.settled and _is_same(was, status):
                    continue
                try:
                    with tree.open_parent(root, path) as (above, name):
                        now = self.take_snapshot(above, name, status, path)
                except OSError:  # its folder went, or became a link, just now
                    continue
                fresh[path] = now
                if now.state != before:
                    changed.append(ChangedPath(path, before, now.state))
            self._update_entries(fresh, gone)
            times = self._folder_times or {}
            if any(path.rpartition("/")[0] not in times for path in fresh):
                self._folder_times = None  # of what lies there, no folder tells
            return changed

    def _update_entries(
        self, fresh: Mapping[str, FileSnapshot], gone: Sequence[str] | set[str]
    ) -> None:
        for path in gone:
            self._files -= self.entries.pop(path).state[0] == "f"
        for path, now in fresh.items():
            was = self.entries.get(path)
            self._files += (now.state[0] == "f") - (was is not None and was.state[0] == "f")
            self.entries[path] = now
        self._taken = 0
        self._stale |= bool(fresh or gone)

    def take_snapshot(
        self, above: int, name: str, status: os.stat_result, path: str
    ) -> FileSnapshot:
        """What stands there now; a file is copied."""
        what = ""
        settled = True
        if stat.S_ISDIR(status.st_mode):
            what = "h" if is_generated_folder(path) else ""
        elif stat.S_ISLNK(status.st_mode):
            with suppress(OSError):
                what = os.fsencode(os.readlink(name, dir_fd=above)).hex()
        elif stat.S_ISREG(status.st_mode):
            what, status, settled = self._copy_file(above, name, status, path)
        fields = (
            status.st_mode,
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
            status.st_ino,
        )
        return FileSnapshot(*fields, encode_state(status, what), settled)

    def _copy_file(
        self, above: int, name: str, status: os.stat_result, path: str
    ) -> tuple[str, os.stat_result, bool]:
        """(digest, status, settled) of a file; no digest where it is too large, or there are too
        many."""
        limits = self._limits()
        was = self.entries.get(path)
        new = was is None or was.state[0] != "f"
        if status.st_size > limits.file_mb << 20:
            return "", status, True
        fits_files = self._files + self._taken < limits.files + (not new)
        fits_bytes = self._bytes + status.st_size <= limits.workspace_mb << 20
        has_room = fits_files and fits_bytes
        if not has_room and not why_protected(path.split("/")):
            return "", status, True
        try:
            descriptor = tree.open_file(above, name)
        except OSError:
            return "", status, False
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            before = os.fstat(descriptor)
            try:
                digest = self._store_copy(file, before.st_size)
            except OSError:
                return "", status, False
            self._taken += new
            after = os.fstat(descriptor)
        quiet = after.st_ctime_ns == before.st_ctime_ns and after.st_size == before.st_size
        return digest, after, quiet and _now_ns() - after.st_ctime_ns > SETTLED_NS

    def _store_copy(self, file: IO[bytes], size: int) -> str:
        """Copy what is read; returns its digest. Raises OSError."""
        if size <= tree.BLOCK_BYTES:
            data = file.read(size + 1)
            digest = sha256(data).hexdigest()
            path = self.copy_path(digest)
            try:
                os.utime(path)  # the hour of `prune` begins anew
            except FileNotFoundError:
                self._write_copy(path, data)
            return digest
        part = self.folder / f"{os.getpid()}-{threading.get_ident()}.part"
        make_private_folder(self.folder)
        with part.open("w+b", buffering=0) as copy:
            whole = self._try_clone(file, copy)
            hashed = sha256()
            copied = 0
            source = copy if whole else file
            while block := source.read(tree.BLOCK_BYTES):
                hashed.update(block)
                copied += len(block)
                if not whole:
                    copy.write(block)
        digest = hashed.hexdigest()
        path = self.copy_path(digest)
        if path.exists():
            os.utime(path)
            part.unlink()
        else:
            make_private_folder(path.parent)
            part.replace(path)
            self._bytes += copied
        return digest

    def _write_copy(self, path: Path, data: bytes) -> None:
        part = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.part")
        try:
            file = part.open("wb", buffering=0)
        except FileNotFoundError:
            make_private_folder(path.parent)
            file = part.open("wb", buffering=0)
        with file:
            file.write(data)
        part.replace(path)
        self._bytes += len(data)

    def add_bytes(self, data: bytes, mode: str) -> str:
        """Keep these bytes; returns the state of a file that holds them. Raises OSError."""
        digest = sha256(data).hexdigest()
        if not self.copy_path(digest).exists():
            self._write_copy(self.copy_path(digest), data)
        return f"f{mode} {digest}"

    def _try_clone(self, file: IO[bytes], copy: IO[bytes]) -> bool:
        """Share the blocks of the file, where the file system can: then the copy costs nothing."""
        if self._clones:
            try:
                fcntl.ioctl(copy.fileno(), _FICLONE, file.fileno())
            except OSError:
                self._clones = False
        return self._clones

    # ------------------------------------------------------------------ keeping

    def copy_path(self, digest: str) -> Path:
        """Where the copy of these bytes is."""
        return self.folder / digest[:2] / digest

    def open(self, digest: str) -> IO[bytes]:
        """The bytes of a digest, from here or from the blobs. Raises OSError."""
        for path in (self.copy_path(digest), self._blobs.path(DIGEST_PREFIX + digest)):
            if path.exists():
                with path.open("rb") as file:
                    whole = sha256()
                    while block := file.read(tree.BLOCK_BYTES):
                        whole.update(block)
                if whole.hexdigest() == digest:
                    return path.open("rb")
        raise FileNotFoundError("the saved copy is missing")

    def move_to_blobs(self, digests: Sequence[str]) -> None:
        """Make blobs of these copies, which are safe on disk then. What cannot be is not
        undoable."""
        with suppress(StoreFull):
            for digest in dict.fromkeys(digests):
                with suppress(BlobMissing):
                    self._blobs.adopt(self.copy_path(digest), DIGEST_PREFIX + digest)
            if digests:
                self._blobs.sync()

    def has_blob(self, digest: str) -> bool:
        """Whether these bytes are a blob."""
        return self._blobs.path(DIGEST_PREFIX + digest).exists()

    def prune(self) -> None:
        """Remove the copies of what is not there any more; those of the last hour another process
        may have made."""
        with self.lock:
            self._load()
            wanted = {parse_digest(each.state) for each in self.entries.values()}
            self._bytes = 0
            for path in self.folder.glob("??/*"):
                status = path.stat()
                if path.name in wanted or _now_ns() - status.st_mtime_ns < MIN_AGE_S * 1e9:
                    self._bytes += status.st_size
                else:
                    path.unlink()
            for path in self.aside_folder.glob("*"):
                if _now_ns() - path.stat().st_mtime_ns > self._limits().days * DAY_NS:
                    path.unlink()
            for other in self._beside.values():
                other.prune()

    def set_aside(self, path: str, digest: str) -> None:
        """Keep these bytes, which stood at `path`, as a file for people. Raises OSError."""
        make_private_folder(self.aside_folder)
        name = re.sub(r"[^A-Za-z0-9._-]", "_", path)[-100:]
        target = self.aside_folder / f"{_now_ns()}-{name}"
        with self.open(digest) as kept, target.open("wb") as file:
            shutil.copyfileobj(kept, file)

    @property
    def aside_folder(self) -> Path:
        """Where that lies."""
        return self.folder / "put-back"

    # ------------------------------------------------------------------ lasting

    def save(self) -> None:
        """Write down what was seen, so that the next process knows it. It may be lost with the
        power, not by a kill."""
        with self.lock:
            if not self._stale:
                return
            known = {os.fsencode(path): each for path, each in self.entries.items()}
            make_private_folder(self.folder)
            part = self.folder / f"index.{os.getpid()}.part"
            part.write_bytes(msgspec.msgpack.encode(known))
            part.replace(self.folder / "index")
            self._stale = False

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        self._folder_times = None
        make_private_folder(self.folder)
        try:
            known = msgspec.msgpack.decode(
                (self.folder / "index").read_bytes(), type=dict[bytes, FileSnapshot]
            )
        except (OSError, ValueError):
            known = {}
        self.entries = {os.fsdecode(path): each for path, each in known.items()}
        self._files = sum(each.state[0] == "f" for each in self.entries.values())
        self.prune()


def _now_ns() -> int:
    """The time that the kernel gives to files: no other can be compared with theirs."""
    return time.clock_gettime_ns(time.CLOCK_REALTIME)


def _folder_time(status: os.stat_result) -> tuple[int, int]:
    return status.st_ino, status.st_ctime_ns


def _is_same(was: FileSnapshot, status: os.stat_result) -> bool:
    return (
        was.ctime_ns == status.st_ctime_ns
        and was.inode == status.st_ino
        and was.size == status.st_size
        and was.mtime_ns == status.st_mtime_ns
        and was.mode == status.st_mode
    )


class _Walk:
    """One walk over a workspace, the nearest names first."""

    def __init__(self, shadow: FileSnapshots, root: int, peek: bool = False) -> None:
        self._peek = peek
        self.differs = False
        self._shadow = shadow
        self._root = root
        status = os.fstat(root)
        self._device = status.st_dev
        self._began_ns = _now_ns()
        self.found: set[str] = set()
        self.fresh: list[tuple[str, FileSnapshot]] = []
        self.unlooked: list[str] = []
        self.folder_times: FolderTimes | None = {}
        """Those of this walk; None where one of them may change again without a new time."""
        self._todo = [""]
        self._note_folder("", _folder_time(status))

    def run(self) -> None:
        self._shadow.cut = False
        for folder in self._todo:
            if self.differs:
                return
            if len(self.found) > MAX_NAMES:
                self._shadow.cut = True
                self._skip_folder(folder)
                continue
            try:
                descriptor = tree.open_folder(self._root, folder)
            except FileNotFoundError:
                continue
            except OSError:
                self._skip_folder(folder)
                continue
            try:
                self._scan_folder(descriptor, f"{folder}/" if folder else "")
            except OSError:
                self._skip_folder(folder)
            finally:
                os.close(descriptor)

    def _note_folder(self, path: str, noted: tuple[int, int]) -> None:
        _, changed_ns = noted
        is_coarse = changed_ns % SECOND_NS == 0  # as on disks that keep whole seconds
        if is_coarse or self._began_ns - changed_ns < SETTLED_NS:
            self.folder_times = None
        elif self.folder_times is not None:
            self.folder_times[path] = noted

    def _scan_folder(self, descriptor: int, prefix: str) -> None:
        known = self._shadow.entries
        found = self.found
        device = self._device
        is_folder = stat.S_IFDIR
        with os.scandir(descriptor) as entries:
            for entry in entries:
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                path = prefix + entry.name
                found.add(path)
                was = known.get(path)
                if status.st_mode & 0o170000 == is_folder:
                    if status.st_dev == device and not is_generated_folder(path):
                        self._todo.append(path)
                        self._note_folder(path, _folder_time(status))
                    else:
                        self.unlooked.append(path)
                    if was is not None and was.mode == status.st_mode:
                        continue
                elif (
                    was is not None
                    and was.ctime_ns == status.st_ctime_ns
                    and was.settled
                    and was.inode == status.st_ino
                    and was.size == status.st_size
                    and was.mtime_ns == status.st_mtime_ns
                ):
                    continue
                if self._peek:
                    self.differs = True
                    return
                self.fresh.append(
                    (path, self._shadow.take_snapshot(descriptor, entry.name, status, path))
                )

    def _skip_folder(self, folder: str) -> None:
        """What cannot be looked at is taken to be as it was."""
        self.folder_times = None
        self.unlooked.append(folder)
        self.found |= {
            path for path in self._shadow.entries if path.startswith(f"{folder}/") or not folder
        }
