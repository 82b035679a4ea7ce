"""Runs commands beside conversations, and tells each conversation once how its own have ended."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from hashlib import sha256
from pathlib import Path

import anyio
import msgspec
from anyio.abc import TaskGroup

from ..gateway.dispatch import Dispatch
from ..gateway.machine_rounds import MachineRounds
from ..policy.gate import withhold_private_parts
from ..store.base import Store
from ..tools.base import Context, Heard, PendingApproval, Processes, ToolScope
from ..tools.label_marks import mark_blob, marks_of
from ..tools.output import EDGE_BYTES, LIMIT_BYTES, ends, whole
from ..tools.process import ProcessesConfig
from ..tools.watched_folder import FolderLook
from ..types.clock import Clock, Ids
from ..types.commit import Change
from ..types.errors import DeskhandError, StoreUnavailable, ToolError
from ..types.events import CommandRun, Recorded, ToolFinished
from ..types.folders import make_private_folder
from ..types.identity import Address, Inbound, Principal, Result
from ..types.labels import Label, join_labels
from ..types.messages import Text, clean_text
from ..types.people import GUEST, User
from ..types.process import Process, parse_process_row
from .live_process import Live, LiveProcess, ProcessEnd
from .output_spool import MAX_FILE_BYTES, read_leftover

log = logging.getLogger(__name__)

INTERRUPTED = "interrupted by a restart; it may or may not have finished"
TICK_S = 0.25
FORGET_S = 7 * 24 * 3600.0
MAX_LISTED = 50
RETRY_DELAYS_S = (0.2, 1.0, 5.0, 15.0)
STOP_WAIT_S = 10.0


class Calling(msgspec.Struct, frozen=True):
    """The call that wanted it, as it is kept in its row."""

    principal: Principal
    address: Address
    key: str
    label: Label
    audience: tuple[str, ...]
    wanted: PendingApproval


class Beside(msgspec.Struct, frozen=True):
    """What the rest of Deskhand does for it: `now` gives a person as they are known now."""

    tool_scope: Callable[[str], Awaitable[ToolScope]]
    config: Callable[[], ProcessesConfig]
    dispatch: Dispatch
    with_current_roles: Callable[[Principal], Awaitable[Principal]]
    redact: Callable[[str], str]
    rounds: MachineRounds


def with_current_roles(principal: Principal, users: Collection[User]) -> Principal:
    """The same person with those of the roles that they still have; who is gone has none."""
    user = next((each for each in users if each.name == principal.id), None)
    if user is None:
        kept = tuple(role for role in principal.roles if role == GUEST)
    else:
        weak = () if "owner" in user.roles else ("owner", "approver")
        kept = tuple(role for role in principal.roles if role in user.roles or role not in weak)
    return msgspec.structs.replace(principal, roles=kept)


class Background:
    """Everything that runs beside the conversations of this process. Only who drives may call
    `run`."""

    def __init__(self, store: Store, folder: Path, clock: Clock, ids: Ids, house: Beside) -> None:
        self._store = store
        self._folder = folder
        self._clock = clock
        self._ids = ids
        self._house = house
        self._live = LiveProcess()
        self._tasks: TaskGroup | None = None
        self._expecting = False
        self._poke = anyio.Event()
        self._stopped: list[tuple[str, str]] = []

    # What passes by

    def on_event(self, recorded: Recorded) -> None:
        """An event passes: the result with which a command begins, or a stop, with which all of a
        session ends."""
        match recorded.event:
            case ToolFinished() if self._expecting:
                self._poke.set()
            case CommandRun(name="stop", refused=False, principal=principal):
                self._stopped.append((recorded.session, principal.id))
                self._poke.set()
            case _:
                pass

    def list_running(self, session: str) -> list[Live]:
        """What runs for this session now."""
        return self._live.list_alive(lambda live: live.session == session)

    def describe_running(self, session: str) -> str:
        """What runs for this session, for people; '' for nothing."""
        live = [
            f"{each.id} {' '.join(each.wanted.command.split())[:60]}"
            for each in self.list_running(session)
        ]
        return f"Running beside: {'; '.join(live)}." if live else ""

    # For ever

    async def run(self) -> None:
        """Start what is wanted, tell what has ended, heed who stops something. When this ends,
        everything is killed."""
        make_private_folder(self._folder)
        now = self._clock.now()
        lost = Change("process_lost", (now, INTERRUPTED))
        await self._store.change((lost, Change("process_forget", (now - FORGET_S,))))
        version = -1
        try:
            async with anyio.create_task_group() as self._tasks:
                while True:
                    poke, self._poke = self._poke, anyio.Event()
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
        """End what somebody wants to be ended, and what has been erased."""
        stopped, self._stopped, now = self._stopped, [], self._clock.now()
        if stopped:
            stops = [
                Change("process_stop_all", (f"stopped by {by}", now, session))
                for session, by in stopped
            ]
            await self._store.change(stops)
        if alive := self._live.list_alive():
            known = dict(await self._store.query("process_alive", ()))
            for live in alive:
                if why := known.get(live.id, "its conversation was erased"):
                    live.stop(why)

    async def _handle_owed(self) -> None:
        """Go on with what no task sees to: it is new, or an earlier run was cut off in it."""
        self._expecting = False
        rows = await self._store.query("process_owed", ())
        clean = {f"{row[0]}.out" for row in rows} | {f"{id_}.out" for id_ in self._live.all}
        for path in self._folder.iterdir():
            if path.name not in clean:
                path.unlink(missing_ok=True)
        for id_, session, state, context, stop in rows:
            live = self._live.all.get(id_)
            if self._tasks is None or (live is not None and not live.ended.is_set()):
                continue
            calling = msgspec.json.decode(context, type=Calling)
            if state == "wanted" and not stop:
                if self._house.dispatch.owns(session):
                    live = Live(id_, session, "background", calling.wanted, self._path(id_))
                    self._live.add(live)
                    self._tasks.start_soon(self._run_background, live, calling)
            elif state in ("wanted", "running"):
                await self._record_interrupted(id_, session, stop or INTERRUPTED, calling)
            else:
                await self._report_end(id_, session, calling)

    def _stop_idle(self) -> None:
        idle_s = self._house.config().idle_s
        for live in self._live.list_alive(lambda live: live.kind == "session"):
            if anyio.current_time() - live.used_at > idle_s:
                live.stop(
                    f"ended after {idle_s / 60:.0f} minutes in which nothing was said or asked"
                )

    # One command

    async def _run_background(self, live: Live, calling: Calling) -> None:
        if not await self._write_changes(Change("process_started", (self._clock.now(), live.id))):
            return
        try:
            context = await self._make_context(live.session, calling)
            ending = await live.run(context)
            await self._record_end(
                context, live.id, ending, calling, (live.spool.read_all(), live.spool.size)
            )
        except (
            DeskhandError,
            OSError,
        ) as error:  # its workspace cannot be reached, or the disk is full
            ending = ProcessEnd("error", str(error))
            await self._write_end(
                live.id, ending, f"[background {live.id} error: {error}]", calling.label
            )
        live.finish(ending)
        await self._report_end(live.id, live.session, calling)
        self._live.drop(live)  # the row and the blob have it

    async def _run_session(self, live: Live, context: Context) -> None:
        try:
            ending = await live.run(context)
        except (DeskhandError, OSError) as error:
            ending = ProcessEnd("error", str(error))
        await self._write_end(live.id, ending, "", live.label)
        live.finish(ending)

    async def _make_context(self, session: str, calling: Calling) -> Context:
        agent = session.partition("/")[0]
        place = (
            session,
            calling.principal,
            calling.address,
            agent,
            await self._house.tool_scope(agent),
        )
        made = Context(
            *place, self._clock, self._ids, lambda text: None, calling.key, calling.label
        )
        return msgspec.structs.replace(made, audience=calling.audience)

    async def _record_interrupted(self, id_: str, session: str, why: str, calling: Calling) -> None:
        """What an earlier run of this service had begun, and took with it. What it has read, nobody
        knows any more."""
        context = await self._make_context(session, calling)
        data = read_leftover(self._path(id_))
        marks = await marks_of(context)
        anything = FolderLook(label=marks.joined((*marks.stored, "USER.md")))
        await self._record_end(
            context, id_, ProcessEnd("error", why, looked=anything), calling, (data, len(data))
        )
        await self._report_end(id_, session, calling)

    async def _record_end(
        self,
        context: Context,
        id_: str,
        ending: ProcessEnd,
        calling: Calling,
        printed: tuple[bytes, int],
    ) -> None:
        """Write down how it ended and what it said, in one transaction with what it did to
        files."""
        label = join_labels((ending.looked.label, calling.label))
        output, marks = await self._shorten_output(context, label, *printed)
        head = (
            f"[background {id_} {ending.state}: {ending.words}]\n$ {calling.wanted.command[:200]}\n"
        )
        said = self._house.redact(clean_text(f"{head}{output}{ending.looked.said}"))
        await self._write_end(id_, ending, said, label, *marks)

    async def _write_end(
        self, id_: str, ending: ProcessEnd, said: str, label: Label, *rows: Change
    ) -> None:
        row = (
            ending.state,
            self._clock.now(),
            ending.code,
            ending.words,
            said,
            msgspec.json.encode(label),
            id_,
        )
        await self._write_changes(Change("process_ended", row), *ending.looked.rows, *rows)

    async def _shorten_output(
        self, context: Context, label: Label, data: bytes, size: int
    ) -> tuple[str, tuple[Change, ...]]:
        """What is told of it, and the rows that say whose word the rest is."""
        if size <= LIMIT_BYTES // 2:
            return data.decode(errors="replace") or "[no output]", ()
        redacted = self._house.redact(data.decode(errors="replace")).encode()
        handle = await context.reach.keep(redacted)
        half = EDGE_BYTES // 2
        head = redacted[: whole(redacted, half)]
        tail = redacted[whole(redacted, len(redacted) - half) :]
        rest = (
            f"\n[only its first {MAX_FILE_BYTES >> 20} MB were kept]"
            if size > MAX_FILE_BYTES
            else ""
        )
        return ends(head, tail, len(redacted), handle) + rest, mark_blob(handle, label, context)

    async def _report_end(self, id_: str, session: str, calling: Calling) -> None:
        """Hand the end of it to its conversation: once, whatever dies in between. Later, where
        programs have begun too many rounds by now."""
        rows = await self._store.query("process_said", (id_,))
        if not rows:
            return  # erased meanwhile, or nobody wants to hear it
        if await self._house.rounds.begin_round(
            f"commands in the background of {session.partition('/')[0]}"
        ):
            return
        said = Text(rows[0][0], msgspec.json.decode(rows[0][1], type=Label))
        who = await self._house.with_current_roles(calling.principal)
        now = self._clock.now()
        agent = session.partition("/")[0]
        principal = Principal(f"agent:{agent}", who.roles, "agent", who.on_behalf_of or who.id)
        result = Result(id_, withhold_private_parts(calling.audience, (said,)))
        inbound = Inbound(f"process:{id_}", calling.address, principal.id, now, result, session)
        await self._retry_until_written(partial(self._store.accept, inbound, principal, session))
        await self._write_changes(Change("process_told", (id_,)))
        if self._house.dispatch.owns(session):
            self._house.dispatch.wake(session)

    async def _write_changes(self, *changes: Change) -> int:
        """Write this, however long the disk takes to be there again. Returns how many rows the
        first one changed."""
        done: list[list[int]] = []

        async def write() -> None:
            done.append(await self._store.change(changes))

        await self._retry_until_written(write)
        return done[0][0]

    async def _retry_until_written(self, write: Callable[[], Awaitable[object]]) -> None:
        failures = 0
        while True:
            try:
                await write()
                return
            except StoreUnavailable as error:
                log.warning("the end of a command is not written: %s", error)
                await anyio.sleep(RETRY_DELAYS_S[min(failures, len(RETRY_DELAYS_S) - 1)])
                failures += 1

    def _path(self, id_: str) -> Path:
        return self._folder / f"{id_}.out"

    # For tools

    async def queue_background(
        self, wanted: PendingApproval, context: Context
    ) -> tuple[str, Change]:
        """See Processes."""
        await self._check_capacity(context)
        self._expecting = True
        return self._make_row(wanted, context, "background")

    async def start(self, wanted: PendingApproval, context: Context) -> str:
        """See Processes."""
        await self._check_capacity(context)
        id_, row = self._make_row(wanted, context, "session")
        if self._tasks is None or not (await self._store.change((row,)))[0]:
            raise ToolError("this was started before, and a restart has ended it; start it anew")
        config = self._house.config()
        live = Live(
            id_,
            context.session,
            "session",
            msgspec.structs.replace(wanted, timeout_s=config.longest_s),
            self._path(id_),
        )
        self._live.add(live)
        self._tasks.start_soon(
            self._run_session, live, msgspec.structs.replace(context, emit=lambda text: None)
        )
        return id_

    async def _check_capacity(self, context: Context) -> None:
        """Raises ToolError where nothing more may run, or nothing can."""
        await context.reach.sandbox()
        if self._tasks is None:
            raise ToolError(
                "nothing can run beside a conversation while Deskhand is ending; try it "
                "again in a moment"
            )
        config = self._house.config()
        of_session, of_agent = (
            await self._store.query("process_count", (context.session, context.agent))
        )[0]
        if of_session >= config.per_session or of_agent >= config.per_agent:
            whose, most = (
                ("conversation", config.per_session)
                if of_session >= config.per_session
                else ("agent", config.per_agent)
            )
            raise ToolError(
                f"{most} commands of this {whose} run already, and no more may; end one, or "
                "wait for it"
            )

    def _make_row(self, wanted: PendingApproval, context: Context, kind: str) -> tuple[str, Change]:
        """Its id is always the same for the same call."""
        id_ = sha256(context.key.encode()).hexdigest()[:8]
        now = self._clock.now()
        background = kind == "background"
        packed = msgspec.json.encode(_make_calling(wanted, context))
        head = (
            id_,
            context.session,
            context.agent,
            kind,
            wanted.command,
            wanted.name,
            wanted.timeout_s,
            packed,
        )
        state = "wanted" if background else "running"
        return id_, Change(
            "process_add", (*head, state, now, None if background else now, int(not background))
        )

    async def list_processes(self, session: str) -> list[Process]:
        """See Processes."""
        return [
            parse_process_row(row)
            for row in await self._store.query("process_list", (session, MAX_LISTED))
        ]

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
        over = [
            live
            for live in self._live.all.values()
            if live.session == session and live.ended.is_set()
        ]
        for live in over:
            self._live.drop(live)
        return len(over)


def _make_calling(wanted: PendingApproval, context: Context) -> Calling:
    return Calling(
        context.principal, context.address, context.key, context.label, context.audience, wanted
    )


_: type[Processes] = Background
