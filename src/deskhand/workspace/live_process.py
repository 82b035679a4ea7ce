"""A process that runs beside a conversation: how it is run, read, typed into and stopped."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import anyio
import msgspec

from ..policy.information_flow import format_sources
from ..sandbox.base import Exit, SandboxCommand
from ..sandbox.terminal import Terminal
from ..tools.base import CommandRequest, Context, Heard
from ..tools.command_network import CommandNetwork, NetworkUser
from ..tools.shell import describe_exit
from ..tools.watch import FileWatch
from ..tools.watched_folder import FolderLook
from ..tools.written import command_mounts, explain_read_only, list_writable
from ..types.errors import SandboxError, ToolError
from ..types.labels import LOCAL, OWNER, UNTRUSTED, Label, join_labels
from ..types.process import ProcessKind, ProcessState
from .output_spool import Spool

log = logging.getLogger(__name__)

SCAN_S = 5.0
"""How often the workspace is checked while a process runs in it. Changes of protected files are
reverted."""
MAX_ENDED = 20
READ_BYTES = 24_000


class ProcessEnd(msgspec.Struct, frozen=True):
    """How a process ended; `words` say it to people and models."""

    state: ProcessState
    words: str
    code: int | None = None
    looked: FolderLook = FolderLook()


class Live:
    """One process, while it runs and for some time after. `stopped` says who ended it, and why."""

    def __init__(
        self, id_: str, session: str, kind: ProcessKind, wanted: CommandRequest, path: Path
    ) -> None:
        self.id = id_
        self.session = session
        self.kind = kind
        self.wanted = wanted
        self.spool = Spool(path)
        self.terminal = Terminal(wanted.columns, wanted.rows) if kind == "session" else None
        self.ending: ProcessEnd | None = None
        self.ended = anyio.Event()
        self.stopped = ""
        self.read_offset = 0
        self.used_at = anyio.current_time()
        self.label = UNTRUSTED
        self._watching: tuple[Context, FileWatch] | None = None
        self._network = CommandNetwork()
        self._input_label = OWNER
        self._may_write: tuple[str, ...] = ()
        self._scope = anyio.CancelScope()

    def stop(self, why: str) -> None:
        """End it, with everything that it started."""
        self.stopped = self.stopped or why
        self._scope.cancel()

    def add(self, data: bytes, stderr: bool) -> None:
        """Add something that it printed."""
        self.used_at = anyio.current_time()
        self.spool.add(data, stderr)

    async def run(self, context: Context) -> ProcessEnd:
        """Run it to its end. When this is cancelled, everything it started is killed, and its
        changes are still checked."""
        try:
            async with await FileWatch.start(context, self.wanted.command, self.kind) as watch:
                self._watching = context, watch
                try:
                    ended = await self._run(context, watch)
                finally:
                    self._watching = None
                watch.set_network_label(
                    join_labels((self._network.output_label(LOCAL), self._input_label))
                )
                looked = await watch.finish()
                self.label = looked.label
                looked = msgspec.structs.replace(
                    looked, said=self._network.render_note() + looked.said
                )
        except (SandboxError, ToolError) as error:
            return ProcessEnd("error", str(error))
        if ended is None:
            return ProcessEnd("error", self.stopped, looked=looked)
        words = describe_exit(ended, self.wanted.timeout_s, True).strip().strip("[]")
        state: ProcessState = "error"
        if ended.timeout:
            state = "timeout"
        elif ended.code is not None:
            state = "completed"
        return ProcessEnd(state, words or "exit code: 0", ended.code, looked)

    async def _run(self, context: Context, watch: FileWatch) -> Exit | None:
        reach = context.reach
        wanted = self.wanted
        mounts = command_mounts(context)
        self._may_write = tuple(each.path for each in list_writable(context) if not each.outside)
        if why := explain_read_only(context):
            self.spool.add(f"[{why}]\n".encode(), False)
        where = str(reach.folder / wanted.cwd)
        argv = ("/bin/bash", "-c", wanted.command)
        command = SandboxCommand(
            argv, where, mounts, timeout_s=wanted.timeout_s, terminal=self.terminal
        )
        ended: Exit | SandboxError | None = None
        async with anyio.create_task_group() as beside:
            beside.start_soon(self._scan_periodically)
            try:
                with self._scope:
                    ended = await self._run_sandboxed(context, command, watch)
            except SandboxError as error:
                ended = error  # raised in here, it would come out as a group
            beside.cancel_scope.cancel()
        if isinstance(ended, SandboxError):
            raise ended
        return ended

    async def _run_sandboxed(
        self, context: Context, command: SandboxCommand, watch: FileWatch
    ) -> Exit:
        """Run it, with access to the network if there is any. Anything that the conversation reads
        later may be typed into a session, so a session counts as untrusted from its beginning."""
        sandbox = await context.reach.host.open_sandbox()
        if not sandbox.has_egress:
            return await sandbox.run(command, self.add)
        label = context.label if self.kind == "background" else UNTRUSTED
        network_user = NetworkUser(
            context.session, context.agent, context.principal, label, read=watch.read_label
        )
        async with context.reach.host.open_network(network_user) as network:
            self._network = network
            return await sandbox.run(
                msgspec.structs.replace(command, egress=network.path), self.add
            )

    async def _scan_now(self) -> None:
        """Store at once what it has changed and read until now."""
        watching = self._watching
        if watching is None:
            if self.spool.size and not self.ended.is_set():
                await self.ended.wait()  # it has ended, and the last check is under way
            return
        context, watch = watching
        watch.set_network_label(join_labels((self._network.output_label(LOCAL), self._input_label)))
        try:
            looked = await watch.checkpoint()
            if looked.said:
                self.spool.add(f"{looked.said}\n".encode(), False)
            if looked.rows and context.reach.shadow is not None:
                await context.reach.shadow.commit(looked.rows)
            self.label = looked.label
        except (ToolError, OSError) as error:
            log.warning("Could not check what process %s does: %s", self.id, error)

    async def _scan_periodically(self) -> None:
        """Check its changes now and then: a session may last for hours."""
        while True:
            begun_at = anyio.current_time()
            await self._scan_now()
            await anyio.sleep(max(SCAN_S, 20 * (anyio.current_time() - begun_at)))

    def finish(self, ending: ProcessEnd) -> None:
        """It is over: tell everybody who waits for that."""
        self.ending = ending
        self.spool.close()
        self.spool.news.set()
        self.ended.set()

    @property
    def outcome(self) -> str:
        return self.ending.words if self.ending is not None else ""

    async def read_new_output(self, wait_s: float) -> Heard:
        """The new output. Waits up to `wait_s` for some, and then a moment for the rest of it."""
        self.used_at = anyio.current_time()
        with anyio.move_on_after(wait_s):
            while self.spool.size <= self.read_offset and not self.ended.is_set():
                self.spool.news = anyio.Event()
                await self.spool.news.wait()
        while not self.ended.is_set() and wait_s > 0:
            self.spool.news = anyio.Event()
            with anyio.move_on_after(min(0.15, wait_s)) as quiet:
                await self.spool.news.wait()
            wait_s -= 0.15
            if quiet.cancelled_caught:
                break
        at, data = self.spool.read(self.read_offset, READ_BYTES)
        self.read_offset = at + len(data)
        await self._scan_now()  # afterwards, so the label covers what it had read when it printed
        return Heard(data, at, self.spool.size, self.outcome, self._output_label)

    async def read_output(self, at: int | None, size: int) -> Heard:
        """A piece of its output: from `at`, or the last one."""
        self.used_at = anyio.current_time()
        start = self.spool.size - size if at is None else at
        begin, data = self.spool.read(max(0, start), size)
        await self._scan_now()
        return Heard(data, begin, self.spool.size, self.outcome, self._output_label)

    @property
    def _output_label(self) -> Label:
        """The label of its output. While it has printed nothing, it has repeated nobody's words."""
        return self.label if self.spool.size else LOCAL

    async def send_input(self, typed: bytes, label: Label) -> int:
        """Type this into its terminal. Returns how many bytes were taken. Raises ToolError when it
        has no terminal or has ended, and when untrusted words would reach a process that may write
        in a folder of the owner."""
        if label.integrity == "untrusted" and self._may_write:
            raise ToolError(
                f"nothing more is typed into {self.id}: it may write in "
                f"{', '.join(self._may_write)}, and this "
                f"conversation has read {format_sources(label)} since. End it, and start "
                "another one, "
                "which can only read there"
            )
        self._input_label = join_labels((self._input_label, label))
        self.used_at = anyio.current_time()
        if self.ended.is_set():
            raise ToolError(f"{self.id} has ended ({self.outcome}); start it again to type into it")
        if self.terminal is None:
            raise ToolError(
                f"{self.id} runs in the background, where nobody can type; start a session instead"
            )
        return await self.terminal.write(typed)


class LiveProcess:
    """The processes of this Deskhand by id. Ended ones stay until there are too many, or somebody
    drops them."""

    def __init__(self) -> None:
        self.all: dict[str, Live] = {}

    def add(self, live: Live) -> None:
        self.all[live.id] = live
        over = [each for each in self.all.values() if each.ended.is_set()]
        for each in over[: max(0, len(over) - MAX_ENDED)]:
            self.drop(each)

    def drop(self, live: Live) -> None:
        """Forget a process, and delete its output."""
        live.spool.close()
        live.spool.path.unlink(missing_ok=True)
        self.all.pop(live.id, None)

    def list_alive(self, which: Callable[[Live], bool] = lambda live: True) -> list[Live]:
        return [live for live in self.all.values() if not live.ended.is_set() and which(live)]

    def find(self, id_: str, session: str) -> Live:
        """The process of this session with that id. Raises ToolError, which names the ones there
        are."""
        live = self.all.get(id_)
        if live is None or live.session != session:
            known = ", ".join(each.id for each in self.all.values() if each.session == session)
            there = f"there are: {known}" if known else "nothing of this conversation runs"
            raise ToolError(
                f"there is no process {id_!r} here; {there}. What ran before a restart was "
                "ended by it"
            )
        return live
