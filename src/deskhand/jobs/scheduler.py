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
from ..types.jobs import Job, slot_of
from ..types.schedules import Schedule, Startup
from .due import COUNTED, Due, due, first_seen
from .files import Folder, JobFile
from .ledger import JobRecord, RunEntry, RunLedger, added, counted, planned, seen
from .runs import Runs, run_of

log = logging.getLogger(__name__)

SCAN_S = 60.0
"""How often the folder is looked at; what is done through us is seen at once."""
POLL_S = 1.0
BEGIN_S = 0.05
AGAIN_S = 5.0
AT_ONCE_S = 60.0
"""A start so soon after a run of a job may be its doing."""
TIDY_S = 24 * 3600.0
RESUME = "deskhand jobs resume"


class Planned(msgspec.Struct, frozen=True):
    """A job, when it is due, and under which plan that was reckoned ('' for never)."""

    found: JobFile
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
        self.looks = 0
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

    def poke(self) -> None:
        """Something is to be done."""
        self._poke.set()

    def settle(self, session: str) -> None:
        """A run may be over in this conversation."""
        self._settle.add(session)
        self._poke.set()

    def look_again(self) -> None:
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
            while not self._ground.dispatch.driving:  # noqa: ASYNC110 -- it is on its way
                await anyio.sleep(BEGIN_S)
            if not self._ground.dispatch.drives(self.place):
                await anyio.sleep_forever()
            async with anyio.create_task_group() as self._runs.tasks:
                await self.begin()
                while True:
                    await self._rest(await self._careful())
        except anyio.get_cancelled_exc_class():
            await self.leave()
            raise
        finally:
            self._runs.tasks = None
            self._runs.live.clear()

    @property
    def place(self) -> str:
        """How the names of conversations of jobs begin: who drives them looks after jobs."""
        return f"{self._ground.settings().agents[0]}/job:"

    async def note_start(self) -> None:
        """This process begins to drive: until it ends in good order, it counts as one that crashed.
        Raises StoreError."""
        store = self._ground.store
        now = self._ground.clock.now()
        since = now - 60.0 * self._ground.settings().config.jobs.storm_minutes
        await store.change([Change("job_boot_expire", (since, now))])
        ((self._crashes,),) = await store.rows("job_boot_count", (since, now))
        await store.change([Change("job_boot_add", (now,))])
        self._began_at = now

    async def leave(self) -> None:
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

    async def _careful(self) -> float:
        try:
            return await self.tick()
        except (StoreUnavailable, OSError) as error:
            log.warning("the clock waits: %s", error)
            self._version = -1  # what it had seen is to be seen again
            return AGAIN_S

    async def _rest(self, seconds: float) -> None:
        """Until so long has passed, somebody pokes, or another process has written something. What
        passed while the computer slept counts: its clock on the wall went on."""
        give_up = anyio.current_time() + seconds
        until = self._ground.clock.now() + seconds
        while not self._poke.is_set() and (left := give_up - anyio.current_time()) > 0:
            with anyio.move_on_after(min(left, POLL_S)):
                await self._poke.wait()
            if self._ground.store.version() != self._version or self._ground.clock.now() >= until:
                return

    async def carry_out(self, entry: RunEntry) -> None:
        """Run this once, from its beginning to its end, in a process that looks after no other
        jobs. Its conversation must be one that this process drives. Raises StoreUnavailable."""
        try:
            async with anyio.create_task_group() as self._runs.tasks:
                await self._runs.begin(entry)
                while entry.key in self._runs.live:
                    self._poke = anyio.Event()
                    await self._settled()
                    await self._runs.overdue.expire()
                    if entry.key in self._runs.live:
                        with anyio.move_on_after(POLL_S):
                            await self._poke.wait()
        finally:
            self._runs.tasks = None
            self._runs.live.clear()

    async def begin(self) -> None:
        """Take over: see whether it crashed too often, and go on with what was cut off."""
        now = self._ground.clock.now()
        self._scan(await anyio.to_thread.run_sync(self._folder.everything))
        if not self._booted:
            self._booted = True
            await self._count_crashes(now)
        self._paused = await self.why_paused()
        for entry in await self._ledger.open():
            goes_on = entry.run.state == "finishing" or (
                entry.run.state == "running" and entry.job.kind == "prompt"
            )
            if (
                entry.run.state != "waiting"
                and entry.key not in self._runs.live
                and (goes_on or not self._paused)
            ):
                await self._runs.resume(entry)
        await self._runs.drop_done([plan.found for plan in self._plans.values()])
        if self._paused:
            log.warning("No job runs: %s. To resume: %s", self._paused, RESUME)
            return
        for plan in self._plans.values():
            if isinstance(plan.schedule, Startup) and plan.plan:
                await self._fire_at_start(plan.job, now)

    async def _count_crashes(self, now: float) -> None:
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
        has_jobs = any(plan.plan and plan.found.at for plan in self._plans.values())
        if (
            not config.storm_starts
            or crashes < config.storm_starts
            or not has_jobs
            or await self.why_paused()
        ):
            return
        why = (
            f"Deskhand crashed {crashes} times within {config.storm_minutes:g} minutes, and a "
            "job may be the cause"
        )
        text = f"All jobs are paused: {why}. See `deskhand jobs`. To resume: `{RESUME}`"
        rows = await self._ground.alerts.tell(f"storm:{self._ledger.holder}", text)
        await store.change([Change("job_pause_set", (why, now)), *rows])

    async def _fire_at_start(self, job: Job, now: float) -> None:
        """Run a job of the schedule `startup`, unless so many of its runs were followed by a start
        at once that it may be what has Deskhand started again and again. Starts that come later
        were asked for by somebody else."""
        config = self._ground.settings().config.jobs
        since = now - 60.0 * config.storm_minutes
        slot = f"startup {self._ledger.holder}"
        ((runs,),) = await self._ground.store.rows(
            "job_run_at_start", (job.name, since, now, AT_ONCE_S)
        )
        if not config.storm_starts or runs < config.storm_starts:
            await self._fire(job, slot, now, ())
            return
        said = (
            f"after {runs} of its runs within {config.storm_minutes:g} minutes Deskhand was "
            "started again at once"
        )
        log.warning("The job %r is skipped: %s.", job.name, said)
        skipped = added(run_of(job, slot, now), "skipped", now, said)
        await self._ground.store.change([skipped, counted(job.name, skips=1)])

    async def why_paused(self) -> str:
        """Why no job is run; '' where they are."""
        if not self._ground.settings().config.jobs.enabled:
            return "`jobs.enabled` is false in the configuration"
        rows = await self._ground.store.rows("job_pause_get", ())
        return str(rows[0][0]) if rows else ""

    async def tick(self) -> float:
        """Do all that is due. Returns for how many seconds nothing is. Raises StoreUnavailable:
        call it again."""
        self._poke, now = anyio.Event(), self._ground.clock.now()
        self.looks += 1
        version = (
            self._ground.store.version()
        )  # read once: what is written from here on is seen at the next look
        changed = version != self._version
        self._version = version
        if self._scanned_at is None or not 0 <= now - self._scanned_at < SCAN_S:
            self._scan(await anyio.to_thread.run_sync(self._folder.everything))
            self._scanned_at = now
            changed = True
            await self._tidy(now)
        if changed:
            self._paused, self._states = await self.why_paused(), await self._ledger.states()
            await self._plan(now)
        await self._settled()
        await self._runs.overdue.expire()
        waiting = (
            [each for each in await self._ledger.open() if each.run.state == "waiting"]
            if changed
            else []
        )
        if not self._paused:
            waits = set[str]()
            for entry in waiting:
                if self._runs.busy(entry.job.name):
                    waits.add(entry.job.name)
                else:
                    await self._runs.begin(entry)
            for plan in list(self._plans.values()):
                await self._due(plan, now, plan.job.name in waits)
        return self._until_next(now)

    async def _tidy(self, now: float) -> None:
        if self._tidied_at is None or not 0 <= now - self._tidied_at < TIDY_S:
            await self._ledger.tidy(now)
            self._tidied_at = now

    def _until_next(self, now: float) -> float:
        ahead = [at for plan, at in self._next.values() if at is not None and plan]
        if self._paused:
            ahead = []
        scan = SCAN_S - (now - self._scanned_at) if self._scanned_at is not None else 0.0
        return max(0.0, min([scan, *self._runs.overdue.expire_in(), *(at - now for at in ahead)]))

    async def _settled(self) -> None:
        sessions = self._settle
        self._settle = set()
        for session in sessions:
            for live in self._runs.session_of(session):
                await self._runs.settle(live.entry)
                await self._runs.overdue.ask_for_yes(live)

    async def _due(self, plan: Planned, now: float, waits: bool) -> None:
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
        found = due(plan.schedule, state.seen_at, now, job.misfire, job.grace_s)
        rows = list(_missed(job, found, now))
        if found.seen_at < state.seen_at:
            rows.append(planned(job.name, found.seen_at, plan.plan))
        elif found.seen_at > state.seen_at:
            rows.append(seen(job.name, found.seen_at))
        if len(found.fire) > 1:
            rows += [added(run_of(job, slot_of(at), at), "waiting") for at in found.fire]
            self._poke.set()
        if len(found.fire) == 1:
            await self._fire(job, slot_of(found.fire[0]), found.fire[0], rows, waits=waits)
        elif rows:
            await self._ground.store.change(rows)
        self._states[job.name] = replace(state, seen_at=found.seen_at)
        self._next[job.name] = (plan.plan, found.next_at)

    async def _fire(
        self, job: Job, slot: str, at: float, rows: Sequence[Change], *, waits: bool = False
    ) -> None:
        """A time has come."""
        entry = run_of(job, slot, at)
        now = self._ground.clock.now()
        if (
            await self._ledger.get(job.name, slot) is not None
        ):  # it was decided before the clock went back
            await self._ground.store.change(rows)
        elif not self._runs.busy(job.name) and not waits:
            await self._runs.begin(entry, rows)
        elif job.overlap == "queue_one" and not waits:
            await self._ground.store.change([added(entry, "waiting"), *rows])
        else:
            over = added(entry, "skipped", now, "the run before it was still going on")
            await self._ground.store.change([over, counted(job.name, skips=1), *rows])

    def _scan(self, found: Mapping[str, JobFile]) -> None:
        self._plans, broken = {}, dict[str, str]()
        for name, one in found.items():
            if one.job is None:
                if self._broken.get(name) != one.problem:
                    log.warning("the job %r cannot run as it is written: %s", name, one.problem)
                broken[name] = one.problem
                continue
            schedule = one.job.when(self._folder.zone)
            on = one.job.enabled and schedule is not None
            plan = f"{one.job.schedule} {one.job.timezone or self._folder.zone}" if on else ""
            self._plans[name] = Planned(one, one.job, schedule, plan)
        self._broken = broken
        self._next = {name: each for name, each in self._next.items() if name in self._plans}

    async def _plan(self, now: float) -> None:
        """From when on the times of new jobs, and of those whose plan has changed, are looked at.
        One that is gone has no plan: if there is one of its name again, that begins then."""
        rows = []
        for name, known in self._states.items():
            if known.plan and name not in self._plans and name not in self._broken:
                rows.append(planned(name, known.seen_at, ""))
                self._states[name] = replace(known, plan="")
        for name, plan in self._plans.items():
            state = self._states.get(name)
            if state is not None and state.plan == plan.plan:
                continue
            at = first_seen(plan.found.at or now, now)
            if state is not None and plan.found.at <= state.seen_at:
                at = now
            rows.append(planned(name, at, plan.plan))
            self._states[name] = replace(
                state or JobRecord(name, at, ""), seen_at=at, plan=plan.plan
            )
            self._next.pop(name, None)
        if rows:
            await self._ground.store.change(rows)


def _missed(job: Job, found: Due, now: float) -> Iterable[Change]:
    if found.missed is not None:
        plus = " or more" if found.lost >= COUNTED else ""
        more = f"; {found.lost - 1}{plus} earlier ones too" if found.lost > 1 else ""
        said = (
            f"it was not run at that time, and `misfire: {job.misfire}` makes up for no more{more}"
        )
        yield added(run_of(job, slot_of(found.missed), found.missed), "missed", now, said)
