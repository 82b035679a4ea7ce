"""Jobs for the page and the API: it implements `web.ports.JobsBackend`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio.to_thread
from msgspec.structs import replace

from ..config.parse import read_text
from ..types.errors import ConfigError, JobInvalid
from ..types.identity import Address, Principal, responsible_person
from ..types.jobs import CHAT, JOB_FILE_NAME, Job, Run
from ..types.jobs import JobView as Known
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
from ..web.ports import JobsBackend
from .blueprints import BLUEPRINTS, get_blueprint, make_form_schema, render_command
from .job_file import parse_job, render_job_file
from .manage_tool import job_from_blueprint
from .per_person import next_run_times
from .text import describe_outcome, describe_state, describe_timing
from .triggers.spec import WEBHOOK_PATH
from .triggers.triggers import Triggering, parse_triggers, webhook_secret_name
from .using import Using

MAX_RUNS = 20
PREVIEW_CHARS = 100
NO_SECRET = "the webhook is closed: it has no secret. Make one with `deskhand jobs hook {name}`"


class JobsApi:
    """`folder` is where the folders of jobs lie, `agent` the one that answers where none is
    named."""

    def __init__(self, using: Using, triggering: Triggering, folder: Path) -> None:
        self._using = using
        self._triggering = triggering
        self._folder = folder

    async def list_jobs(self, principal: Principal) -> list[JobRowView]:
        return [self._row(each) for each in await self._using.jobs.list_jobs(principal)]

    async def get_job(self, principal: Principal, name: str) -> JobDetail:
        view = await self._using.jobs.get(principal, name)
        ran = await self._using.jobs.runs(principal, name, MAX_RUNS)
        text = await anyio.to_thread.run_sync(self._read_file, view)
        job = view.job
        told = (await self._using.forecast(job)).summary if job is not None else ""
        hook = f"{WEBHOOK_PATH}{name}" if job is not None and "webhook" in job.on else ""
        prompt = job.prompt if job is not None else ""
        trouble = [*view.notes, *self.find_problems(view)]
        return JobDetail(
            self._row(view),
            text,
            prompt,
            trouble,
            told,
            hook,
            self._run_views(principal, view, ran),
        )

    def blueprints(self) -> list[BlueprintView]:
        return [
            BlueprintView(
                each.name, each.title, each.about, make_form_schema(each), render_command(each)
            )
            for each in BLUEPRINTS
        ]

    async def preview(self, principal: Principal, draft: JobDraft) -> Preview:
        job = await self._job_from_draft(principal, draft)
        zone = self._using.zone()
        job = await self._using.jobs.validate(principal, job)
        typed = (
            render_command(get_blueprint(draft.blueprint), draft.slots, draft.to)
            if draft.blueprint
            else ""
        )
        said = (await self._using.forecast(job)).summary
        times = next_run_times(job, zone, self._using.now())
        return Preview(
            job.name,
            describe_timing(job, zone),
            times,
            job.prompt,
            render_job_file(job),
            said,
            typed,
        )

    async def create(self, principal: Principal, draft: JobDraft) -> JobDetail:
        view = await self._using.jobs.create(
            principal, await self._job_from_draft(principal, draft)
        )
        return await self.get_job(principal, view.name)

    async def change(self, principal: Principal, name: str, text: str) -> JobDetail:
        await self._using.jobs.get(principal, name)
        await self._using.jobs.change(principal, parse_job(text, name, self._using.zone()).job)
        return await self.get_job(principal, name)

    async def remove(self, principal: Principal, name: str) -> None:
        await self._using.jobs.remove(principal, name)

    async def undo(self, principal: Principal, name: str, *, again: bool = False) -> JobUndone:
        name, view = await self._using.jobs.undo(principal, name, again=again)
        return JobUndone(name, self._row(view) if view is not None else None)

    async def set_enabled(self, principal: Principal, name: str, on: bool) -> JobRowView:
        return self._row(await self._using.jobs.set_enabled(principal, name, on))

    async def run(self, principal: Principal, name: str) -> str:
        return await self._using.jobs.run(principal, name)

    async def runs(self, principal: Principal, name: str, limit: int) -> list[RunView]:
        view = await self._using.jobs.get(principal, name)
        return self._run_views(principal, view, await self._using.jobs.runs(principal, name, limit))

    async def scheduler_status(self) -> Scheduler:
        why, resumable = await self._using.jobs.pause_status()
        return Scheduler(why, resumable)

    async def resume(self, principal: Principal) -> Scheduler:
        await self._using.jobs.resume(principal)
        return await self.scheduler_status()

    async def handle_webhook(self, name: str, headers: Mapping[str, str], body: bytes) -> bool:
        return await self._triggering.handle_webhook(name, headers, body)

    def find_problems(self, view: Known) -> list[str]:
        """Why something does not set it off, a sentence each."""
        if view.job is None:
            return []
        good, wrong = parse_triggers(view.job)
        keys = [(view.name, str(each)) for each in good]
        found = [f"{key[1]}: {why}" for key in keys if (why := self._triggering.problems.get(key))]
        if any(each.kind == "webhook" for each in good) and not self._triggering.secret(
            webhook_secret_name(view.name)
        ):
            found.append(NO_SECRET.format(name=view.name))
        return [*wrong, *found]

    async def _job_from_draft(self, principal: Principal, draft: JobDraft) -> Job:
        """Raises ConfigError."""
        own = self._using.jobs
        to = self._parse_address(principal, draft.to)
        if bool(draft.text.strip()) == bool(draft.blueprint):
            raise JobInvalid(
                "send either `text`, which is a whole JOB.md, or a `blueprint` with its `slots`"
            )
        if draft.blueprint:
            job = job_from_blueprint(get_blueprint(draft.blueprint), draft.slots, "", to)
            return replace(job, name=draft.name.strip() or await own.free_name(draft.blueprint))
        name = draft.name.strip() or await own.free_name("job")
        job = parse_job(draft.text, name, self._using.zone()).job
        return replace(job, to=to, session=CHAT) if to is not None and job.to is None else job

    def _parse_address(self, principal: Principal, written: str) -> Address | None:
        """`channel:chat`; a conversation on the page is one's own. Raises JobInvalid."""
        channel, colon, chat = written.strip().partition(":")
        if not written.strip():
            return None
        if not colon or not chat.strip():
            raise JobInvalid(
                "`to` must be channel:chat, as in telegram:12345 or web:jobs, and not "
                f"{written[:80]!r}"
            )
        return (
            Address(CHANNEL, responsible_person(principal), chat)
            if channel == CHANNEL
            else Address(channel, "", chat)
        )

    def _read_file(self, view: Known) -> str:
        """Its file as it stands, also where it is broken."""
        try:
            return read_text(self._folder / view.name / JOB_FILE_NAME)
        except (ConfigError, OSError):
            return render_job_file(view.job) if view.job is not None else ""

    def _row(self, view: Known) -> JobRowView:
        job = view.job or Job(view.name)
        last = view.last
        counters = view.counters
        return JobRowView(
            name=view.name,
            description=job.description,
            when=describe_timing(job, self._using.zone()) if view.job is not None else "",
            enabled=job.enabled and view.job is not None,
            state=describe_state(view),
            kind=job.kind,
            person=job.person,
            agent=job.agent,
            to=_format_address(job.to),
            builtin=view.builtin,
            next_at=view.next_at,
            last_at=(last.ended_at or last.began_at or last.due_at) if last is not None else None,
            last_result=describe_outcome(last),
            runs=counters.runs,
            errors=counters.errors,
            gates=counters.gates,
            skips=counters.skips,
            preview=" ".join(job.prompt.split())[:PREVIEW_CHARS],
            schedule=job.schedule,
        )

    def _run_views(self, principal: Principal, view: Known, ran: Sequence[Run]) -> list[RunView]:
        agent = (view.job.agent if view.job is not None else "") or self._using.agent()
        return [
            RunView(
                each.slot,
                each.state,
                describe_outcome(each),
                each.due_at,
                each.began_at,
                each.ended_at,
                format_session_name(each.session, principal, agent) if each.session else "",
            )
            for each in ran
        ]


def _format_address(to: Address | None) -> str:
    if to is None:
        return ""
    return f"{to.channel}:{to.chat}" + (f":{to.thread}" if to.thread else "")


_desk: type[JobsBackend] = JobsApi
