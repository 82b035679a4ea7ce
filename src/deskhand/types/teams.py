"""Teams: sub-agents that work on with a conversation, under names, and write to each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from .labels import Label
from .subagents import TaskRequest

LEAD = "lead"
"""How teammates call the conversation that they work for."""
EVERYBODY_IN_TEAM = "all"
TeammateState = Literal["active", "leaving", "gone"]
"""`leaving`: it has shut down, and the tasks that it held are not free yet."""
TeammateStatus = Literal["working", "waiting", "idle", "shutdown"]
"""`waiting`: it has shown a plan, and nobody has said yes or no."""
MailKind = Literal[
    "message",
    "broadcast",
    "shutdown_request",
    "shutdown_response",
    "plan_approval_request",
    "plan_approval_response",
]
ASKS: frozenset[MailKind] = frozenset({"shutdown_request", "plan_approval_request"})
"""What is to be answered, once."""
Verdict = Literal["", "approved", "rejected"]


class TeamMembership(msgspec.Struct, frozen=True):
    """The place of a teammate: the conversation that it works for, and its name."""

    team: str
    name: str


class Teammate(msgspec.Struct, frozen=True):
    """A member of the team of a conversation. `id` is its sub-agent. Times are seconds since the
    epoch; it has had nothing to do since `idle_since`. It `works` on a task, or `waits` for a word
    on its plan."""

    team: str
    name: str
    role: str
    id: str
    state: TeammateState
    at: float
    idle_since: float | None = None
    works: bool = False
    waits: bool = False

    @property
    def status(self) -> TeammateStatus:
        if self.state != "active":
            return "shutdown"
        if self.works:
            return "working"
        return "waiting" if self.waits else "idle"


class Mail(msgspec.Struct, frozen=True):
    """What one member of a team writes to another. `request` is how it is given to a teammate as a
    task, None for the lead. `about` is the mail that it answers, `answer` what was answered to
    it."""

    id: str
    team: str
    sender: str
    recipient: str
    kind: MailKind
    text: str
    label: Label
    at: float
    request: TaskRequest | None = None
    about: str = ""
    answer: Verdict = ""
    state: Literal["wanted", "given", "dropped"] = "wanted"


_decode_label = msgspec.json.Decoder(Label).decode
_decode_request = msgspec.json.Decoder(TaskRequest).decode


def parse_teammate_row(row: Sequence[Any]) -> Teammate:
    """A row as the statements on the table `teammate` give it."""
    *plain, works, waits = row
    plain += (bool(works), bool(waits))
    return Teammate(*plain)


def parse_mail_row(row: Sequence[Any]) -> Mail:
    """A row as the statements on the table `mail` give it."""
    *plain, label, at, request, about, answer, state = row
    found = _decode_request(request) if request is not None else None
    plain += (_decode_label(label), at, found, about, answer, state)
    return Mail(*plain)
