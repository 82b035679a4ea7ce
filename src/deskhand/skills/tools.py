"""The tools that list and read skills."""

from __future__ import annotations

import anyio.to_thread

from ..tools.base import Context, Done, Tool
from ..tools.define import tool
from ..tools.marks import Marks, label_of, marks_of, others
from ..tools.output import shown
from ..types.errors import ToolError
from ..types.labels import join
from . import skill as skill_files
from .skill import Skill, Skills


def skill_tools(skills: Skills) -> tuple[Tool, ...]:
    """`list_skills` and `read_skill` over what there is at each call."""

    @tool
    async def list_skills(context: Context) -> Done:
        """The skills that there are, and what each is for."""
        found, marks = await anyio.to_thread.run_sync(skills.find), await marks_of(context)
        found = {name: each for name, each in found.items() if not _others(each, marks, context)}
        label = marks.told(_file(each) for each in found.values())
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
        marks = await marks_of(context)
        if skill not in found:
            others = {name: each for name, each in found.items() if not _others(each, marks, context)}
            said = f"there is no skill {skill!r}; there are: {', '.join(others) or 'none'}"
            raise ToolError(said, marks.told(map(_file, others.values())))
        if people := _others(found[skill], marks, context):
            raise ToolError(
                f"the skill {skill!r} was written for {', '.join(people)}: it is no instruction here. "
                "An owner may read its file, and save it again in a conversation of their own"
            )
        text, named = await anyio.to_thread.run_sync(skill_files.loaded, found[skill], path)
        read = str(found[skill].folder / (path or skill_files.FILE_NAME))
        return await shown(text, context, await label_of((read, *named), context))

    return (list_skills, read_skill)


def _file(skill: Skill) -> str:
    return str(skill.folder / skill_files.FILE_NAME)


def _others(skill: Skill, marks: Marks, context: Context) -> tuple[str, ...]:
    """On whose word a file of it was written, where that is no word for who speaks here."""
    inside = (label for path, label in marks.stored.items() if path.startswith(f"{marks.real(str(skill.folder))}/"))
    return others(join((marks.of(_file(skill)), *inside)), context.principal)
