"""The clock: what is due becomes a message to an agent, once, whatever dies in between.

JOB.md files say what a job is. The rows of `jobs.sql` say what was due and what became of it; a time is decided once,
by a row of its name that is written in the transaction that also hands the message in.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..agent.profile import Agent
from ..policy.roles import may_talk
from ..types.commit import Change
from ..types.errors import ConfigError, JobInvalid, StoreUnavailable
from ..types.events import ApprovalAsked, Recorded, TurnEnded
from ..types.identity import Principal
from ..types.jobs import Job, JobView, Run, RunState, checked, job_of_session, named, slot_of
from ..types.messages import Text
from ..types.people import OWNER_NAME
from ..types.schedules import Schedule, Startup, due_within, next_after
from .hands import Ground
from .jobs_alerts import told
from .jobs_due import Due, due, first_seen
from .jobs_folder import Folder, Found, no_such
from .jobs_ledger import KEPT_S, Entry, Ledger, State, added, as_result, counted, planned, seen
from .jobs_runs import Chore, Port, Runs, run_of
from .waking import Waker

log = logging.getLogger(__name__)

SCAN_S = 60.0
"""How often the folder is looked at; what is done through us is seen at once."""
POLL_S, BEGIN_S, AGAIN_S = 1.0, 0.05, 5.0
WEEK_S = 7 * 86_400.0
FORECAST_MOST = 20_000
RESUME = "deskhand job resume"


class Planned(msgspec.Struct, frozen=True):
    """A job, when it is due, and under which plan that was reckoned ('' for never)."""

    found: Found
    job: Job
    schedule: Schedule | None
    plan: str


class Forecast(msgspec.Struct, frozen=True):
    """How often it comes in the next seven days, and the most tokens that one run may use (None: what a turn may)."""

    runs_in_a_week: int
    tokens_per_run: int | None


class Jobs:
    """All jobs of this home. Whoever drives calls `run`; everything else may be asked of any process."""

    def __init__(self, ground: Ground, waker: Waker) -> None:
        self._ground = ground
        self._ledger = Ledger(ground.store, ground.ids.new("boot"))
        self._folder = Folder(ground.settings().home.root / "jobs", ground.settings().config.timezone)
        self.chores: dict[str, Chore] = {}
        self.builtins: list[Callable[[], Iterable[Job]]] = []
        port = Port(ground, waker, self._ledger, self._folder.of, self._who, self._chore, self._over)
        self.runs_now = Runs(port)
        self.looks = 0
        self._plans: dict[str, Planned] = {}
        self._states: dict[str, State] = {}
        self._next: dict[str, tuple[str, float | None]] = {}
        self._poke, self._settle = anyio.Event(), set[str]()
        self._scanned_at: float | None = None
        self._version, self._paused, self._booted = -1, "", False

    # ------------------------------------------------------------------ for everybody

    def files(self) -> Mapping[str, Found]:
        """What the folder holds now. Blocks for a moment."""
        return self._folder.scan()

    async def all(self) -> list[JobView]:
        """Every job with what is known of it, also those that are broken, and those without a file."""
        found = await anyio.to_thread.run_sync(self._everything)
        states, last, now = await self._ledger.states(), await self._ledger.last(), self._ground.clock.now()
        paused = await self._why_paused()
        return [self._view(one, states, last, (paused, now)) for one in found.values()]

    def _view(
        self, one: Found, states: Mapping[str, State], last: Mapping[str, Run], here: tuple[str, float]
    ) -> JobView:
        (paused, now), name, state = here, one.name, states.get(one.name)
        schedule = one.job.when(self._folder.zone) if one.job is not None and one.job.enabled else None
        problem = one.problem or (self._agent_problem(one.job) if one.job is not None else "")
        next_at = next_after(schedule, max(now, state.seen_at if state else 0.0)) if schedule is not None else None
        view = JobView(name, one.job, problem, one.notes, paused, next_at=next_at, last=last.get(name))
        counters = state.counters if state is not None else view.counters
        builtin = name not in self._folder.scan()
        return replace(view, last_result=as_result(last, name), counters=counters, builtin=builtin)

    async def get(self, name: str) -> JobView:
        """One of them. Raises JobInvalid where there is none."""
        view = next((each for each in await self.all() if each.name == name), None)
        if view is None:
            raise no_such(name)
        return view

    async def put(self, job: Job, by: Principal) -> Path:
        """Write its file; it holds from the next look on, which is at once where this process drives. Raises JobInvalid
        with what is wrong, OSError."""
        if wrong := self._agent_problem(checked(job, self._folder.zone)):
            raise JobInvalid(wrong)
        schedule = job.when(self._folder.zone)
        if schedule is not None and next_after(schedule, self._ground.clock.now()) is None and schedule != Startup():
            raise JobInvalid(f"{job.schedule!r} is in the past; choose a time that is still to come")
        path = await anyio.to_thread.run_sync(self._folder.put, job)
        log.info("the job %r was written by %s", job.name, by.id)
        self.look_again()
        return path

    async def remove(self, name: str, by: Principal) -> None:
        """Remove it, with its folder. What it did stays in the log. Raises JobInvalid, OSError."""
        await anyio.to_thread.run_sync(self._folder.remove, name)
        log.info("the job %r was removed by %s", name, by.id)
        drop = Change("job_run_drop", (self._ground.clock.now(), "the job was removed", name))
        await self._ground.store.change([drop, Change("job_state_forget", (name,))])
        self.look_again()

    async def enable(self, name: str, enabled: bool, by: Principal) -> None:
        """Switch it on or off. Raises JobInvalid, OSError."""
        await anyio.to_thread.run_sync(self._folder.enable, name, enabled)
        log.info("the job %r was switched %s by %s", name, "on" if enabled else "off", by.id)
        self.look_again()

    async def run_now(self, name: str, by: Principal) -> str:
        """Run it once, now, or behind the run that goes on. Returns the slot. Raises JobInvalid."""
        job = await self._usable(name)
        slot = f"{self._ground.ids.new('run')} by {by.id}"
        await self._ground.store.change([added(run_of(job, slot, self._ground.clock.now()), "waiting")])
        self._poke.set()
        return slot

    async def trigger(self, name: str, slot: str, payload: Text) -> bool:
        """An event starts it: once for each `slot`, which names the event for ever. False where that was here before,
        or another run goes on and none may wait. Raises JobInvalid."""
        job, now = await self._usable(name), self._ground.clock.now()
        if not job.enabled or await self._ledger.get(name, slot) is not None:
            return False
        entry = replace(run_of(job, slot, now), payload=payload)
        if await self._is_full(job):
            said = "the run before it was still going on"
            await self._ground.store.change([added(entry, "skipped", now, said), counted(name, skips=1)])
            return False
        wrote = await self._ground.store.change([added(entry, "waiting")])
        self._poke.set()
        return bool(wrote[0])

    async def runs(self, name: str, limit: int = 20) -> list[Run]:
        """What it did, the latest first."""
        return await self._ledger.runs(named(name), limit)

    def forecast(self, job: Job) -> Forecast:
        """What it will come to. Raises JobInvalid."""
        schedule, now = job.when(self._folder.zone), self._ground.clock.now()
        times = 0
        for times, _ in enumerate(due_within(schedule, now, now + WEEK_S) if schedule is not None else (), 1):
            if times >= FORECAST_MOST:
                break
        return Forecast(times, job.tokens)

    async def pause(self, why: str) -> None:
        """Run no job any more, until `resume`. What goes on is not stopped."""
        await self._ground.store.change([Change("job_pause_set", (why, self._ground.clock.now()))])
        self._poke.set()

    async def resume(self) -> str:
        """Let them go on. Returns why they were paused, '' where they were not."""
        why = await self._why_paused()
        forget = Change("job_boot_expire", (self._ground.clock.now(), 0.0))
        await self._ground.store.change([Change("job_pause_drop", ()), forget])
        self._poke.set()
        return why

    async def _usable(self, name: str) -> Job:
        view = await self.get(name)
        if view.job is None or view.problem:
            raise JobInvalid(f"the job {name!r} cannot run as it is written: {view.problem}")
        return view.job

    async def _is_full(self, job: Job) -> bool:
        """Whether another run goes on, and one more may not wait."""
        entries = [each for each in await self._ledger.open() if each.run.job == job.name]
        waiting = sum(each.run.state == "waiting" for each in entries)
        return bool(entries) and (job.overlap == "skip" or waiting > 0)

    # ------------------------------------------------------------------ what a run may do

    def driving(self, session: str, agent: Agent) -> Agent:
        """The agent as it is in this conversation: in one that a job has for itself, as the job says."""
        if not job_of_session(session):
            return agent
        rows = self._ground.store.look("job_run_of", (session,))
        if not rows:
            return agent
        job = msgspec.json.decode(rows[0][0], type=Job)
        limits = agent.limits
        if job.models and agent.fit is not None:
            limits = agent.fit(job.models[0])
        limits = replace(limits, steps=job.steps or limits.steps, tokens=job.tokens or limits.tokens)
        tools = agent.tools
        if job.tools is not None:
            tools = {name: tool for name, tool in tools.items() if _listed(name, job.tools)}
        return replace(agent, models=job.models or agent.models, limits=limits, tools=tools)

    def see(self, recorded: Recorded) -> None:
        """An event passes: it may be the end of a run."""
        if isinstance(recorded.event, TurnEnded | ApprovalAsked) and self.runs_now.session_of(recorded.session):
            self._settle.add(recorded.session)
            self._poke.set()

    async def _who(self, job: Job) -> Principal:
        """In whose name it acts, with the roles that they have now. Raises JobInvalid."""
        person = job.person or OWNER_NAME
        rows = await self._ground.store.rows("job_person", (person,))
        if not rows:
            raise JobInvalid(f"`for: {person}` names nobody who is known here; see `deskhand users list`")
        roles = tuple(role for (role,) in rows if role)
        custom = {name: role.agents for name, role in self._ground.settings().config.roles.items()}
        agent = job.agent or self._ground.settings().agents[0]
        if wrong := self._agent_problem(job):
            raise JobInvalid(wrong)
        if not may_talk(Principal(person, roles), agent, custom):
            raise JobInvalid(f"{person} may not talk to the agent {agent!r}; choose another in `agent:` or `for:`")
        return Principal(f"job:{job.name}", roles, "clock", person)

    def _agent_problem(self, job: Job) -> str:
        agents = self._ground.settings().agents
        if job.agent and job.agent not in agents:
            return f"there is no agent {job.agent!r}; there are: {', '.join(agents)}"
        if "/" in job.session and job.session.partition("/")[0] != (job.agent or agents[0]):
            return f"the session {job.session!r} belongs to another agent; name it {job.agent or agents[0]}/…"
        return ""

    def _chore(self, name: str) -> Chore | None:
        return self.chores.get(name)

    async def _over(self, entry: Entry, state: RunState) -> None:
        """A run is over: the next one may begin."""
        if entry.job.delete_after_run:
            try:
                await anyio.to_thread.run_sync(partial(self._folder.remove, entry.job.name, scripts=False))
            except (ConfigError, OSError) as error:
                log.warning("the job %r stays, though it is done: %s", entry.job.name, error)
            self._scanned_at = None
        self._poke.set()

    # ------------------------------------------------------------------ the clock

    async def run(self) -> None:
        """For ever. Only for who drives; where that sees to no jobs, it rests."""
        while not self._ground.dispatch.driving:  # noqa: ASYNC110 -- it is on its way
            await anyio.sleep(BEGIN_S)
        if not self._ground.dispatch.drives(f"{self._ground.settings().agents[0]}/job:"):
            await anyio.sleep_forever()
        try:
            async with anyio.create_task_group() as self.runs_now.tasks:
                await self.begin()
                while True:
                    await self._rest(await self._careful())
        finally:
            self.runs_now.tasks = None
            self.runs_now.live.clear()

    async def _careful(self) -> float:
        try:
            return await self.tick()
        except (StoreUnavailable, OSError) as error:
            log.warning("the clock waits: %s", error)
            return AGAIN_S

    async def _rest(self, seconds: float) -> None:
        """Until so long has passed, somebody pokes, or another process has written something."""
        give_up = anyio.current_time() + seconds
        while not self._poke.is_set() and (left := give_up - anyio.current_time()) > 0:
            with anyio.move_on_after(min(left, POLL_S)):
                await self._poke.wait()
            if self._ground.store.version() != self._version:
                return

    async def begin(self) -> None:
        """Take over: see whether we are in a storm of starts, and go on with what was cut off."""
        store, now = self._ground.store, self._ground.clock.now()
        self._scan(now, await anyio.to_thread.run_sync(self._everything))
        if not self._booted:
            self._booted = True
            await self._count_start(now)
        self._paused = await self._why_paused()
        for entry in await self._ledger.open():
            goes_on = entry.run.state == "finishing" or (entry.run.state == "running" and entry.job.kind == "prompt")
            if entry.run.state != "waiting" and entry.key not in self.runs_now.live and (goes_on or not self._paused):
                await self.runs_now.resume(entry)
        await store.change([Change("job_run_expire", (now - KEPT_S,))])
        if self._paused:
            return
        for plan in self._plans.values():
            if isinstance(plan.schedule, Startup) and plan.plan:
                await self._fire(plan.job, f"startup {self._ledger.holder}", now, ())

    async def _count_start(self, now: float) -> None:
        config, store = self._ground.settings().config.jobs, self._ground.store
        window_s = 60.0 * config.storm_minutes
        await store.change([Change("job_boot_expire", (now - window_s, now)), Change("job_boot_add", (now,))])
        (starts,) = (await store.rows("job_boot_count", (now - window_s, now)))[0]
        own = [plan for plan in self._plans.values() if plan.plan and plan.found.at]
        if not config.storm_starts or starts < config.storm_starts or not own or await self._why_paused():
            return
        why = f"Deskhand was started {starts} times within {config.storm_minutes:g} minutes, and a job may be the cause"
        text = f"No job runs any more: {why}. Look at `deskhand job list`; `{RESUME}` lets them go on."
        rows = await told(store, f"storm:{self._ledger.holder}", text, now)
        await store.change([Change("job_pause_set", (why, now)), *rows])

    async def _why_paused(self) -> str:
        if not self._ground.settings().config.jobs.enabled:
            return "`jobs.enabled` is false in the configuration"
        rows = await self._ground.store.rows("job_pause_get", ())
        return str(rows[0][0]) if rows else ""

    async def tick(self) -> float:
        """Do all that is due. Returns for how many seconds nothing is. Raises StoreUnavailable: call it again."""
        self._poke, now = anyio.Event(), self._ground.clock.now()
        self.looks += 1
        changed, self._version = self._ground.store.version() != self._version, self._ground.store.version()
        if self._scanned_at is None or not 0 <= now - self._scanned_at < SCAN_S:
            self._scan(now, await anyio.to_thread.run_sync(self._everything))
            self._scanned_at, changed = now, True
        if changed:
            self._paused, self._states = await self._why_paused(), await self._ledger.states()
            await self._plan(now)
        await self._settled()
        await self.runs_now.expire()
        waiting = [each for each in await self._ledger.open() if each.run.state == "waiting"] if changed else []
        if not self._paused:
            for entry in waiting:
                if not self.runs_now.busy(entry.job.name):
                    await self.runs_now.begin(entry)
            for plan in list(self._plans.values()):
                await self._due(plan, now, any(each.job.name == plan.job.name for each in waiting))
        return self._until_next(now)

    def _until_next(self, now: float) -> float:
        ahead = [at for plan, at in self._next.values() if at is not None and plan]
        if self._paused:
            ahead = []
        mono = self._ground.clock.monotonic()
        leases = [live.until - mono for live in self.runs_now.live.values()]
        scan = SCAN_S - (now - self._scanned_at) if self._scanned_at is not None else 0.0
        return max(0.0, min([scan, *leases, *(at - now for at in ahead)]))

    async def _settled(self) -> None:
        sessions, self._settle = self._settle, set()
        for session in sessions:
            for live in self.runs_now.session_of(session):
                await self.runs_now.settle(live.entry)

    async def _due(self, plan: Planned, now: float, waits: bool) -> None:
        """Decide all times of one job that have come."""
        job, state = plan.job, self._states.get(plan.job.name)
        if plan.schedule is None or not plan.plan or state is None or state.plan != plan.plan:
            return
        known = self._next.get(job.name)
        if known is not None and known[0] == plan.plan and (known[1] is None or state.seen_at <= now < known[1]):
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

    async def _fire(self, job: Job, slot: str, at: float, rows: Sequence[Change], *, waits: bool = False) -> None:
        """A time has come."""
        entry, now = run_of(job, slot, at), self._ground.clock.now()
        if await self._ledger.get(job.name, slot) is not None:  # it was decided before the clock went back
            await self._ground.store.change(rows)
        elif not self.runs_now.busy(job.name) and not waits:
            await self.runs_now.begin(entry, rows)
        elif job.overlap == "queue_one" and not waits:
            await self._ground.store.change([added(entry, "waiting"), *rows])
        else:
            over = added(entry, "skipped", now, "the run before it was still going on")
            await self._ground.store.change([over, counted(job.name, skips=1), *rows])

    # ------------------------------------------------------------------ what there is

    def _everything(self) -> dict[str, Found]:
        """Those with a file, and our own; a file of that name takes the place of ours."""
        self._folder.zone = self._ground.settings().config.timezone
        own = {job.name: Found(job.name, job) for builtin in self.builtins for job in builtin()}
        return own | self._folder.scan()

    def _scan(self, now: float, found: Mapping[str, Found]) -> None:
        before, self._plans = self._plans, {}
        for name, one in found.items():
            if one.job is None:
                if name not in before or before[name].found != one:
                    log.warning("the job %r cannot run as it is written: %s", name, one.problem)
                continue
            schedule = one.job.when(self._folder.zone)
            on = one.job.enabled and schedule is not None
            plan = f"{one.job.schedule} {one.job.timezone or self._folder.zone}" if on else ""
            self._plans[name] = Planned(one, one.job, schedule, plan)
        self._next = {name: each for name, each in self._next.items() if name in self._plans}

    async def _plan(self, now: float) -> None:
        """From when on the times of new jobs, and of those whose plan has changed, are looked at."""
        rows = []
        for name, plan in self._plans.items():
            state = self._states.get(name)
            if state is not None and state.plan == plan.plan:
                continue
            at = first_seen(plan.found.at or now, now)
            if state is not None and plan.found.at <= state.seen_at:
                at = now
            rows.append(planned(name, at, plan.plan))
            self._states[name] = replace(state or State(name, at, ""), seen_at=at, plan=plan.plan)
            self._next.pop(name, None)
        if rows:
            await self._ground.store.change(rows)

    def look_again(self) -> None:
        """Look at the folder now."""
        self._scanned_at = None
        self._poke.set()


def _missed(job: Job, found: Due, now: float) -> Iterable[Change]:
    if found.missed is not None:
        more = f"; {found.lost - 1} earlier ones too" if found.lost > 1 else ""
        said = f"it was not run at that time, and `misfire: {job.misfire}` makes up for no more{more}"
        yield added(run_of(job, slot_of(found.missed), found.missed), "missed", now, said)


def _listed(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, each) for each in patterns)
