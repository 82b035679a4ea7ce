"""The chat command `/jobs`: a person's jobs, and when they run next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from ..agent.state import State
from ..assembly.host import Host
from ..types.errors import JobInvalid
from ..types.identity import EVERYBODY, Principal, Waiting, only_person
from ..types.jobs import JobView
from ..types.marked_texts import mark_text
from ..types.schedules import next_due_after
from .authorization import may_see
from .files import JobFiles
from .ledger import stored_pause_sync
from .text import describe_state, describe_timing, format_time

MAX_LISTED = 30
PROMPT_CHARS = 2_000
NOT_PRIVATE = mark_text(
    "Others read here too, so your jobs are not shown. Write /jobs in a chat with me alone."
)
JOB_IN_LIST = mark_text("{job_name} ({state_text}): {timing_text}")


class JobsCommand:
    """Answers `/jobs` and `/jobs NAME`."""

    def __init__(self, host: Host, files: JobFiles) -> None:
        self._host = host
        self._files = files

    def answer(self, state: State, row: Waiting, args: str) -> str:
        """The answer to the person who wrote the command."""
        if only_person(state.participants_with(row)) == EVERYBODY:
            return NOT_PRIVATE
        views = {view.name: view for view in self._views(row.principal)}
        wanted = args.strip()
        if wanted:
            return self._render_job(wanted, views)
        if not views:
            return mark_text(
                "You have no jobs yet. Ask me for one, such as: every morning at 8, tell me "
                "what is on today."
            )
        return self._render_list(list(views.values()))

    def _render_list(self, views: Sequence[JobView]) -> str:
        lines = []
        if paused := stored_pause_sync(self._host.store):
            lines.append(mark_text("No job runs now: {why_text}").format(why_text=paused))
        lines += [
            JOB_IN_LIST.format(
                job_name=view.name,
                state_text=describe_state(view),
                timing_text=self._render_timing(view),
            )
            for view in views[:MAX_LISTED]
        ]
        if len(views) > MAX_LISTED:
            more = mark_text("… and {more_number} more: deskhand jobs")
            lines.append(more.format(more_number=len(views) - MAX_LISTED))
        lines.append(mark_text("Write /jobs NAME to see one."))
        return "\n".join(lines)

    def _views(self, principal: Principal) -> list[JobView]:
        views = []
        for file in self._files.scan().values():
            view = JobView(file.name, file.job, file.problem, file.notes)
            if may_see(view, principal):
                views.append(view)
        return sorted(views, key=lambda view: view.name)

    def _render_job(self, name: str, views: Mapping[str, JobView]) -> str:
        view = views.get(name)
        if view is None:
            near = get_close_matches(name[:64], views, 1)
            missing = mark_text("You have no job {job}.").format(job=repr(name[:80]))
            if not near:
                return missing
            hint = mark_text("Did you mean {name}?").format(name=repr(near[0]))
            return f"{missing} {hint}"
        lines = [_render_heading(view), self._render_timing(view)]
        if view.job is not None:
            lines += filter(None, (view.job.description, view.job.prompt[:PROMPT_CHARS]))
        return "\n".join(lines)

    def _render_timing(self, view: JobView) -> str:
        if view.job is None:
            return view.problem
        zone = self._host.settings().config.timezone
        try:
            schedule = view.job.resolve_schedule(zone) if view.job.enabled else None
        except JobInvalid as error:
            return str(error)
        timing = describe_timing(view.job, zone)
        next_at = None
        if schedule is not None:
            next_at = next_due_after(schedule, self._host.clock.now())
        if next_at is None:
            return timing
        next_run = mark_text("next: {next_time}").format(
            next_time=format_time(next_at, view.job.timezone or zone)
        )
        return f"{timing}; {next_run}"


def _render_heading(view: JobView) -> str:
    """The name of the job and its state."""
    if view.problem:
        return mark_text("{job_name} (cannot run: {problem_text})").format(
            job_name=view.name, problem_text=view.problem
        )
    if view.paused:
        return mark_text("{job_name} (paused: {why_text})").format(
            job_name=view.name, why_text=view.paused
        )
    if view.job is not None and view.job.enabled:
        return mark_text("{job_name} (on)").format(job_name=view.name)
    return mark_text("{job_name} (off)").format(job_name=view.name)
