"""`run_skill`: a program of a skill, in the sandbox."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from string import Template

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..sandbox.base import Mount, SandboxCommand
from ..tools.approved import load_bound
from ..tools.base import CallPreview, Context, Outcome, Spec
from ..tools.convert import find_python
from ..tools.define import decode_arguments, make_schema
from ..tools.label_marks import load_marks
from ..tools.shell import MAX_TIMEOUT_S, TIMEOUT_S, run_command_watched
from ..tools.written import command_mounts
from ..types.commit import Change
from ..types.effects import Effect
from ..types.errors import Refused, ToolError
from ..types.identity import Address
from ..types.labels import LOCAL, Label
from ..types.messages import Text
from ..types.options import SessionOptions
from .secret_grants import allow_secrets, list_allowed_secrets, read_version
from .skill import SECRETS_KEY, Skill, Skills
from .tools import why_held

PYTHONS = frozenset({"python", "python3"})
PACKAGES = ("msgspec", "docx", "openpyxl", "pptx", "fpdf")
"""What programs of skills may import, with all that is installed beside it."""
RUN_SKILL = "run_skill"
SHOWN_DIGITS = 32


class RunSkillArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    skill: str
    command: str
    timeout_s: float = TIMEOUT_S
    secrets: tuple[str, ...] = ()


_DESCRIPTIONS = {
    "command": "such as `python scripts/fill.py in.csv out.docx`; scripts/ is that of the skill, "
    "and so is $SKILL_DIR",
    "secrets": "where a result says that the skill was not given them: a person is asked",
}


class RunSkill:
    """`run_skill`, for the skills of an agent. It sees those that there are at each call."""

    def __init__(self, skills: Skills) -> None:
        self._skills = skills
        schema = make_schema(RunSkillArguments)
        for name, text in _DESCRIPTIONS.items():
            schema["properties"][name]["description"] = text
        self.spec = Spec(
            RUN_SKILL,
            "Run a program of a skill in the sandbox, in the workspace, without a shell.",
            schema,
            "local_write",
            "never",
            timeout_s=MAX_TIMEOUT_S + 10,
        )

    def effect_of(self, arguments: msgspec.Raw, address: Address) -> Effect:
        try:
            given = decode_arguments(arguments, RunSkillArguments, RUN_SKILL)
        except ToolError:
            return "local_write"  # it is refused
        return "network" if given.secrets else "local_write"

    def preview(
        self, arguments: msgspec.Raw, session: str, options: SessionOptions, label: Label
    ) -> CallPreview | None:
        """Of a call that wants secrets, which skill is to have them: the yes is for its bytes."""
        try:
            given = decode_arguments(arguments, RunSkillArguments, RUN_SKILL)
            found = self._skills.find().get(given.skill)
            if found is None or not given.secrets:
                return None
            version = read_version(found)
        except (ToolError, Refused):
            return None  # it is refused
        shown = f"[the skill in {version.folder}, SHA-256 {version.digest[:SHOWN_DIGITS]}]"
        return CallPreview("network", shown)

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        given = decode_arguments(arguments, RunSkillArguments, RUN_SKILL)
        found = await self._find(given.skill, context)
        allowed = await list_allowed_secrets(context.reach.reader, context.agent, found)
        wished = [each for each in given.secrets if each not in allowed]
        rows = await self._allow(found, wished, context) if wished else ()
        usable = tuple(each for each in found.secrets if each in (*allowed, *wished))
        wanted = make_command(found, given.command, context)
        limited = replace(wanted, timeout_s=min(max(given.timeout_s, 1.0), MAX_TIMEOUT_S))
        shown = f"{found.name}: {given.command}"
        done = await run_command_watched(limited, shown, context, RUN_SKILL, usable)
        withheld = [each for each in found.secrets if each not in usable]
        parts = done.parts
        if withheld:
            parts = (*parts, Text(_WITHHELD.format(names=_quote_all(withheld)), LOCAL))
        return replace(done, parts=parts, changes=(*done.changes, *rows))

    async def _find(self, name: str, context: Context) -> Skill:
        """Raises ToolError where it may not be used."""
        found = (await anyio.to_thread.run_sync(self._skills.find)).get(name)
        if found is None:
            raise ToolError(f"there is no skill {name!r}: list_skills says which there are")
        why = why_held(
            found, await load_marks(context), await load_bound(context), context.principal
        )
        if why:
            raise ToolError(why)
        return found

    async def _allow(
        self, skill: Skill, secrets: Sequence[str], context: Context
    ) -> tuple[Change, ...]:
        """The rows that let it use these from now on, which a person has just allowed. Raises
        ToolError."""
        unknown = [each for each in secrets if each not in skill.secrets]
        if unknown:
            raise ToolError(
                f"the skill {skill.name!r} does not declare {_quote_all(unknown)}: its SKILL.md "
                f"says {SECRETS_KEY} under metadata"
            )
        owners_turn = "owner" in context.principal.roles
        approver = context.approver
        if not owners_turn or approver is None or "owner" not in approver.roles:
            raise ToolError(
                f"only the owner can let a skill use a secret: `deskhand skills allow {skill.name}`"
            )
        try:
            version = await anyio.to_thread.run_sync(read_version, skill)
        except Refused as error:
            raise ToolError(str(error)) from error
        return allow_secrets(
            version,
            secrets,
            agent=context.agent,
            at=context.clock.now(),
            by=approver.id,
        )


def _quote_all(names: Sequence[str]) -> str:
    return ", ".join(repr(each) for each in names)


_WITHHELD = (
    "\n[the skill was not given its secrets {names}, which nobody has allowed yet for what it is "
    "now. If it needs them, run it again with them in secrets]"
)


def make_command(skill: Skill, command: str, context: Context) -> SandboxCommand:
    """What is run for this command line of a skill. Raises ToolError for one that cannot be
    read."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ToolError(f"the command cannot be read: {error}") from error
    if not words:
        raise ToolError("the command is empty")
    # Where it was found. An agent's own lies in its workspace, which is seen anyway: it might have
    # become a link to somewhere else by now, so it is not looked at again.
    is_own = skill.source == "agent"
    folder = str(skill.folder if is_own else skill.folder.resolve())
    variables = {"SKILL_DIR": folder, "HOME": str(context.reach.folder)}
    argv = [_expand_word(word, folder, variables) for word in words]
    python = find_python(PACKAGES)
    mounts = (*command_mounts(context), *python.mounts)
    if argv[0] in PYTHONS:
        argv[0] = python.program
    elif argv[0].endswith(".py"):
        argv = [python.program, *argv]
    if not is_own and not any(Path(folder).is_relative_to(each.path) for each in mounts):
        mounts = (*mounts, Mount(folder))
    env = (("SKILL_DIR", folder), ("PYTHONPATH", os.pathsep.join(python.libraries)))
    return SandboxCommand(
        tuple(argv), str(context.reach.folder), mounts, (*env, ("PYTHONDONTWRITEBYTECODE", "1"))
    )


def _expand_word(word: str, folder: str, variables: dict[str, str]) -> str:
    """With its variables, and what lies in the skill by its whole path."""
    text = Template(word).safe_substitute(variables)
    inner = text.removeprefix("./")
    is_inner = inner.startswith(("scripts/", "references/", "assets/")) and ".." not in inner
    return f"{folder}/{inner}" if is_inner else text
