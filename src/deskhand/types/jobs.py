"""What a job is: something that is done when it is due, without anybody asking. And what became of
each time."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from .errors import JobInvalid
from .events import TurnReason
from .identity import Address, Principal
from .labels import UNTRUSTED, Label
from .marked_texts import mark_text
from .schedules import Schedule, load_zone, parse_schedule

JobKind = Literal["prompt", "deliver", "chore"]
Misfire = Literal["skip", "run_once", "run_all"]
Overlap = Literal["skip", "queue_one"]

GRACE_S = 3600.0
MAX_CATCH_UP_RUNS = 10
"""So many missed times are made up for at most, with `run_all`."""
TIMEOUT_S = 1800.0
MAX_TIMEOUT_S = 24 * 3600.0
ISOLATED = "isolated"
CHAT = "chat"
JOB_FILE_NAME = "JOB.md"
NAME_CHARS = 64
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_SESSION_NAME = re.compile(r"[\w./:@-]{1,200}")


class Hooks(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Scripts beside JOB.md, as paths from its folder. `prerun` decides whether the model is asked,
    and what it prints is put before the model; `postrun` gets the answer."""

    prerun: str = ""
    postrun: str = ""


class Job(msgspec.Struct, frozen=True, omit_defaults=True):
    """A job as its file says it.

    `schedule` is as it was written, with wall times in `timezone` ('' is that of the
    configuration); `on` are events, each a word and what it is about (`file notes/*.md`). `person`
    is in whose name it acts ('' is the owner). A `prompt` is put to the agent, a text to `deliver`
    is said as it is, a `chore` is work of our own, which `chore` names. `session`: each run has a
    conversation of its own, or all go on in the chat of `to`, or in one of this name. `to` is where
    the answer goes, None is nowhere. `models` are asked in order, before the agent's own.
    `timeout_s`, `steps` and `tokens` bound one run. `misfire` is what becomes of times that passed
    unseen, `grace_s` how late one may be made up for; `overlap` what becomes of one that comes
    while the last still runs. `tools` are patterns of those that it may use, None is all that the
    agent has. `more` are keys that mean nothing here; they stay in the file.
    """

    name: str
    prompt: str = ""
    description: str = ""
    schedule: str = ""
    timezone: str = ""
    on: tuple[str, ...] = ()
    agent: str = ""
    person: str = ""
    kind: JobKind = "prompt"
    chore: str = ""
    session: str = ISOLATED
    to: Address | None = None
    models: tuple[str, ...] = ()
    timeout_s: float = TIMEOUT_S
    steps: int | None = None
    tokens: int | None = None
    misfire: Misfire = "run_once"
    grace_s: float = GRACE_S
    overlap: Overlap = "skip"
    tools: tuple[str, ...] | None = None
    hooks: Hooks = Hooks()
    delete_after_run: bool = False
    alert: bool = True
    enabled: bool = True
    more: dict[str, Any] = {}

    def resolve_schedule(self, zone: str) -> Schedule | None:
        """When it is due, with this as the zone of the configuration; None for a job that only
        events or people start. Raises JobInvalid."""
        return (
            parse_schedule(self.schedule, self.timezone or zone) if self.schedule.strip() else None
        )


def validate_job(job: Job, zone: str = "UTC") -> Job:
    """The same job. Raises JobInvalid with a sentence and the next step where it could never run as
    it is."""
    validate_job_name(job.name)
    load_zone(job.timezone or zone)
    job.resolve_schedule(zone)
    if job.kind == "chore" and not job.chore:
        raise JobInvalid(
            mark_text("a job of kind `chore` needs `chore:` with the name of what is to be done")
        )
    if job.kind != "chore" and not job.prompt.strip():
        raise JobInvalid(
            mark_text("it has no text: write below the second `---` what is to be done")
        )
    if job.kind == "deliver" and job.to is None:
        raise JobInvalid(
            mark_text(
                "a job of kind `deliver` needs `to:` with the channel and the chat where "
                "its text is said"
            )
        )
    if job.session == CHAT and job.to is None:
        raise JobInvalid(
            mark_text(
                "`session: chat` needs `to:` with the channel and the chat in which it goes on"
            )
        )
    if job.session not in (ISOLATED, CHAT) and not _SESSION_NAME.fullmatch(job.session):
        raise JobInvalid(
            mark_text("{session} cannot name a session; use letters, digits and - _ . : /").format(
                session=repr(job.session)
            )
        )
    for key, low, value, high in (
        ("timeout", 1, job.timeout_s, MAX_TIMEOUT_S),
        ("steps", 1, job.steps, 10_000),
        ("tokens", 1, job.tokens, 1e9),
        ("grace", 0, job.grace_s, 31 * 24 * 3600.0),
    ):
        if value is not None and not low <= value <= high:
            unit = " seconds" if isinstance(value, float) else ""
            raise JobInvalid(
                f"`{key}: {value:.10g}`{unit} is out of range; use {low} to {high:,.0f}"
            )
    for key, path in (("prerun", job.hooks.prerun), ("postrun", job.hooks.postrun)):
        if path and not is_contained_path(path):
            raise JobInvalid(
                mark_text(
                    "the {name} hook {path} must be a path within the folder of the job, as in "
                    "scripts/check.sh"
                ).format(name=key, path=repr(path))
            )
    return job


