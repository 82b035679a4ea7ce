"""Commands, in the sandbox: only hosts that were allowed, no secrets, killed whole when their time
is up."""

from __future__ import annotations

import re
import tempfile
from codecs import getincrementaldecoder
from collections.abc import Awaitable, Callable
from typing import IO

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..sandbox.base import Exit, SandboxCommand
from ..types.errors import SandboxError, ToolError
from ..types.labels import LOCAL, Label, join_labels
from ..types.messages import ResultStatus, Text, clean_text
from .base import Context, Done, Tool
from .command_network import CommandNetwork, NetworkUser
from .define import FunctionTool, tool
from .label_marks import OWNER_READERS, mark_blob
from .output import EDGE_BYTES, MAX_OUTPUT_BYTES, join_ends, utf8_boundary
from .watch import FileWatch
from .written import command_mounts, explain_read_only

TIMEOUT_S = 120.0
MAX_TIMEOUT_S = 600.0
MAX_KEPT_BYTES = 32 << 20
"""What is kept of a command's output to be read later; what comes after is counted and dropped."""
MAX_EMIT_BYTES = 4000
STDOUT = "[stdout]"
STDERR = "[stderr]"
"""The lines at which the output goes on from the other stream."""
NO_OUTPUT = "[no output]"
EXIT_CODE = re.compile(r"\n\[exit code: (\d+)\]")


class CommandOutput:
    """What a command prints, in bounded memory: the first bytes, the last bytes, and a file of the
    rest."""

    def __init__(self, file: IO[bytes], context: Context) -> None:
        self._file = file
        self._context = context
        self.size = self._kept = 0
        self.tail = bytearray()
        self._on_stderr = False
        self.handle = ""
        self._emits = bool(
            {*OWNER_READERS} & {*context.audience}
        )  # only afterwards do we know if it is for others
        self._decode = getincrementaldecoder("utf-8")("replace").decode

    def __call__(self, data: bytes, stderr: bool) -> None:
        if stderr != self._on_stderr:
            self._on_stderr = stderr
            fresh = not self.size or self.tail.endswith(b"\n")
            self._add((b"" if fresh else b"\n") + f"{STDERR if stderr else STDOUT}\n".encode())
        self._add(data)
        if self._emits:
            self._context.emit(self._decode(data[-MAX_EMIT_BYTES:]))

    def _add(self, data: bytes) -> None:
        self.size += len(data)
        room = MAX_KEPT_BYTES - self._kept
        if room > 0:
            self._file.write(data[:room])
            self._kept += min(room, len(data))
        self.tail += data[-EDGE_BYTES:]
        del self.tail[:-EDGE_BYTES]

    async def render(self) -> str:
        """All of it, or its ends and a handle."""
        self._file.seek(0)
        if self.size <= MAX_OUTPUT_BYTES:
            return clean_text(self._file.read().decode(errors="replace"))
        data = await anyio.to_thread.run_sync(self._file.read)
        self.handle = await self._context.reach.host.put_blob(data)
        text = join_ends(
            data[: utf8_boundary(data, EDGE_BYTES)], bytes(self.tail), self.size, self.handle
        )
        if self.size > MAX_KEPT_BYTES:
            text += f"\n[only its first {MAX_KEPT_BYTES >> 20} MB were kept]"
        return text


def _make_shell(usual_s: float) -> FunctionTool:
    @tool(effect="local_write", replay="never", timeout_s=MAX_TIMEOUT_S + 10)
    async def shell(
        command: str, context: Context, timeout_s: float = usual_s, cwd: str = ""
    ) -> Done:
        """Run a bash command in the workspace, without input. It reaches allowed folders and,
        by http and https, allowed hosts.

        timeout_s: at most 600
        """
        return await _run_command(command, context, min(max(timeout_s, 1.0), MAX_TIMEOUT_S), cwd)

    return shell


shell = _make_shell(TIMEOUT_S)


async def _run_command(command: str, context: Context, limit_s: float, cwd: str) -> Done:
    if not command.strip():
        raise ToolError("the command is empty")
    reach = context.reach
    wanted = SandboxCommand(
        ("/bin/bash", "-c", command),
        str(reach.folder / cwd),
        command_mounts(context),
        timeout_s=limit_s,
    )
    return await run_command_watched(wanted, command, context)


