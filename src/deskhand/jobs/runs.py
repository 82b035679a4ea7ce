"""Runs of jobs: each is carried from its row to its end, also across crashes and restarts."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from msgspec.structs import replace

from ..agent.finished_turn import FinishedTurn, find_turn_end, is_receipt
from ..assembly.host import Host
from ..gateway.inject import InboundInjector
from ..store.queries import add_member, last_event_number
from ..store.retry import retry_until_written
from ..supervision.restart_with_backoff import is_fatal
from ..types.commit import Change
from ..types.errors import ConfigError, DeskhandError, JobInvalid, StoreUnavailable
from ..types.events import ApprovalAsked, MessageReceived, Recorded, TurnEnded
from ..types.identity import Command, Inbound, Principal, Said, principal_label
from ..types.jobs import Run, RunState, describe_failure
from ..types.labels import LOCAL, Label, join_labels
from ..types.marked_texts import mark_text
from ..types.messages import Message, Part, Text
from ..types.people import OWNER_NAME
from .alerts import JobFailure, record_failure, record_success
from .builtins import Chore
from .files import JobFile, JobFiles
from .hooks import label_of_hook, run_job_hook, wrap_prerun_output
from .ledger import (
    RunEntry,
    add_counts,
    claim_run,
    end_run,
    failure_message_key,
    find_run,
    job_record,
    last_runs,
    mark_finishing,
    renew_lease,
    set_result_label,
)
from .principals import principal_for, principal_or_powerless
from .target import (
    address_of,
    describe_timeout,
    label_of_run,
    render_heading,
    session_of,
)
from .time_limits import STOP_GRACE_S, LiveRun, alert_needs_approval, seconds_left, stop_turn
from .wakeup import Wakeup

log = logging.getLogger(__name__)

HOOK_LEASE_S = 630.0
"""Longer than any hook may take, with everything around it."""
POLL_S = 1.0
OUTCOME_CHARS = 500
MAX_ATTEMPTS = 3
FAILED_STATES: tuple[RunState, ...] = ("error", "interrupted")


class JobRuns:
    """Carries runs to their end: prerun, conversation, postrun.

    `holder` names this process in the rows of its runs. `wakeup` is set when a run has ended, or
    may be about to. `chores` do the work of jobs of that kind, by name.
    """

    def __init__(
        self,
        host: Host,
        injector: InboundInjector,
        files: JobFiles,
        *,
        holder: str,
        chores: Mapping[str, Chore],
    ) -> None:
        self._host = host
        self._store = host.store
        self._injector = injector
        self._files = files
        self.holder = holder
        self.chores = dict(chores)
        self.wakeup = Wakeup()
        self.live: dict[str, LiveRun] = {}
        self._tasks: TaskGroup | None = None
        self._sessions_to_check: set[str] = set()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Let runs begin while this is open. Leaving it waits for hooks and chores; when it is
        cancelled, the next process resumes them."""
        try:
            async with anyio.create_task_group() as self._tasks:
                yield
        finally:
            self._tasks = None
            self.live.clear()

    @property
    def is_open(self) -> bool:
        return self._tasks is not None

    def is_running(self, job: str) -> bool:
        """True while a run of this job goes on in this process."""
        return any(live.entry.job.name == job for live in self.live.values())

    def _runs_in(self, session: str) -> list[LiveRun]:
        return [live for live in self.live.values() if live.entry.run.session == session]

    listens_to = (
        MessageReceived,
        ApprovalAsked,
        TurnEnded,
    )

    def on_event(self, recorded: Recorded) -> None:
        """Note that a run's turn may have begun or ended. Never waits."""
        event = recorded.event
        if isinstance(event, TurnEnded | ApprovalAsked):
            if self._runs_in(recorded.session):
                self._sessions_to_check.add(recorded.session)
                self.wakeup.set()
        elif isinstance(event, MessageReceived):
            for live in self._runs_in(recorded.session):
                if is_receipt(event, live.entry.key):
                    live.turn_began_at = self._host.clock.monotonic()

    # Begin and resume

    async def begin(self, entry: RunEntry, rows: Sequence[Change] = ()) -> None:
        """Begin a run, and commit `rows` with it. Raises StoreUnavailable, and then nothing has
        happened."""
        job = entry.job
        try:
            principal = await principal_for(self._host, job)
            entry = replace(entry, run=replace(entry.run, session=session_of(self._host, entry)))
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
            claim = self._claim_change(entry, "running", 0.0)
            reason = Text(str(error), LOCAL)
            await self.end(entry, "error", reason, errors=0, rows=(claim, *rows))

    async def resume(self, entry: RunEntry) -> None:
        """Continue a run that an earlier process has begun. What was cut off in the middle is tried
        again, unless the job's `misfire` is `skip` or it was tried three times."""
        state = entry.run.state
        attempts = entry.run.attempts
        if state == "finishing":
            reason = mark_text(
                "a restart interrupted its postrun, which may or may not have finished"
            )
            await self.end(entry, "interrupted", Text(reason, LOCAL))
        elif state == "running" and entry.job.kind == "prompt":
            await self._resume_conversation(entry)
        elif entry.job.misfire == "skip" or attempts >= MAX_ATTEMPTS:
            reason = mark_text("a restart interrupted it; it is not tried again")
            if attempts >= MAX_ATTEMPTS:
                reason = mark_text(
                    "a restart interrupted it for the {times_number}rd time; it is not tried again"
                ).format(times_number=attempts)
            await self.end(entry, "interrupted", Text(reason, LOCAL))
        else:
            log.warning("The job %r was interrupted by a restart. Trying again.", entry.job.name)
            await self.begin(entry)

    async def _resume_conversation(self, entry: RunEntry) -> None:
        timeout_s = entry.job.timeout_s
        self._track(
            entry, "running", await principal_or_powerless(self._host, entry.job), timeout_s
        )
        await self._insist(renew_lease(entry.run, self.holder, self._now() + timeout_s))
        await self._check_turn_end(entry)

    async def run_to_completion(self, entry: RunEntry) -> Run:
        """Run this once, in a process that drives conversations and looks after no other jobs.
        Returns how it ended, or how it is when it waits for a person. Raises StoreUnavailable."""
        if entry.run.session:
            self._host.dispatch.adopt(entry.run.session)
        async with self.open():
            await self.begin(entry)
            while entry.key in self.live:
                self.wakeup.clear()
                await self.check()
                if entry.key in self.live:
                    with anyio.move_on_after(POLL_S):
                        await self.wakeup.wait()
        done = await find_run(self._store, entry.job.name, entry.run.slot)
        return done.run if done is not None else entry.run

    # The stages of a run

    async def _claim(
        self,
        entry: RunEntry,
        principal: Principal,
        state: RunState,
        lease_s: float,
        rows: Sequence[Change],
    ) -> None:
        changes = [self._claim_change(entry, state, lease_s)]
        if state == "running":
            changes.append(add_counts(entry.job.name, runs=1))
        await self._store.change([*changes, *rows])
        self._track(entry, state, principal, lease_s)

    def _claim_change(self, entry: RunEntry, state: RunState, lease_s: float) -> Change:
        return claim_run(entry, state, holder=self.holder, now=self._now(), lease_s=lease_s)

    def _track(
        self, entry: RunEntry, state: RunState, principal: Principal, lease_s: float
    ) -> None:
        self.live[entry.key] = LiveRun(
            entry=replace(entry, run=replace(entry.run, state=state)),
            principal=principal,
            deadline=self._host.clock.monotonic() + lease_s,
        )

    async def _run_prerun(self, entry: RunEntry) -> None:
        """Run the prerun, and ask the agent when its exit code is 0."""
        principal = self.live[entry.key].principal
        job = entry.job
        try:
            result = await run_job_hook(
                self._host,
                entry,
                principal,
                folder=self._files.job_folder(job.name),
                script=job.hooks.prerun,
                stdin=b"",
            )
            if not result.ok:
                await self.end(entry, "gated", result.outcome, rows=result.rows)
                return
            label = join_labels((label_of_hook(job.name), result.label))
            output = Text(wrap_prerun_output(result.stdout), label)
            await retry_until_written(
                partial(self._hand_in, entry, principal, (output,), result.rows)
            )
        except DeskhandError as error:
            await self.end(entry, "error", Text(str(error), label_of_hook(job.name)), errors=0)

    async def _hand_in(
        self, entry: RunEntry, principal: Principal, more: Sequence[Part], rows: Sequence[Change]
    ) -> None:
        """Put the prompt to the conversation, in one transaction with the row that says so."""
        job = entry.job
        session = entry.run.session
        entry = replace(entry, after_n=await last_event_number(self._store, session))

        heading = Text(f"{render_heading(entry)}\n\n{job.prompt}", principal_label(principal))
        payload = () if entry.payload is None else (entry.payload,)
        inbound = Inbound(
            entry.key,
            address_of(job),
            principal.id,
            self._now(),
            Said(Message("user", (heading, *more, *payload))),
            session,
            when="queue",
        )
        changes = [
            self._claim_change(entry, "running", job.timeout_s),
            add_counts(job.name, runs=1),
            *rows,
        ]
        if "owner" not in principal.roles:
            changes.append(add_member(session, principal.on_behalf_of))

        self._track(entry, "running", principal, job.timeout_s)
        try:
            await self._injector.hand_in(inbound, principal, changes)
        except BaseException:
            self.live.pop(entry.key, None)
            raise

    async def _deliver(self, entry: RunEntry, rows: Sequence[Change]) -> None:
        """Send the text of a `deliver` job as it is. The run is over with the same transaction."""
        job = entry.job
        now = self._now()
        sender = Principal(f"job:{job.name}", ("owner",), "system", job.person or OWNER_NAME)
        inbound = Inbound(
            entry.key,
            address_of(job),
            sender.id,
            now,
            Command("deliver", job.prompt),
            entry.run.session,
        )
        record = await job_record(self._store, job.name)
        changes = [
            self._claim_change(entry, "running", 0.0),
            end_run(entry.run, "done", now, ""),
            *rows,
            add_counts(job.name, runs=1),
            *await record_success(self._host, job, record, entry.key),
        ]
        await self._injector.hand_in(inbound, sender, changes)
        await self._after_end(entry, "done")

    async def _run_chore(self, entry: RunEntry) -> None:
        job = entry.job
        chore = self.chores.get(job.chore)
        try:
            if chore is None:
                raise JobInvalid(
                    mark_text("there is no chore {chore} here").format(chore=repr(job.chore))
                )
            with anyio.fail_after(job.timeout_s):
                said = await chore(job)
        except TimeoutError:
            await self.end(entry, "error", Text(describe_timeout(job), LOCAL))
        except DeskhandError as error:
            await self.end(entry, "error", Text(str(error), Label(source=f"the job {job.name}")))
        else:
            await self.end(entry, "done", Text(said, LOCAL))

    async def check(self) -> None:
        """See which turns have ended, which wait for a person, and which take too long."""
        sessions = self._sessions_to_check
        self._sessions_to_check = set()
        for session in sessions:
            for live in self._runs_in(session):
                await self._check_turn_end(live.entry)
                await self._insist(*await alert_needs_approval(self._host, live))
        await self._stop_overdue()

    async def _check_turn_end(self, entry: RunEntry) -> None:
        """When the turn of this run has ended, go on to the next stage."""
        log_ = await self._store.events(entry.run.session, entry.after_n)
        found = find_turn_end(log_, entry.key)
        live = self.live.get(entry.key)
        if found is None or live is None:
            return
        if found.event.reason != "done":
            await self._end_failed_turn(live, found)
        elif not entry.job.hooks.postrun:
            label = await label_of_run(self._host, entry)
            await self.end(entry, "done", Text(found.answer, label))
        elif live.entry.run.state != "finishing":
            live.entry = replace(entry, run=replace(entry.run, state="finishing"))
            live.deadline = self._host.clock.monotonic() + HOOK_LEASE_S
            await self._insist(mark_finishing(entry.run, self._now() + HOOK_LEASE_S))
            self._start(entry, partial(self._run_postrun, entry, live.principal, found.answer))

    async def _end_failed_turn(self, live: LiveRun, found: FinishedTurn) -> None:
        entry = live.entry
        reason = found.event.reason
        if live.stopping and reason == "stopped":
            why = describe_timeout(entry.job)
        elif found.event.said:
            why = describe_failure(reason, found.answer)
        else:
            why = found.answer
        said_as = await failure_message_key(self._store, entry.run.session, found.n)
        label = await label_of_run(self._host, entry)
        await self.end(entry, "error", Text(why, label), said_as=said_as)

    async def _run_postrun(self, entry: RunEntry, principal: Principal, answer: str) -> None:
        """Give the answer to the postrun."""
        job = entry.job
        try:
            result = await run_job_hook(
                self._host,
                entry,
                principal,
                folder=self._files.job_folder(job.name),
                script=job.hooks.postrun,
                stdin=answer.encode(),
            )
        except DeskhandError as error:
            await self.end(entry, "error", Text(str(error), label_of_hook(job.name)))
            return
        if result.ok:
            label = await label_of_run(self._host, entry)
            await self.end(entry, "done", Text(answer, label), rows=result.rows)
        else:
            outcome = result.outcome
            said = Text(
                mark_text("its postrun failed: {text}").format(text=outcome.text), outcome.label
            )
            await self.end(entry, "error", said, rows=result.rows)

    # Time limits

    async def _stop_overdue(self) -> None:
        """Stop turns that take too long. A run whose turn does not stop ends with an error."""
        now = self._host.clock.monotonic()
        overdue = [live for live in self.live.values() if live.has_turn and live.deadline <= now]
        for live in overdue:
            left_s = await seconds_left(self._host, live)
            if left_s > 0:
                live.deadline = now + left_s
            elif live.stopping:
                reason = mark_text("{took_text}, and did not stop").format(
                    took_text=describe_timeout(live.entry.job)
                )
                await self.end(live.entry, "error", Text(reason, LOCAL))
            else:
                live.stopping = True
                live.deadline = now + STOP_GRACE_S
                await stop_turn(self._host, self._injector, live)

    def seconds_until_deadlines(self) -> list[float]:
        """In how many seconds each run that has a turn will have taken too long."""
        now = self._host.clock.monotonic()
        return [live.deadline - now for live in self.live.values() if live.has_turn]

    # The end of a run

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
        """End a run, and commit everything that follows from it in one transaction.

        `said` is how it ended. `errors` overrides how many errors are counted. `said_as` is the key
        of the message that told its chat of a failure.
        """
        job = entry.job
        now = self._now()
        words = " ".join(self._host.redact(said.text).split())[:OUTCOME_CHARS]
        failed = state in FAILED_STATES
        if errors is None:
            errors = int(failed)

        record = await job_record(self._store, job.name)
        key = f"{entry.key}:{state}"
        alerts: list[Change] = []
        if failed:
            failure = JobFailure(key, words or mark_text("no reason was given"), now, said_as)
            alerts = await record_failure(self._host, job, record, failure)
        elif state == "done":
            alerts = await record_success(self._host, job, record, key)

        await self._insist(
            *rows,
            end_run(entry.run, state, now, words),
            set_result_label(entry.run, said.label if words else LOCAL, now),
            add_counts(job.name, gates=int(state == "gated"), errors=errors),
            *alerts,
        )
        self.live.pop(entry.key, None)
        await self._after_end(entry, state)

    async def _after_end(self, entry: RunEntry, state: RunState) -> None:
        """Delete the file of a job that wants that, and let the next run begin."""
        job = entry.job
        if job.delete_after_run and state not in ("skipped", "missed", "interrupted"):
            try:
                await anyio.to_thread.run_sync(self._files.remove_file, job.name)
            except (ConfigError, OSError) as error:
                log.warning("The job %r has run and could not be deleted: %s", job.name, error)
        self.wakeup.set()

    async def delete_finished_jobs(self, files: Iterable[JobFile]) -> None:
        """Delete jobs with `delete_after_run` that have run, when a crash came before that."""
        last = await last_runs(self._store)
        for file in files:
            run = last.get(file.name)
            if run is None or file.job is None or not file.job.delete_after_run:
                continue
            has_run = run.state in ("done", "error", "gated")
            if has_run and (run.ended_at or 0.0) >= file.written_at:
                await self._after_end(RunEntry(run, file.job), run.state)

    # Small things

    def _now(self) -> float:
        return self._host.clock.now()

    def _start(self, entry: RunEntry, work: Callable[[], Awaitable[None]]) -> None:
        if self._tasks is not None:
            self._tasks.start_soon(self._run_guarded, entry, work)

    async def _run_guarded(self, entry: RunEntry, work: Callable[[], Awaitable[None]]) -> None:
        """Do this work. An unexpected error ends this run alone."""
        try:
            await work()
        except Exception as error:
            if is_fatal(error):
                raise
            log.exception("A run of the job %r failed unexpectedly.", entry.job.name)
            reason = mark_text("unexpected error ({kind}: {error})").format(
                kind=type(error).__name__, error=error
            )
            await self.end(entry, "error", Text(reason, Label(source=f"the job {entry.job.name}")))

    async def _insist(self, *changes: Change) -> None:
        if changes:
            await retry_until_written(partial(self._store.change, changes))
