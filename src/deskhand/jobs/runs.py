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
from ..store.retry import retry_until_written
from ..supervision.restart_with_backoff import is_fatal
from ..tools.base import Context
from ..types.commit import Change
from ..types.errors import DeskhandError, JobInvalid, StoreUnavailable
from ..types.identity import Address, Command, Inbound, Principal, Said, principal_label
from ..types.jobs import Job, Run, RunState, describe_failure
from ..types.labels import LOCAL, Label, join_labels
from ..types.messages import Message, Part, Text
from ..types.people import OWNER_NAME
from .alerts import JobFailure, record_failure, record_success
from .files import JobFile
from .hooks import Hook, Ran, label_of_hook, run_hook, wrap_prerun_output
from .ledger import (
    RunEntry,
    add_counts,
    end_run,
    mark_finishing,
    set_hook_state_label,
    set_result_label,
)
from .overdue import Overdue
from .port import LiveRun, Port
from .target import (
    JOBS_CHANNEL,
    address_of,
    agent_of,
    describe_timeout,
    find_turn_end,
    render_heading,
    session_of,
)

log = logging.getLogger(__name__)

HOOK_LEASE_S = 630.0
"""Longer than any hook may take, with what is to be done around it."""
OUTCOME_CHARS = 500
FAILED_STATES: tuple[RunState, ...] = ("error", "interrupted")


