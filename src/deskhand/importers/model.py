"""What was found in the home of another system, in our own vocabulary. Nothing of it has been
written yet."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ..types.identity import Address
from ..types.jobs import Job
from ..types.options import SessionOptions
from ..types.tasks import Task
from .jsonl import JsonlRecord

System = Literal[
    "operator-ai",
    "operator-use",
    "agent_computer",
    "openagent-core",
    "nanobot",
    "hermes",
    "openclaw",
]


class LeftOut(msgspec.Struct, frozen=True):
    """What is left out, why, and what a person can do about it, in words for people. `todo` is ''
    for nothing."""

    what: str
    why: str
    todo: str = ""


class ChangedName(msgspec.Struct, frozen=True):
    """What is taken, but not as it was, and why."""

    what: str
    why: str


class Broken(msgspec.Struct, frozen=True):
    """A file or folder that cannot be read, and why. One of them stops an import."""

    file: str
    why: str


class ImportedPerson(msgspec.Struct, frozen=True):
    """A user there. `ids` are (channel, platform id). `owner`: they could do everything."""

    name: str
    roles: tuple[str, ...] = ()
    ids: tuple[tuple[str, str], ...] = ()
    owner: bool = False


class ImportedConversation(msgspec.Struct, frozen=True):
    """A conversation. `key` is the source's own name of it, `agent` theirs. `place` is where it
    goes on, None where no channel of ours leads there. A `JsonlRecord.by` names who spoke: the name
    of a Person, or `channel:id`. `group`: several people read there. `job`: nobody spoke, but a job
    did. `at` is when it was held, where its lines do not say. `options` is how it was held. `own`:
    it was held in a terminal or on a page, where nobody but the owner writes."""

    key: str
    agent: str
    lines: tuple[JsonlRecord, ...]
    place: Address | None = None
    group: bool = False
    job: str = ""
    at: float | None = None
    options: SessionOptions | None = None
    own: bool = False


class JobFound(msgspec.Struct, frozen=True):
    """A job, as it would be written here; `files` is what lies beside its JOB.md."""

    job: Job
    files: dict[str, bytes] = {}


class ImportedMemory(msgspec.Struct, frozen=True):
    """A fact. `owner` is the person or the agent there. Times are seconds since the epoch."""

    text: str
    scope: Literal["user", "agent", "global"]
    owner: str = ""
    pinned: bool = False
    candidate: bool = False
    at: float | None = None


class Value(msgspec.Struct, frozen=True):
    """A key-value of an agent."""

    agent: str
    namespace: str
    key: str
    value: str
    expires_at: float | None = None


class ImportedFolder(msgspec.Struct, frozen=True):
    """A skill: a folder of files, by their path in it; or a file of Python, which is a tool of this
    `agent` there."""

    name: str
    files: dict[str, bytes]
    agent: str = ""


class AgentFound(msgspec.Struct, frozen=True):
    """What an agent is told there: the files of its own folder (AGENT.md) and of its workspace
    (SOUL.md ...). `notes` are further files of its workspace by their paths in it: what it has
    written down (knowledge/, memory/)."""

    name: str
    own: dict[str, str] = {}
    workspace: dict[str, str] = {}
    notes: dict[str, bytes] = {}


class ImportNote(msgspec.Struct, frozen=True):
    """A file that an agent has written down, by its path in its workspace."""

    agent: str
    path: str
    data: bytes


class ImportedTaskList(msgspec.Struct, frozen=True):
    """A list of tasks. `talk` is the key of the conversation that it belongs to, '' for the
    workspace."""

    conversation: str
    tasks: tuple[Task, ...]


class ImportedHome(msgspec.Struct, frozen=True):
    """All that one home holds. `config` are keys of ours, `secrets` variables for `.env`, `presets`
    prompts that are ready to be chosen. `left` is what is not taken, `changed` what is taken
    otherwise, `broken` what cannot be read. `trusted`: nobody but this account could write there,
    so that who spoke is who it says."""

    system: System
    version: str
    root: str
    config: dict[str, Any] = {}
    secrets: dict[str, str] = {}
    agents: tuple[AgentFound, ...] = ()
    people: tuple[ImportedPerson, ...] = ()
    conversations: tuple[ImportedConversation, ...] = ()
    jobs: tuple[JobFound, ...] = ()
    memories: tuple[ImportedMemory, ...] = ()
    values: tuple[Value, ...] = ()
    skills: tuple[ImportedFolder, ...] = ()
    tasks: tuple[ImportedTaskList, ...] = ()
    presets: tuple[ImportedFolder, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    changed: tuple[ChangedName, ...] = ()
    broken: tuple[Broken, ...] = ()
    trusted: bool = False


def count_items(found: ImportedHome) -> list[tuple[int, str]]:
    """How many of each there are, with its name, as a report says it."""
    every = (
        (len(found.agents), "agent"),
        (len(found.people), "user"),
        (len(found.conversations), "conversation"),
        (len(found.jobs), "job"),
        (len(found.memories), "memory"),
        (len(found.values), "key-value"),
        (len(found.skills), "skill"),
        (sum(len(each.tasks) for each in found.tasks), "task"),
        (len(found.presets), "preset"),
        (sum(len(each.notes) for each in found.agents), "note"),
    )
    return [(number, name) for number, name in every if number]


def format_count(number: int, name: str) -> str:
    """`14 conversations`."""
    if number == 1:
        return f"1 {name}"
    plural = f"{name.removesuffix('y')}ies" if name in ("memory", "summary") else f"{name}s"
    return f"{number:,} {plural}"
