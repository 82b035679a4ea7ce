"""The tools of an agent, by the settings: what it may not use, it does not see."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from ..skills.skill import Skills
from ..skills.tools import skill_tools
from ..tools import files, kv, shell, talk
from ..tools.base import Tool
from .config import Settings

READ_FROM_LOG = frozenset({"terminal", "web", "api", "door"})
"""Surfaces whose people read the log itself: nothing has to be sent to them."""

ALIASES = {
    "bash": "shell",
    "run_shell": "shell",
    "terminal": "shell",
    "list_directory": "list_files",
    "list_dir": "list_files",
    "patch_file": "edit_file",
    "search_code": "search_files",
    "intermediate_message": "send_message",
    "skill": "read_skill",
}
"""What the tools of other systems are called here, in permissions and imports; a prompt never shows two names."""


def skill_sources(settings: Settings, agent: str) -> list[tuple[str, Path]]:
    """Where the skills of an agent are looked for, the strongest last."""
    home = settings.home.root
    return [("shared", home / "skills"), ("agent", home / "agents" / agent / "skills")]


def skills_of(settings: Settings, agent: str) -> Skills:
    """What gives the agent's skills at each call."""
    return Skills(skill_sources(settings, agent))


def toolbox(settings: Settings, agent: str = "default") -> dict[str, Tool]:
    """The agent's tools by name, in the order in which the model is shown them."""
    config = settings.agent(agent)
    everything: Sequence[Tool] = (
        *files.TOOLS,
        shell.shell_tool(wide=config.sandbox is False),
        *talk.TOOLS,
        talk.SendMessage(READ_FROM_LOG),
        *kv.TOOLS,
        *skill_tools(skills_of(settings, agent)),
    )
    return {tool.spec.name: tool for tool in everything if permitted(tool.spec.name, config.tools)}


def permitted(name: str, allowed: Sequence[str]) -> bool:
    """Whether a list of names and patterns, which may use the names of other systems, covers this tool."""
    return any(fnmatchcase(name, ALIASES.get(pattern, pattern)) for pattern in allowed)
