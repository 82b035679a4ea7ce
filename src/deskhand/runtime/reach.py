"""What each agent's tools may touch: its workspace, and the folders that a person allowed beside it."""

from __future__ import annotations

from pathlib import Path

import anyio
import anyio.to_thread
from msgspec.structs import replace

from ..sandbox.base import Mount, Sandbox
from ..sandbox.probes import Proven, open_sandbox
from ..store.base import Store
from ..store.blobs import Blobs
from ..tools.base import Reach
from ..tools.paths import Allowed, Workspace
from ..types.errors import SandboxUnavailable


class Room:
    """The sandbox of this process, proven once, when it is first needed."""

    def __init__(self) -> None:
        self._lock = anyio.Lock()
        self._proven: Proven | None = None
        self._problem = ""

    async def __call__(self) -> Sandbox:
        """Raises SandboxUnavailable, with the reason, where none holds."""
        async with self._lock:
            if self._problem:
                raise SandboxUnavailable(self._problem)
            if self._proven is None:
                try:
                    self._proven = await open_sandbox()
                except SandboxUnavailable as error:
                    self._problem = str(error)
                    raise
            return self._proven.sandbox


class Reaches:
    """The reach of each agent. A grant given or taken while we run holds from the next call on."""

    def __init__(self, store: Store, blobs: Blobs) -> None:
        self._store, self._blobs, self._room = store, blobs, Room()
        self._open: dict[str, tuple[tuple[Allowed, ...], Reach]] = {}

    async def of(self, agent: str, folder: Path, wide: Path | None = None) -> Reach:
        """The agent's reach now. `wide`: also the folders of this home that hold no secrets."""
        rows = await self._store.rows("path_grants", (agent,))
        allowed = tuple(Allowed(path, bool(write)) for path, write, _, _ in rows)
        if wide is not None:
            allowed += await anyio.to_thread.run_sync(without_secrets, wide)
        known = self._open.get(agent)
        if known is not None and known[0] == allowed:
            return known[1]
        workspace, mounts = await anyio.to_thread.run_sync(_opened, folder, allowed)
        if known is not None:
            reach = replace(known[1], files=workspace, mounts=mounts)
        else:
            keep, kept, rows_of = self._blobs.put, self._blobs.get, self._store.rows
            reach = Reach(folder, workspace, mounts, keep, kept, rows_of, self._room, {})
        self._open[agent] = (allowed, reach)
        return reach

    def close(self) -> None:
        for _, reach in self._open.values():
            reach.files.close()


def _opened(folder: Path, allowed: tuple[Allowed, ...]) -> tuple[Workspace, tuple[Mount, ...]]:
    """The folders, held open, and as the sandbox mounts them; one that is gone is left out."""
    mounts = tuple(Mount(grant.path, grant.write) for grant in allowed if Path(grant.path).is_dir())
    return Workspace(str(folder), allowed), mounts


def without_secrets(home: Path) -> tuple[Allowed, ...]:
    """The folders of a home, to read and write, except hidden ones: keys, tokens and settings lie in those."""
    folders = sorted(path for path in home.iterdir() if path.is_dir() and not path.name.startswith("."))
    return tuple(Allowed(str(path), write=True) for path in folders if not path.is_symlink())
