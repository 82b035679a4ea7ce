"""The clock: what is due becomes a message to an agent, once, whatever dies in between.

JOB.md files say what a job is. The rows of `jobs.sql` say what was due and what became of it; a
time is decided once, by a row of its name that is written in the transaction that also hands the
message in.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
from msgspec.structs import replace

from ..agent.profile import Agent
from ..assembly.host import Host
from ..gateway.inject import InboundInjector
from ..gateway.name_labels import label_of_person
from ..policy.roles import may_talk
from ..supervision.lock import read_holder
from ..tools.deferred import narrowed
from ..types.commit import Change
from ..types.errors import ConfigError, JobInvalid
from ..types.events import ApprovalAsked, MessageReceived, Recorded, TurnEnded
from ..types.health import HealthFact
from ..types.identity import Principal
from ..types.jobs import (
    JOB_FILE_NAME,
    Job,
    JobView,
    Run,
    RunState,
    session_job_name,
    validate_job,
    validate_job_name,
)
from ..types.labels import LOCAL, Label
from ..types.messages import Text
from ..types.people import OWNER_NAME
from ..types.schedules import Startup, due_within, next_due_after
from .files import Folder, JobFile, no_such_job
from .job_file import parse_job
from .ledger import JobRecord, RunEntry, RunLedger, add_counts, add_run, last_result
from .port import Chore, Port
from .runs import Runs, new_run
from .scheduler import RESUME_COMMAND, JobClock
from .target import is_receipt, session_of

log = logging.getLogger(__name__)

WEEK_S = 7 * 86_400.0
MAX_FORECAST_RUNS = 20_000


class Forecast(msgspec.Struct, frozen=True):
    """How often it comes in the next seven days, and the most tokens that one run may use (None:
    what a turn may)."""

    runs_in_a_week: int
    tokens_per_run: int | None


class Jobs:
    """All jobs of this home. Whoever drives calls `run`; everything else may be asked of any
    process."""

    def __init__(self, ground: Host, waker: InboundInjector) -> None:
        self._ground = ground
        self._ledger = RunLedger(ground.store, ground.ids.new("boot"))
        self.builtins: list[Callable[[], Iterable[Job]]] = []
        zone = lambda: ground.settings().config.timezone  # noqa: E731 -- beside its neighbours
        self._folder = Folder(ground.settings().home.root / "jobs", zone, self.builtins)
        self.chores: dict[str, Chore] = {}
        port = Port(
            ground,
            waker,
            self._ledger,
            self._folder.job_folder,
            self._principal_for,
            self._find_chore,
            self._on_run_end,
        )
        self.runner = Runs(port)
        self.scheduler = JobClock(ground, self._ledger, self._folder, self.runner)
        self.run = self.scheduler.run
        self._setting_off = anyio.Lock()

    # ------------------------------------------------------------------ for everybody

    def files(self) -> Mapping[str, JobFile]:
        """What the folder holds now. Blocks for a moment."""
        return self._folder.scan()

    async def all(self) -> list[JobView]:
        """Every job with what is known of it, also those that are broken, and those without a
        file."""
        found = await anyio.to_thread.run_sync(self._folder.scan_with_builtins)
        states = await self._ledger.states()
        last = await self._ledger.last_runs()
        now = self._ground.clock.now()
        paused = await self.scheduler.pause_reason()
        views = [self._view(one, states, last, (paused, now)) for one in found.values()]
        said = await self._ledger.result_labels()
        people = dict[str, Label]()
        for job in filter(None, (view.job for view in views)):
            if job.person not in people:
                people[job.person] = await label_of_person(self._ground.store, job.person)
        return [
            replace(
                view,
                label=people[view.job.person]
                if view.job is not None
                else Label(source=f"the job {view.name}"),
                said=said.get(view.name, LOCAL),
            )
            for view in views
        ]

    def _view(
        self,
        one: JobFile,
        states: Mapping[str, JobRecord],
        last: Mapping[str, Run],
        here: tuple[str, float],
    ) -> JobView:
        (paused, now), name, state = here, one.name, states.get(one.name)
        schedule = (
            one.job.resolve_schedule(self._folder.zone)
            if one.job is not None and one.job.enabled
            else None
        )
        problem = one.problem or (self._agent_problem(one.job) if one.job is not None else "")
        next_at = (
            next_due_after(schedule, max(now, state.seen_at if state else 0.0))
            if schedule is not None
            else None
        )
        view = JobView(
            name, one.job, problem, one.notes, paused, next_at=next_at, last=last.get(name)
        )
        counters = state.counters if state is not None else view.counters
        return replace(
            view, last_result=last_result(last, name), counters=counters, builtin=one.builtin
        )

    async def get(self, name: str) -> JobView:
        """One of them. Raises JobInvalid where there is none."""
        view = next((each for each in await self.all() if each.name == name), None)
        if view is None:
            raise no_such_job(name)
        return view

    async def save(self, job: Job, by: Principal) -> Path:
        """Write its file; it holds from the next look on, which is at once where this process
        drives. Raises JobInvalid with what is wrong, OSError."""
        if wrong := self._agent_problem(validate_job(job, self._folder.zone)):
            raise JobInvalid(wrong)
        schedule = job.resolve_schedule(self._folder.zone)
        if (
            schedule is not None
            and next_due_after(schedule, self._ground.clock.now()) is None
            and schedule != Startup()
        ):
            raise JobInvalid(
                f"{job.schedule!r} is in the past; choose a time that is still to come"
            )
        path = await anyio.to_thread.run_sync(self._folder.write, job)
        log.info("the job %r was written by %s", job.name, by.id)
        self.scheduler.rescan()
        return path

    async def remove(self, name: str, by: Principal) -> None:
        """Remove it, with its folder. What it did stays in the log. Raises JobInvalid, OSError."""
        await anyio.to_thread.run_sync(self._folder.remove, name)
        log.info("the job %r was removed by %s", name, by.id)
        await self._forget_state(name)
        self.scheduler.rescan()

    async def _forget_state(self, name: str) -> None:
        """It is gone: what waits of it is not run, and one of its name would begin anew."""
        drop = Change("job_run_drop", (self._ground.clock.now(), "the job was removed", name))
        await self._ground.store.change([drop, Change("job_state_forget", (name,))])

    async def preview_undo(self, name: str, *, again: bool = False) -> tuple[str, Job | None]:
        """What an undo would bring back of this job ('' is the one that was changed last), with
        `again` a redo: its name, and None where it would be gone. Raises JobInvalid."""
        kept = self._folder.history
        name = name or await anyio.to_thread.run_sync(kept.last_changed_job)
        text = await anyio.to_thread.run_sync(kept.read_next, name, "again" if again else "back")
        if text is None:
            return name, None
        try:
            return name, parse_job(text, name, self._folder.zone).job
        except ConfigError:  # as it was broken, it is an owner's to mend
            return name, Job(name, person=OWNER_NAME)

    async def undo(self, name: str, by: Principal, *, again: bool = False) -> None:
        """Put back what its file was before it was changed or removed last. Raises JobInvalid,
        OSError."""
        await anyio.to_thread.run_sync(
            self._folder.history.restore, name, "again" if again else "back"
        )
        log.info(
            "the last change of the job %r was %s by %s",
            name,
            "made again" if again else "undone",
            by.id,
        )
        if not await anyio.to_thread.run_sync(
            (self._folder.job_folder(name) / JOB_FILE_NAME).exists
        ):
            await self._forget_state(name)
        self.scheduler.rescan()

    async def set_enabled(self, name: str, enabled: bool, by: Principal) -> None:
        """Switch it on or off. Raises JobInvalid, OSError."""
        await anyio.to_thread.run_sync(self._folder.set_enabled, name, enabled)
        log.info("the job %r was switched %s by %s", name, "on" if enabled else "off", by.id)
        self.scheduler.rescan()

    async def run_now(self, name: str, by: Principal) -> str:
        """Run it once, now, or behind the run that goes on; one may wait. Returns the slot. Raises
        JobInvalid."""
        job = await self._get_runnable(name)
        await self._check_not_paused()
        if any(
            each.run.job == name and each.run.state == "waiting"
            for each in await self._ledger.open_runs()
        ):
            raise JobInvalid(f"{name!r} waits to be run already; see `deskhand jobs runs {name}`")
        slot = f"{self._ground.ids.new('run')} by {by.id}"
        await self._ground.store.change(
            [add_run(new_run(job, slot, self._ground.clock.now()), "waiting")]
        )
        self.scheduler.wake()
        return slot

    async def prepare_run(self, name: str, by: Principal) -> RunEntry:
        """A run of this job for `carry_out`. Whoever starts it sees how it ends, so nobody is
        alerted. Raises JobInvalid."""
        job = replace(await self._get_runnable(name), alert=False)
        await self._check_not_paused()
        entry = new_run(job, f"{self._ground.ids.new('run')} by {by.id}", self._ground.clock.now())
        return replace(entry, run=replace(entry.run, session=session_of(self._ground, entry)))

    async def run_to_completion(self, entry: RunEntry) -> Run:
        """Run it here and now, from its beginning to its end; only for a process that drives, and
        looks after no other jobs. Returns how it ended. Raises StoreUnavailable."""
        if entry.run.session:
            self._ground.dispatch.adopt(entry.run.session)
        await self.scheduler.run_to_completion(entry)
        done = await self._ledger.get(entry.job.name, entry.run.slot)
        return done.run if done is not None else entry.run

    async def _check_not_paused(self) -> None:
        if why := await self.scheduler.pause_reason():
            hint = (
                f"; `{RESUME_COMMAND}` lets them go on"
                if self._ground.settings().config.jobs.enabled
                else ""
            )
            raise JobInvalid(f"no job runs now: {why}{hint}")

    async def trigger(self, name: str, slot: str, payload: Text) -> bool:
        """An event starts it: once for each `slot`, which names the event for ever. False where
        that was here before, or another run goes on and none may wait. Raises JobInvalid."""
        async with self._setting_off:
            return await self._trigger_locked(await self._get_runnable(name), slot, payload)

    async def _trigger_locked(self, job: Job, slot: str, payload: Text) -> bool:
        name = job.name
        now = self._ground.clock.now()
        if not job.enabled or await self._ledger.get(name, slot) is not None:
            return False
        entry = replace(new_run(job, slot, now), payload=payload)
        if await self._is_full(job):
            said = "the run before it was still going on"
            await self._ground.store.change(
                [add_run(entry, "skipped", now, said), add_counts(name, skips=1)]
            )
            return False
        if why := await self._ground.rounds.begin_round(f"the job {name}"):
            await self._ground.store.change(
                [add_run(entry, "skipped", now, why), add_counts(name, skips=1)]
            )
            return False
        wrote = await self._ground.store.change([add_run(entry, "waiting")])
        self.scheduler.wake()
        return bool(wrote[0])

    async def runs(self, name: str, limit: int = 20) -> list[Run]:
        """What it did, the latest first."""
        return await self._ledger.runs(validate_job_name(name), limit)

    def forecast(self, job: Job) -> Forecast:
        """What it will come to. Raises JobInvalid."""
        schedule = job.resolve_schedule(self._folder.zone)
        now = self._ground.clock.now()
        times = 0
        for times, _ in enumerate(
            due_within(schedule, now, now + WEEK_S) if schedule is not None else (), 1
        ):
            if times >= MAX_FORECAST_RUNS:
                break
        return Forecast(times, job.tokens)

    async def pause(self, why: str) -> None:
        """Run no job any more, until `resume`. What goes on is not stopped."""
        log.warning("All jobs are paused: %s. To resume: %s", why, RESUME_COMMAND)
        await self._ground.store.change([Change("job_pause_set", (why, self._ground.clock.now()))])
        self.scheduler.wake()

    async def resume(self) -> str:
        """Let them go on. Returns why they were paused, '' where they were not. The crashes before
        do not count any more; should the process that runs now crash, that does."""
        why = await self.scheduler.pause_reason()
        runs_now = read_holder(self._ground.settings().home.lock) is not None
        forget = Change("job_boot_forget", (int(runs_now),))
        await self._ground.store.change([Change("job_pause_drop", ()), forget])
        if why:
            log.info("jobs run again; they were paused: %s", why)
        self.scheduler.wake()
        return why

    async def pause_status(self) -> tuple[str, bool]:
        """Why no job runs now ('' where they run), and whether `resume` would change that."""
        why = await self.scheduler.pause_reason()
        return why, bool(why) and self._ground.settings().config.jobs.enabled

    async def health_facts(self) -> list[HealthFact]:
        """What the health says of jobs, where they do not run."""
        if not self._ground.settings().config.jobs.enabled:
            return [HealthFact("jobs", "ok", "switched off (jobs.enabled)")]
        why = await self.scheduler.pause_reason()
        return (
            [
                HealthFact(
                    "jobs", "degraded", f"paused: {why}", last_error=f"To resume: {RESUME_COMMAND}"
                )
            ]
            if why
            else []
        )

    async def _get_runnable(self, name: str) -> Job:
        view = await self.get(name)
        if view.job is None or view.problem:
            raise JobInvalid(f"the job {name!r} cannot run as it is written: {view.problem}")
        return view.job

    async def _is_full(self, job: Job) -> bool:
        """Whether another run goes on, and one more may not wait."""
        entries = [each for each in await self._ledger.open_runs() if each.run.job == job.name]
        waiting = sum(each.run.state == "waiting" for each in entries)
        return bool(entries) and (job.overlap == "skip" or waiting > 0)

    # ------------------------------------------------------------------ what a run may do

    def apply_job_settings(self, session: str, agent: Agent) -> Agent:
        """The agent as it is in this conversation: in one that a job has for itself, as the job
        says."""
        if not session_job_name(session):
            return agent
        rows = self._ground.store.query_sync("job_run_of", (session,))
        if not rows:
            return agent
        job = msgspec.json.decode(rows[0][0], type=Job)
        limits = agent.limits
        if job.models and agent.limits_for is not None:
            limits = agent.limits_for(job.models[0])
        limits = replace(
            limits, steps=job.steps or limits.steps, tokens=job.tokens or limits.tokens
        )
        tools = agent.tools
        if job.tools is not None:
            tools = narrowed(tools, [name for name in tools if _matches_any(name, job.tools)])
        return replace(agent, models=job.models or agent.models, limits=limits, tools=tools)

    def on_event(self, recorded: Recorded) -> None:
        """An event passes: it may be the beginning of a run, or the end of one."""
        event = recorded.event
        if isinstance(event, TurnEnded | ApprovalAsked) and self.runner.runs_in_session(
            recorded.session
        ):
            self.scheduler.request_check(recorded.session)
        elif isinstance(event, MessageReceived):
            for live in self.runner.runs_in_session(recorded.session):
                if is_receipt(event, live.entry.key):
                    live.turn_began_at = self._ground.clock.monotonic()

    async def _principal_for(self, job: Job) -> Principal:
        """In whose name it acts, with the roles that they have now. Raises JobInvalid."""
        person = job.person or OWNER_NAME
        rows = await self._ground.store.query("job_person", (person,))
        if not rows:
            raise JobInvalid(
                f"`for: {person}` names nobody who is known here; see `deskhand users list`"
            )
        roles = tuple(role for (role,) in rows if role)
        custom = {name: role.agents for name, role in self._ground.settings().config.roles.items()}
        agent = job.agent or self._ground.settings().agents[0]
        if wrong := self._agent_problem(job):
            raise JobInvalid(wrong)
        if not may_talk(Principal(person, roles), agent, custom):
            raise JobInvalid(
                f"{person} may not talk to the agent {agent!r}; choose another in `agent:` "
                "or `for:`"
            )
        return Principal(f"job:{job.name}", roles, "clock", person)

    def _agent_problem(self, job: Job) -> str:
        agents = self._ground.settings().agents
        if job.agent and job.agent not in agents:
            return f"there is no agent {job.agent!r}; there are: {', '.join(agents)}"
        if "/" in job.session and job.session.partition("/")[0] != (job.agent or agents[0]):
            return (
                f"the session {job.session!r} belongs to another agent; name it "
                f"{job.agent or agents[0]}/…"
            )
        return ""

    def _find_chore(self, name: str) -> Chore | None:
        return self.chores.get(name)

    async def _on_run_end(self, entry: RunEntry, state: RunState) -> None:
        """A run is over: the next one may begin."""
        if entry.job.delete_after_run and state not in ("skipped", "missed", "interrupted"):
            try:
                await anyio.to_thread.run_sync(
                    partial(self._folder.remove, entry.job.name, scripts=False)
                )
            except (ConfigError, OSError) as error:
                log.warning("the job %r stays, though it is done: %s", entry.job.name, error)
            self.scheduler.rescan()
        self.scheduler.wake()


PATTERN_CHARS = 200
"""A longer pattern of a job names no tool."""


def _matches_any(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, each) for each in patterns if len(each) <= PATTERN_CHARS)
