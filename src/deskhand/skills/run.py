"""`run_skill`: a program of a skill, in the sandbox."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from string import Template

import anyio.to_thread
from msgspec.structs import replace

from ..sandbox.base import Mount, SandboxCommand
from ..tools.approved import load_bound
from ..tools.base import Context, Done, Tool
from ..tools.convert import find_python
from ..tools.define import tool
from ..tools.label_marks import load_marks
from ..tools.shell import MAX_TIMEOUT_S, TIMEOUT_S, run_command_watched
from ..tools.written import command_mounts
from ..types.errors import ToolError
from .skill import Skill, Skills
from .tools import why_held

PYTHONS = frozenset({"python", "python3"})
PACKAGES = ("msgspec", "docx", "openpyxl", "pptx", "fpdf")
"""What programs of skills may import, with all that is installed beside it."""
RUN_SKILL = "run_skill"


def make_run_skill(skills: Skills) -> Tool:
    """The tool. It sees the skills that there are at each call."""

    @tool(
        effect="local_write",
        replay="never",
        timeout_s=MAX_TIMEOUT_S + 10,
    )
    async def run_skill(
        skill: str, command: str, context: Context, timeout_s: float = TIMEOUT_S
    ) -> Done:
        """Run a program of a skill in the sandbox, in the workspace, without a shell.

        command: such as `python scripts/fill.py in.csv out.docx`; scripts/ is that of the skill,
            and so is $SKILL_DIR
        """
        found = (await anyio.to_thread.run_sync(skills.find)).get(skill)
        if found is None:
            raise ToolError(f"there is no skill {skill!r}: list_skills says which there are")
        why = why_held(
            found, await load_marks(context), await load_bound(context), context.principal
        )
        if why:
            raise ToolError(why)
        wanted = make_command(found, command, context)
        limited = replace(wanted, timeout_s=min(max(timeout_s, 1.0), MAX_TIMEOUT_S))
        shown = f"{skill}: {command}"
        return await run_command_watched(limited, shown, context, RUN_SKILL)

    return run_skill


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
