"""Jobs as the page and the HTTP API show them. Implements `web.ports.JobsBackend`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import anyio.to_thread
from msgspec.structs import replace

from ..types.errors import JobInvalid
from ..types.identity import Address, Principal, responsible_person
from ..types.jobs import CHAT, Job, JobView, Run
from ..types.marked_texts import mark_text
from ..web.job_views import (
    BlueprintView,
    JobDetail,
    JobDraft,
    JobRowView,
    JobUndone,
    Preview,
    RunView,
    Scheduler,
)
from ..web.names import CHANNEL, format_session_name
from ..web.protocols import JobsBackend
from .blueprints import BLUEPRINTS, Blueprint, get_blueprint, make_form_schema, render_command
from .files import JobFiles
from .job_file import parse_job, render_job_file
from .jobs_api import JobsApi
from .manage_tool import job_from_blueprint
from .text import (
    describe_outcome,
    describe_state,
    describe_timing,
    forecast_job,
    next_run_times,
)
from .triggers.spec import WEBHOOK_PATH
from .triggers.triggers import Triggering, parse_triggers, webhook_secret_name

MAX_RUNS = 20
PREVIEW_CHARS = 100
NO_SECRET = "the webhook is closed: it has no secret. Make one with `deskhand jobs hook {name}`"


FREE = mark_text("It uses no tokens: it asks no model.")
"""The forecast of a blueprint that only sends what is filled in."""


class JobPages:
    """Jobs as the page shows them, and drafts of jobs that it sends."""

    def __init__(self, jobs: JobsApi, triggering: Triggering, files: JobFiles) -> None:
        self._jobs = jobs
        self._triggering = triggering
        self._files = files

    async def list_jobs(self, principal: Principal) -> list[JobRowView]:
        return [self._row(view) for view in await self._jobs.list_jobs(principal)]

    async def get_job(self, principal: Principal, name: str) -> JobDetail:
        view = await self._jobs.get(principal, name)
        runs = await self._jobs.runs(principal, name, MAX_RUNS)
        text = await anyio.to_thread.run_sync(self._files.read, view.name, view.job)
        forecast = ""
        hook = ""
        prompt = ""
        if view.job is not None:
            forecast = (await self._jobs.forecast(view.job)).summary
            hook = f"{WEBHOOK_PATH}{name}" if "webhook" in view.job.on else ""
            prompt = view.job.prompt
        return JobDetail(
            self._row(view),
            text,
            prompt=prompt,
            trouble=[*view.notes, *self.find_problems(view)],
            forecast=forecast,
            hook=hook,
            runs=self._run_views(principal, view, runs),
        )

    def blueprints(self) -> list[BlueprintView]:
        return [self._blueprint_view(blueprint) for blueprint in BLUEPRINTS]

    def _blueprint_view(self, of: Blueprint) -> BlueprintView:
        when = of.when
        forecast = FREE
        if not of.deliver:
            examples = {slot.name: slot.example for slot in of.slots if slot.required}
            job = job_from_blueprint(of, examples, of.name, None)
            when = when or describe_timing(job, self._jobs.zone)
            forecast = forecast_job(job, (), self._jobs.zone, self._jobs.now()).summary
        return BlueprintView(
            name=of.name,
            title=of.title,
            description=of.about,
            when=when,
            forecast=forecast,
            form=make_form_schema(of),
            command=render_command(of),
        )

    async def preview(self, principal: Principal, draft: JobDraft) -> Preview:
        zone = self._jobs.zone
        job = await self._jobs.validate(principal, await self._job_from_draft(principal, draft))
        command = ""
        if draft.blueprint:
            command = render_command(get_blueprint(draft.blueprint), draft.slots, draft.to)
        return Preview(
            job.name,
            describe_timing(job, zone),
            next_run_times(job, zone, self._jobs.now()),
            job.prompt,
            render_job_file(job),
            (await self._jobs.forecast(job)).summary,
            command,
        )

    async def create(self, principal: Principal, draft: JobDraft) -> JobDetail:
        job = await self._job_from_draft(principal, draft)
        view = await self._jobs.create(principal, job)
        return await self.get_job(principal, view.name)

    async def change(self, principal: Principal, name: str, text: str) -> JobDetail:
        await self._jobs.get(principal, name)
        await self._jobs.change(principal, parse_job(text, name, self._jobs.zone).job)
        return await self.get_job(principal, name)

    async def remove(self, principal: Principal, name: str) -> None:
        await self._jobs.remove(principal, name)

    async def undo(self, principal: Principal, name: str, *, again: bool = False) -> JobUndone:
        name, view = await self._jobs.undo(principal, name, again=again)
        return JobUndone(name, self._row(view) if view is not None else None)

    async def set_enabled(self, principal: Principal, name: str, on: bool) -> JobRowView:
        return self._row(await self._jobs.set_enabled(principal, name, on))

    async def run(self, principal: Principal, name: str) -> str:
        return await self._jobs.run(principal, name)

    async def runs(self, principal: Principal, name: str, limit: int) -> list[RunView]:
        view = await self._jobs.get(principal, name)
        return self._run_views(principal, view, await self._jobs.runs(principal, name, limit))

    async def scheduler_status(self) -> Scheduler:
        why, resumable = await self._jobs.pause_status()
        return Scheduler(why, resumable)

    async def resume(self, principal: Principal) -> Scheduler:
        await self._jobs.resume(principal)
        return await self.scheduler_status()

    async def handle_webhook(self, name: str, headers: Mapping[str, str], body: bytes) -> bool:
        return await self._triggering.handle_webhook(name, headers, body)

    def find_problems(self, view: JobView) -> list[str]:
        """Why triggers of this job do not work, a sentence each."""
        if view.job is None:
            return []
        triggers, problems = parse_triggers(view.job)
        for trigger in triggers:
            line = str(trigger)
            if why := self._triggering.problems.get((view.name, line)):
                problems.append(f"{line}: {why}")
        has_webhook = any(trigger.kind == "webhook" for trigger in triggers)
        if has_webhook and not self._triggering.find_secret(webhook_secret_name(view.name)):
            problems.append(NO_SECRET.format(name=view.name))
        return problems

    async def _job_from_draft(self, principal: Principal, draft: JobDraft) -> Job:
        """Raises ConfigError."""
        to = self._parse_address(principal, draft.to)
        if bool(draft.text.strip()) == bool(draft.blueprint):
            raise JobInvalid(
                mark_text(
                    "send either `text`, which is a whole JOB.md, or a `blueprint` with its `slots`"
                )
            )
        name = draft.name.strip()
        if draft.blueprint:
            job = job_from_blueprint(get_blueprint(draft.blueprint), draft.slots, "", to)
            return replace(job, name=name or await self._jobs.free_name(draft.blueprint))
        name = name or await self._jobs.free_name("job")
        job = parse_job(draft.text, name, self._jobs.zone).job
        if to is not None and job.to is None:
            return replace(job, to=to, session=CHAT)
        return job

    def _parse_address(self, principal: Principal, written: str) -> Address | None:
        """The address written as `channel:chat`, None for ''. On the page it is a conversation of
        this person's own. Raises JobInvalid."""
        channel, colon, chat = written.strip().partition(":")
        if not written.strip():
            return None
        if not colon or not chat.strip():
            raise JobInvalid(
                mark_text(
                    "`to` must be channel:chat, as in telegram:12345 or web:jobs, and not {written}"
                ).format(written=repr(written[:80]))
            )
        if channel == CHANNEL:
            return Address(CHANNEL, responsible_person(principal), chat)
        return Address(channel, "", chat)

    def _row(self, view: JobView) -> JobRowView:
        job = view.job or Job(view.name)
        last = view.last
        last_at = None
        if last is not None:
            last_at = last.ended_at or last.began_at or last.due_at
        counters = view.counters
        return JobRowView(
            name=view.name,
            description=job.description,
            when=describe_timing(job, self._jobs.zone) if view.job is not None else "",
            enabled=job.enabled and view.job is not None,
            state=describe_state(view),
            kind=job.kind,
            person=job.person,
            agent=job.agent,
            to=_format_address(job.to),
            builtin=view.builtin,
            next_at=view.next_at,
            last_at=last_at,
            last_result=describe_outcome(last),
            runs=counters.runs,
            errors=counters.errors,
            gates=counters.gates,
            skips=counters.skips,
            preview=" ".join(job.prompt.split())[:PREVIEW_CHARS],
            schedule=job.schedule,
            broken=bool(view.problem),
            last_state=last.state if last is not None else "",
        )

    def _run_views(self, principal: Principal, view: JobView, runs: Sequence[Run]) -> list[RunView]:
        agent = (view.job.agent if view.job is not None else "") or self._jobs.default_agent
        return [
            RunView(
                run.slot,
                run.state,
                describe_outcome(run),
                run.due_at,
                run.began_at,
                run.ended_at,
                format_session_name(run.session, principal, agent) if run.session else "",
            )
            for run in runs
        ]


def _format_address(to: Address | None) -> str:
    if to is None:
        return ""
    return f"{to.channel}:{to.chat}" + (f":{to.thread}" if to.thread else "")


_desk: type[JobsBackend] = JobPages
