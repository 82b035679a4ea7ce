"""The processes in which files of tools are loaded: one for each file and conversation, kept while
the conversation uses it."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import msgspec

from ..sandbox.base import Exit, Mount
from ..sandbox.line_process import LineProcess
from ..tools.base import Context
from ..tools.command_network import CommandNetwork, NetworkUser
from ..tools.label_marks import OWNER_READERS, load_marks
from ..tools.shell import CommandOutput, RanCommand, describe_exit
from ..tools.watch import FileWatch
from ..tools.written import command_mounts
from ..types.errors import SandboxError, ToolError
from ..types.labels import LOCAL, UNTRUSTED, Label, join_labels
from ..types.messages import ResultStatus
from .definitions import FileTool, ToolFile
from .describe import LOAD_S, find_load_problem, make_command, make_load_line

LIFE_S = 24 * 3600.0
IDLE_S = 300.0
LOOK_S = 5.0
END_S = 10.0
MAX_KEPT = 8
"""So many processes are kept while nothing uses them."""
PATIENCE_S = 10.0
"""So long a call waits for this process to be ready to start others."""


class ToolResultFrame(msgspec.Struct, frozen=True):
    """How a call has ended, in the words of its process."""

    status: ResultStatus
    text: str


class Frame(msgspec.Struct, frozen=True):
    """A line of such a process: a piece of what a call prints, or its result."""

    output: str = ""
    error: bool = False
    result: ToolResultFrame | None = None


class ToolCallFrame(msgspec.Struct, frozen=True):
    """What such a process is told to do, and how long that may take."""

    name: str
    arguments: dict[str, Any]
    extensions: dict[str, Any]
    timeout_s: float


_decode = msgspec.json.Decoder(Frame).decode
FileVersions = tuple[tuple[str, int | bytes], ...]
ProcessKey = tuple[str, bytes, str, str, tuple[Mount, ...], bool, tuple[str, ...], FileVersions]
"""File and digest, session and who opened its turn, what it sees, whether it has a network, which
secrets its requests may carry, and the versions of the Python files beside it."""


class ToolProcess:
    """One of them. `label` is that of all that it has read and heard, as it may repeat that."""

    def __init__(
        self,
        file: ToolFile,
        context: Context,
        mounts: tuple[Mount, ...],
        *,
        has_network: bool,
        secrets: tuple[str, ...],
    ) -> None:
        self.file = file
        self.context = context
        self.mounts = mounts
        self._has_network = has_network
        self._secrets = secrets
        self.lock = anyio.Lock()
        self.scope = anyio.CancelScope()
        self.changed = anyio.Event()
        self.over = anyio.Event()
        self.is_ready = False
        self.ended = ""
        self.label = LOCAL
        self.network = CommandNetwork()
        self.used_at = anyio.current_time()
        self._process: LineProcess | None = None
        self._lines: AsyncGenerator[bytes] | None = None
        self._watch: FileWatch | None = None
        self._calling = LOCAL

    async def run(self) -> None:
        """Load the file, and hold the process until it is stopped."""
        reach = self.context.reach
        try:
            with self.scope:
                sandbox = await reach.host.open_sandbox()
                if not (self._has_network and sandbox.has_egress):
                    await self._hold(LineProcess(sandbox, self._command("")))
                    return
                user = NetworkUser(
                    self.context.session,
                    self.context.agent,
                    self.context.principal,
                    LOCAL,
                    read=self._read_label,
                    secrets=self._secrets,
                )
                async with reach.host.open_network(user) as network:
                    self.network = network
                    await self._hold(LineProcess(sandbox, self._command(network.path)))
        except SandboxError as error:
            self.ended = str(error)
        finally:
            self.ended = self.ended or "it was stopped"
            self.is_ready = False
            self.over.set()
            self._tell()

    def _command(self, egress: str) -> Any:
        command = make_command(self.context.reach.folder, self.mounts, LIFE_S)
        return msgspec.structs.replace(command, egress=egress)

    async def _hold(self, process: LineProcess) -> None:
        async with process.open(), aclosing(process.lines()) as lines:
            await process.send(make_load_line(self.file, self.context.reach.folder))
            self._process = process
            self._lines = lines
            line = await anext(lines, b"")
            problem = find_load_problem(line)
            if not problem:
                self.is_ready = True
                self._tell()
                await anyio.sleep_forever()
            self.ended = process.describe_end() or problem

    async def _read_label(self) -> Label:
        """That of what it may send away: all that it knows, and what the call that runs knows.
        Between calls nobody knows what it does."""
        if self._watch is None:
            return UNTRUSTED
        return join_labels((self.label, self._calling, await self._watch.read_label()))

    def _tell(self) -> None:
        self.changed.set()
        self.changed = anyio.Event()

    @property
    def has_ended(self) -> bool:
        return bool(self.ended or (self._process is not None and self._process.ended))

    async def call(
        self, wanted: ToolCallFrame, context: Context, watch: FileWatch, output: CommandOutput
    ) -> RanCommand:
        """Have it done. What it prints goes to `output`, and so does its result. One that is
        cancelled ends the process. Raises ToolError."""
        async with self.lock:
            self._watch = watch
            self._calling = context.label
            result = None
            try:
                await self._wait_until_ready()
                with anyio.move_on_after(wanted.timeout_s):
                    result = await self._converse(wanted, output)
            finally:
                self.used_at = anyio.current_time()
                if result is None:
                    await self._end()
            read = await watch.read_label()
            self.label = join_labels((self.label, context.label, read))
            self.label = self.network.output_label(self.label)
            self._watch = None
            if result is None:
                note = describe_exit(Exit(None, timeout=True), wanted.timeout_s, said=True)
                return RanCommand("error", note, self.network, self.label)
            output(result.text.encode(errors="replace"), False)
            return RanCommand(result.status, "", self.network, self.label)

    async def _end(self) -> None:
        """Kill it, and wait until nothing of it writes any more."""
        self.scope.cancel()
        with anyio.CancelScope(shield=True), anyio.move_on_after(END_S):
            await self.over.wait()

    async def _wait_until_ready(self) -> None:
        with anyio.move_on_after(LOAD_S):
            while not self.is_ready and not self.ended:
                await self.changed.wait()
        if not self.is_ready:
            why = self.ended or f"it did not begin within {LOAD_S:.0f} s"
            raise ToolError(f"{self.file.path} cannot be run: {why}")

    async def _converse(
        self, wanted: ToolCallFrame, output: Callable[[bytes, bool], None]
    ) -> ToolResultFrame:
        process, lines = self._process, self._lines
        if process is None or lines is None:
            raise ToolError(f"{self.file.path} cannot be run: {self.ended}")
        await process.send(msgspec.json.encode(wanted))
        async for line in lines:
            try:
                frame = _decode(line)
            except (ValueError, RecursionError):
                break
            if frame.result is not None:
                return frame.result
            output(frame.output.encode("latin-1", "replace"), frame.error)
        why = process.describe_end() or "it said what cannot be read"
        raise ToolError(f"{self.file.path} has broken off: {why}")


class ToolProcesses:
    """Those of this process. `run` keeps them."""

    def __init__(self) -> None:
        self._processes: dict[ProcessKey, ToolProcess] = {}
        self._wanted: list[ToolProcess] = []
        self._poke = anyio.Event()
        self._has_begun = anyio.Event()

    async def run(self) -> None:
        """Start processes that are wanted, and end those that nothing uses, until cancelled."""
        self._has_begun.set()
        try:
            async with anyio.create_task_group() as tasks:
                while True:
                    self._poke = anyio.Event()
                    while self._wanted:
                        tasks.start_soon(self._wanted.pop().run)
                    self._end_unused()
                    with anyio.move_on_after(LOOK_S if self._processes else None):
                        await self._poke.wait()
        finally:
            self._processes.clear()
            self._has_begun = anyio.Event()

    def _end_unused(self) -> None:
        now = anyio.current_time()
        free = [key for key, each in self._processes.items() if not each.lock.statistics().locked]
        free.sort(key=lambda key: self._processes[key].used_at)
        for n, key in enumerate(free):
            process = self._processes[key]
            too_many = len(free) - n > MAX_KEPT
            if process.has_ended or too_many or now - process.used_at > IDLE_S:
                del self._processes[key]
                process.scope.cancel()

    async def call(
        self,
        tool: FileTool,
        file: ToolFile,
        given: dict[str, Any],
        context: Context,
        watched: tuple[FileWatch, CommandOutput],
    ) -> RanCommand:
        """Run this tool of this file. Raises ToolError."""
        with anyio.move_on_after(PATIENCE_S):
            await self._has_begun.wait()
        if not self._has_begun.is_set():
            raise ToolError("custom tools cannot be run here")
        watch, output = watched
        process = self._find(tool, file, context)
        if tool.reads_only:
            process.label = join_labels((process.label, await _label_of_all(context)))
        wanted = ToolCallFrame(tool.name, given, _make_extensions(context), tool.timeout_s)
        return await process.call(wanted, context, watch, output)

    def _find(self, tool: FileTool, file: ToolFile, context: Context) -> ToolProcess:
        mounts = command_mounts(context)
        if tool.reads_only:
            mounts = tuple(Mount(each.path) for each in mounts)
        has_network = not tool.reads_only or bool(tool.hosts)
        path = str(Path(context.reach.folder) / file.path)
        whose = context.session, context.principal.id
        secrets = tuple(sorted(tool.secrets))
        key = path, file.digest, *whose, mounts, has_network, secrets, _list_versions(path, file)
        found = self._processes.get(key)
        if found is None or found.has_ended or found.scope.cancel_called:
            found = ToolProcess(file, context, mounts, has_network=has_network, secrets=secrets)
            self._processes[key] = found
            self._wanted.append(found)
            self._poke.set()
        found.used_at = anyio.current_time()  # or it would be ended before it is called
        return found


async def _label_of_all(context: Context) -> Label:
    """That of all that the workspace holds: nobody notes what is read where nothing may be written,
    as the kernel keeps no times of access there."""
    labels = [LOCAL, *(await load_marks(context)).stored.values()]
    if not {*OWNER_READERS} & {*context.audience}:
        labels.append(Label("tool_local", OWNER_READERS, "files of the owner"))
    return join_labels(labels)


def _list_versions(path: str, file: ToolFile) -> FileVersions:
    """The Python files beside this one at `path`, which it may import, and when each was changed,
    or what is in each."""
    if file.beside is not None:
        return tuple((name, sha256(file.beside[name]).digest()) for name in sorted(file.beside))
    found: list[tuple[str, int]] = []
    with suppress(OSError), os.scandir(Path(path).parent) as entries:
        found = [
            (each.name, each.stat(follow_symlinks=False).st_mtime_ns)
            for each in entries
            if each.name.endswith(".py")
        ]
    return tuple(sorted(found))


def _make_extensions(context: Context) -> dict[str, Any]:
    """What a function is given that asks for it by these names, as operator-use calls them."""
    address = context.address
    return {
        "_channel": address.channel,
        "_chat_id": address.chat,
        "_account_id": address.account,
        "_metadata": {},
        "_session_id": context.session,
        "_workspace": str(context.reach.folder),
    }
