"""Runs commands beside conversations, and tells each conversation once how its commands ended."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import anyio
import msgspec
from anyio.abc import TaskGroup
from msgspec.structs import replace

from ..config.config import Settings
from ..gateway.dispatch import Dispatch
from ..gateway.machine_rounds import MachineRounds
from ..policy.information_flow import withhold_private_parts
from ..secrets.redaction import Redactor
from ..store.base import Store
from ..store.queries import processes_of
from ..tools.base import CommandRequest, Context, Heard, Processes, ToolScope
from ..tools.label_marks import load_marks, mark_blob
from ..tools.output import EDGE_BYTES, MAX_OUTPUT_BYTES, join_ends, utf8_boundary
from ..tools.process import ProcessesConfig
from ..tools.watched_folder import FolderLook
from ..types.clock import Clock, Ids
from ..types.commit import Change
from ..types.errors import DeskhandError, StoreUnavailable, ToolError
from ..types.events import CommandRun, Recorded, ToolFinished
from ..types.folders import make_private_folder
from ..types.identity import Inbound, Principal, Result
from ..types.labels import Label, join_labels
from ..types.marked_texts import mark_text
from ..types.messages import Text, clean_text
from ..types.people import GUEST, User
from ..types.process import Process, ProcessKind
from . import queries
from .live_process import Live, LiveProcess, ProcessEnd
from .output_spool import MAX_FILE_BYTES, read_leftover
from .queries import EndedProcess, OwedProcess, ProcessRequest

log = logging.getLogger(__name__)

INTERRUPTED = "interrupted by a restart; it may or may not have finished"
TICK_S = 0.25
FORGET_S = 7 * 24 * 3600.0
MAX_LISTED = 50
RETRY_DELAYS_S = (0.2, 1.0, 5.0, 15.0)
STOP_WAIT_S = 10.0


class ProcessHost(Protocol):
    """What background processes need from the rest of Deskhand."""

    store: Store
    clock: Clock
    ids: Ids
    dispatch: Dispatch
    rounds: MachineRounds
    redact: Redactor

    def settings(self) -> Settings:
        """The settings that hold now."""

    async def open_scope(self, agent: str) -> ToolScope:
        """What this agent may touch now. Raises ToolError when its workspace cannot be opened."""

    async def with_current_roles(self, principal: Principal) -> Principal:
        """The same person with the roles that they still have."""


class StopRequest(msgspec.Struct, frozen=True):
    """Somebody stopped everything in this session. `by` is their id."""

    session: str
    by: str


class Output(msgspec.Struct, frozen=True):
    """What a process has printed: the bytes that were kept, and how many it printed in all."""

    data: bytes
    size: int


class ShortOutput(msgspec.Struct, frozen=True):
    """The output that fits into a message, and the rows to commit with it: they label the blob that
    holds the rest."""

    text: str
    rows: tuple[Change, ...] = ()


def with_current_roles(principal: Principal, users: Collection[User]) -> Principal:
    """The same person with those of their roles that they still have. Somebody who is no longer a
    user keeps only the role of a guest."""
    user = next((each for each in users if each.name == principal.id), None)
    if user is None:
        kept = tuple(role for role in principal.roles if role == GUEST)
    elif "owner" in user.roles:
        kept = principal.roles
    else:
        lost = {"owner", "approver"} - set(user.roles)
        kept = tuple(role for role in principal.roles if role not in lost)
    return replace(principal, roles=kept)


class Background:
    """All processes that run beside the conversations of this Deskhand: commands in the background,
    which report their end once, and terminal sessions. Only the process that drives calls `run`."""

    def __init__(self, host: ProcessHost) -> None:
        self._host = host
        self._store = host.store
        self._clock = host.clock
        self._folder = host.settings().home.processes
        self._live = LiveProcess()
        self._tasks: TaskGroup | None = None
        self._expecting = False
        self._poke = anyio.Event()
        self._stopped: list[StopRequest] = []

    # Events

    listens_to = (
        ToolFinished,
        CommandRun,
    )

    def on_event(self, recorded: Recorded) -> None:
        """Start what a tool result asks for, and stop everything in a session on /stop. Never
        waits."""
        match recorded.event:
            case ToolFinished() if self._expecting:
                self._poke.set()
            case CommandRun(name="stop", refused=False, principal=principal):
                self._stopped.append(StopRequest(recorded.session, principal.id))
                self._poke.set()
            case _:
                pass

    def list_running(self, session: str) -> list[Live]:
        """The processes of this session that run now."""
        return self._live.list_alive(lambda live: live.session == session)

    def describe_running(self, session: str) -> str:
        """The processes of this session that run now, for people; '' for none."""
        running = []
        for live in self.list_running(session):
            command = " ".join(live.wanted.command.split())
            running.append(f"{live.id} {command[:60]}")
        if not running:
            return ""
        return mark_text("Running in the background: {commands}.").format(
            commands="; ".join(running)
        )

    # The loop

    async def recover(self, agents: Collection[str] | None = None) -> None:
        """Note the end of what ran for these agents, or for all, in a process that is gone."""
        now = self._clock.now()
        await self._store.change((queries.end_lost_processes(now, INTERRUPTED, agents),))

    def is_busy(self, agents: Collection[str]) -> bool:
        """Whether something runs for one of these agents."""
        return any(live.session.partition("/")[0] in agents for live in self._live.list_alive())

    async def run(self) -> None:
        """Start, stop and report processes until cancelled; then kill them all."""
        make_private_folder(self._folder)
        if not self._store.shares_work:
            await self.recover()
        await self._store.change((queries.forget_processes(self._clock.now() - FORGET_S),))

        version = -1
        try:
            async with anyio.create_task_group() as self._tasks:
                while True:
                    poke = self._poke
                    self._poke = anyio.Event()
                    if poke.is_set() or version != self._store.version():
                        version = self._store.version()
                        await self._apply_stops()
                        await self._handle_owed()
                    self._stop_idle()
                    with anyio.move_on_after(TICK_S):
                        await self._poke.wait()
        finally:
            self._tasks = None
            for live in list(self._live.all.values()):
                live.spool.close()
            self._live.all.clear()

    async def _apply_stops(self) -> None:
        """Stop what somebody stopped, and the processes of erased sessions."""
        stopped = self._stopped
        self._stopped = []
        if stopped:
            now = self._clock.now()
            await self._store.change(
                [
                    queries.stop_processes_of(each.session, f"stopped by {each.by}", now)
                    for each in stopped
                ]
            )

        alive = self._live.list_alive()
        if not alive:
            return
        reasons = await queries.stop_reasons(self._store)
        for live in alive:
            if why := reasons.get(live.id, "its conversation was erased"):
                live.stop(why)

    async def _handle_owed(self) -> None:
        """Start new processes, and settle those that an earlier run left: interrupted, or ended and
        not reported."""
        self._expecting = False
        owed = await queries.owed_processes(self._store)
        self._remove_leftovers(owed)
        if self._tasks is None:
            return
        for each in owed:
            if not self._host.dispatch.may_drive(each.session):
                continue
            live = self._live.all.get(each.id)
            if live is not None and not live.ended.is_set():
                continue
            if each.state == "wanted" and not each.stop:
                self._start_background(each, self._tasks)
            elif each.state in ("wanted", "running"):
                await self._record_interrupted(each)
            else:
                await self._report_end(each.id, each.session, each.request)

    def _remove_leftovers(self, owed: Sequence[OwedProcess]) -> None:
        """Remove the output files that belong to no process any more."""
        known = {self._path(each.id) for each in owed}
        known |= {self._path(id_) for id_ in self._live.all}
        for path in self._folder.iterdir():
            if path not in known:
                path.unlink(missing_ok=True)

    def _start_background(self, owed: OwedProcess, tasks: TaskGroup) -> None:
        if not self._host.dispatch.owns(owed.session):
            return
        wanted = owed.request.wanted
        live = Live(owed.id, owed.session, "background", wanted, self._path(owed.id))
        self._live.add(live)
        tasks.start_soon(self._run_background, live, owed.request)

    def _stop_idle(self) -> None:
        idle_s = self._config.idle_s
        for live in self._live.list_alive(lambda live: live.kind == "session"):
            if anyio.current_time() - live.used_at > idle_s:
                live.stop(
                    f"ended after {idle_s / 60:.0f} minutes in which nothing was said or asked"
                )

    # One process

    async def _run_background(self, live: Live, request: ProcessRequest) -> None:
        if not await self._write_changes(queries.mark_started(live.id, self._clock.now())):
            return
        try:
            context = await self._make_context(live.session, request)
            ending = await live.run(context)
            output = Output(live.spool.read_all(), live.spool.size)
            await self._record_end(context, live.id, ending, request, output)
        except (DeskhandError, OSError) as error:
            # Its workspace cannot be opened, or the disk is full.
            ending = ProcessEnd("error", str(error))
            text = f"[background {live.id} error: {error}]"
            await self._write_end(live.id, ending, text, request.label)
        live.finish(ending)
        await self._report_end(live.id, live.session, request)
        self._live.drop(live)  # its output is in the row and in a blob now

    async def _run_session(self, live: Live, context: Context) -> None:
        try:
            ending = await live.run(context)
        except (DeskhandError, OSError) as error:
            ending = ProcessEnd("error", str(error))
        await self._write_end(live.id, ending, "", live.label)
        live.finish(ending)

    async def _make_context(self, session: str, request: ProcessRequest) -> Context:
        agent = session.partition("/")[0]
        return Context(
            session=session,
            principal=request.principal,
            address=request.address,
            agent=agent,
            reach=await self._host.open_scope(agent),
            clock=self._clock,
            ids=self._host.ids,
            key=request.key,
            label=request.label,
            audience=request.audience,
        )

    async def _record_interrupted(self, owed: OwedProcess) -> None:
        """Settle a process that a restart of Deskhand has killed. Nobody knows what it had read, so
        its output counts as made of every marked file."""
        context = await self._make_context(owed.session, owed.request)
        data = read_leftover(self._path(owed.id))
        marks = await load_marks(context)
        anything = FolderLook(label=marks.join_labels((*marks.stored, "USER.md")))
        ending = ProcessEnd("error", owed.stop or INTERRUPTED, looked=anything)
        output = Output(data, len(data))
        await self._record_end(context, owed.id, ending, owed.request, output)
        await self._report_end(owed.id, owed.session, owed.request)

    async def _record_end(
        self,
        context: Context,
        id_: str,
        ending: ProcessEnd,
        request: ProcessRequest,
        output: Output,
    ) -> None:
        """Store how it ended and what it printed, in one transaction with its changes of files."""
        label = join_labels((ending.looked.label, request.label))
        short = await self._shorten_output(context, label, output)
        head = f"[background {id_} {ending.state}: {ending.words}]"
        command = f"$ {request.wanted.command[:200]}"
        text = f"{head}\n{command}\n{short.text}{ending.looked.said}"
        await self._write_end(id_, ending, self._host.redact(clean_text(text)), label, *short.rows)

    async def _write_end(
        self, id_: str, ending: ProcessEnd, text: str, label: Label, *rows: Change
    ) -> None:
        ended = EndedProcess(
            id=id_,
            state=ending.state,
            at=self._clock.now(),
            code=ending.code,
            detail=ending.words,
            text=text,
            label=label,
        )
        await self._write_changes(queries.mark_ended(ended), *ending.looked.rows, *rows)

    async def _shorten_output(self, context: Context, label: Label, output: Output) -> ShortOutput:
        """The output without secrets. Of a long one the beginning and the end, and the name of the
        blob that has all of it."""
        text = output.data.decode(errors="replace")
        if output.size <= MAX_OUTPUT_BYTES // 2:
            return ShortOutput(text or "[no output]")

        redacted = self._host.redact(text).encode()
        handle = await context.reach.host.put_blob(redacted)
        half = EDGE_BYTES // 2
        head = redacted[: utf8_boundary(redacted, half)]
        tail = redacted[utf8_boundary(redacted, len(redacted) - half) :]
        shown = join_ends(head, tail, len(redacted), handle)
        if output.size > MAX_FILE_BYTES:
            shown += f"\n[only its first {MAX_FILE_BYTES >> 20} MB were kept]"
        return ShortOutput(shown, mark_blob(handle, label, context))

    async def _report_end(self, id_: str, session: str, request: ProcessRequest) -> None:
        """Tell the session how its process ended: once, also across crashes. Waits for a later look
        when programs have begun too many rounds."""
        report = await queries.find_report(self._store, id_)
        if report is None:
            return  # erased meanwhile, or nobody wants to hear it
        agent = session.partition("/")[0]
        if await self._host.rounds.begin_round(f"commands in the background of {agent}"):
            return

        who = await self._host.with_current_roles(request.principal)
        principal = Principal(f"agent:{agent}", who.roles, "agent", who.on_behalf_of or who.id)
        part = Text(report.text, report.label)
        inbound = Inbound(
            external_id=f"process:{id_}",
            address=request.address,
            sender=principal.id,
            at=self._clock.now(),
            body=Result(id_, withhold_private_parts(request.audience, (part,))),
            session=session,
        )
        await self._retry_until_written(partial(self._store.accept, inbound, principal, session))
        await self._write_changes(queries.mark_told(id_))
        if self._host.dispatch.owns(session):
            self._host.dispatch.wake(session)

    async def _write_changes(self, *changes: Change) -> int:
        """Write these rows, however long the disk takes to be there again. Returns how many rows
        the first change changed."""
        counts: list[int] = []

        async def write() -> None:
            counts.extend(await self._store.change(changes))

        await self._retry_until_written(write)
        return counts[0]

    async def _retry_until_written(self, write: Callable[[], Awaitable[object]]) -> None:
        failures = 0
        while True:
            try:
                await write()
                return
            except StoreUnavailable as error:
                pause_s = RETRY_DELAYS_S[min(failures, len(RETRY_DELAYS_S) - 1)]
                log.warning(
                    "The end of a command could not be stored (%s). Retrying in %.1f s.",
                    error,
                    pause_s,
                )
                await anyio.sleep(pause_s)
                failures += 1

    def _path(self, id_: str) -> Path:
        return self._folder / f"{id_}.out"

    @property
    def _config(self) -> ProcessesConfig:
        return self._host.settings().config.processes

    # For tools

    async def queue_background(
        self, wanted: CommandRequest, context: Context
    ) -> tuple[str, Change]:
        """See Processes."""
        await self._check_capacity(context)
        self._expecting = True
        id_ = _process_id(context)
        return id_, self._make_row(id_, "background", wanted, context)

    async def start(self, wanted: CommandRequest, context: Context) -> str:
        """See Processes."""
        await self._check_capacity(context)
        id_ = _process_id(context)
        row = self._make_row(id_, "session", wanted, context)
        if self._tasks is None or not (await self._store.change((row,)))[0]:
            raise ToolError("this was started before, and a restart has ended it; start it anew")

        wanted = replace(wanted, timeout_s=self._config.longest_s)
        live = Live(id_, context.session, "session", wanted, self._path(id_))
        self._live.add(live)
        self._tasks.start_soon(self._run_session, live, context.without_conversation())
        return id_

    async def _check_capacity(self, context: Context) -> None:
        """Raises ToolError when no more processes may run, or none can."""
        await context.reach.host.open_sandbox()
        if self._tasks is None:
            raise ToolError(
                "nothing can run beside a conversation while Deskhand is ending; try it "
                "again in a moment"
            )
        config = self._config
        running = await queries.count_processes(self._store, context.session, context.agent)
        if running.session >= config.per_session:
            raise ToolError(_too_many(config.per_session, "conversation"))
        if running.agent >= config.per_agent:
            raise ToolError(_too_many(config.per_agent, "agent"))

    def _make_row(
        self, id_: str, kind: ProcessKind, wanted: CommandRequest, context: Context
    ) -> Change:
        request = ProcessRequest(
            principal=context.principal,
            address=context.address,
            key=context.key,
            label=context.label,
            audience=context.audience,
            wanted=wanted,
        )
        now = self._clock.now()
        return queries.add_process(id_, kind, request, context.session, context.agent, now)

    async def list_processes(self, session: str) -> list[Process]:
        """See Processes."""
        return processes_of(self._store, session, MAX_LISTED)

    async def read_new_output(self, id_: str, session: str, wait_s: float) -> Heard:
        """See Processes."""
        return await self._live.find(id_, session).read_new_output(wait_s)

    async def read_output(self, id_: str, session: str, at: int | None, size: int) -> Heard:
        """See Processes."""
        return await self._live.find(id_, session).read_output(at, size)

    async def send_input(self, id_: str, session: str, typed: bytes, label: Label) -> int:
        """See Processes."""
        return await self._live.find(id_, session).send_input(typed, label)

    async def stop(self, id_: str, session: str, by: str) -> str:
        """See Processes."""
        live = self._live.find(id_, session)
        live.stop(f"stopped by {by}")
        with anyio.move_on_after(STOP_WAIT_S):
            await live.ended.wait()
        return live.outcome

    async def drop_ended(self, session: str) -> int:
        """See Processes."""
        theirs = [live for live in self._live.all.values() if live.session == session]
        ended = [live for live in theirs if live.ended.is_set()]
        for live in ended:
            self._live.drop(live)
        return len(ended)


def _process_id(context: Context) -> str:
    """The id of the process that this call starts: the same for the same call, also after a
    crash."""
    return sha256(context.key.encode()).hexdigest()[:8]


def _too_many(most: int, whose: str) -> str:
    return f"{most} commands of this {whose} run already, and no more may; end one, or wait for it"


_: type[Processes] = Background
