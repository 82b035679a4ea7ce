"""One run of a job, from its slot to its end. Whatever dies in between, the rows say how far it
came."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

import anyio
from anyio.abc import TaskGroup
from msgspec.structs import replace

from ..agent.state import State, fold
from ..store.retry import insist
from ..supervision.restart_with_backoff import fatal
from ..tools.base import Context
from ..types.commit import Change
from ..types.errors import DeskhandError, JobInvalid, StoreUnavailable
from ..types.identity import Address, Command, Inbound, Principal, Said, label_of
from ..types.jobs import Job, Run, RunState, reason_of
from ..types.labels import LOCAL, Label, join
from ..types.messages import Message, Part, Text
from ..types.people import OWNER_NAME
from .alerts import JobFailure, after_failure, after_success
from .files import JobFile
from .hooks import Hook, Ran, framed, label_of_hook, run_hook
from .ledger import RunEntry, counted, ended, finishing, kept_with, said_with
from .overdue import Overdue
from .port import LiveRun, Port
from .target import CLOCK, address_of, agent_of, heading, session_of, too_long, turn_of

log = logging.getLogger(__name__)

HOOK_LEASE_S = 630.0
"""Longer than any hook may take, with what is to be done around it."""
SAID_CHARS = 500
FAILED: tuple[RunState, ...] = ("error", "interrupted")


class Runs:
    """Carries them out. `tasks` are set while it may."""

    def __init__(self, port: Port) -> None:
        self._port = port
        self._ground = port.ground
        self.tasks: TaskGroup | None = None
        self.live: dict[str, LiveRun] = {}
        self.overdue = Overdue(port, self.live, self._failed)

    def busy(self, job: str) -> bool:
        """Whether it runs now."""
        return any(live.entry.job.name == job for live in self.live.values())

    def session_of(self, session: str) -> list[LiveRun]:
        """What goes on in this conversation."""
        return [live for live in self.live.values() if live.entry.run.session == session]

    async def begin(self, entry: RunEntry, rows: Sequence[Change] = ()) -> None:
        """Begin a run, with these rows. Raises StoreUnavailable, and then nothing of it has
        happened."""
        job = entry.job
        try:
            principal = await self._port.who(job)
            entry = replace(entry, run=replace(entry.run, session=session_of(self._ground, entry)))
            if job.kind == "chore":
                await self._claim(entry, principal, "running", job.timeout_s, rows)
                self._start(entry, partial(self._chore, entry))
            elif job.kind == "prompt" and job.hooks.prerun:
                await self._claim(entry, principal, "checking", HOOK_LEASE_S, rows)
                self._start(entry, partial(self._check, entry))
            elif job.kind == "prompt":
                await self._hand_in(entry, principal, (), rows)
            else:
                await self._deliver(entry, rows)
        except StoreUnavailable:
            raise
        except DeskhandError as error:
            claim = self._port.ledger.claim(entry, "running", self._now(), 0.0)
            await self.end(entry, "error", Text(str(error), LOCAL), errors=0, rows=(claim, *rows))

    async def resume(self, entry: RunEntry) -> None:
        """Go on with what an earlier process had begun; what it was in the middle of is decided by
        the policy."""
        state = entry.run.state
        if state == "finishing":
            said = "a restart cut off its postrun; it may or may not have finished"
            await self.end(entry, "interrupted", Text(said, LOCAL))
        elif state == "running" and entry.job.kind == "prompt":
            self._look_after(entry, "running", await self._known(entry.job), entry.job.timeout_s)
            await self._insist(self._port.ledger.hold(entry, self._now() + entry.job.timeout_s))
            await self.settle(entry)
        elif entry.job.misfire == "skip" or entry.run.attempts >= 3:
            times = f" for the {entry.run.attempts}rd time" if entry.run.attempts >= 3 else ""
            said = f"a restart cut it off{times}; it is not tried again"
            await self.end(entry, "interrupted", Text(said, LOCAL))
        else:
            log.warning("the job %r was cut off by a restart and is tried again", entry.job.name)
            await self.begin(entry)

    async def _known(self, job: Job) -> Principal:
        """In whose name it goes on: with no rights where they are gone."""
        try:
            return await self._port.who(job)
        except JobInvalid:
            return Principal(f"job:{job.name}", (), "clock", job.person)

    # Its stages

    async def _claim(
        self,
        entry: RunEntry,
        principal: Principal,
        state: RunState,
        lease_s: float,
        rows: Sequence[Change],
    ) -> None:
        claim = self._port.ledger.claim(entry, state, self._now(), lease_s)
        count = [counted(entry.job.name, runs=1)] if state == "running" else []
        await self._ground.store.change([claim, *count, *rows])
        self._look_after(entry, state, principal, lease_s)

    def _look_after(
        self, entry: RunEntry, state: RunState, principal: Principal, lease_s: float
    ) -> None:
        entry = replace(entry, run=replace(entry.run, state=state))
        self.live[entry.key] = LiveRun(entry, principal, self._ground.clock.monotonic() + lease_s)

    async def _check(self, entry: RunEntry) -> None:
        """Its prerun, and then the model, if that says so."""
        live = self.live[entry.key]
        job = entry.job
        try:
            ran = await self._hook(entry, live.principal, job.hooks.prerun, b"")
            if not ran.ok:
                await self.end(entry, "gated", ran.said, rows=ran.rows)
                return
            part = Text(framed(ran.stdout), join((label_of_hook(job.name), ran.label)))
            await insist(partial(self._hand_in, entry, live.principal, (part,), ran.rows))
        except DeskhandError as error:
            await self.end(entry, "error", Text(str(error), label_of_hook(job.name)), errors=0)

    async def _hand_in(
        self, entry: RunEntry, principal: Principal, more: tuple[Part, ...], rows: Sequence[Change]
    ) -> None:
        """The conversation gets it: in one transaction with the row that says so."""
        job = entry.job
        session = entry.run.session
        now = self._now()
        head = await self._ground.store.rows("event_head", (session,))
        entry = replace(entry, after_n=head[0][0] if head else 0)
        ours = label_of(principal)
        payload = (entry.payload,) if entry.payload is not None else ()
        parts = (Text(f"{heading(entry)}\n\n{job.prompt}", ours), *more, *payload)
        body = Said(Message("user", parts))
        inbound = Inbound(
            entry.key, address_of(entry.job), principal.id, now, body, session, when="queue"
        )
        claim = self._port.ledger.claim(entry, "running", now, job.timeout_s)
        members = (
            [Change("session_join", (session, principal.on_behalf_of))]
            if "owner" not in principal.roles
            else []
        )
        counts = counted(job.name, runs=1)
        self._look_after(entry, "running", principal, job.timeout_s)
        try:
            await self._port.waker.hand_in(inbound, principal, (claim, counts, *rows, *members))
        except BaseException:
            self.live.pop(entry.key, None)
            raise

    async def _deliver(self, entry: RunEntry, rows: Sequence[Change]) -> None:
        """Its text is said as it is, and stands in the log of that chat."""
        job = entry.job
        now = self._now()
        said = Command("deliver", job.prompt)
        by = Principal(f"job:{job.name}", ("owner",), "system", job.person or OWNER_NAME)
        inbound = Inbound(entry.key, address_of(entry.job), by.id, now, said, entry.run.session)
        claim = self._port.ledger.claim(entry, "running", now, 0.0)
        done = ended(entry.run, "done", now, "")
        known = await self._port.ledger.state(job.name)
        more = (
            counted(job.name, runs=1),
            *await after_success(self._ground, job, known, entry.key),
        )
        await self._port.waker.hand_in(inbound, by, (claim, done, *rows, *more))
        await self._port.over(entry, "done")

    async def _chore(self, entry: RunEntry) -> None:
        chore = self._port.chore(entry.job.chore)
        job = entry.job
        try:
            if chore is None:
                raise JobInvalid(f"there is no chore {job.chore!r} here")
            with anyio.fail_after(job.timeout_s):
                said = await chore(job)
        except TimeoutError:
            await self.end(entry, "error", Text(too_long(job), LOCAL))
        except DeskhandError as error:
            await self.end(entry, "error", Text(str(error), Label(source=f"the job {job.name}")))
        else:
            await self.end(entry, "done", Text(said, LOCAL))  # a count, or a sentence of ours

    async def settle(self, entry: RunEntry) -> None:
        """See whether its turn is over, and go on from there."""
        log_ = await self._ground.store.events(entry.run.session, entry.after_n)
        found = turn_of(log_, entry.key)
        live = self.live.get(entry.key)
        if found is None or live is None:
            return
        answer = found.answer
        reason = found.event.reason
        if reason != "done":
            stopped = live.stopping and reason == "stopped"
            why = reason_of(reason, answer) if found.event.said else answer
            if stopped:
                why = too_long(entry.job)
            said = await self._ground.store.rows("job_said", (entry.run.session, found.n))
            await self.end(
                entry,
                "error",
                Text(why, await self._label(entry)),
                said_as=said[-1][0] if said else "",
            )
        elif not entry.job.hooks.postrun:
            await self.end(entry, "done", Text(answer, await self._label(entry)))
        elif live.entry.run.state != "finishing":
            live.entry = replace(entry, run=replace(entry.run, state="finishing"))
            live.until = self._ground.clock.monotonic() + HOOK_LEASE_S
            await self._insist(finishing(entry.run, self._now() + HOOK_LEASE_S))
            self._start(entry, partial(self._finish, entry, live.principal, answer))

    async def _finish(self, entry: RunEntry, principal: Principal, answer: str) -> None:
        """Its postrun gets the answer."""
        try:
            ran = await self._hook(entry, principal, entry.job.hooks.postrun, answer.encode())
        except DeskhandError as error:
            await self.end(entry, "error", Text(str(error), label_of_hook(entry.job.name)))
            return
        if ran.ok:
            await self.end(entry, "done", Text(answer, await self._label(entry)), rows=ran.rows)
        else:
            said = Text(f"its postrun failed: {ran.said.text}", ran.said.label)
            await self.end(entry, "error", said, rows=ran.rows)

    async def _label(self, entry: RunEntry) -> Label:
        """That of the conversation of this run, and of what has set it off."""
        session = entry.run.session
        own = label_of(await self._known(entry.job))
        history = await self._ground.store.history(session) if session else ()
        read = fold(State(session), history).label
        payload = (entry.payload.label,) if entry.payload is not None else ()
        return join((LOCAL, own, read, *payload))

    async def _hook(self, entry: RunEntry, principal: Principal, script: str, stdin: bytes) -> Ran:
        agent = self._ground.agent_of(agent_of(self._ground, entry.job))
        job = entry.job
        home = self._ground.settings().home
        about = {
            "JOB_NAME": job.name,
            "JOB_SLOT": entry.run.slot,
            "OPERATOR_AGENT": agent.name,
            "OPERATOR_HOME": str(home.root),
            "OPERATOR_DB": str(home.database),
            "DESKHAND_AGENT": agent.name,
            "DESKHAND_HOME": str(home.root),
        }
        hook = Hook(
            self._port.folder(job.name),
            script,
            tuple(about.items()),
            stdin,
            self._ground.settings().config.jobs.hook_timeout_s,
        )
        session = entry.run.session
        place = (session, principal, Address(CLOCK, chat=job.name), agent.name, await agent.reach())
        key = f"{entry.key}:{script}:{entry.run.attempts}"
        kept = await self._port.ledger.kept(job.name)
        label = join((await self._label(entry), kept))
        context = Context(*place, self._ground.clock, self._ground.ids, _quiet, key, label)
        ran = await run_hook(hook, context)
        if (known := join((kept, ran.label))) == kept:
            return ran
        return replace(ran, rows=(*ran.rows, kept_with(entry.run, known, self._now())))

    # Its end

    async def end(
        self,
        entry: RunEntry,
        state: RunState,
        said: Text,
        *,
        rows: Sequence[Change] = (),
        errors: int | None = None,
        said_as: str = "",
    ) -> None:
        """Write how it ended, with all that follows from it, in one transaction. `said_as` is the
        key of the message that told its chat of a failure."""
        job = entry.job
        now = self._now()
        words = " ".join(self._ground.redact(said.text).split())[:SAID_CHARS]
        failed = state in FAILED
        counts = counted(
            job.name, gates=int(state == "gated"), errors=int(failed) if errors is None else errors
        )
        known = await self._port.ledger.state(job.name)
        key = f"{entry.key}:{state}"
        if failed:
            failure = JobFailure(key, words or "it does not say why", now, said_as)
            more = await after_failure(self._ground, job, known, failure)
        else:
            more = await after_success(self._ground, job, known, key) if state == "done" else []
        whose = said_with(entry.run, said.label if words else LOCAL, now)
        await self._insist(*rows, ended(entry.run, state, now, words), whose, counts, *more)
        self.live.pop(entry.key, None)
        await self._port.over(entry, state)

    async def _failed(self, live: LiveRun, said: str) -> None:
        await self.end(live.entry, "error", Text(said, LOCAL))

    async def drop_done(self, found: Iterable[JobFile]) -> None:
        """Remove the files of those that were to go after their run, where a crash came between."""
        last = await self._port.ledger.last()
        for one in found:
            run = last.get(one.name)
            if (
                one.job is None
                or not one.job.delete_after_run
                or run is None
                or (run.ended_at or 0.0) < one.at
            ):
                continue
            if run.state in ("done", "error", "gated"):
                await self._port.over(RunEntry(run, one.job), run.state)

    # Small things

    def _now(self) -> float:
        return self._ground.clock.now()

    def _start(self, entry: RunEntry, work: Callable[[], Awaitable[None]]) -> None:
        if self.tasks is not None:
            self.tasks.start_soon(self._contained, entry, work)

    async def _contained(self, entry: RunEntry, work: Callable[[], Awaitable[None]]) -> None:
        """What breaks in one run is the end of that run alone."""
        try:
            await work()
        except Exception as error:
            if fatal(error):
                raise
            log.exception("a run of the job %r broke", entry.job.name)
            broke = f"it broke ({type(error).__name__}: {error})"
            await self.end(entry, "error", Text(broke, Label(source=f"the job {entry.job.name}")))

    async def _insist(self, *changes: Change) -> None:
        await insist(partial(self._ground.store.change, changes))


def _quiet(text: str) -> None:
    """Nobody watches."""


def run_of(job: Job, slot: str, due_at: float) -> RunEntry:
    """A run that nobody has begun."""
    return RunEntry(Run(job.name, slot, "waiting", due_at), job)
