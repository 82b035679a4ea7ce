"""Jobs for the page, the terminal and the tools: everything is asked in the name of a person."""

from __future__ import annotations

import logging
import re
from itertools import count

import anyio
import anyio.to_thread
from msgspec.structs import replace

from ..assembly.host import Host
from ..types.errors import ConfigError, JobInvalid, NoSuchJob, Refused
from ..types.identity import SYSTEM, Address, Principal
from ..types.jobs import Job, JobView, Run, validate_job, validate_job_name
from ..types.marked_texts import mark_text
from ..types.people import OWNER_NAME
from ..types.schedules import Startup, next_due_after
from .authorization import (
    MAX_JOBS,
    MAX_OWNER_JOBS,
    authorize_job,
    belongs_to,
    is_owner,
    may_see,
)
from .files import JobFiles
from .history import Stack
from .job_file import parse_job
from .ledger import RunEntry, drop_waiting_runs, forget_job, list_runs, tokens_of_last_runs
from .pause import pause_all, pause_reason, resume_all
from .principals import find_agent_problem
from .scheduler import JobScheduler
from .text import JobForecast, forecast_job
from .views import load_views

log = logging.getLogger(__name__)

FORECAST_RUNS = 20
"""How many of the last runs tell what the next one will use."""


class JobsApi:
    """What a person may ask and change: each their own jobs, an owner those of everybody. Other
    people's jobs are treated as if they did not exist."""

    def __init__(self, host: Host, files: JobFiles, scheduler: JobScheduler) -> None:
        self._host = host
        self._files = files
        self._scheduler = scheduler
        self._change_lock = anyio.Lock()

    @property
    def zone(self) -> str:
        """The time zone of the configuration."""
        return self._files.zone

    @property
    def default_agent(self) -> str:
        """The agent of jobs that name none."""
        return self._host.settings().agents[0]

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._host.clock.now()

    # Reading

    async def list_jobs(self, principal: Principal) -> list[JobView]:
        """The jobs that this person may see, by name. A job whose file cannot be read is shown to
        owners alone."""
        views = await load_views(self._host, self._files)
        return sorted(
            (view for view in views if may_see(view, principal)), key=lambda view: view.name
        )

    async def get(self, principal: Principal, name: str) -> JobView:
        """One job. Raises NoSuchJob, with the same words when it is somebody else's."""
        view = await self._find(name)
        if view is None or not may_see(view, principal):
            raise NoSuchJob(f"there is no job {name[:80]!r}; `deskhand jobs` lists them")
        return view

    async def _find(self, name: str) -> JobView | None:
        for view in await load_views(self._host, self._files):
            if view.name == name:
                return view
        return None

    async def free_name(self, wanted: str) -> str:
        """A name like this one that no job has."""
        taken = {view.name for view in await load_views(self._host, self._files)}
        base = re.sub(r"[^a-z0-9]+", "-", wanted.lower()).strip("-")[:40].strip("-") or "job"
        if base not in taken:
            return base
        return next(name for i in count(2) if (name := f"{base}-{i}") not in taken)

    async def runs(self, principal: Principal, name: str, limit: int = 20) -> list[Run]:
        """The runs of a job, the latest first. Raises NoSuchJob."""
        await self.get(principal, name)
        return await list_runs(self._host.store, validate_job_name(name), limit)

    async def forecast(self, job: Job) -> JobForecast:
        """How often the job will run and what it will use. Raises JobInvalid."""
        store = self._host.store
        now = self._host.clock.now()
        await store.usage(SYSTEM, now)  # usage is summed up when it is asked for
        used = await tokens_of_last_runs(store, job.name, FORECAST_RUNS)
        return forecast_job(job, used, self.zone, now)

    # Changing

    async def validate(self, principal: Principal, job: Job, here: Address | None = None) -> Job:
        """The job as it would be written. `here` is where it was asked for. Raises JobInvalid,
        Refused."""
        return await authorize_job(self._host, principal, job, here)

    async def create(self, principal: Principal, job: Job, here: Address | None = None) -> JobView:
        """Make a job. `here` is where it was asked for. Raises JobInvalid, Refused."""
        job = await self.validate(principal, job, here)
        most = MAX_OWNER_JOBS if is_owner(principal) else MAX_JOBS
        async with self._change_lock:
            views = await load_views(self._host, self._files)
            if any(view.name.casefold() == job.name.casefold() for view in views):
                raise Refused(
                    mark_text(
                        "there is a job {name} already; choose another name, or change that one"
                    ).format(name=repr(job.name))
                )
            theirs = [view.job for view in views if view.job and belongs_to(view.job, principal)]
            if len(theirs) >= most:
                raise Refused(
                    mark_text(
                        "you have {count_number} jobs already; remove one that is not needed any "
                        "more"
                    ).format(count_number=most)
                )
            await self._save(job, principal)
        return await self.get(principal, job.name)

    async def change(self, principal: Principal, job: Job, here: Address | None = None) -> JobView:
        """Write the job of this name. Whose it is stays. Raises JobInvalid, Refused."""
        before = await self.get(principal, job.name)
        if before.builtin:
            raise Refused(
                mark_text(
                    "{name} is part of Deskhand: it is set in the configuration, see `deskhand "
                    "config`"
                ).format(name=repr(job.name))
            )
        if not job.person and before.job is not None:
            job = replace(job, person=before.job.person)
        await self._save(await self.validate(principal, job, here), principal)
        return await self.get(principal, job.name)

    async def _save(self, job: Job, by: Principal) -> None:
        """Write the file. Raises JobInvalid, OSError."""
        validate_job(job, self.zone)
        if problem := find_agent_problem(self._host.settings(), job):
            raise JobInvalid(problem)
        schedule = job.resolve_schedule(self.zone)
        if schedule is None or isinstance(schedule, Startup):
            is_past = False
        else:
            is_past = next_due_after(schedule, self.now()) is None
        if is_past:
            raise JobInvalid(
                mark_text("{schedule} is in the past; choose a time in the future").format(
                    schedule=repr(job.schedule)
                )
            )
        await anyio.to_thread.run_sync(self._files.write, job)
        log.info("The job %r was written by %s.", job.name, by.id)
        self._scheduler.wake()

    async def remove(self, principal: Principal, name: str) -> None:
        """Remove a job with its folder. Its runs stay in the log. Raises Refused, JobInvalid,
        OSError."""
        if (await self.get(principal, name)).builtin:
            raise Refused(
                mark_text("{name} is part of Deskhand and stays; switch it off instead").format(
                    name=repr(name)
                )
            )
        await anyio.to_thread.run_sync(self._files.remove, name)
        log.info("The job %r was removed by %s.", name, principal.id)
        await self._forget_state(name)
        self._scheduler.wake()

    async def _forget_state(self, name: str) -> None:
        """Skip runs that wait, and begin without a past when there is a job of that name again."""
        drop = drop_waiting_runs(name, self.now(), "the job was removed")
        await self._host.store.change([drop, forget_job(name)])

    async def set_enabled(self, principal: Principal, name: str, enabled: bool) -> JobView:
        """Switch a job on or off. Raises Refused, JobInvalid, OSError."""
        if (await self.get(principal, name)).builtin:
            raise Refused(
                mark_text(
                    "{name} is part of Deskhand: switch it in the configuration, see `deskhand "
                    "config`"
                ).format(name=repr(name))
            )
        await anyio.to_thread.run_sync(self._files.set_enabled, name, enabled)
        state = "on" if enabled else "off"
        log.info("The job %r was switched %s by %s.", name, state, principal.id)
        self._scheduler.wake()
        return await self.get(principal, name)

    async def undo(
        self, principal: Principal, name: str, *, again: bool = False
    ) -> tuple[str, JobView | None]:
        """Undo the last change of a job, or with `again` the last undo. An owner may pass '' for
        the job that was changed last.

        Returns the name, and how the job is now, None when it is gone. Raises JobInvalid, Refused.
        """
        stack: Stack = "again" if again else "back"
        name = await self._authorize_undo(principal, name, stack)
        async with self._change_lock:
            await anyio.to_thread.run_sync(self._files.restore, name, stack)
            done = "redone" if again else "undone"
            log.info("The last change of the job %r was %s by %s.", name, done, principal.id)
            if not await anyio.to_thread.run_sync(self._files.exists, name):
                await self._forget_state(name)
        self._scheduler.wake()
        return name, await self._find(name)

    async def _authorize_undo(self, principal: Principal, name: str, stack: Stack) -> str:
        """The name of the job to be restored. Raises NoSuchJob when it is not theirs, and Refused
        when they might not have it as it would be."""
        if is_owner(principal):
            name, _ = await self._read_next(name, stack)
            return name

        not_theirs = NoSuchJob(f"there is no job {name[:80]!r} of yours")
        view = await self._find(name)
        if not name or (view is not None and not may_see(view, principal)):
            raise not_theirs
        try:
            name, job = await self._read_next(name, stack)
        except JobInvalid:
            if view is None:  # do not tell whether somebody else had a job of this name
                raise not_theirs from None
            raise
        if job is not None:
            if not belongs_to(job, principal):
                raise not_theirs
            await self.validate(principal, job)
        return name

    async def _read_next(self, name: str, stack: Stack) -> tuple[str, Job | None]:
        """The job that the next step of this stack would restore; None when the step would remove
        it. Raises JobInvalid, NoSuchJob."""
        history = self._files.history
        name = name or await anyio.to_thread.run_sync(history.last_changed_job)
        text = await anyio.to_thread.run_sync(history.read_next, name, stack)
        if text is None:
            return name, None
        try:
            return name, parse_job(text, name, self.zone).job
        except ConfigError:  # a file that cannot be used is the owner's to repair
            return name, Job(name, person=OWNER_NAME)

    # Running

    async def run(self, principal: Principal, name: str) -> str:
        """Run a job now, or after the run that goes on. Returns the slot of the run. Raises
        JobInvalid, Refused."""
        return await self._scheduler.run_now(await self._get_runnable(principal, name), principal)

    async def prepare_run(self, principal: Principal, name: str) -> RunEntry:
        """A run for `JobRuns.run_to_completion`. Raises JobInvalid, Refused."""
        job = await self._get_runnable(principal, name)
        return await self._scheduler.prepare_run(job, principal)

    async def _get_runnable(self, principal: Principal, name: str) -> Job:
        view = await self.get(principal, name)
        if view.job is None or view.problem:
            raise JobInvalid(
                mark_text("the job {name} cannot run as it is written: {problem_text}").format(
                    name=repr(name), problem_text=view.problem
                )
            )
        return view.job

    async def pause_status(self) -> tuple[str, bool]:
        """Why no job runs now ('' when jobs run), and whether `resume` would change that."""
        why = await pause_reason(self._host)
        return why, bool(why) and self._host.settings().config.jobs.enabled

    async def pause(self, principal: Principal, why: str) -> None:
        """Start no job any more, until `resume`. Raises Refused."""
        if not is_owner(principal):
            raise Refused(mark_text("only an owner may pause jobs"))
        await pause_all(self._host, why)
        self._scheduler.wake()

    async def resume(self, principal: Principal) -> str:
        """Let jobs run again. Returns why they were paused. Raises Refused."""
        if not is_owner(principal):
            raise Refused(mark_text("only an owner may resume jobs"))
        why = await resume_all(self._host)
        self._scheduler.wake()
        return why
