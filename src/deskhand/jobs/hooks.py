"""The scripts of a job, in the sandbox: what decides beforehand, and what is done with the
answer."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..config.sections import HOOK_TIMEOUT_S
from ..sandbox.base import Exit, Mount, SandboxCommand
from ..tools.base import Context
from ..tools.output import ends, whole
from ..tools.shell import how_it_ended
from ..tools.watch import Watch
from ..tools.way import Traveller, Way
from ..tools.written import mounts_of
from ..types.commit import Change
from ..types.errors import JobInvalid, SandboxError, ToolError
from ..types.jobs import is_contained_path
from ..types.labels import LOCAL, UNTRUSTED, Label, join_labels
from ..types.messages import Text, clean_text

HEAD_BYTES = 16_000
TAIL_BYTES = 4_000
STDERR_CHARS = 300
STATE_FOLDER = "state"
"""The folder beside JOB.md in which hooks may keep what they want to know the next time."""


class Hook(msgspec.Struct, frozen=True):
    """A script in the folder of a job, and what it is told."""

    folder: Path
    script: str
    env: tuple[tuple[str, str], ...] = ()
    stdin: bytes = b""
    timeout_s: float = HOOK_TIMEOUT_S


class Ran(msgspec.Struct, frozen=True):
    """How a hook ended. `stdout` is what it printed, shortened, without what it printed to stderr;
    `said` is how it ended, for people, with whose word that is; `rows` are what it did to the
    workspace, to be written with whatever follows. `label` is that of all that it has read, and so
    of what it keeps."""

    ok: bool
    stdout: str
    outcome: Text
    rows: tuple[Change, ...] = ()
    label: Label = UNTRUSTED


class _Printed:
    """Both ends of a stream, in bounded memory."""

    def __init__(self) -> None:
        self.head, self.tail, self.size = bytearray(), bytearray(), 0

    def add(self, data: bytes) -> None:
        self.size += len(data)
        room = max(HEAD_BYTES - len(self.head), 0)
        self.head += data[:room]
        self.tail += data[room:][-TAIL_BYTES:]
        del self.tail[:-TAIL_BYTES]

    def text(self) -> str:
        if self.size <= HEAD_BYTES + len(self.tail):
            return clean_text(bytes(self.head + self.tail).decode(errors="replace"))
        head = bytes(self.head[: whole(bytes(self.head), HEAD_BYTES)])
        return ends(head, bytes(self.tail), self.size, "").replace(
            "; read_output(handle='', offset=", " (from ", 1
        )


async def run_hook(hook: Hook, context: Context) -> Ran:
    """Run it to its end, at most `timeout_s`, with the job's folder to read, the workspace and
    `state/` to write, and no secrets. Raises JobInvalid where the script is not there, ToolError
    where nothing can be run safely."""
    argv = await anyio.to_thread.run_sync(_prepare_argv, hook)
    folder = str(hook.folder.resolve())
    mounts = (*mounts_of(context), Mount(folder), Mount(f"{folder}/{STATE_FOLDER}", write=True))
    command = SandboxCommand(argv, folder, mounts, hook.env, hook.stdin, hook.timeout_s)
    printed = {False: _Printed(), True: _Printed()}
    try:
        async with await Watch.of(context, shlex.join(argv)) as watch:
            ended, way = await _run_sandboxed(command, context, printed, watch)
            watch.hear(way.label(LOCAL))
            looked = await watch.over()
    except SandboxError as error:
        raise ToolError(str(error)) from error
    words = how_it_ended(ended, hook.timeout_s, said=True).strip().strip("[]")
    last = printed[True].text().strip()[-STDERR_CHARS:]
    label = join_labels((LOCAL, context.label, looked.label))
    whose = join_labels((label, label_of_hook(hook.folder.name))) if last or way.refused else LOCAL
    said = Text(": ".join(filter(None, (words, last))) + way.note(), whose)
    return Ran(ended.code == 0, printed[False].text(), said, looked.rows, label)


async def _run_sandboxed(
    command: SandboxCommand, context: Context, printed: dict[bool, _Printed], watch: Watch
) -> tuple[Exit, Way]:
    sandbox = await context.reach.sandbox()

    def output(data: bytes, stderr: bool) -> None:
        printed[stderr].add(data)

    if not sandbox.has_egress:
        return await sandbox.run(command, output), Way()
    traveller = Traveller(
        context.session, context.agent, context.principal, context.label, read=watch.read
    )
    async with context.reach.ways(traveller) as way:
        return await sandbox.run(replace(command, egress=way.path), output), way


def _prepare_argv(hook: Hook) -> tuple[str, ...]:
    """What is run: the script itself, or, where it may not be executed, what its first line
    names."""
    folder = hook.folder.resolve()
    path = folder / hook.script
    if not is_contained_path(hook.script) or not path.resolve().is_relative_to(folder):
        raise JobInvalid(
            f"the hook {hook.script!r} does not lie in the folder of the job; move it there"
        )
    if not path.is_file():
        raise JobInvalid(
            f"there is no hook {hook.script!r} in the folder of the job; put it there, or "
            "take it out of JOB.md"
        )
    (folder / STATE_FOLDER).mkdir(mode=0o700, exist_ok=True)
    if os.access(path, os.X_OK):
        return (str(path),)
    with path.open("rb") as file:
        first = file.readline(200)
    try:
        runner = (
            shlex.split(first.removeprefix(b"#!").decode(errors="replace"))
            if first.startswith(b"#!")
            else []
        )
    except ValueError:  # a quote without its other one
        runner = []
    if not runner:
        raise JobInvalid(
            f"the hook {hook.script!r} cannot be run: it needs a first line such as #!/bin/sh"
        )
    return (*runner, str(path))


def label_of_hook(job: str) -> Label:
    """Whose word it is what a prerun prints: it may repeat anything from outside."""
    return Label("untrusted", None, f"prerun of job {job}")


def wrap_prerun_output(printed: str) -> str:
    """What a prerun printed, as the model is shown it."""
    inner = printed.replace("</prerun_output", "<\\/prerun_output").strip()
    return f"<prerun_output>\n{inner or '[it printed nothing]'}\n</prerun_output>"
