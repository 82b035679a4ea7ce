"""What runs beside a conversation: commands in the background, and sessions at a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from .labels import LOCAL, UNTRUSTED, Label

ProcessKind = Literal["background", "session"]
ProcessState = Literal["wanted", "running", "completed", "timeout", "error"]
"""`wanted`: the call is in the log, and it is about to be started. `completed`: it ended by itself,
with a code."""


class Process(msgspec.Struct, frozen=True, omit_defaults=True):
    """`detail` is how it ended, where the state does not say it. `said` is what the conversation is
    told of its output, under this `label`. The command is of the label `began`: that of who wanted
    it. Times are seconds since the epoch."""

    id: str
    session: str
    agent: str
    kind: ProcessKind
    command: str
    name: str
    state: ProcessState
    at: float
    timeout_s: float
    started_at: float | None = None
    ended_at: float | None = None
    code: int | None = None
    detail: str = ""
    said: str = ""
    label: Label = UNTRUSTED
    began: Label = UNTRUSTED

    @property
    def is_live(self) -> bool:
        return self.state in ("wanted", "running")


def parse_process_row(row: Sequence[Any]) -> Process:
    """A row as the statements `process_list` and `process_seen_by` give it."""
    *plain, began, label = row
    wanted = msgspec.json.decode(began, type=Label) if began else UNTRUSTED
    said = msgspec.json.decode(label, type=Label) if label else LOCAL
    return replace(Process(*plain), label=said, began=wanted)
