"""What programs see of a folder that is held open. No link is followed, whatever is exchanged for
one meanwhile."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ...policy.information_flow import is_steering_file
from .. import tree
from ..generated_folders import is_generated_folder
from ..paths import OpenedFile, Place, descriptor_path, place_of
from ..protected import why_protected

_GONE_ERRORS = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def is_visible(path: str) -> bool:
    """Whether programs see this path of a workspace: neither what steers agents or programs, nor
    what is hidden, nor what programs make again by themselves."""
    if not path.isprintable():
        return False  # a name that is no text, or that could hide in one
    parts = path.split("/")
    if any(part.startswith(".") for part in parts):
        return False
    if is_steering_file(path) or why_protected(parts):
        return False
    return not any(map(is_generated_folder, parts))


class NamedFile(msgspec.Struct, frozen=True):
    """A folder or a file, by its path below the folder."""

    path: str
    folder: bool
    size: int
    place: Place


class Source:
    """The folder that is open as `root`, as long as that is. Its methods block; they raise
    OSError."""

    def __init__(self, root: int) -> None:
        self._root = root

    def iter_entries(self) -> Iterator[NamedFile]:
        """The folders and files that programs see."""
        waiting = deque([""])
        while waiting:
            above = waiting.popleft()
            try:
                descriptor = tree.open_folder(self._root, above)
            except OSError as error:
                if above and error.errno in _GONE_ERRORS:
                    continue  # it went away, or something else took its place
                raise
            try:
                for each in _iter_visible(descriptor, above):
                    waiting += [each.path] * each.folder
                    yield each
            finally:
                os.close(descriptor)

    def read(self, path: str, limit_bytes: int = -1) -> OpenedFile:
        """The beginning of a file, and where that lay."""
        with (
            tree.open_parent(self._root, path) as (above, name),
            os.fdopen(tree.open_file(above, name), "rb") as file,
        ):
            data = file.read(limit_bytes)
            return OpenedFile(_require_place(file.fileno()), os.fstat(file.fileno()).st_size, data)

    def copy(self, path: str, target: Path) -> tuple[Place, int]:
        """Copy a file to a new one. Returns where it lay, and its modification time in
        nanoseconds."""
        with (
            tree.open_parent(self._root, path) as (above, name),
            os.fdopen(tree.open_file(above, name), "rb") as file,
        ):
            with target.open("xb") as written:
                shutil.copyfileobj(file, written)
            status = os.fstat(file.fileno())
            place = _require_place(file.fileno())
        target.chmod(stat.S_IMODE(status.st_mode))
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
        return place, status.st_mtime_ns

    def modified_ns(self, path: str) -> int:
        """When the content of what lies there was changed last."""
        found = tree.stat_path(self._root, path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return found.st_mtime_ns

    def list_names(self, path: str) -> list[str]:
        """All names in a folder."""
        descriptor = tree.open_folder(self._root, path)
        try:
            return _list_names(descriptor)
        finally:
            os.close(descriptor)


def _list_names(descriptor: int) -> list[str]:
    with os.scandir(descriptor) as entries:
        return [entry.name for entry in entries]


def _iter_visible(descriptor: int, above: str) -> Iterator[NamedFile]:
    """What programs see in one folder, by name."""
    real = descriptor_path(descriptor)
    for name in sorted(_list_names(descriptor)):
        path = f"{above}/{name}" if above else name
        try:
            status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        except FileNotFoundError:
            continue
        folder = stat.S_ISDIR(status.st_mode)
        if (folder or stat.S_ISREG(status.st_mode)) and is_visible(f"{path}/x" if folder else path):
            place = Place(f"{real}/{name}", "", status.st_ino, status.st_ctime_ns)
            yield NamedFile(path, folder, status.st_size, place)


def _require_place(descriptor: int) -> Place:
    found = place_of(descriptor)
    if found is None:
        raise OSError(errno.ESTALE, "it was moved or replaced while it was read")
    return found
