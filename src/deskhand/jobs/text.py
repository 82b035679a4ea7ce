"""Jobs in words, for people and models: when they are due, what became of them, what they will
cost. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

import msgspec

from ..tools.base import Context, own
from ..types.errors import JobInvalid
from ..types.jobs import ISOLATED, OPEN_STATES, Job, JobView, Run, RunState
from ..types.labels import Label, join_labels
from ..types.schedules import (
    At,
    Cron,
    Every,
    Startup,
    describe_schedule,
    due_within,
    next_due_after,
    parse_schedule,
)

FORECAST_DAYS = 30
MAX_COUNTED = 50_000
STATE_TEXTS: dict[RunState, str] = {
    "waiting": "waits to begin",
    "checking": "its prerun decides",
    "running": "runs now",
    "finishing": "its postrun runs",
    "done": "done",
    "error": "went wrong",
    "gated": "not needed, its prerun said",
    "skipped": "skipped, since the last one still ran",
    "missed": "missed, since Deskhand did not run",
    "interrupted": "cut off by a restart",
}


class JobForecast(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a job will come to within `days`. `runs` is None where only events set it off; `tokens`
    is what one run takes, None where nobody knows; `because` says how either is known."""

    days: int
    runs: int | None
    tokens: int | None
    because: str

    @property
    def summary(self) -> str:
        """In one sentence."""
        if self.runs is None:
            return f"It runs when something sets it off; {self._tokens_per_run}."
        times = f"{self.runs:,} run{'' if self.runs == 1 else 's'} in {self.days} days"
        if self.tokens is None:
            return f"Forecast: {times}; {self._tokens_per_run}."
        if not self.tokens:
            return f"Forecast: {times}, and no tokens ({self.because})."
        return (
            f"Forecast: {times}, about {abbreviate_number(self.runs * self.tokens)} tokens ("
            f"{self._tokens_per_run})."
        )

    @property
    def _tokens_per_run(self) -> str:
        if self.tokens is None:
            return self.because
        return (
            f"{abbreviate_number(self.tokens)} tokens each, {self.because}"
            if self.tokens
            else f"no tokens: {self.because}"
        )


def abbreviate_number(number: int) -> str:
    """12,345 -> 12k; at least two figures."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            shown = f"{number / size:.1f}" if number < 10 * size else f"{number / size:.0f}"
            return shown.removesuffix(".0") + unit
    return str(number)


def forecast_job(job: Job, used: Sequence[int], zone: str, now: float) -> JobForecast:
    """`used` are the tokens of its last runs that asked a model. Raises JobInvalid."""
    schedule = job.resolve_schedule(zone)
    match schedule:
        case None:
            runs = None
        case Startup():
            runs = None
        case Every(every_ms=every_ms):
            runs = int(FORECAST_DAYS * 86_400_000 // every_ms)
        case At() | Cron():
            runs = 0
            for _ in due_within(schedule, now, now + FORECAST_DAYS * 86_400.0):
                runs += 1
                if runs == MAX_COUNTED:
                    break
    tokens, because = _forecast_tokens(job, used)
    return JobForecast(FORECAST_DAYS, runs, tokens, because)


def _forecast_tokens(job: Job, used: Sequence[int]) -> tuple[int | None, str]:
    if job.kind != "prompt":
        return (
            0,
            "it asks no model"
            if job.kind == "deliver"
            else "it asks only where there is something to do",
        )
    if used:
        middle = sorted(used)[len(used) // 2]
        return middle, f"as its last {len(used)} did" if len(used) > 1 else "as its last one did"
    if job.session != ISOLATED:
        return None, "each takes what its conversation does, and `deskhand budget` bounds that"
    if job.tokens is not None:
        return job.tokens, "which is the most that it may take"
    return None, "what one takes is known when it has run; `tokens:` bounds it"


def format_time(at: float | None, zone: str) -> str:
    """A time, as people of this zone read it."""
    if at is None:
        return "never"
    return f"{datetime.fromtimestamp(at, ZoneInfo(zone)):%Y-%m-%d %H:%M}"


def describe_timing(job: Job, zone: str) -> str:
    """What sets it off."""
    found = list(job.on)
    try:
        if (schedule := job.resolve_schedule(zone)) is not None:
            shown = describe_schedule(schedule)
            at = schedule.at if isinstance(schedule, At) else None
            found.insert(
                0, f"once, at {format_time(at, job.timezone or zone)}" if at is not None else shown
            )
    except JobInvalid:
        found.insert(0, job.schedule)
    return " · ".join(found) or "only when somebody runs it"


def describe_outcome(run: Run | None) -> str:
    """How its last time went."""
    if run is None:
        return "has not run yet"
    words = STATE_TEXTS[run.state]
    return f"{words}: {run.said}" if run.said and run.state not in OPEN_STATES else words


def describe_state(view: JobView) -> str:
    """How it is now, in a word or a sentence."""
    if view.problem:
        return f"cannot run: {view.problem}"
    if view.paused:
        return f"paused: {view.paused}"
    return "on" if view.job is not None and view.job.enabled else "off"


def describe_job(view: JobView, zone: str) -> str:
    """A job in a few lines."""
    job = view.job
    head = f"- {view.name} ({describe_state(view)})"
    if job is None:
        return head
    shown = [head, f"  when: {describe_timing(job, zone)}"]
    if view.next_at is not None:
        shown.append(f"  next: {format_time(view.next_at, job.timezone or zone)}")
    shown.append(
        "  last: "
        f"{format_time(view.last.due_at, zone) + ', ' if view.last else ''}"
        f"{describe_outcome(view.last)}"
    )
    text = job.description or job.prompt
    if text:
        shown.append(f"  what: {' '.join(text.split())[:160]}")
    return "\n".join(shown)


def label_of_jobs(views: Sequence[JobView], context: Context) -> Label:
    """That of what `lines` says of these: of the jobs, and of what their last runs came to."""
    return join_labels(
        (own(context), *(label for view in views for label in (view.label, view.said)))
    )


def check_zone(name: str) -> str:
    """Raises JobInvalid."""
    parse_schedule("startup", name)
    return name


def next_run_times(job: Job, zone: str, now: float, most: int = 3) -> list[float]:
    """When the job is due next (seconds since the epoch). Raises JobInvalid."""
    schedule = job.resolve_schedule(zone)
    found: list[float] = []
    while schedule is not None and len(found) < most:
        at = next_due_after(schedule, found[-1] if found else now)
        if at is None:
            break
        found.append(at)
    return found
