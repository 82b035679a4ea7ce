"""What a reader has to say about a home: what it leaves out, what it takes otherwise, and what it
cannot read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from ..types.messages import clean_text
from .model import Broken, ChangedName, LeftOut

MAX_NOTES = 1_000
"""Of each list; after that only how many more there are."""
SIMILAR_REASONS = "for reasons like these"


class ImportNotes:
    """Collects notes while a home is read. Each is one line of plain text, and no value of a
    secret."""

    def __init__(self) -> None:
        self.left_out: list[LeftOut] = []
        self.changed: list[ChangedName] = []
        self.broken: list[Broken] = []
        self._fields: Counter[tuple[str, str]] = Counter()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._more: Counter[str] = Counter()

    def leave_out(self, what: str, why: str, todo: str = "") -> None:
        """Note what is left out, why, and what a person can do about it."""
        note = LeftOut(clean_line(what), clean_line(why), clean_line(todo))
        if note in self.left_out:
            return
        if len(self.left_out) < MAX_NOTES:
            self.left_out.append(note)
        else:
            self._more["left"] += 1

    def change(self, what: str, why: str) -> None:
        """Note what is taken, but not as it was."""
        note = ChangedName(clean_line(what), clean_line(why))
        if note in self.changed:
            return
        if len(self.changed) < MAX_NOTES:
            self.changed.append(note)
        else:
            self._more["changed"] += 1

    def note_past(self, what: str, why: str) -> None:
        """Note a conversation that no chat leads to, and why."""
        self.change(what, f"it becomes a past conversation: {why}")

    def fail(self, file: str, why: str) -> None:
        """Note a file that cannot be read."""
        note = Broken(clean_line(file), clean_line(why))
        if note in self.broken:
            return
        if len(self.broken) < MAX_NOTES:
            self.broken.append(note)
        else:
            self._more["broken"] += 1

    def count_unused_fields(
        self, kind: str, record: Mapping[str, Any], used: Collection[str]
    ) -> None:
        """Count the fields of a record that say something and are not `used`. `kind` is the plural
        of what it is, such as `messages in sessions/`."""
        for name, value in record.items():
            if name not in used and value not in (None, "", [], {}):
                self._fields[kind, name] += 1

    def count_left_out(self, kind: str, why: str, number: int = 1) -> None:
        """Count `number` more of what is left out. `kind` is the plural of what it is."""
        self._counts[kind, why] += number

    def all_left_out(self) -> tuple[LeftOut, ...]:
        """What is left out, with what was counted."""
        fields = [
            LeftOut(
                clean_line(f"{kind}: the field {name} ({number:,})"), "Deskhand keeps no such field"
            )
            for (kind, name), number in sorted(self._fields.items())
        ]
        counted = [
            LeftOut(clean_line(f"{kind} ({number:,})"), why)
            for (kind, why), number in sorted(self._counts.items())
        ]
        more = (
            [LeftOut(f"{number:,} more", SIMILAR_REASONS)] if (number := self._more["left"]) else []
        )
        return (*self.left_out, *counted, *fields, *more)

    def all_changed(self) -> tuple[ChangedName, ...]:
        """What is taken, but not as it was."""
        more = (
            [ChangedName(f"{number:,} more", SIMILAR_REASONS)]
            if (number := self._more["changed"])
            else []
        )
        return (*self.changed, *more)

    def all_broken(self) -> tuple[Broken, ...]:
        """The files that cannot be read."""
        more = (
            [Broken(f"{number:,} more files", SIMILAR_REASONS)]
            if (number := self._more["broken"])
            else []
        )
        return (*self.broken, *more)


def clean_line(text: str) -> str:
    """Words of a stranger's file as they may stand in a report: one line, not too long."""
    line = " ".join(clean_text(text).split())
    return line if len(line) <= 300 else f"{line[:299]}…"


FOR_THE_MODEL = "they are for the model; Deskhand writes its own"


def describe_role(role: object) -> str:
    """What messages of a role are called that are left out."""
    return f"messages of the role {role}"
