"""What the tools of each agent may touch: its workspace, and the folders that a person allowed."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from hashlib import sha256
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..config.config import Settings
from ..config.home import SHARED
from ..net.client import Net
from ..sandbox.base import Mount, Sandbox
from ..sandbox.choose import Proven, open_sandbox
from ..secrets.redaction import Redactor
from ..store.base import Store
from ..store.blobs import Blobs
from ..store.queries import path_grants_of
from ..tools.base import Processes, ToolScope
from ..tools.command_network import CommandNetwork, NetworkUser, OpenNetwork, no_network
from ..tools.file_snapshots import FileSnapshots, UndoConfig
from ..tools.label_marks import list_pending_labels
from ..tools.notes import PendingLabel
from ..tools.paths import Allowed, Workspace
from ..tools.watch import commit_owed
from ..tools.watched_folder import find_watched_folder
from ..types.errors import SandboxUnavailable, ToolError
from ..types.folders import make_private_folder
from .quarantine import Quarantine


class SandboxProvider:
    """The sandbox of this process. It is tested once, when it is first needed; `problem` and
    `proof` say what that has shown."""

    def __init__(
        self,
        open_: Callable[[], Awaitable[Proven]] = open_sandbox,
        now: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._open = open_
        self._now = now
        self._lock = anyio.Lock()
        self._proven: Proven | None = None
        self.problem = self.proof = ""
        self.checked_at: float | None = None

    async def __call__(self) -> Sandbox:
        """The sandbox. Raises SandboxUnavailable with the reason when none works."""
        async with self._lock:
            if self.problem:
                raise SandboxUnavailable(self.problem)
            if self._proven is None:
                self.checked_at = self._now()
                try:
                    self._proven = await self._open()
                except SandboxUnavailable as error:
                    self.problem = str(error)
                    raise
                held = self._proven.verdicts[-1] if self._proven.verdicts else None
                self.proof = (
                    f"{held.sandbox} holds: {len(held.probes)} attempts to break out failed"
                    if held
                    else ""
                )
            return self._proven.sandbox


async def _no_folders() -> tuple[Allowed, ...]:
    return ()


class Outward(msgspec.Struct, frozen=True):
    """What tools of a running Deskhand reach beside files: how commands reach the network, and the
    `processes` beside conversations. The `redactor` takes secrets out of the output that is
    kept. `editors` is the folder with the sockets of editors."""

    open_network: OpenNetwork = no_network
    redactor: Redactor | None = None
    processes: Processes | None = None
    editors: Path | None = None


class ToolScopes:
    """The tool scope of each agent, and what tools reach beside it (`tools.base.ScopeHost`).

    A grant that is given or taken back while we run holds from the next call on. `sandbox` is where
    commands run, `undo` says how much is kept to undo changes.
    """

    def __init__(
        self,
        store: Store,
        blobs: Blobs,
        sandbox: SandboxProvider,
        net: Net | None = None,
        undo: Callable[[], UndoConfig] = UndoConfig,
        outward: Outward | None = None,
    ) -> None:
        self._outward = outward or Outward()
        self._store = store
        self._blobs = blobs
        self._sandbox = sandbox
        self._limits = undo
        self._net = net or Net(closed="nothing is fetched from the web here.")
        self._shadows: dict[str, FileSnapshots] = {}
        self._recovery_lock = anyio.Lock()
        self.quarantine = Quarantine(store, tells=True)
        self._open: dict[str, tuple[tuple[Allowed, ...], ToolScope]] = {}
        self.untold = set[str]()
        """The sessions that have written in folders of the owner, and may not have told so yet."""

    async def put_blob(self, data: bytes) -> str:
        """Store bytes, without the values of secrets. Returns their name."""
        if self._outward.redactor is not None:
            data = await anyio.to_thread.run_sync(self._outward.redactor.redact_bytes, data)
        return await self._blobs.put(data)

    async def get_blob(self, name: str) -> bytes:
        """The bytes of this name. Raises StoreError."""
        return await self._blobs.get(name)

    async def open_sandbox(self) -> Sandbox:
        """The sandbox in which commands run. Raises SandboxUnavailable."""
        return await self._sandbox()

    def open_network(self, user: NetworkUser) -> AbstractAsyncContextManager[CommandNetwork]:
        """The network of a command, for as long as it runs."""
        return self._outward.open_network(user)

    def processes(self) -> Processes:
        """What runs beside conversations. Raises ToolError where this process cannot run any."""
        if self._outward.processes is None:
            raise ToolError(
                "background commands are not available here: start Deskhand with `deskhand serve` "
                "or `deskhand`"
            )
        return self._outward.processes

    async def open_scope(
        self,
        agent: str,
        folder: Path,
        beside: Callable[[], Awaitable[tuple[Allowed, ...]]] = _no_folders,
    ) -> ToolScope:
        """The tool scope of the agent now. `beside` gives folders that need no grant. Raises
        ToolError."""
        allowed = await self._allowed_folders(agent, beside)
        known = self._open.get(agent)
        if known is not None and known[0] == allowed and known[1].files.is_current:
            await self._recover(known[1])
            return known[1]
        workspace, mounts = await anyio.to_thread.run_sync(_open_folders, folder, allowed)
        inside = f"{workspace.roots[0][0]}/"
        owned = tuple(
            each for each in allowed if each.owned and not f"{each.path}/".startswith(inside)
        )
        if known is not None:
            reach = replace(known[1], files=workspace, mounts=mounts, owned=owned)
        else:
            reach = ToolScope(
                folder=folder,
                files=workspace,
                mounts=mounts,
                host=self,
                reader=self._store,
                seen={},
                net=self._net,
                shadow=self.snapshots_of(workspace.roots[0][0]),
                owned=owned,
                untold=self.untold,
                editors=self._outward.editors,
            )
        await self._recover(reach)
        self._open[agent] = (allowed, reach)
        return reach

    async def _allowed_folders(
        self, agent: str, beside: Callable[[], Awaitable[tuple[Allowed, ...]]]
    ) -> tuple[Allowed, ...]:
        """The folders beside the workspace. What a person granted counts before `beside`, also
        where it allows less."""
        grants = await path_grants_of(self._store, agent)
        allowed = [Allowed(each.path, each.write, each.write, each.outside) for each in grants]
        granted = {each.path for each in grants}
        allowed += [each for each in await beside() if each.path not in granted]
        return tuple(allowed)

    async def _recover(self, reach: ToolScope) -> None:
        """Label what commands wrote that were killed with their process, before anybody reads
        it."""
        if reach.shadow is None or reach.shadow.is_recovered:
            return
        async with self._recovery_lock:
            if not reach.shadow.is_recovered:
                await commit_owed(reach, find_watched_folder(reach)[0])

    def require_recovery(self) -> None:
        """Other processes may have ended: look for what they left before the next scope is
        opened."""
        for shadow in self._shadows.values():
            shadow.forget_recovery()

    def snapshots_of(self, folder: str) -> FileSnapshots:
        """The snapshots of a workspace. Agents that share a workspace share them."""
        if folder not in self._shadows:
            where = (
                self._blobs.folder.parent
                / "shadow"
                / sha256(folder.encode(errors="surrogateescape")).hexdigest()[:16]
            )
            self._shadows[folder] = FileSnapshots(
                where, self._blobs, self._store.change, self._limits
            )
        return self._shadows[folder]

    def pending_labels(self, folder: Path) -> Sequence[PendingLabel]:
        """The labels of what commands are writing there just now, and which is not labelled yet."""
        for root, shadow in self._shadows.items():
            if shadow.running and root == os.path.realpath(folder):
                return list_pending_labels(shadow, root)
        return ()

    def prune(self, folders: Collection[str]) -> None:
        """Remove copies of files that are not as they were, of these workspaces: those that no
        other process looks after."""
        for folder, shadow in list(self._shadows.items()):
            if folder in folders:
                shadow.prune()

    def close(self) -> None:
        for _, reach in self._open.values():
            reach.files.close()


def _open_folders(
    folder: Path, allowed: tuple[Allowed, ...]
) -> tuple[Workspace, tuple[Mount, ...]]:
    """The folders, held open, and as the sandbox mounts them; one that is gone, or became a link,
    is left out."""
    make_private_folder(folder)
    here = [
        grant
        for grant in allowed
        if Path(grant.path).is_dir() and str(Path(grant.path).resolve()) == grant.path
    ]
    return Workspace(str(folder), here), tuple(Mount(grant.path, grant.write) for grant in here)


def shared_folder(settings: Settings, agent: str) -> tuple[Allowed, ...]:
    """The folder that all agents share, to read and write: where `shared` in the workspace is the
    link that `init` makes, and in no workspace that lies elsewhere. Whatever else is called so
    leads nowhere."""
    home = settings.home
    link = settings.home.workspace(agent) / SHARED
    if settings.agent(agent).workspace or not link.is_symlink():
        return ()
    real = Path(os.path.realpath(home.root / SHARED))
    if (
        os.path.realpath(link) != str(real)
        or not real.is_dir()
        or home.is_protected(real, write=True)
    ):
        return ()
    return (Allowed(str(real), write=True),)


def folders_without_secrets(home: Path, own: Path) -> tuple[Allowed, ...]:
    """The folders of a home, to read and write, except hidden ones, in which keys, tokens and
    settings lie, and those around or in `own`, where ours do."""
    home = home.resolve()
    own = own.resolve()
    folders = sorted(
        path for path in home.iterdir() if path.is_dir() and not path.name.startswith(".")
    )
    plain = (path for path in folders if not path.is_symlink())
    return tuple(
        Allowed(str(path), write=True)
        for path in plain
        if not own.is_relative_to(path) and not path.is_relative_to(own)
    )
