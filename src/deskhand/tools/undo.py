"""Copies of what a command may change, so that it can be put back."""

from __future__ import annotations

from contextlib import suppress

import anyio.to_thread
import msgspec

from ..types.commit import Change
from ..types.errors import ToolError
from .base import Context, Reach

SNAPSHOT_FILES, SNAPSHOT_BYTES = 500, 20 << 20
"""A workspace larger than this is not copied before each command."""


class _File(msgspec.Struct, frozen=True, gc=False):
    path: str
    size_bytes: int
    modified_s: float


class Snapshot:
    """The files of a small workspace before a command. Only what it changes is stored: most commands change little."""

    def __init__(self, reach: Reach, before: dict[str, _File] | None, kept: dict[str, bytes]) -> None:
        self._reach, self._before, self._kept = reach, before, kept

    @classmethod
    async def of(cls, reach: Reach) -> Snapshot:
        """Copy what is there, if it is little enough; otherwise nothing can be put back."""
        return await anyio.to_thread.run_sync(cls._of, reach)

    @classmethod
    def _of(cls, reach: Reach) -> Snapshot:
        files = _files(reach)
        if len(files) > SNAPSHOT_FILES or sum(file.size_bytes for file in files.values()) > SNAPSHOT_BYTES:
            return cls(reach, None, {})
        kept: dict[str, bytes] = {}
        for file in files.values():
            with suppress(ToolError):
                kept[file.path] = reach.files.read(file.path, SNAPSHOT_BYTES)
        return cls(reach, files, kept)

    async def changes(self, context: Context) -> tuple[Change, ...]:
        """A row for each file that is no longer as it was, or is new; none for what could not be copied before."""
        if self._before is None:
            return ()
        after = await anyio.to_thread.run_sync(_files, self._reach)
        now, rows = context.clock.now(), []
        for path in sorted(self._before.keys() | after.keys()):
            if self._before.get(path) == after.get(path) or (path in self._before and path not in self._kept):
                continue
            digest = await self._reach.keep(self._kept[path]) if path in self._kept else None
            rows.append(Change("undo_add", (context.agent, context.session, context.key, path, digest, now)))
        return tuple(rows)


def _files(reach: Reach) -> dict[str, _File]:
    """Every regular file beneath the workspace, up to one more than are copied."""
    found: dict[str, _File] = {}
    todo = ["."]
    while todo and len(found) <= SNAPSHOT_FILES:
        folder = todo.pop()
        try:
            entries = reach.files.list(folder, SNAPSHOT_FILES + 1)
        except ToolError:
            continue
        for entry in entries:
            if not entry.name.isprintable():
                continue  # no tool can name it, so none can put it back
            path = entry.name if folder == "." else f"{folder}/{entry.name}"
            if entry.kind == "folder":
                todo.append(path)
            elif entry.kind == "file":
                found[path] = _File(path, entry.size_bytes, entry.modified_s)
    return found
