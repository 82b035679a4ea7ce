"""What `/jobs` says: a person's jobs, and when they run next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches

from ..agent.state import State
from ..assembly.host import Host
from ..types.errors import JobInvalid
from ..types.identity import EVERYBODY, Principal, Waiting, only_person
from ..types.jobs import JobView
from ..types.schedules import next_due_after
from .files import JobFile
from .per_person import may_see
from .text import describe_state as state_of
from .text import describe_timing, format_time

MAX_LISTED = 30
PROMPT_CHARS = 2_000
NOT_PRIVATE = (
    "Others read here too, so your jobs are not shown: write /jobs where you are alone with me."
)


class JobsCommand:
    """`files` reads the jobs that lie in the folder."""

    def __init__(self, ground: Host, files: Callable[[], Mapping[str, JobFile]]) -> None:
        self._ground = ground
        self._files = files

    def answer(self, state: State, row: Waiting, args: str) -> str:
        """What the person reads. Changes nothing."""
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
        paused = self._ground.store.query_sync("job_pause_get")
        lines = [f"No job runs now: {paused[0][0]}"] if paused else []
        lines += [
            f"{view.name} ({state_of(view)}): {self._render_timing(view)}"
            for view in list(views.values())[:MAX_LISTED]
        ]
        lines += [f"… and {len(views) - MAX_LISTED} more: deskhand jobs"] * (
            len(views) > MAX_LISTED
        )
        return "\n".join([*lines, "Write /jobs NAME to see one."])

    def _views(self, principal: Principal) -> list[JobView]:
        found = (
            JobView(each.name, each.job, each.problem, each.notes)
            for each in self._files().values()
        )
        return sorted(
            (view for view in found if may_see(view, principal)), key=lambda view: view.name
        )

    def _render_job(self, name: str, views: Mapping[str, JobView]) -> str:
        view = views.get(name)
        if view is None:
            near = get_close_matches(name[:64], views, 1)
            return f"You have no job {name[:80]!r}." + (
                f" Did you mean {near[0]!r}?" if near else ""
            )
        lines = [f"{view.name} ({state_of(view)})", self._render_timing(view)]
        if view.job is not None:
            lines += filter(None, (view.job.description, view.job.prompt[:PROMPT_CHARS]))
        return "\n".join(lines)

    def _render_timing(self, view: JobView) -> str:
        if view.job is None:
            return view.problem
        zone = self._ground.settings().config.timezone
        try:
            schedule = view.job.resolve_schedule(zone) if view.job.enabled else None
        except JobInvalid as error:
            return str(error)
        at = next_due_after(schedule, self._ground.clock.now()) if schedule is not None else None
        return describe_timing(view.job, zone) + (
            f"; next: {format_time(at, view.job.timezone or zone)}" if at is not None else ""
        )
