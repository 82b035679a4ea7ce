"""The tools that list and read skills."""

from __future__ import annotations

from collections.abc import Callable

import anyio.to_thread

from ..tools.base import Context, Done, Tool
from ..tools.define import tool
from ..tools.output import shown
from ..tools.paths import Workspace
from ..types.errors import ToolError
from .skill import Skill, body


def skill_tools(find: Callable[[], dict[str, Skill]]) -> tuple[Tool, ...]:
    """`list_skills` and `read_skill` over what `find` gives at each call."""

    @tool
    async def list_skills() -> str:
        """The skills that there are, and what each is for."""
        skills = await anyio.to_thread.run_sync(find)
        return "\n".join(f"{skill.name}: {skill.description}" for skill in skills.values()) or "there are no skills"

    @tool
    async def read_skill(skill: str, context: Context, path: str = "") -> Done:
        """Read a skill's instructions, or a file of it, before you do what it is for.

        skill: its name
        path: a file of the skill that its instructions name; empty for the instructions
        """
        skills = await anyio.to_thread.run_sync(find)
        if skill not in skills:
            raise ToolError(f"there is no skill {skill!r}; there are: {', '.join(skills) or 'none'}")
        text = await anyio.to_thread.run_sync(_read, skills[skill], path)
        return await shown(text, context)

    return (list_skills, read_skill)


def _read(skill: Skill, path: str) -> str:
    with Workspace(str(skill.folder)) as files:
        if path:
            return files.read(path).decode(errors="replace")
        names = [entry.name for entry in files.list() if entry.kind != "other"]
        return f"<skill-loaded name={skill.name!r}>\n{body(skill)}\n\n[files: {', '.join(names)}]"
