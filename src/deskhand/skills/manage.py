"""`manage_skill`: the skills of an agent, written by itself. Earlier versions are kept beside them,
and a person can undo each change."""

from __future__ import annotations

from typing import Literal

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..sandbox.base import Mount, SandboxCommand
from ..tools.approved import load_bound
from ..tools.base import Context, Done, Outcome, Spec, call_label, make_result
from ..tools.define import decode_arguments, make_schema
from ..tools.files import write_undoable
from ..tools.label_marks import load_marks
from ..tools.output import make_bounded_result
from ..tools.shell import run_command_watched
from ..types.effects import Effect
from ..types.errors import ConfigError, ToolError
from ..types.identity import Address
from ..types.labels import LOCAL, join_labels
from .skill import FILE_NAME, Skill, Skills, parse_front_matter, split_front_matter
from .tools import why_held
from .write import render_skill_file

MANAGE_SKILL = "manage_skill"
LONG_LINES = 500
"""A longer body costs every turn that reads it: what is not always needed belongs into files."""


class ManageSkillArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    action: Literal["list", "create", "update", "delete"]
    name: str = ""
    config: str = ""


_DESCRIPTIONS = {
    "name": "lower case letters, digits and single hyphens",
    "config": "the whole SKILL.md: front matter with name and description (what it does and when "
    "to use it) between lines of ---, and below it the instructions",
}


class ManageSkill:
    """One for the skills of each agent."""

    def __init__(self, skills: Skills) -> None:
        self._skills = skills
        schema = make_schema(ManageSkillArguments)
        for name, text in _DESCRIPTIONS.items():
            schema["properties"][name]["description"] = text
        self.spec = Spec(
            MANAGE_SKILL,
            "List, create, update or delete your own skills. Earlier versions are kept in .history "
            "beside them.",
            schema,
            "local_write",
            "never",
        )

    def effect_of(self, arguments: msgspec.Raw, address: Address) -> Effect:
        try:
            given = decode_arguments(arguments, ManageSkillArguments, MANAGE_SKILL)
        except ToolError:
            return "local_write"
        return "none" if given.action == "list" else "local_write"

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        given = decode_arguments(arguments, ManageSkillArguments, MANAGE_SKILL)
        found = await anyio.to_thread.run_sync(self._skills.find)
        own = found.get(given.name)
        if own is not None and own.source != "agent":
            own = None
        match given.action:
            case "list":
                return await self._list(found, context)
            case "create":
                if own is not None:
                    raise ToolError(f"there is a skill {given.name!r} already: update it")
                return await self._write(given, context)
            case "update":
                return await self._write(given, context, _require(own, given.name))
            case "delete":
                return await self._delete(_require(own, given.name), context)

    async def _list(self, found: dict[str, Skill], context: Context) -> Done:
        marks = await load_marks(context)
        bound = await load_bound(context)
        shown = [
            each for each in found.values() if not why_held(each, marks, bound, context.principal)
        ]
        lines = [f"{each.name} ({each.source}): {each.description}" for each in shown]
        label = join_labels((LOCAL, marks.listing_label(each.place for each in shown)))
        return await make_bounded_result("\n".join(lines) or "there are none", context, label)

    async def _write(
        self, given: ManageSkillArguments, context: Context, own: Skill | None = None
    ) -> Done:
        text = _make_file(given)
        folder = own.inner if own is not None else f"skills/{given.name}"
        path = f"{folder}/{FILE_NAME}"
        written = await write_undoable(MANAGE_SKILL, path, text, context, context.label)
        verb = "created" if own is None else "updated"
        words = f"ok, {verb} {path}; it can be used now"
        lines = text.count(b"\n")
        if lines > LONG_LINES:
            words += (
                f"\n[it has {lines} lines: more than {LONG_LINES} are too many to be read each "
                "time; move details into references/]"
            )
        return replace(make_result(words, call_label(context)), changes=written.rows)

    async def _delete(self, own: Skill, context: Context) -> Done:
        """In the sandbox: a folder on the way may be a link to somewhere else by now."""
        command = SandboxCommand(
            ("/bin/rm", "-rf", "--", own.inner),
            str(context.reach.folder),
            (Mount(str(context.reach.folder), write=True),),
        )
        done = await run_command_watched(command, f"delete {own.name}", context, MANAGE_SKILL)
        if done.status != "ok":
            return done
        words = f"ok, deleted {own.inner}"
        return replace(make_result(words, call_label(context)), changes=done.changes)


def _require(own: Skill | None, name: str) -> Skill:
    """Raises ToolError where the agent has none of this name."""
    if own is None:
        raise ToolError(f"you have no skill {name!r} of your own; create makes one")
    return own


def _make_file(given: ManageSkillArguments) -> bytes:
    """The SKILL.md, as it is to be written. Raises ToolError for what is against the
    specification."""
    front, problem = parse_front_matter(given.config)
    if problem:
        raise ToolError(f"the config is not a SKILL.md: {problem}")
    name = front.get("name") or given.name
    if name != given.name:
        raise ToolError(f"its front matter says the name {name!r}, and it is to be {given.name!r}")
    body = split_front_matter(given.config)[1]
    try:
        made = render_skill_file(name, front.get("description", ""), body)
    except ConfigError as error:
        raise ToolError(str(error)) from error
    text = given.config.replace("\r\n", "\n")
    return text.encode(errors="replace") if front.get("name") else made