class RanCommand(msgspec.Struct, frozen=True):
    """How something in the sandbox has ended. `note` says it to the model, '' where its output is
    all; `label` is that of what it knew beside what it has read and heard just now."""

    status: ResultStatus
    note: str
    network: CommandNetwork
    label: Label = LOCAL


RunWatched = Callable[[CommandOutput, FileWatch], Awaitable[RanCommand]]


async def run_watched(run: RunWatched, what: str, context: Context, tool: str = "shell") -> Done:
    """Run something in the sandbox, and note what it does to the workspace, so that it can be
    undone. `what` is said of it to people. Raises ToolError."""
    async with await FileWatch.start(context, what, tool) as watch:
        with tempfile.TemporaryFile() as file:
            output = CommandOutput(file, context)
            try:
                ran = await run(output, watch)
            except SandboxError as error:
                raise ToolError(str(error)) from error
            text = await output.render()
        watch.set_network_label(ran.network.output_label(LOCAL))
        looked = await watch.finish()
    text += ran.note + ran.network.render_note() + looked.said
    why = explain_read_only(context)
    if why:
        text += f"\n[{why}]"

    label = join_labels((looked.label, ran.label))
    rows = looked.rows
    if output.handle:
        rows += mark_blob(output.handle, join_labels((context.label, label)), context)
    return Done((Text(text, label),), ran.status, rows)


async def run_command_watched(
    wanted: SandboxCommand,
    what: str,
    context: Context,
    tool: str = "shell",
    secrets: tuple[str, ...] | None = None,
) -> Done:
    """As `run_watched`, for a command. `secrets` are the names of those that its requests may
    carry; None: all that the person may use."""

    async def run(output: CommandOutput, watch: FileWatch) -> RanCommand:
        user = NetworkUser(
            context.session,
            context.agent,
            context.principal,
            context.label,
            read=watch.read_label,
            secrets=secrets,
        )
        ended, network = await _run_sandboxed(wanted, context, output, user)
        note = describe_exit(ended, wanted.timeout_s, bool(output.size))
        return RanCommand("ok" if ended.code == 0 else "error", note, network)

    return await run_watched(run, what, context, tool)


async def _run_sandboxed(
    wanted: SandboxCommand, context: Context, output: CommandOutput, user: NetworkUser
) -> tuple[Exit, CommandNetwork]:
    """Run it in the sandbox, with a way to the network where there can be one."""
    sandbox = await context.reach.host.open_sandbox()
    if not sandbox.has_egress:
        return await sandbox.run(wanted, output), CommandNetwork()
    async with context.reach.host.open_network(user) as network:
        return await sandbox.run(replace(wanted, egress=network.path), output), network


def describe_exit(ended: Exit, limit_s: float, said: bool) -> str:
    """The last line of a result."""
    if ended.timeout:
        return f"\n[timed out after {limit_s:.0f} s; everything it started was killed]"
    if ended.limit:
        return f"\n[killed: it exceeded its limit of {ended.limit}]"
    if ended.code is None:
        return f"\n[killed by signal {ended.signal}]"
    if ended.code != 0:
        return f"\n[exit code: {ended.code}]"
    return "" if said else NO_OUTPUT


def parse_output(text: str, *, good: bool) -> tuple[int, str, str] | None:
    """The exit code, stdout and stderr of a command, from its result; None for one that was killed
    or not run."""
    code = 0
    if not good:
        found = list(EXIT_CODE.finditer(text))
        if not found:
            return None
        last = found[-1]
        code = int(last[1])
        text = text[: last.start()] + text[last.end() :]
    streams: dict[str, list[str]] = {STDOUT: [], STDERR: []}
    current = STDOUT
    for line in text.removesuffix(NO_OUTPUT).splitlines(keepends=True):
        if line.rstrip("\n") in streams:
            current = line.rstrip("\n")
        else:
            streams[current].append(line)
    return code, "".join(streams[STDOUT]), "".join(streams[STDERR])


def make_shell_tool(*, wide: bool, timeout_s: float = TIMEOUT_S) -> Tool:
    """The shell, whose commands have `timeout_s` where the model does not say; with a `wide` reach
    it can touch all of the owner's files, so it is asked about."""
    made = shell if timeout_s == TIMEOUT_S else _make_shell(timeout_s)
    return made.with_effect("host") if wide else made
