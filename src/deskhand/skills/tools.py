"""The tools that list and read skills."""

from __future__ import annotations

import anyio.to_thread

from ..policy.gate import list_other_authors
from ..tools.approved import CHANGED_TEXT, Bound, load_bound
from ..tools.base import Context, Done, Tool
from ..tools.define import tool
from ..tools.label_marks import LabelMarks, listing_label, load_marks
from ..tools.names import display_name
from ..tools.output import make_bounded_result
from ..tools.paths import Place
from ..types.errors import ToolError
from ..types.identity import Principal
from ..types.labels import LOCAL, Label, join_labels
from . import skill as skill_files
from .skill import Skill, Skills


def skill_tools(skills: Skills) -> tuple[Tool, ...]:
    """The tools `list_skills` and `read_skill`. They see the skills that there are at each call."""

    @tool
    async def list_skills(context: Context) -> Done:
        """The skills that there are, and what each is for."""
        found = await anyio.to_thread.run_sync(skills.find)
        marks = await load_marks(context)
        bound = await load_bound(context)
        labels = [LOCAL]
        lines = []
        for each in found.values():
            if why_held(each, marks, bound, context.principal):
                continue
            labels.append(_file_label(each.place, marks, bound))
            problem = f" [{each.problem}]" if each.problem else ""
            lines.append(f"{display_name(each.name)}: {each.description}{problem}")
        label = join_labels(labels)
        return await make_bounded_result("\n".join(lines) or "there are no skills", context, label)

    @tool
    async def read_skill(skill: str, context: Context, path: str = "") -> Done:
        """Read a skill's instructions, or a file of it, before you do what it is for.

        skill: its name
        path: a file of the skill that its instructions name; empty for the instructions
        """
        found = await anyio.to_thread.run_sync(skills.find)
        marks = await load_marks(context)
        bound = await load_bound(context)
        if skill not in found:
            others = {
                name: each
                for name, each in found.items()
                if not why_held(each, marks, bound, context.principal)
            }
            said = f"there is no skill {skill!r}; there are: {', '.join(others) or 'none'}"
            raise ToolError(said, marks.listing_label(each.place for each in others.values()))
        if why := why_held(found[skill], marks, bound, context.principal):
            raise ToolError(why)
        loaded = await anyio.to_thread.run_sync(skill_files.load_skill, found[skill], path, bound)
        # The labels as they are now that the file has been read.
        read = _file_label(loaded.place, await load_marks(context), bound)
        if why := _why_foreign(skill, read, context.principal):
            raise ToolError(why)
        label = join_labels((read, await listing_label(loaded.named_places, context)))
        return await make_bounded_result(loaded.text, context, label)

    return (list_skills, read_skill)


def why_held(skill: Skill, marks: LabelMarks, bound: Bound, principal: Principal) -> str:
    """Why a skill is held back from this principal, or '' when it is not: it was changed since it
    was approved, or one of its files was written on the word of somebody else."""
    folder = marks.real_path(str(skill.folder))
    if bound.is_changed(folder):
        return CHANGED_TEXT.format(what=f"the skill {skill.name!r}")
    if bound.covers(folder):
        return ""
    inside = (label for path, label in marks.stored.items() if path.startswith(f"{folder}/"))
    return _why_foreign(
        skill.name, join_labels((marks.file_label(skill.place), *inside)), principal
    )


def _why_foreign(name: str, label: Label, principal: Principal) -> str:
    """Why words with this label are no instructions for this principal, or ''."""
    people = list_other_authors(label, principal)
    if not people:
        return ""
    return (
        f"the skill {name!r} was written for {', '.join(people)}, so it is not used here. An "
        "owner can read its file and save it again in their own conversation, or approve it: "
        "`deskhand held`"
    )


def _file_label(place: Place, marks: LabelMarks, bound: Bound) -> Label:
    """The label of a skill's file. One that an owner approved counts as Deskhand's own words."""
    if bound.covers(place.real) and not marks.is_private_file(place.real):
        return LOCAL
    return marks.listing_label((place,))
