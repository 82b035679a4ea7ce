"""The clock of jobs: it looks at what there is, and decides each time that has come, once."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

import anyio
import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..assembly.host import Host
from ..types.commit import Change
from ..types.errors import StoreError, StoreUnavailable
from ..types.jobs import Job, format_slot
from ..types.schedules import Schedule, Startup
from .due import MAX_COUNTED, Due, find_due, initial_seen_at
from .files import Folder, JobFile
from .ledger import JobRecord, RunEntry, RunLedger, add_counts, add_run, set_plan, set_seen_at
from .runs import Runs, new_run

log = logging.getLogger(__name__)

SCAN_INTERVAL_S = 60.0
"""How often the folder is looked at; what is done through us is seen at once."""
POLL_S = 1.0
STARTUP_POLL_S = 0.05
RETRY_S = 5.0
RESTART_WINDOW_S = 60.0
"""A start so soon after a run of a job may be its doing."""
PRUNE_INTERVAL_S = 24 * 3600.0
RESUME_COMMAND = "deskhand jobs resume"


class Planned(msgspec.Struct, frozen=True):
    """A job, when it is due, and under which plan that was reckoned ('' for never)."""

    file: JobFile
    job: Job
    schedule: Schedule | None
    plan: str


class JobClock:
    """One for each process; only who drives may `run` it. `looks` counts how often it looked at
    anything."""

    def __init__(self, ground: Host, ledger: RunLedger, folder: Folder, runs: Runs) -> None:
        self._ground = ground
        self._ledger = ledger
        self._folder = folder
        self._runs = runs
        self.tick_count = 0
        self._plans: dict[str, Planned] = {}
        self._states: dict[str, JobRecord] = {}
        self._next: dict[str, tuple[str, float | None]] = {}
        self._broken: dict[str, str] = {}
        self._poke, self._settle = anyio.Event(), set[str]()
        self._scanned_at: float | None = None
        self._tidied_at: float | None = None
        self._version = -1
        self._paused = ""
        self._booted = False
        self._began_at: float | None = None
        self._crashes = 0
        self._has_left = False

    def wake(self) -> None:
        """Something is to be done."""
        self._poke.set()

    def request_check(self, session: str) -> None:
        """A run may be over in this conversation."""
        self._settle.add(session)
        self._poke.set()

    def rescan(self) -> None:
        """Look at the folder now."""
        self._scanned_at = None
        self._poke.set()

    @property
    def next_at(self) -> float | None:
        """When the next job is due, as far as is known now; seconds since the epoch."""
        return min(
            (at for plan, at in self._next.values() if at is not None and plan), default=None
        )

    async def run(self) -> None:
        """For ever. Only for who drives; where that sees to no jobs, it rests."""
        try:
            while not self._ground.dispatch.is_driving:  # noqa: ASYNC110 -- it is on its way
                await anyio.sleep(STARTUP_POLL_S)
            if not self._ground.dispatch.owns(self.session_prefix):
                await anyio.sleep_forever()
            async with anyio.create_task_group() as self._runs.tasks:
                await self.recover()
                while True:
                    await self._wait(await self._tick_or_retry())
        except anyio.get_cancelled_exc_class():
            await self.note_clean_exit()
            raise
        finally:
            self._runs.tasks = None
            self._runs.live.clear()

    @property
    def session_prefix(self) -> str:
        """How the names of conversations of jobs begin: who drives them looks after jobs."""
        return f"{self._ground.settings().agents[0]}/job:"

    async def note_start(self) -> None:
        """This process begins to drive: until it ends in good order, it counts as one that crashed.
        Raises StoreError."""
        store = self._ground.store
        now = self._ground.clock.now()
        since = now - 60.0 * self._ground.settings().config.jobs.storm_minutes
        await store.change([Change("job_boot_expire", (since, now))])
        ((self._crashes,),) = await store.query("job_boot_count", (since, now))
        await store.change([Change("job_boot_add", (now,))])
        self._began_at = now

    async def note_clean_exit(self) -> None:
        """This process ends because somebody wants it to: that is no crash, however long the end
        takes."""
        if self._began_at is None or self._has_left:
            return
        self._has_left = True
        with anyio.CancelScope(shield=True):
            try:
                await self._ground.store.change([Change("job_boot_drop", (self._began_at,))])
            except StoreError as error:
                log.warning("The end of this process will count as a crash: %s", error)

    async def note_crash(self) -> None:
        """This process ends because a part of it broke. Raises StoreError."""
        if self._began_at is not None and self._has_left:
            self._has_left = False
            await self._ground.store.change([Change("job_boot_add", (self._began_at,))])

    async def _tick_or_retry(self) -> float:
        try:
            return await self.tick()
        except (StoreUnavailable, OSError) as error:
            log.warning("the clock waits: %s", error)
            self._version = -1  # what it had seen is to be seen again
            return RETRY_S

    async def _wait(self, seconds: float) -> None:
        """Until so long has passed, somebody pokes, or another process has written something. What
        passed while the computer slept counts: its clock on the wall went on."""
        give_up = anyio.current_time() + seconds
        until = self._ground.clock.now() + seconds
        while not self._poke.is_set() and (left := give_up - anyio.current_time()) > 0:
            with anyio.move_on_after(min(left, POLL_S)):
                await self._poke.wait()
            if self._ground.store.version() != self._version or self._ground.clock.now() >= until:
                return

    async def run_to_completion(self, entry: RunEntry) -> None:
        """Run this once, from its beginning to its end, in a process that looks after no other
        jobs. Its conversation must be one that this process drives. Raises StoreUnavailable."""
        try:
            async with anyio.create_task_group() as self._runs.tasks:
                await self._runs.begin(entry)
                while entry.key in self._runs.live:
                    self._poke = anyio.Event()
                    await self._run_checks()
                    await self._runs.overdue.expire()
                    if entry.key in self._runs.live:
                        with anyio.move_on_after(POLL_S):
                            await self._poke.wait()
        finally:
            self._runs.tasks = None
            self._runs.live.clear()

    async def recover(self) -> None:
        """Take over: see whether it crashed too often, and go on with what was cut off."""
        now = self._ground.clock.now()
        self._scan(await anyio.to_thread.run_sync(self._folder.scan_with_builtins))
        if not self._booted:
            self._booted = True
            await self._pause_after_crashes(now)
        self._paused = await self.pause_reason()
        for entry in await self._ledger.open_runs():
            goes_on = entry.run.state == "finishing" or (
                entry.run.state == "running" and entry.job.kind == "prompt"
            )
            if (
                entry.run.state != "waiting"
                and entry.key not in self._runs.live
                and (goes_on or not self._paused)
            ):
                await self._runs.resume(entry)
        await self._runs.remove_finished_jobs([plan.file for plan in self._plans.values()])
        if self._paused:
            log.warning("No job runs: %s. To resume: %s", self._paused, RESUME_COMMAND)
            return
        for plan in self._plans.values():
            if isinstance(plan.schedule, Startup) and plan.plan:
                await self._fire_at_start(plan.job, now)

    async def _pause_after_crashes(self, now: float) -> None:
        """Pause all jobs where this process crashed too often in a short time: one of them may be
        the cause.

        Each process leaves a row, and takes it away when it ends in good order; so what is there is
        what crashed.
        """
        if self._began_at is None:
            await self.note_start()
        config = self._ground.settings().config.jobs
        store = self._ground.store
        crashes = self._crashes
        has_jobs = any(plan.plan and plan.file.written_at for plan in self._plans.values())
        if (
            not config.storm_starts
            or crashes < config.storm_starts
            or not has_jobs
            or await self.pause_reason()
        ):
            return
        why = (
            f"Deskhand crashed {crashes} times within {config.storm_minutes:g} minutes, and a "
            "job may be the cause"
        )
        text = f"All jobs are paused: {why}. See `deskhand jobs`. To resume: `{RESUME_COMMAND}`"
        rows = await self._ground.alerts.alert_owners(f"storm:{self._ledger.holder}", text)
        await store.change([Change("job_pause_set", (why, now)), *rows])

    async def _fire_at_start(self, job: Job, now: float) -> None:
        """Run a job of the schedule `startup`, unless so many of its runs were followed by a start
        at once that it may be what has Deskhand started again and again. Starts that come later
        were asked for by somebody else."""
        config = self._ground.settings().config.jobs
        since = now - 60.0 * config.storm_minutes
        slot = f"startup {self._ledger.holder}"
        ((runs,),) = await self._ground.store.query(
            "job_run_at_start", (job.name, since, now, RESTART_WINDOW_S)
        )
        if not config.storm_starts or runs < config.storm_starts:
            await self._fire(job, slot, now, ())
            return
        said = (
            f"after {runs} of its runs within {config.storm_minutes:g} minutes Deskhand was "
            "started again at once"
        )
        log.warning("The job %r is skipped: %s.", job.name, said)
        skipped = add_run(new_run(job, slot, now), "skipped", now, said)
        await self._ground.store.change([skipped, add_counts(job.name, skips=1)])

    async def pause_reason(self) -> str:
        """Why no job is run; '' where they are."""
        if not self._ground.settings().config.jobs.enabled:
            return "`jobs.enabled` is false in the configuration"
        rows = await self._ground.store.query("job_pause_get", ())
        return str(rows[0][0]) if rows else ""

    async def tick(self) -> float:
        """Do all that is due. Returns for how many seconds nothing is. Raises StoreUnavailable:
        call it again."""
        self._poke, now = anyio.Event(), self._ground.clock.now()
        self.tick_count += 1
        version = (
            self._ground.store.version()
        )  # read once: what is written from here on is seen at the next look
        changed = version != self._version
        self._version = version
        if self._scanned_at is None or not 0 <= now - self._scanned_at < SCAN_INTERVAL_S:
            self._scan(await anyio.to_thread.run_sync(self._folder.scan_with_builtins))
            self._scanned_at = now
            changed = True
            await self._prune(now)
        if changed:
            self._paused, self._states = await self.pause_reason(), await self._ledger.states()
            await self._update_plans(now)
        await self._run_checks()
        await self._runs.overdue.expire()
        waiting = (
            [each for each in await self._ledger.open_runs() if each.run.state == "waiting"]
            if changed
            else []
        )
        if not self._paused:
            waits = set[str]()
            for entry in waiting:
                if self._runs.is_running(entry.job.name):
                    waits.add(entry.job.name)
                else:
                    await self._runs.begin(entry)
            for plan in list(self._plans.values()):
                await self._decide_due(plan, now, plan.job.name in waits)
        return self._seconds_until_next(now)

    async def _prune(self, now: float) -> None:
        if self._tidied_at is None or not 0 <= now - self._tidied_at < PRUNE_INTERVAL_S:
            await self._ledger.prune(now)
            self._tidied_at = now

    def _seconds_until_next(self, now: float) -> float:
        ahead = [at for plan, at in self._next.values() if at is not None and plan]
        if self._paused:
            ahead = []
        scan = SCAN_INTERVAL_S - (now - self._scanned_at) if self._scanned_at is not None else 0.0
        return max(
            0.0,
            min([scan, *self._runs.overdue.seconds_until_expiry(), *(at - now for at in ahead)]),
        )

    async def _run_checks(self) -> None:
        sessions = self._settle
        self._settle = set()
        for session in sessions:
            for live in self._runs.runs_in_session(session):
                await self._runs.check_turn_end(live.entry)
                await self._runs.overdue.alert_needs_approval(live)

    async def _decide_due(self, plan: Planned, now: float, waits: bool) -> None:
        """Decide all times of one job that have come."""
        job = plan.job
        state = self._states.get(plan.job.name)
        if plan.schedule is None or not plan.plan or state is None or state.plan != plan.plan:
            return
        known = self._next.get(job.name)
        if (
            known is not None
            and known[0] == plan.plan
            and (known[1] is None or state.seen_at <= now < known[1])
        ):
            return
        found = find_due(plan.schedule, state.seen_at, now, job.misfire, job.grace_s)
        rows = list(_record_missed(job, found, now))
        if found.seen_at < state.seen_at:
            rows.append(set_plan(job.name, found.seen_at, plan.plan))
        elif found.seen_at > state.seen_at:
            rows.append(set_seen_at(job.name, found.seen_at))
        if len(found.fire) > 1:
            rows += [add_run(new_run(job, format_slot(at), at), "waiting") for at in found.fire]
            self._poke.set()
        if len(found.fire) == 1:
            await self._fire(job, format_slot(found.fire[0]), found.fire[0], rows, waits=waits)
        elif rows:
            await self._ground.store.change(rows)
        self._states[job.name] = replace(state, seen_at=found.seen_at)
        self._next[job.name] = (plan.plan, found.next_at)

    async def _fire(
        self, job: Job, slot: str, at: float, rows: Sequence[Change], *, waits: bool = False
    ) -> None:
        """A time has come."""
        entry = new_run(job, slot, at)
        now = self._ground.clock.now()
        if (
            await self._ledger.get(job.name, slot) is not None
        ):  # it was decided before the clock went back
            await self._ground.store.change(rows)
        elif not self._runs.is_running(job.name) and not waits:
            await self._runs.begin(entry, rows)
        elif job.overlap == "queue_one" and not waits:
            await self._ground.store.change([add_run(entry, "waiting"), *rows])
        else:
            over = add_run(entry, "skipped", now, "the run before it was still going on")
            await self._ground.store.change([over, add_counts(job.name, skips=1), *rows])

    def _scan(self, found: Mapping[str, JobFile]) -> None:
        self._plans, broken = {}, dict[str, str]()
        for name, one in found.items():
            if one.job is None:
                if self._broken.get(name) != one.problem:
                    log.warning("the job %r cannot run as it is written: %s", name, one.problem)
                broken[name] = one.problem
                continue
            schedule = one.job.resolve_schedule(self._folder.zone)
            on = one.job.enabled and schedule is not None
            plan = f"{one.job.schedule} {one.job.timezone or self._folder.zone}" if on else ""
            self._plans[name] = Planned(one, one.job, schedule, plan)
        self._broken = broken
        self._next = {name: each for name, each in self._next.items() if name in self._plans}

    async def _update_plans(self, now: float) -> None:
        """From when on the times of new jobs, and of those whose plan has changed, are looked at.
        One that is gone has no plan: if there is one of its name again, that begins then."""
        rows = []
        for name, known in self._states.items():
            if known.plan and name not in self._plans and name not in self._broken:
                rows.append(set_plan(name, known.seen_at, ""))
                self._states[name] = replace(known, plan="")
        for name, plan in self._plans.items():
            state = self._states.get(name)
            if state is not None and state.plan == plan.plan:
                continue
            at = initial_seen_at(plan.file.written_at or now, now)
            if state is not None and plan.file.written_at <= state.seen_at:
                at = now
            rows.append(set_plan(name, at, plan.plan))
            self._states[name] = replace(
                state or JobRecord(name, at, ""), seen_at=at, plan=plan.plan
            )
            self._next.pop(name, None)
        if rows:
            await self._ground.store.change(rows)


def _record_missed(job: Job, found: Due, now: float) -> Iterable[Change]:
    if found.missed is not None:
        plus = " or more" if found.lost >= MAX_COUNTED else ""
        more = f"; {found.lost - 1}{plus} earlier ones too" if found.lost > 1 else ""
        said = (
            f"it was not run at that time, and `misfire: {job.misfire}` makes up for no more{more}"
        )
        yield add_run(new_run(job, format_slot(found.missed), found.missed), "missed", now, said)
