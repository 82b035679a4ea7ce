"""Finds the files of tools of a workspace, and reads them again when they have changed.

A file is in `memory/skills`, `skills` or `tools` of the workspace. Those of the first are what an
agent has learned, and give no tools before an owner has reviewed them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path, PurePosixPath

from msgspec.structs import replace

from ..tools.approved import Bound
from ..tools.paths import Workspace
from ..types.errors import ToolError
from .definitions import FoundTools, ToolFile
from .functions import parse_functions

FOLDERS = ("memory/skills", "skills", "tools")
REVIEWED_FOLDER = "memory/skills"
FILE_BYTES = 64 * 1024
MOST_FILES = 100
SETTLED_S = 1.0
"""A file that was written less than this ago is left out for now: its label may not be stored
yet."""


class ToolFiles:
    """The files of tools of a workspace. A file is read again when it has changed."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = str(workspace)
        self._parsed: dict[str, tuple[tuple[float, int, int], FoundTools]] = {}

    def stamp(self, now: float) -> tuple[tuple[str, float, int, int], ...]:
        """A value that differs after every change, SETTLED_S later."""
        return tuple((path, *version) for path, version in self._list_files(now))

    def find(self, now: float) -> FoundTools:
        """The tools there are at this time (seconds since the epoch)."""
        files = dict(self._list_files(now))
        found: list[FoundTools] = []
        with suppress(ToolError), Workspace(self._workspace) as workspace:
            for path, version in files.items():
                known = self._parsed.get(path)
                whole = f"{self._workspace}/{path}"
                if known is None or known[0] != version or not _is_still_at(known[1], whole):
                    known = version, _read_tools(workspace, path, version[1])
                    self._parsed[path] = known
                found.append(known[1])
        self._parsed = {path: known for path, known in self._parsed.items() if path in files}
        return join_found(found)

    def _list_files(self, now: float) -> Iterator[tuple[str, tuple[float, int, int]]]:
        with suppress(ToolError), Workspace(self._workspace) as workspace:
            for folder in FOLDERS:
                with suppress(ToolError):
                    entries = workspace.list(folder, 10 * MOST_FILES)[: 10 * MOST_FILES]
                    modules = [
                        each for each in entries if each.kind == "file" and _is_module(each.name)
                    ]
                    for entry in modules[:MOST_FILES]:
                        if abs(now - entry.modified_s) > SETTLED_S:
                            version = entry.modified_s, entry.size_bytes, entry.changed_ns
                            yield f"{folder}/{entry.name}", version


def needs_review(workspace: Path, file: str, real: str) -> bool:
    """Whether the tools of this file, a path in the workspace that led to this real one, wait for
    an owner's approval."""
    return file.startswith(f"{REVIEWED_FOLDER}/") or is_in_reviewed_folder(workspace, real)


def is_in_reviewed_folder(workspace: Path, real: str) -> bool:
    """Whether this real path is in the folder whose files are reviewed, whatever else leads
    there."""
    return os.path.realpath(workspace / REVIEWED_FOLDER) == str(PurePosixPath(real).parent)


def _is_still_at(found: FoundTools, path: str) -> bool:
    """Whether the file of these is the one that this path names."""
    places = [tool.place for tool in found.tools] + [file.place for file in found.undescribed]
    return all(place.is_at(path) for place in places)


def _is_module(name: str) -> bool:
    return name.endswith(".py") and not name.startswith(("_", ".")) and name.isprintable()


def _read_tools(workspace: Workspace, path: str, size: int) -> FoundTools:
    if size > FILE_BYTES:
        return FoundTools((), (f"{path} is larger than {FILE_BYTES >> 10} kB",))
    try:
        read = workspace.read_opened(path, FILE_BYTES + 1)
    except ToolError as error:
        return FoundTools((), (str(error),))
    found = parse_functions(read.data, path)
    digest = sha256(read.data).digest()
    place = read.place
    return replace(
        found,
        tools=tuple(replace(each, digest=digest, place=place) for each in found.tools),
        undescribed=tuple(replace(each, digest=digest, place=place) for each in found.undescribed),
    )


def read_beside(workspace: Path, file: ToolFile) -> dict[str, bytes]:
    """The other Python files in its folder, by their names: it may import them."""
    folder = str(PurePosixPath(file.path).parent)
    found: dict[str, bytes] = {}
    with suppress(ToolError), Workspace(str(workspace)) as files:
        for entry in files.list(folder, MOST_FILES):
            if entry.kind == "file" and entry.name.endswith(".py") and entry.name.isprintable():
                with suppress(ToolError):
                    found[entry.name] = files.read(f"{folder}/{entry.name}", FILE_BYTES)
    found.pop(PurePosixPath(file.path).name, None)
    return found


def read_approved_beside(workspace: Path, file: ToolFile, bound: Bound) -> dict[str, bytes]:
    """Those of them that are as an owner has approved them."""
    folder = PurePosixPath(file.place.real).parent
    return {
        name: source
        for name, source in read_beside(workspace, file).items()
        if bound.covers(f"{folder}/{name}")
        and bound.allows(f"{folder}/{name}", sha256(source).digest())
    }


def join_found(found: Sequence[FoundTools]) -> FoundTools:
    """All of them together."""
    return FoundTools(
        tuple(tool for each in found for tool in each.tools),
        tuple(problem for each in found for problem in each.problems),
        tuple(file for each in found for file in each.undescribed),
    )