def is_contained_path(path: str) -> bool:
    """Whether this path, as it is written, stays beneath where it starts."""
    parts = path.split("/")
    return not path.startswith(("/", "~")) and ".." not in parts and "\0" not in path and any(parts)


def validate_job_name(name: str) -> str:
    """The name. Raises JobInvalid for one that cannot be a folder's."""
    if len(name) > NAME_CHARS or not _NAME.fullmatch(name):
        raise JobInvalid(
            mark_text(
                "{name} cannot name a job; use letters, digits and - _ . ({most_number} at most)"
            ).format(name=repr(name[:NAME_CHARS]), most_number=NAME_CHARS)
        )
    return name


RunState = Literal[
    "waiting",
    "checking",
    "running",
    "finishing",
    "done",
    "error",
    "gated",
    "skipped",
    "missed",
    "interrupted",
]
"""waiting: behind an earlier run · checking: its prerun runs · running: the conversation has it ·
finishing: its postrun runs. All others are ends."""
OPEN_STATES: tuple[RunState, ...] = ("waiting", "checking", "running", "finishing")


class Run(msgspec.Struct, frozen=True, omit_defaults=True):
    """One time of a job. `slot` names it: the time at which it was due, or what else started it;
    there is never a second one of that name. `said` is how it ended, in a sentence. `lease_until`
    is when whoever runs it is taken for dead. Times are seconds since the epoch."""

    job: str
    slot: str
    state: RunState
    due_at: float
    session: str = ""
    began_at: float | None = None
    ended_at: float | None = None
    lease_until: float | None = None
    attempts: int = 0
    said: str = ""


class Counters(msgspec.Struct, frozen=True, omit_defaults=True):
    """How often: the model was asked (`runs`), of these with an error; the prerun said no; it came
    while the last still ran."""

    runs: int = 0
    errors: int = 0
    gates: int = 0
    skips: int = 0


class JobView(msgspec.Struct, frozen=True, omit_defaults=True):
    """A job with all that is known of it. `problem` says why it cannot run as it is written, and
    then `job` is None; `notes` are what is odd in its file. `paused` says why no job runs now.
    `builtin`: it has no file. `label` is whose word the job is, `said` that of what its last run
    came to."""

    name: str
    job: Job | None
    problem: str = ""
    notes: tuple[str, ...] = ()
    paused: str = ""
    builtin: bool = False
    next_at: float | None = None
    last: Run | None = None
    last_result: str = ""
    counters: Counters = Counters()
    label: Label = UNTRUSTED
    said: Label = UNTRUSTED


_FAILURE_PREFIX = "Sorry, I could not answer: "
FAILURE_TEXTS: dict[TurnReason, str] = {
    "steps": (
        "it took all its steps without an answer; raise `steps:` in its file, or ask for less "
        "at a time"
    ),
    "tokens": (
        "it used all its tokens without an answer; raise `tokens:` in its file, or ask for less "
        "at a time"
    ),
    "loop": "it repeated the same step without getting further; say in its file what to do instead",
    "stopped": "it was stopped",
}


def describe_failure(reason: TurnReason, said: str) -> str:
    """Why the turn of a job failed, in a half sentence. `said` is what was said at its end."""
    return FAILURE_TEXTS.get(reason) or said.removeprefix(_FAILURE_PREFIX)


def render_turn_end(principal: Principal, reason: TurnReason, said: str) -> str:
    """What is sent at the end of a turn. Where it was a job's and failed, nobody who reads it has
    just asked for anything: it says which job failed, why, and what to do."""
    job = principal.id.removeprefix("job:")
    if principal.kind != "clock" or job == principal.id or reason == "done":
        return said
    why = describe_failure(reason, said).rstrip(".")
    failed = mark_text("The job {job} failed: {why_text}.").format(job=repr(job), why_text=why)
    return f"{failed}\n{describe_remedy(job)}"


def describe_remedy(job: str) -> str:
    """What to do about a job that has failed."""
    return mark_text(
        "See `deskhand jobs runs {job_name}`; `deskhand jobs disable {off_name}` switches it off."
    ).format(job_name=job, off_name=job)


def session_job_name(session: str) -> str:
    """The job whose own conversation this is, '' for any other."""
    place = session.partition("/")[2]
    return place.split(":")[1] if place.startswith("job:") else ""


def format_slot(due_at: float) -> str:
    """The name of a time at which something is due: the same for the same moment, whatever the
    zone."""
    moment = datetime.fromtimestamp(round(due_at * 1000) // 1000, UTC)
    rest = round(due_at * 1000) % 1000
    return f"{moment:%Y-%m-%dT%H:%M:%S}" + (f".{rest:03d}Z" if rest else "Z")
