"""Tools from Python files in the workspaces of agents. They follow the files."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from ..config.config import Settings, workspace_of
from ..policy.profiles import is_offered
from ..skills.python_functions import PythonSkill, PythonSkills, PythonSkillScan, python_tools
from ..store.base import Store
from ..tools.base import Tool
from ..tools.notes import PendingLabel
from ..types.clock import Clock
from ..workspace.quarantine import HeldBack, Quarantine, is_held_back

log = logging.getLogger(__name__)

PendingLabels = Callable[[Path], Sequence[PendingLabel]]


class OwnTools:
    """The tools of all workspaces. A file with untrusted text, or one that was changed since it was
    approved, gives no tool and no error message. `words` gives the labels of what commands are
    writing in a workspace."""

    def __init__(
        self, store: Store, clock: Clock, words: PendingLabels = lambda folder: ()
    ) -> None:
        self._quarantine = Quarantine(store)
        self._clock = clock
        self._pending_labels = words
        self._used: dict[str, tuple[Any, ...]] = {}
        self._skills: dict[str, PythonSkills] = {}
        self._reported: dict[str, tuple[str, ...]] = {}

    def tools(self, settings: Settings, agent: str, taken: Collection[str]) -> dict[str, Tool]:
        """The tools of an agent by name, as the files are now. None has a name that is `taken`."""
        self._quarantine.refresh()
        self._used[agent] = self._stamp(settings, agent)
        tools, problems = python_tools(self._allowed_skills(settings, agent), taken)
        for problem in problems if problems != self._reported.get(agent, ()) else ():
            log.warning("agent %s: %s", agent, problem)
        self._reported[agent] = problems
        offered = settings.offered_tools(agent)
        return {tool.spec.name: tool for tool in tools if is_offered(offered, tool.spec.name)}

    def has_changed(self, settings: Settings) -> bool:
        """Whether the files would give an agent other tools now than it was given."""
        given = [agent for agent in settings.agents if agent in self._used]
        if any(self._stamp(settings, agent)[1:] for agent in given):
            self._quarantine.refresh()
        return any(self._stamp(settings, agent) != self._used[agent] for agent in given)

    def _stamp(self, settings: Settings, agent: str) -> tuple[Any, ...]:
        """A value that changes with every change of the files."""
        files = self._skills_of(settings, agent).stamp(self._clock.now())
        if not files:
            return (0,)
        return (
            self._quarantine.version,
            *self._pending_labels(workspace_of(settings, agent)),
            *files,
        )

    def _allowed_skills(self, settings: Settings, agent: str) -> PythonSkillScan:
        found = self._skills_of(settings, agent).find(self._clock.now())
        workspace = workspace_of(settings, agent)
        held = self._quarantine.find_held(words=self._pending_labels(workspace))
        return PythonSkillScan(
            tuple(each for each in found.skills if not _is_held(each, workspace, held)),
            found.problems,
        )

    def _skills_of(self, settings: Settings, agent: str) -> PythonSkills:
        folder = workspace_of(settings, agent)
        return self._skills.setdefault(str(folder), PythonSkills(folder))


def _is_held(skill: PythonSkill, workspace: Path, held: HeldBack) -> bool:
    path = str(workspace / skill.file)
    inode = skill.place.inode
    return (
        is_held_back(held, path, inode)
        or not held.allows(path, skill.digest)
        or not skill.place.is_at(path)
    )