class Runs:
    """Carries them out. `tasks` are set while it may."""

    def __init__(self, port: Port) -> None:
        self._port = port
        self._ground = port.ground
        self.tasks: TaskGroup | None = None
        self.live: dict[str, LiveRun] = {}
        self.overdue = Overdue(port, self.live, self._fail)

    def is_running(self, job: str) -> bool:
        """Whether it runs now."""
        return any(live.entry.job.name == job for live in self.live.values())

    def runs_in_session(self, session: str) -> list[LiveRun]:
        """What goes on in this conversation."""
        return [live for live in self.live.values() if live.entry.run.session == session]

    async def begin(self, entry: RunEntry, rows: Sequence[Change] = ()) -> None:
        """Begin a run, with these rows. Raises StoreUnavailable, and then nothing of it has
        happened."""
        job = entry.job
        try:
            principal = await self._port.principal_for(job)
            entry = replace(entry, run=replace(entry.run, session=session_of(self._ground, entry)))
            if job.kind == "chore":
                await self._claim(entry, principal, "running", job.timeout_s, rows)
                self._start(entry, partial(self._run_chore, entry))
            elif job.kind == "prompt" and job.hooks.prerun:
                await self._claim(entry, principal, "checking", HOOK_LEASE_S, rows)
                self._start(entry, partial(self._run_prerun, entry))
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
            self._track(
                entry, "running", await self._principal_or_rightless(entry.job), entry.job.timeout_s
            )
            await self._insist(
                self._port.ledger.renew_lease(entry, self._now() + entry.job.timeout_s)
            )
            await self.check_turn_end(entry)
        elif entry.job.misfire == "skip" or entry.run.attempts >= 3:
            times = f" for the {entry.run.attempts}rd time" if entry.run.attempts >= 3 else ""
            said = f"a restart cut it off{times}; it is not tried again"
            await self.end(entry, "interrupted", Text(said, LOCAL))
        else:
            log.warning("the job %r was cut off by a restart and is tried again", entry.job.name)
            await self.begin(entry)

    async def _principal_or_rightless(self, job: Job) -> Principal:
        """In whose name it goes on: with no rights where they are gone."""
        try:
            return await self._port.principal_for(job)
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
        count = [add_counts(entry.job.name, runs=1)] if state == "running" else []
        await self._ground.store.change([claim, *count, *rows])
        self._track(entry, state, principal, lease_s)

    def _track(
        self, entry: RunEntry, state: RunState, principal: Principal, lease_s: float
    ) -> None:
        entry = replace(entry, run=replace(entry.run, state=state))
        self.live[entry.key] = LiveRun(entry, principal, self._ground.clock.monotonic() + lease_s)

    async def _run_prerun(self, entry: RunEntry) -> None:
        """Its prerun, and then the model, if that says so."""
        live = self.live[entry.key]
        job = entry.job
        try:
            ran = await self._run_hook(entry, live.principal, job.hooks.prerun, b"")
            if not ran.ok:
                await self.end(entry, "gated", ran.outcome, rows=ran.rows)
                return
            part = Text(
                wrap_prerun_output(ran.stdout), join_labels((label_of_hook(job.name), ran.label))
            )
            await retry_until_written(
                partial(self._hand_in, entry, live.principal, (part,), ran.rows)
            )
        except DeskhandError as error:
            await self.end(entry, "error", Text(str(error), label_of_hook(job.name)), errors=0)

    async def _hand_in(
        self, entry: RunEntry, principal: Principal, more: tuple[Part, ...], rows: Sequence[Change]
    ) -> None:
        """The conversation gets it: in one transaction with the row that says so."""
        job = entry.job
        session = entry.run.session
        now = self._now()
        head = await self._ground.store.query("event_head", (session,))
        entry = replace(entry, after_n=head[0][0] if head else 0)
        ours = principal_label(principal)
        payload = (entry.payload,) if entry.payload is not None else ()
        parts = (Text(f"{render_heading(entry)}\n\n{job.prompt}", ours), *more, *payload)
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
        counts = add_counts(job.name, runs=1)
        self._track(entry, "running", principal, job.timeout_s)
        try:
            await self._port.injector.hand_in(inbound, principal, (claim, counts, *rows, *members))
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
        done = end_run(entry.run, "done", now, "")
        known = await self._port.ledger.state(job.name)
        more = (
            add_counts(job.name, runs=1),
            *await record_success(self._ground, job, known, entry.key),
        )
        await self._port.injector.hand_in(inbound, by, (claim, done, *rows, *more))
        await self._port.on_run_end(entry, "done")

    async def _run_chore(self, entry: RunEntry) -> None:
        chore = self._port.find_chore(entry.job.chore)
        job = entry.job
        try:
            if chore is None:
                raise JobInvalid(f"there is no chore {job.chore!r} here")
            with anyio.fail_after(job.timeout_s):
                said = await chore(job)
        except TimeoutError:
            await self.end(entry, "error", Text(describe_timeout(job), LOCAL))
        except DeskhandError as error:
            await self.end(entry, "error", Text(str(error), Label(source=f"the job {job.name}")))
        else:
            await self.end(entry, "done", Text(said, LOCAL))  # a count, or a sentence of ours

    async def check_turn_end(self, entry: RunEntry) -> None:
        """See whether its turn is over, and go on from there."""
        log_ = await self._ground.store.events(entry.run.session, entry.after_n)
        found = find_turn_end(log_, entry.key)
        live = self.live.get(entry.key)
        if found is None or live is None:
            return
        answer = found.answer
        reason = found.event.reason
        if reason != "done":
            stopped = live.stopping and reason == "stopped"
            why = describe_failure(reason, answer) if found.event.said else answer
            if stopped:
                why = describe_timeout(entry.job)
            said = await self._ground.store.query("job_said", (entry.run.session, found.n))
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
            live.deadline = self._ground.clock.monotonic() + HOOK_LEASE_S
            await self._insist(mark_finishing(entry.run, self._now() + HOOK_LEASE_S))
            self._start(entry, partial(self._run_postrun, entry, live.principal, answer))

    async def _run_postrun(self, entry: RunEntry, principal: Principal, answer: str) -> None:
        """Its postrun gets the answer."""
        try:
            ran = await self._run_hook(entry, principal, entry.job.hooks.postrun, answer.encode())
        except DeskhandError as error:
            await self.end(entry, "error", Text(str(error), label_of_hook(entry.job.name)))
            return
        if ran.ok:
            await self.end(entry, "done", Text(answer, await self._label(entry)), rows=ran.rows)
        else:
            said = Text(f"its postrun failed: {ran.outcome.text}", ran.outcome.label)
            await self.end(entry, "error", said, rows=ran.rows)

    async def _label(self, entry: RunEntry) -> Label:
        """That of the conversation of this run, and of what has set it off."""
        session = entry.run.session
        own = principal_label(await self._principal_or_rightless(entry.job))
        history = await self._ground.store.history(session) if session else ()
        read = fold(State(session), history).label
        payload = (entry.payload.label,) if entry.payload is not None else ()
        return join_labels((LOCAL, own, read, *payload))

    async def _run_hook(
        self, entry: RunEntry, principal: Principal, script: str, stdin: bytes
    ) -> Ran:
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
            self._port.job_folder(job.name),
            script,
            tuple(about.items()),
            stdin,
            self._ground.settings().config.jobs.hook_timeout_s,
        )
        session = entry.run.session
        place = (
            session,
            principal,
            Address(JOBS_CHANNEL, chat=job.name),
            agent.name,
            await agent.open_scope(),
        )
        key = f"{entry.key}:{script}:{entry.run.attempts}"
        kept = await self._port.ledger.hook_state_label(job.name)
        label = join_labels((await self._label(entry), kept))
        context = Context(
            *place, self._ground.clock, self._ground.ids, _ignore_progress, key, label
        )
        ran = await run_hook(hook, context)
        if (known := join_labels((kept, ran.label))) == kept:
            return ran
        return replace(ran, rows=(*ran.rows, set_hook_state_label(entry.run, known, self._now())))

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
        words = " ".join(self._ground.redact(said.text).split())[:OUTCOME_CHARS]
        failed = state in FAILED_STATES
        counts = add_counts(
            job.name, gates=int(state == "gated"), errors=int(failed) if errors is None else errors
        )
        known = await self._port.ledger.state(job.name)
        key = f"{entry.key}:{state}"
        if failed:
            failure = JobFailure(key, words or "it does not say why", now, said_as)
            more = await record_failure(self._ground, job, known, failure)
        else:
            more = await record_success(self._ground, job, known, key) if state == "done" else []
        whose = set_result_label(entry.run, said.label if words else LOCAL, now)
        await self._insist(*rows, end_run(entry.run, state, now, words), whose, counts, *more)
        self.live.pop(entry.key, None)
        await self._port.on_run_end(entry, state)

    async def _fail(self, live: LiveRun, said: str) -> None:
        await self.end(live.entry, "error", Text(said, LOCAL))

    async def remove_finished_jobs(self, found: Iterable[JobFile]) -> None:
        """Remove the files of those that were to go after their run, where a crash came between."""
        last = await self._port.ledger.last_runs()
        for one in found:
            run = last.get(one.name)
            if (
                one.job is None
                or not one.job.delete_after_run
                or run is None
                or (run.ended_at or 0.0) < one.written_at
            ):
                continue
            if run.state in ("done", "error", "gated"):
                await self._port.on_run_end(RunEntry(run, one.job), run.state)

    # Small things

    def _now(self) -> float:
        return self._ground.clock.now()

    def _start(self, entry: RunEntry, work: Callable[[], Awaitable[None]]) -> None:
        if self.tasks is not None:
            self.tasks.start_soon(self._run_guarded, entry, work)

    async def _run_guarded(self, entry: RunEntry, work: Callable[[], Awaitable[None]]) -> None:
        """What breaks in one run is the end of that run alone."""
        try:
            await work()
        except Exception as error:
            if is_fatal(error):
                raise
            log.exception("a run of the job %r broke", entry.job.name)
            broke = f"it broke ({type(error).__name__}: {error})"
            await self.end(entry, "error", Text(broke, Label(source=f"the job {entry.job.name}")))

    async def _insist(self, *changes: Change) -> None:
        await retry_until_written(partial(self._ground.store.change, changes))


def _ignore_progress(text: str) -> None:
    """Nobody watches."""


def new_run(job: Job, slot: str, due_at: float) -> RunEntry:
    """A run that nobody has begun."""
    return RunEntry(Run(job.name, slot, "waiting", due_at), job)
