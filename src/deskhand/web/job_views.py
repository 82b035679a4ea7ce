"""What the API shows of jobs. Times are seconds since the epoch."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

Name = Annotated[str, Meta(max_length=64)]
Words = Annotated[str, Meta(max_length=4_000)]


class JobRowView(msgspec.Struct, frozen=True):
    """A job in a list. `when` and `last_result` are sentences; `state` is `on`, `off`, or why it
    cannot run. `to` is where its answers go, '' is nowhere. `builtin`: it is set in the
    configuration. `preview` is how its prompt begins, `schedule` what its file has. `runs` counts
    how often the model was asked or the text said, `errors` those of them that failed, `gates` how
    often the prerun said that nothing is to be done, `skips` how often it came while the last run
    went on. `broken`: it cannot run as it is written. `last_state` is the state of the last run, ''
    where it has none."""

    name: str
    description: str
    when: str
    enabled: bool
    state: str
    kind: str
    person: str
    agent: str
    to: str
    builtin: bool
    next_at: float | None
    last_at: float | None
    last_result: str
    runs: int
    errors: int
    gates: int
    skips: int
    preview: str = ""
    schedule: str = ""
    broken: bool = False
    last_state: str = ""


class RunView(msgspec.Struct, frozen=True):
    """One time of a job. `name` is that of its conversation, '' where it had none."""

    slot: str
    state: str
    result: str
    due_at: float
    began_at: float | None
    ended_at: float | None
    name: str


class JobDetail(msgspec.Struct, frozen=True):
    """`text` is its file. `trouble` says why something does not set it off. `forecast` is what it
    will come to."""

    job: JobRowView
    text: str
    prompt: str
    trouble: list[str]
    forecast: str
    hook: str
    runs: list[RunView]


class JobDraft(msgspec.Struct, frozen=True):
    """Either `text`, the whole of a JOB.md, or a `blueprint` with its `slots`. `to` is where the
    answers go, as in `telegram:12345` or `web:NAME` for a conversation on the page."""

    name: Name = ""
    text: Annotated[str, Meta(max_length=100_000)] = ""
    blueprint: Name = ""
    slots: dict[str, Words] = {}
    to: Annotated[str, Meta(max_length=300)] = ""


class JobText(msgspec.Struct, frozen=True):
    """The whole of a JOB.md."""

    text: Annotated[str, Meta(max_length=100_000)]


class Preview(msgspec.Struct, frozen=True):
    """A job that nobody has made so far. `command` is what makes it in a terminal, '' where it is
    no blueprint."""

    name: str
    when: str
    next_at: list[float]
    prompt: str
    text: str
    forecast: str
    command: str


class BlueprintView(msgspec.Struct, frozen=True):
    """`form` is a JSON schema of its blanks; the `format` of each is what kind of thing it takes.
    `when` says when it runs, and `forecast` what it uses, if nobody changes its blanks."""

    name: str
    title: str
    description: str
    when: str
    forecast: str
    form: dict[str, Any]
    command: str


class JobUndone(msgspec.Struct, frozen=True):
    """How the job is now; null where it is gone, as it was before it was made."""

    name: str
    job: JobRowView | None


class Started(msgspec.Struct, frozen=True):
    """`slot` names this run."""

    slot: str


class Scheduler(msgspec.Struct, frozen=True):
    """`paused` says why no job runs now, '' where they run. `resumable`: an owner may let them run
    again; otherwise the configuration has them switched off."""

    paused: str
    resumable: bool


class Taken(msgspec.Struct, frozen=True):
    """`new`: it was not taken before."""

    new: bool
