"""Tools from Python files in the workspaces of agents. They follow the files: one that says itself
what its tools are is run in the sandbox to find out, once for each of its versions."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec

from ..config.config import Settings, workspace_of
from ..customtools.definitions import FileTool, FoundTools, ToolFile
from ..customtools.describe import describe_file
from ..customtools.files import (
    ToolFiles,
    join_found,
    needs_review,
    read_approved_beside,
    read_beside,
)
from ..customtools.processes import ToolProcesses
from ..customtools.tools import make_file_tools
from ..policy.profiles import is_offered
from ..sandbox.base import Sandbox
from ..store.base import Store
from ..tools.base import Tool
from ..tools.notes import PendingLabel
from ..types.clock import Clock
from ..workspace.quarantine import HeldBack, Quarantine, is_held_back

log = logging.getLogger(__name__)

DESCRIBED_AT_ONCE = 4
_FileKey = tuple[str, str, bytes, tuple[tuple[str, bytes], ...]]
"""Workspace, path in it, and digest; of a reviewed file also what it may import, with digests."""
PendingLabels = Callable[[Path], Sequence[PendingLabel]]


class OwnTools:
    """The tools of all workspaces. A file with untrusted text, one that was changed since it was
    approved, or one that is to be reviewed first, gives no tool and no error message. `words` gives
    the labels of what commands are writing in a workspace."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        open_sandbox: Callable[[], Awaitable[Sandbox]],
        words: PendingLabels = lambda folder: (),
    ) -> None:
        self.processes = ToolProcesses()
        self._quarantine = Quarantine(store)
        self._clock = clock
        self._open_sandbox = open_sandbox
        self._pending_labels = words
        self._used: dict[str, tuple[Any, ...]] = {}
        self._files: dict[str, ToolFiles] = {}
        self._described: dict[_FileKey, FoundTools] = {}
        self._reported: dict[str, tuple[str, ...]] = {}
        self._poke = anyio.Event()

    def tools(self, settings: Settings, agent: str, taken: Collection[str]) -> dict[str, Tool]:
        """The tools of an agent by name, as the files are now. None has a name that is `taken`. A
        file that was not described yet gives none."""
        self._quarantine.refresh()
        self._used[agent] = self._stamp(settings, agent)
        found = self._with_described(settings, agent, self._find_allowed(settings, agent))
        tools, problems = make_file_tools(found, taken, self.processes)
        for problem in problems if problems != self._reported.get(agent, ()) else ():
            log.warning("agent %s: %s", agent, problem)
        self._reported[agent] = problems
        offered = settings.offered_tools(agent)
        return {tool.spec.name: tool for tool in tools if is_offered(offered, tool.spec.name)}

    def has_changed(self, settings: Settings) -> bool:
        """Whether the files would give an agent other tools now than it was given. Those that were
        not described yet are, by `run`."""
        given = [agent for agent in settings.agents if agent in self._used]
        stamps = {agent: self._stamp(settings, agent) for agent in given}
        if any(stamp[1:] for stamp in stamps.values()):
            self._quarantine.refresh()
        changed = [agent for agent in given if stamps[agent] != self._used[agent]]
        if any(self._list_undescribed(settings, agent) for agent in changed):
            self._poke.set()
            return False
        return bool(changed)

    async def run(self, settings: Callable[[], Settings]) -> None:
        """Describe files when they have changed, and keep the processes in which they are loaded,
        until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.processes.run)
            while True:
                self._poke = anyio.Event()
                await self.describe(settings())
                await self._poke.wait()

    async def describe(self, settings: Settings) -> bool:
        """Run what was not described yet, a few at once. Returns whether there was anything."""
        wanted = {
            self._make_key(workspace_of(settings, agent), file): file
            for agent in settings.agents
            for file in self._list_undescribed(settings, agent)
        }
        limiter = anyio.CapacityLimiter(DESCRIBED_AT_ONCE)

        async def describe_one(key: _FileKey, file: ToolFile) -> None:
            async with limiter:
                workspace = Path(key[0])
                beside = self._read_beside(workspace, file)
                if needs_review(workspace, file.path, file.place.real):
                    file = msgspec.structs.replace(file, beside=beside)
                self._described[key] = await describe_file(file, beside, self._open_sandbox)

        async with anyio.create_task_group() as tasks:
            for key, file in wanted.items():
                tasks.start_soon(describe_one, key, file)
        return bool(wanted)

    def _read_beside(self, workspace: Path, file: ToolFile) -> dict[str, bytes]:
        """The Python files beside this one that are not held back."""
        held = self._quarantine.find_held(words=self._pending_labels(workspace))
        if needs_review(workspace, file.path, file.place.real):
            return read_approved_beside(workspace, file, held.bound)
        return {
            name: source
            for name, source in read_beside(workspace, file).items()
            if not is_held_back(held, str((workspace / file.path).with_name(name)))
        }

    def _list_undescribed(self, settings: Settings, agent: str) -> list[ToolFile]:
        workspace = workspace_of(settings, agent)
        found = self._find_allowed(settings, agent).undescribed
        return [each for each in found if self._make_key(workspace, each) not in self._described]

    def _make_key(self, workspace: Path, file: ToolFile) -> _FileKey:
        beside: tuple[tuple[str, bytes], ...] = ()
        if needs_review(workspace, file.path, file.place.real):
            folder = file.place.real.rpartition("/")[0]
            approved = self._quarantine.find_held().bound.files
            beside = tuple(
                (path, approved[path])
                for path in sorted(approved)
                if path.rpartition("/")[0] == folder
            )
        return str(workspace), file.path, file.digest, beside

    def _with_described(self, settings: Settings, agent: str, found: FoundTools) -> FoundTools:
        workspace = workspace_of(settings, agent)
        described = [
            self._described.get(self._make_key(workspace, file), FoundTools())
            for file in found.undescribed
        ]
        return join_found([found, *described])

    def _stamp(self, settings: Settings, agent: str) -> tuple[Any, ...]:
        """A value that changes with every change of the files."""
        files = self._files_of(settings, agent).stamp(self._clock.now())
        if not files:
            return (0,)
        return (
            self._quarantine.version,
            len(self._described),
            *self._pending_labels(workspace_of(settings, agent)),
            *files,
        )

    def _find_allowed(self, settings: Settings, agent: str) -> FoundTools:
        found = self._files_of(settings, agent).find(self._clock.now())
        workspace = workspace_of(settings, agent)
        held = self._quarantine.find_held(words=self._pending_labels(workspace))
        return FoundTools(
            tuple(each for each in found.tools if not _is_held(each.file, each, workspace, held)),
            found.problems,
            tuple(
                each for each in found.undescribed if not _is_held(each.path, each, workspace, held)
            ),
        )

    def _files_of(self, settings: Settings, agent: str) -> ToolFiles:
        folder = workspace_of(settings, agent)
        return self._files.setdefault(str(folder), ToolFiles(folder))


async def find_all_tools(
    workspace: Path, open_sandbox: Callable[[], Awaitable[Sandbox]]
) -> FoundTools:
    """What the files of a workspace give as they are now, held back or not."""
    found = ToolFiles(workspace).find(0.0)
    described = [
        await describe_file(file, read_beside(workspace, file), open_sandbox)
        for file in found.undescribed
    ]
    return join_found([found, *described])


def _is_held(file: str, read: FileTool | ToolFile, workspace: Path, held: HeldBack) -> bool:
    path = str(workspace / file)
    inode = read.place.inode
    if needs_review(workspace, file, read.place.real) and not held.bound.covers(
        os.path.realpath(path)
    ):
        return True
    return (
        is_held_back(held, path, inode)
        or not held.allows(path, read.digest)
        or not read.place.is_at(path)
    )
