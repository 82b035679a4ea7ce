"""Jobs in words, for people and models. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

import msgspec

from ..tools.base import Context, call_label
from ..types.errors import JobInvalid
from ..types.jobs import ISOLATED, OPEN_STATES, Job, JobView, Run, RunState
from ..types.labels import Label, join_labels
from ..types.marked_texts import mark_text
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
    "checking": "its prerun runs",
    "running": "runs now",
    "finishing": "its postrun runs",
    "done": "done",
    "error": "went wrong",
    "gated": "not needed, its prerun said",
    "skipped": "skipped, since the last run was still going on",
    "missed": "missed, since Deskhand did not run",
    "interrupted": "interrupted by a restart",
}
OUTCOME_TEXTS: dict[RunState, str] = {
    state: f"{text}: {{said_text}}"
    for state, text in STATE_TEXTS.items()
    if state not in OPEN_STATES
}
"""How a run went of which more is known."""
ONE_RUN = mark_text("1 run in {days_number} days")
SEVERAL_RUNS = mark_text("{runs_number} runs in {days_number} days")


class JobForecast(msgspec.Struct, frozen=True, omit_defaults=True):
    """How often a job will run within `days`, and how many `tokens` one run uses. `runs` is None
    when only events start it, `tokens` when that is not known; `because` says how it is known."""

    days: int
    runs: int | None
    tokens: int | None
    because: str

    @property
    def summary(self) -> str:
        """The forecast in one sentence."""
        if self.runs is None:
            return mark_text("It runs when an event starts it; {use_text}.").format(
                use_text=self._tokens_per_run
            )
        form = ONE_RUN if self.runs == 1 else SEVERAL_RUNS
        times = form.format(runs_number=f"{self.runs:,}", days_number=self.days)
        if self.tokens is None:
            return mark_text("Forecast: {times_text}; {use_text}.").format(
                times_text=times, use_text=self._tokens_per_run
            )
        if not self.tokens:
            return mark_text("Forecast: {times_text}, and no tokens ({why_text}).").format(
                times_text=times, why_text=self.because
            )
        return mark_text(
            "Forecast: {times_text}, about {tokens_number} tokens ({use_text})."
        ).format(
            times_text=times,
            tokens_number=abbreviate_number(self.runs * self.tokens),
            use_text=self._tokens_per_run,
        )

    @property
    def _tokens_per_run(self) -> str:
        if self.tokens is None:
            return self.because
        if not self.tokens:
            return mark_text("no tokens: {why_text}").format(why_text=self.because)
        return mark_text("{tokens_number} tokens each, {why_text}").format(
            tokens_number=abbreviate_number(self.tokens), why_text=self.because
        )


def abbreviate_number(number: int) -> str:
    """Short form of a number, with two digits or more: 12,345 is 12k."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            shown = f"{number / size:.1f}" if number < 10 * size else f"{number / size:.0f}"
            return shown.removesuffix(".0") + unit
    return str(number)


def forecast_job(job: Job, used: Sequence[int], zone: str, now: float) -> JobForecast:
    """The forecast of a job. `used` are the tokens of its last runs that asked a model. Raises
    JobInvalid."""
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
        if job.kind == "deliver":
            return 0, mark_text("it asks no model")
        return 0, mark_text("it asks a model only when there is work")
    if used:
        median = sorted(used)[len(used) // 2]
        if len(used) == 1:
            return median, mark_text("like its last run")
        return median, mark_text("like its last {runs_number} runs").format(runs_number=len(used))
    if job.session != ISOLATED:
        return None, mark_text("a run uses what its conversation uses; a budget limits that")
    if job.tokens is not None:
        return job.tokens, mark_text("its limit")
    return None, mark_text("what a run uses is known after the first one; `tokens:` limits it")


def format_time(at: float | None, zone: str) -> str:
    """A time (seconds since the epoch) in this zone, such as `2027-01-31 17:00`."""
    if at is None:
        return "never"
    return f"{datetime.fromtimestamp(at, ZoneInfo(zone)):%Y-%m-%d %H:%M}"


def describe_timing(job: Job, zone: str) -> str:
    """What starts the job: times and events."""
    try:
        schedule = job.resolve_schedule(zone)
    except JobInvalid:
        times = [job.schedule]
    else:
        match schedule:
            case None:
                times = []
            case At(at=at) if at is not None:
                times = [
                    mark_text("once, at {at_time}").format(
                        at_time=format_time(at, job.timezone or zone)
                    )
                ]
            case _:
                times = [describe_schedule(schedule)]
    return " · ".join([*times, *job.on]) or mark_text("only when somebody runs it")


def describe_outcome(run: Run | None) -> str:
    """How a run went."""
    if run is None:
        return mark_text("has not run yet")
    if run.said and run.state in OUTCOME_TEXTS:
        return OUTCOME_TEXTS[run.state].format(said_text=run.said)
    return STATE_TEXTS[run.state]


def describe_state(view: JobView) -> str:
    """`on`, `off`, or why the job does not run."""
    if view.problem:
        return mark_text("cannot run: {problem_text}").format(problem_text=view.problem)
    if view.paused:
        return mark_text("paused: {why_text}").format(why_text=view.paused)
    if view.job is not None and view.job.enabled:
        return mark_text("on")
    return mark_text("off")


def describe_job(view: JobView, zone: str) -> str:
    """The job in a few lines."""
    job = view.job
    head = f"- {view.name} ({describe_state(view)})"
    if job is None:
        return head
    shown = [head, f"  when: {describe_timing(job, zone)}"]
    if view.next_at is not None:
        shown.append(f"  next: {format_time(view.next_at, job.timezone or zone)}")
    last = describe_outcome(view.last)
    if view.last is not None:
        last = f"{format_time(view.last.due_at, zone)}, {last}"
    shown.append(f"  last: {last}")
    text = job.description or job.prompt
    if text:
        shown.append(f"  what: {' '.join(text.split())[:160]}")
    return "\n".join(shown)


def label_of_jobs(views: Sequence[JobView], context: Context) -> Label:
    """The label of what `describe_job` says of these jobs and of their last results."""
    labels = [call_label(context)]
    for view in views:
        labels += [view.label, view.said]
    return join_labels(tuple(labels))


def check_zone(name: str) -> str:
    """The same name of a time zone. Raises JobInvalid when it is unknown."""
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
