"""Files of tools as tools of an agent."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..tools.aliases import TOOL_ALIASES
from ..tools.approved import CHANGED_TEXT, load_bound
from ..tools.base import Context, Done, Outcome, Spec, Tool
from ..tools.define import decode_object, make_function_tool
from ..tools.label_marks import load_marks
from ..tools.shell import CommandOutput, RanCommand, run_watched
from ..tools.watch import FileWatch
from ..types.effects import Effect
from ..types.errors import ToolError
from .definitions import FileTool, FoundTools, Parameter, ToolFile
from .files import FILE_BYTES, needs_review, read_approved_beside
from .functions import KINDS
from .processes import ToolProcesses

MOST_TOOLS = 60
GRACE_S = 30.0
"""So much longer a call may take than its function: its process may have to be started."""


def make_file_tools(
    found: FoundTools, taken: Collection[str], processes: ToolProcesses
) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
    """The tools, and what is wrong with the others. Names that are `taken` or appear twice are left
    out."""
    tools: dict[str, Tool] = {}
    problems = list(found.problems)
    for each in found.tools:
        if each.name in tools or each.name in taken or each.name in TOOL_ALIASES:
            problems.append(f"{each.file}: {each.name} is not a tool: another one has this name")
        elif len(tools) >= MOST_TOOLS:
            problems.append(
                f"{each.file}: {each.name} is not a tool: there are {MOST_TOOLS} already"
            )
        else:
            tools[each.name] = _make_tool(each, processes)
    return tuple(tools.values()), tuple(problems)


def _make_tool(tool: FileTool, processes: ToolProcesses) -> Tool:
    made = CustomTool(tool, processes)
    if tool.schema is not None:
        return made
    fields = [_make_field(each) for each in tool.parameters]

    async def run(context: Context, **given: Any) -> Done:
        said = {name: value for name, value in given.items() if value is not None}
        return await made.call(said, context)

    return make_function_tool(made.spec, fields, run, ["context"])


class CustomTool:
    """A function of a file. Its arguments are checked in its process, where its types are."""

    def __init__(self, tool: FileTool, processes: ToolProcesses) -> None:
        self._tool = tool
        self._processes = processes
        self.spec = Spec(
            tool.name,
            tool.description,
            tool.schema or {},
            effect_of(tool),
            "again" if tool.reads_only else "never",
            timeout_s=tool.timeout_s + GRACE_S,
        )

    @property
    def file(self) -> str:
        """Its path in the workspace."""
        return self._tool.file

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        return await self.call(decode_object(arguments), context)

    async def call(self, given: dict[str, Any], context: Context) -> Done:
        """Raises ToolError."""
        tool = self._tool
        read = context.reach.files.read_opened
        opened = await anyio.to_thread.run_sync(read, tool.file, FILE_BYTES)
        file = ToolFile(tool.file, opened.data, sha256(opened.data).digest(), opened.place)
        file = await _require_approved(file, context)  # after reading it: that is what runs
        shown = f"{tool.name} {shlex.quote(msgspec.json.encode(given).decode())}"

        async def run(output: CommandOutput, watch: FileWatch) -> RanCommand:
            return await self._processes.call(tool, file, given, context, (watch, output))

        return await run_watched(run, shown, context, tool.name)


def effect_of(tool: FileTool) -> Effect:
    """What a call may do: what the sandbox lets it do."""
    if not tool.reads_only:
        return "local_write"
    return "network" if tool.hosts else "none"


async def _require_approved(read: ToolFile, context: Context) -> ToolFile:
    """The file, with all that it may import where that is reviewed too. Raises ToolError when this
    content is held back."""
    marks = await load_marks(context)
    bound = await load_bound(context)
    workspace = Path(context.reach.folder)
    file = read.place.asked
    real = read.place.real
    if not all(bound.allows(each, read.digest) for each in (real, marks.real_path(file))):
        raise ToolError(CHANGED_TEXT.format(what=file))
    if needs_review(workspace, read.path, real):
        if not bound.covers(real):
            raise ToolError(
                f"{file} is held back: no owner has reviewed it yet, with `deskhand held`"
            )
        find = partial(read_approved_beside, workspace, read, bound)
        return replace(read, beside=await anyio.to_thread.run_sync(find))
    label = marks.file_label(read.place)
    if bound.covers(real) or not (label.integrity == "untrusted" or label.by):
        return read
    whose = f"text by {', '.join(label.by)}"
    if label.integrity == "untrusted":
        whose = "untrusted content"
    raise ToolError(f"{file} is held back: it contains {whose}, and no owner has reviewed it since")


def _make_field(parameter: Parameter) -> tuple[Any, ...]:
    kind = KINDS[parameter.kind]
    if parameter.required:
        return parameter.name, kind
    if parameter.default is None:
        return parameter.name, kind | None, None
    return parameter.name, kind, parameter.default
