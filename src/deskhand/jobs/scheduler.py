"""Scheduled and triggered jobs: each due time starts exactly one run, also across crashes."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence

import anyio
import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..assembly.host import Host
from ..types.commit import Change
from ..types.errors import JobInvalid, StoreUnavailable
from ..types.identity import Principal
from ..types.jobs import Job, format_slot
from ..types.marked_texts import mark_text
from ..types.messages import Text
from ..types.schedules import Schedule, Startup
from .due import MAX_COUNTED, Due, find_due, initial_seen_at
from .files import JobFile, JobFiles, no_such_job
from .ledger import (
    JobRecord,
    RunEntry,
    add_counts,
    add_run,
    count_restarts_after,
    find_run,
    job_records,
    new_run,
    open_runs,
    prune_runs,
    set_plan,
    set_seen_at,
)
from .pause import RESUME_COMMAND, ProcessStarts, pause_after_crashes, pause_reason
from .principals import find_agent_problem
from .runs import JobRuns
from .target import session_of

log = logging.getLogger(__name__)

SCAN_INTERVAL_S = 60.0
"""How often the folder is read. Changes that are made through this process are seen at once."""
TRIGGER_SCAN_INTERVAL_S = 2.0
"""The same for jobs with triggers."""
POLL_S = 1.0
STARTUP_POLL_S = 0.05
RETRY_S = 5.0
RESTART_WINDOW_S = 60.0
"""A start of Deskhand this soon after a run of a job may be caused by the run."""
PRUNE_INTERVAL_S = 24 * 3600.0
ALREADY_RUNNING = "the run before it was still going on"


class ScheduledJob(msgspec.Struct, frozen=True):
    """A job and when it is due. `key` names the schedule with its time zone, '' when no time
    starts the job."""

    file: JobFile
    job: Job
    schedule: Schedule | None
    key: str


class NextDue(msgspec.Struct, frozen=True):
    """When a job is due next under the plan with this key; None for never."""

    key: str
    at: float | None


class JobScheduler:
    """Decides that jobs are due, and starts their runs. Only the process that drives conversations
    may `run` it; the other methods may be called in any process."""

    def __init__(self, host: Host, files: JobFiles, runs: JobRuns, starts: ProcessStarts) -> None:
        self._host = host
        self._store = host.store
        self._files = files
        self._runs = runs
        self._starts = starts
        self._wakeup = runs.wakeup
        self.tick_count = 0
        """How often it has looked for work."""

        self._plans: dict[str, ScheduledJob] = {}
        self._records: dict[str, JobRecord] = {}
        self._next: dict[str, NextDue] = {}
        self._problems: dict[str, str] = {}
        self._paused = ""
        self._has_recovered = False

        self._scanned_at: float | None = None
        self._scanned_revision = -1
        self._pruned_at: float | None = None
        self._store_version = -1

        self._trigger_lock = anyio.Lock()
        self._triggered: tuple[Job, ...] = ()
        self._triggered_at = float("-inf")
        self._triggered_revision = -1

    def wake(self) -> None:
        """Look for work now."""
        self._wakeup.set()

    def rescan(self) -> None:
        """Read the folder now."""
        self._scanned_at = None
        self._wakeup.set()

    @property
    def next_at(self) -> float | None:
        """When the next job is due (seconds since the epoch), or None when that is not known."""
        return min(self._due_times(), default=None)

    def _due_times(self) -> list[float]:
        return [due.at for due in self._next.values() if due.at is not None and due.key]

    @property
    def session_prefix(self) -> str:
        """How the keys of jobs' own sessions begin. The process that drives them runs all jobs."""
        return f"{self._host.settings().agents[0]}/job:"

    # The loop

    async def run(self) -> None:
        """Start what is due, for ever. Sleeps in a process that does not drive the sessions of
        jobs."""
        dispatch = self._host.dispatch
        try:
            while not dispatch.is_driving:  # noqa: ASYNC110 -- it begins shortly
                await anyio.sleep(STARTUP_POLL_S)
            if not dispatch.owns(self.session_prefix):
                await anyio.sleep_forever()
            async with self._runs.open():
                await self.recover()
                while True:
                    await self._wait(await self._tick_or_retry())
        except anyio.get_cancelled_exc_class():
            await self._starts.note_clean_exit()
            raise

    async def _tick_or_retry(self) -> float:
        try:
            return await self.tick()
        except (StoreUnavailable, OSError) as error:
            log.warning("Scheduler paused: %s. Retrying in %d s.", error, round(RETRY_S))
            self._store_version = -1  # what was seen and not done is to be seen again
            self._scanned_at = None
            return RETRY_S

    async def _wait(self, seconds: float) -> None:
        """Sleep until the time is up, somebody wakes it, or another process has written something.
        Time in which the computer was suspended counts: the wall clock went on."""
        give_up = anyio.current_time() + seconds
        until = self._host.clock.now() + seconds
        while not self._wakeup.is_set and (left_s := give_up - anyio.current_time()) > 0:
            with anyio.move_on_after(min(left_s, POLL_S)):
                await self._wakeup.wait()
            if self._store.version() != self._store_version or self._host.clock.now() >= until:
                return

    async def tick(self) -> float:
        """Do everything that is due. Returns for how many seconds nothing will be. Raises
        StoreUnavailable: call it again."""
        self._wakeup.clear()
        self.tick_count += 1
        now = self._host.clock.now()
        # Read the version before anything else: a change from here on is seen at the next tick.
        version = self._store.version()
        has_changes = version != self._store_version
        self._store_version = version
        if await self._scan_if_due(now):
            has_changes = True

        if has_changes:
            self._paused = await pause_reason(self._host)
            self._records = await job_records(self._store)
            await self._update_plans(now)
        await self._runs.check()
        if not self._paused:
            waiting = await self._begin_waiting() if has_changes else set[str]()
            for plan in list(self._plans.values()):
                await self._decide_due(plan, now, is_waiting=plan.job.name in waiting)
        return self._seconds_until_next(now)

    async def _scan_if_due(self, now: float) -> bool:
        """Read the folder when something was changed here, or after SCAN_INTERVAL_S."""
        revision = self._files.revision
        is_fresh = self._scanned_at is not None and 0 <= now - self._scanned_at < SCAN_INTERVAL_S
        if is_fresh and revision == self._scanned_revision:
            return False
        self._scanned_at = now  # before it is read: a `rescan` from here on asks for another one
        self._scanned_revision = revision
        self._make_plans(await anyio.to_thread.run_sync(self._files.scan_with_builtins))
        await self._prune_if_due(now)
        return True

    async def _prune_if_due(self, now: float) -> None:
        if self._pruned_at is None or not 0 <= now - self._pruned_at < PRUNE_INTERVAL_S:
            await prune_runs(self._store, now)
            self._pruned_at = now

    def _seconds_until_next(self, now: float) -> float:
        seconds = [0.0]
        if self._scanned_at is not None:
            seconds = [SCAN_INTERVAL_S - (now - self._scanned_at)]
        seconds += self._runs.seconds_until_deadlines()
        if not self._paused:
            seconds += [at - now for at in self._due_times()]
        return max(0.0, min(seconds))

    # Recovery

    async def recover(self) -> None:
        """Take over from an earlier process: resume its runs, unless it crashed too often, and
        start the jobs of the schedule `startup`."""
        now = self._host.clock.now()
        self._make_plans(await anyio.to_thread.run_sync(self._files.scan_with_builtins))
        if not self._has_recovered:
            self._has_recovered = True
            await self._pause_after_crashes()
        self._paused = await pause_reason(self._host)

        for entry in await open_runs(self._store):
            if self._is_to_be_resumed(entry):
                await self._runs.resume(entry)
        await self._runs.delete_finished_jobs([plan.file for plan in self._plans.values()])

        if self._paused:
            log.warning("No job runs: %s. To resume: %s", self._paused, RESUME_COMMAND)
            return
        for plan in self._plans.values():
            if isinstance(plan.schedule, Startup) and plan.key:
                await self._fire_at_start(plan.job, now)

    async def _pause_after_crashes(self) -> None:
        if not self._starts.is_noted:
            await self._starts.note_start()
        if any(plan.key and plan.file.written_at for plan in self._plans.values()):
            await pause_after_crashes(self._host, self._starts, self._runs.holder)

    def _is_to_be_resumed(self, entry: RunEntry) -> bool:
        """True for a run that an earlier process has begun. While jobs are paused, only those that
        the agent has already, or whose postrun was cut off."""
        state = entry.run.state
        if state == "waiting" or entry.key in self._runs.live:
            return False
        is_asked = state == "running" and entry.job.kind == "prompt"
        return state == "finishing" or is_asked or not self._paused

    async def _fire_at_start(self, job: Job, now: float) -> None:
        """Start a job of the schedule `startup`, unless too many of its runs were followed by
        another start of Deskhand at once: it may be their cause."""
        config = self._host.settings().config.jobs
        slot = f"startup {self._runs.holder}"
        since = now - 60.0 * config.storm_minutes
        restarts = await count_restarts_after(
            self._store, job.name, since, now, window_s=RESTART_WINDOW_S
        )
        if not config.storm_starts or restarts < config.storm_starts:
            await self._fire(new_run(job, slot, now), ())
            return
        reason = mark_text(
            "after {restarts_number} of its runs within {storm_minutes_number} minutes Deskhand "
            "was restarted immediately"
        ).format(restarts_number=restarts, storm_minutes_number=f"{config.storm_minutes:g}")
        log.warning("The job %r is skipped: %s.", job.name, reason)
        await self._store.change(_skip(new_run(job, slot, now), now, reason))

    # Times

    def _make_plans(self, found: Mapping[str, JobFile]) -> None:
        plans: dict[str, ScheduledJob] = {}
        problems: dict[str, str] = {}
        for name, file in found.items():
            job = file.job
            if job is None:
                problems[name] = file.problem
                if self._problems.get(name) != file.problem:
                    log.warning("The job %r cannot run: %s", name, file.problem)
                continue
            schedule = job.resolve_schedule(self._files.zone)
            is_on = job.enabled and schedule is not None
            key = f"{job.schedule} {job.timezone or self._files.zone}" if is_on else ""
            plans[name] = ScheduledJob(file, job, schedule, key)
        self._plans = plans
        self._problems = problems
        self._next = {name: due for name, due in self._next.items() if name in plans}

    async def _update_plans(self, now: float) -> None:
        """Store from when on the times of new and changed schedules are due.

        A job that is gone has no plan: a new one of its name begins when it is there.
        """
        changes = []
        for name, record in self._records.items():
            if record.plan and name not in self._plans and name not in self._problems:
                changes.append(set_plan(name, record.seen_at, ""))
                self._records[name] = replace(record, plan="")

        for name, plan in self._plans.items():
            known = self._records.get(name)
            if known is not None and known.plan == plan.key:
                continue
            written_at = plan.file.written_at
            seen_at = initial_seen_at(written_at or now, now)
            if known is not None and written_at <= known.seen_at:
                seen_at = now
            changes.append(set_plan(name, seen_at, plan.key))
            self._records[name] = replace(
                known or JobRecord(job=name), seen_at=seen_at, plan=plan.key
            )
            self._next.pop(name, None)
        if changes:
            await self._store.change(changes)

    async def _decide_due(self, plan: ScheduledJob, now: float, *, is_waiting: bool) -> None:
        """Decide all times of one job that have come: run, skip, or missed. `is_waiting`: a run of
        it waits to begin."""
        job = plan.job
        record = self._records.get(job.name)
        if plan.schedule is None or not plan.key or record is None or record.plan != plan.key:
            return
        if self._is_known_not_due(plan, record, now):
            return

        due = find_due(plan.schedule, record.seen_at, now, job.misfire, job.grace_s)
        changes = list(_record_missed(job, due, now))
        if due.seen_at < record.seen_at:
            changes.append(set_plan(job.name, due.seen_at, plan.key))
        elif due.seen_at > record.seen_at:
            changes.append(set_seen_at(job.name, due.seen_at))

        runs = [new_run(job, format_slot(at), at) for at in due.fire]
        if len(runs) == 1:
            await self._fire(runs[0], changes, is_waiting=is_waiting)
        else:
            changes += [add_run(run, "waiting") for run in runs]
            if changes:
                await self._store.change(changes)
            if runs:
                self._wakeup.set()
        self._records[job.name] = replace(record, seen_at=due.seen_at)
        self._next[job.name] = NextDue(plan.key, due.next_at)

    def _is_known_not_due(self, plan: ScheduledJob, record: JobRecord, now: float) -> bool:
        known = self._next.get(plan.job.name)
        if known is None or known.key != plan.key:
            return False
        return known.at is None or record.seen_at <= now < known.at

    async def _fire(
        self, entry: RunEntry, changes: Sequence[Change], *, is_waiting: bool = False
    ) -> None:
        """Begin this run, or let it wait, or skip it. Commits `changes` with that."""
        job = entry.job
        if await find_run(self._store, job.name, entry.run.slot) is not None:
            # It was decided before the clock was set back.
            await self._store.change(changes)
        elif not self._runs.is_running(job.name) and not is_waiting:
            await self._runs.begin(entry, changes)
        elif job.overlap == "queue_one" and not is_waiting:
            await self._store.change([add_run(entry, "waiting"), *changes])
        else:
            now = self._host.clock.now()
            await self._store.change([*_skip(entry, now, ALREADY_RUNNING), *changes])

    async def _begin_waiting(self) -> set[str]:
        """Begin runs that wait. Returns the jobs whose runs have to wait longer."""
        still_waiting = set()
        for entry in await open_runs(self._store):
            if entry.run.state != "waiting":
                continue
            if self._runs.is_running(entry.job.name):
                still_waiting.add(entry.job.name)
            else:
                await self._runs.begin(entry)
        return still_waiting

    # Runs that people and events start

    async def run_now(self, job: Job, by: Principal) -> str:
        """Start a run, or let it wait for the one that goes on; one may wait. Returns its slot.
        Raises JobInvalid."""
        await self._require_no_pause()
        waiting = [
            entry
            for entry in await open_runs(self._store)
            if entry.run.job == job.name and entry.run.state == "waiting"
        ]
        if waiting:
            raise JobInvalid(
                mark_text(
                    "{name} waits to be run already; see `deskhand jobs runs {name2}`"
                ).format(name=repr(job.name), name2=job.name)
            )
        entry = new_run(job, self._new_slot(by), self._host.clock.now())
        await self._store.change([add_run(entry, "waiting")])
        self.wake()
        return entry.run.slot

    async def prepare_run(self, job: Job, by: Principal) -> RunEntry:
        """A run for `JobRuns.run_to_completion`. Nobody is alerted when it fails: the person who
        starts it sees that. Raises JobInvalid."""
        await self._require_no_pause()
        entry = new_run(replace(job, alert=False), self._new_slot(by), self._host.clock.now())
        return replace(entry, run=replace(entry.run, session=session_of(self._host, entry)))

    def _new_slot(self, by: Principal) -> str:
        return f"{self._host.ids.new('run')} by {by.id}"

    async def _require_no_pause(self) -> None:
        why = await pause_reason(self._host)
        if not why:
            return
        said = mark_text("no job runs now: {why_text}").format(why_text=why)
        if self._host.settings().config.jobs.enabled:
            hint = mark_text("`{resume_command}` lets them go on")
            said = f"{said}; {hint.format(resume_command=RESUME_COMMAND)}"
        raise JobInvalid(said)

    async def triggered_jobs(self) -> Sequence[Job]:
        """All jobs with triggers. It is the same object as long as none of them has changed."""
        now = self._host.clock.monotonic()
        revision = self._files.revision
        is_fresh = now - self._triggered_at < TRIGGER_SCAN_INTERVAL_S
        if is_fresh and revision == self._triggered_revision:
            return self._triggered
        self._triggered_at = now
        self._triggered_revision = revision
        found = await anyio.to_thread.run_sync(self._files.scan)
        jobs = tuple(file.job for file in found.values() if file.job is not None and file.job.on)
        if jobs != self._triggered:
            self._triggered = jobs
        return self._triggered

    async def trigger(self, name: str, slot: str, payload: Text) -> bool:
        """An event starts a run, once for each `slot`, which names the event. Returns False when
        that event was there before, or when another run goes on and none may wait. Raises
        JobInvalid."""
        async with self._trigger_lock:
            job = await self._get_runnable(name)
            if not job.enabled or await find_run(self._store, name, slot) is not None:
                return False
            now = self._host.clock.now()
            entry = new_run(job, slot, now, payload)
            reason = ALREADY_RUNNING if await self._is_full(job) else ""
            reason = reason or await self._host.rounds.begin_round(f"the job {name}")
            if reason:
                await self._store.change(_skip(entry, now, reason))
                return False
            (added,) = await self._store.change([add_run(entry, "waiting")])
            self.wake()
            return bool(added)

    async def _get_runnable(self, name: str) -> Job:
        found = await anyio.to_thread.run_sync(self._files.scan_with_builtins)
        file = found.get(name)
        if file is None:
            raise no_such_job(name)
        problem = file.problem
        if file.job is not None:
            problem = find_agent_problem(self._host.settings(), file.job)
        if file.job is None or problem:
            raise JobInvalid(
                mark_text("the job {name} cannot run as it is written: {problem_text}").format(
                    name=repr(name), problem_text=problem
                )
            )
        return file.job

    async def _is_full(self, job: Job) -> bool:
        """True when another run goes on and no further one may wait."""
        entries = [each for each in await open_runs(self._store) if each.run.job == job.name]
        is_waiting = any(each.run.state == "waiting" for each in entries)
        return bool(entries) and (job.overlap == "skip" or is_waiting)


def _skip(entry: RunEntry, now: float, reason: str) -> list[Change]:
    """The rows of a run that is skipped."""
    return [add_run(entry, "skipped", now, reason), add_counts(entry.job.name, skips=1)]


def _record_missed(job: Job, due: Due, now: float) -> Iterator[Change]:
    """The row of the last time that was missed. It counts the earlier ones."""
    if due.missed is None:
        return
    earlier = ""
    if due.lost > 1:
        or_more = " or more" if due.lost >= MAX_COUNTED else ""
        earlier = f"; {due.lost - 1}{or_more} earlier ones too"
    reason = (
        f"it was not run at that time, and `misfire: {job.misfire}` makes up for no more{earlier}"
    )
    yield add_run(new_run(job, format_slot(due.missed), due.missed), "missed", now, reason)
