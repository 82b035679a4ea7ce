"""The chat command `/jobs`: a person's jobs, and when they run next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from ..agent.state import State
from ..assembly.host import Host
from ..types.errors import JobInvalid
from ..types.identity import EVERYBODY, Principal, Waiting, only_person
from ..types.jobs import JobView
from ..types.schedules import next_due_after
from .authorization import may_see
from .files import JobFiles
from .ledger import stored_pause_sync
from .text import describe_state, describe_timing, format_time

MAX_LISTED = 30
PROMPT_CHARS = 2_000
NOT_PRIVATE = (
    "Others read here too, so your jobs are not shown. Write /jobs in a chat with me alone."
)


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
            return (
                "You have no jobs yet. Ask me for one, such as: every morning at 8, tell me "
                "what is on today."
            )
        return self._render_list(list(views.values()))

    def _render_list(self, views: Sequence[JobView]) -> str:
        lines = []
        if paused := stored_pause_sync(self._host.store):
            lines.append(f"No job runs now: {paused}")
        lines += [
            f"{view.name} ({describe_state(view)}): {self._render_timing(view)}"
            for view in views[:MAX_LISTED]
        ]
        if len(views) > MAX_LISTED:
            lines.append(f"… and {len(views) - MAX_LISTED} more: deskhand jobs")
        lines.append("Write /jobs NAME to see one.")
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
            hint = f" Did you mean {near[0]!r}?" if near else ""
            return f"You have no job {name[:80]!r}.{hint}"
        lines = [f"{view.name} ({describe_state(view)})", self._render_timing(view)]
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
        return f"{timing}; next: {format_time(next_at, view.job.timezone or zone)}"
