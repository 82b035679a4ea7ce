"""The tools that list and read skills."""

from __future__ import annotations

import anyio.to_thread

from ..tools.base import Context, Done, Tool
from ..tools.define import tool
from ..tools.marks import marks_of
from ..tools.output import shown
from ..types.errors import ToolError
from . import skill as skill_files
from .skill import Skills


def skill_tools(skills: Skills) -> tuple[Tool, ...]:
    """`list_skills` and `read_skill` over what there is at each call."""

    @tool
    async def list_skills(context: Context) -> Done:
        """The skills that there are, and what each is for."""
        found, marks = await anyio.to_thread.run_sync(skills.find), await marks_of(context)
        label = marks.joined(str(each.folder / skill_files.FILE_NAME) for each in found.values())
        lines = [
            f"{each.name}: {each.description}" + (f" [{each.problem}]" if each.problem else "")
            for each in found.values()
        ]
        return await shown("\n".join(lines) or "there are no skills", context, label)

    @tool
    async def read_skill(skill: str, context: Context, path: str = "") -> Done:
        """Read a skill's instructions, or a file of it, before you do what it is for.

        skill: its name
        path: a file of the skill that its instructions name; empty for the instructions
        """
        found = await anyio.to_thread.run_sync(skills.find)
        if skill not in found:
            raise ToolError(f"there is no skill {skill!r}; there are: {', '.join(found) or 'none'}")
        text, marks = (
            await anyio.to_thread.run_sync(skill_files.read_skill, found[skill], path),
            await marks_of(context),
        )
        return await shown(text, context, marks.of(str(found[skill].folder / (path or skill_files.FILE_NAME))))

    return (list_skills, read_skill)
