"""What was taken from a system before: which conversation, fact or file is the same as one that is
here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

import msgspec

from ..store.base import Store
from .jsonl import JsonlRecord
from .model import ImportedConversation, ImportedMemory, ImportedTaskList, ImportNote, Value

BEGUN_MARK = "begun"
"""The mark of what was begun and is not done."""
MARKED_LINES = 3
"""So many lines at the end of what was taken say where to go on."""


class Moved(msgspec.Struct, frozen=True):
    """What was taken before, and what it is called here."""

    here: str
    lines: int = 0
    mark: str = ""


Ledger = Mapping[tuple[str, str], Moved]
"""(kind, key) -> what was taken."""


async def load_ledger(store: Store, system: str) -> Ledger:
    """What was taken from this system before."""
    rows = await store.query("moved_all", (system,))
    return {(kind, key): Moved(here, lines, mark) for kind, key, here, lines, mark in rows}


def digest(*parts: str) -> str:
    """A short name for these texts."""
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
    """The same for the same conversation wherever its home lies: by its name there and how it
    began."""
    return digest(talk.agent, talk.key, _line_identity(talk.lines[0]))


def compute_mark(lines: Sequence[JsonlRecord]) -> str:
    """Says which lines the last of these are."""
    return digest(*(_line_identity(line) for line in lines[-MARKED_LINES:]))


def _line_identity(line: JsonlRecord) -> str:
    return f"{line.role} {line.timestamp} {line.content!r} {line.tool_calls!r}"


def count_taken_lines(lines: Sequence[JsonlRecord], moved: Moved) -> int | None:
    """How many of the lines were taken before: they may have been shortened at their beginning
    since. None where what was taken is not there any more."""
    likely = [moved.lines, *range(len(lines), 0, -1)]
    return next(
        (n for n in likely if 0 < n <= len(lines) and compute_mark(lines[:n]) == moved.mark), None
    )
