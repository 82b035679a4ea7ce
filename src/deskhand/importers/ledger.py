"""What was imported from another system before: which conversation, fact or file there is which one
here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

import msgspec

from ..store.base import Store
from ..types.commit import Change
from .jsonl import JsonlRecord
from .model import ImportedConversation, ImportedMemory, ImportedTaskList, ImportNote, Value

BEGUN_MARK = "begun"
"""The mark of something whose import was begun and not finished."""
MARKED_LINES = 3
"""So many of the last imported lines tell where to go on."""


class Moved(msgspec.Struct, frozen=True):
    """Something that was imported, and what it is called `here`. Of a conversation also how many
    lines were imported, and a mark of the last ones."""

    here: str
    lines: int = 0
    mark: str = ""


class ImportedThing(msgspec.Struct, frozen=True):
    """Something of another system: `kind` and `key` name it there."""

    system: str
    kind: str
    key: str


Ledger = Mapping[tuple[str, str], Moved]
"""(kind, key) -> what was imported."""


async def load_ledger(store: Store, system: str) -> Ledger:
    """Everything that was imported from this system."""
    rows = await store.query("moved_all", (system,))
    return {(kind, key): Moved(here, lines, mark) for kind, key, here, lines, mark in rows}


def mark_imported(thing: ImportedThing, here: str, at: float) -> Change:
    """Note that something was imported, with the same commit. `at` is in seconds since the
    epoch."""
    return Change("moved_once", (thing.system, thing.kind, thing.key, here, at))


def mark_begun(thing: ImportedThing, here: str, at: float) -> Change:
    """Note that the import of something begins that takes more than one commit."""
    return Change("moved_begun", (thing.system, thing.kind, thing.key, here, at))


def mark_finished(thing: ImportedThing) -> Change:
    """Note that the import of something is finished."""
    return Change("moved_done", (thing.system, thing.kind, thing.key))


def set_conversation_progress(system: str, key: str, moved: Moved, at: float) -> Change:
    """Note how much of a conversation was imported."""
    return Change("moved_so_far", (system, key, moved.here, moved.lines, moved.mark, at))


def add_value(agent: str, value: Value) -> Change:
    """Store a key-value of this agent. Changes no row when the key has a value already."""
    return Change("moved_kv", (agent, value.namespace, value.key, value.value, value.expires_at))


def digest(*parts: str) -> str:
    """A short digest of these texts."""
    return sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


def fact_key(memory: ImportedMemory) -> str:
    return digest(memory.scope, memory.owner, " ".join(memory.text.split()))


def value_key(value: Value) -> str:
    return digest(value.agent, value.namespace, value.key)


def tasks_key(tasks: ImportedTaskList) -> str:
    return digest(tasks.conversation, *sorted(task.title for task in tasks.tasks))


def note_key(note: ImportNote) -> str:
    return digest(note.agent, note.path)


def conversation_key(talk: ImportedConversation) -> str:
    """The same for the same conversation, wherever its home is. Made of its name there and its
    first line."""
    return digest(talk.agent, talk.key, _line_identity(talk.lines[0]))


def compute_mark(lines: Sequence[JsonlRecord]) -> str:
    """A digest of the last of these lines."""
    return digest(*(_line_identity(line) for line in lines[-MARKED_LINES:]))


def _line_identity(line: JsonlRecord) -> str:
    return f"{line.role} {line.timestamp} {line.content!r} {line.tool_calls!r}"


def count_taken_lines(lines: Sequence[JsonlRecord], moved: Moved) -> int | None:
    """How many of these lines were imported before. Lines may have been removed at the beginning
    since. None when the last imported lines are gone."""
    likely: list[int] = [moved.lines, *range(len(lines), 0, -1)]
    for count in likely:
        if 0 < count <= len(lines) and compute_mark(lines[:count]) == moved.mark:
            return count
    return None
