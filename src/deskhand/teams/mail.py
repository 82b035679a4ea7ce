"""What is said in a team: to teammates of who they are, and what one member writes to another.
Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..types.errors import ToolError
from ..types.marked_texts import mark_text
from ..types.messages import clean_text
from ..types.teams import EVERYBODY_IN_TEAM, LEAD, Mail, Teammate

NAME = re.compile(r"[a-z][a-z0-9_-]{0,29}")
MAX_MAIL_CHARS = 20_000
MAX_ROLE_CHARS = 60


def check_name(name: str) -> str:
    """The name of a teammate. Raises ToolError."""
    name = name.strip().lower()
    if not NAME.fullmatch(name) or name in (LEAD, EVERYBODY_IN_TEAM):
        raise ToolError(
            f"{name[:40]!r} is no name for a teammate: it begins with a letter, has at most 30 "
            f"letters, digits, - and _, and is not {LEAD!r} or {EVERYBODY_IN_TEAM!r}"
        )
    return name


def clean_role(role: str) -> str:
    """What a teammate is for, in a line."""
    return " ".join(clean_text(role).split())[:MAX_ROLE_CHARS]


def check_text(text: str) -> str:
    """What is to be written. Raises ToolError where that is nothing, or too much."""
    text = clean_text(text).strip()
    if not text:
        raise ToolError("the message is empty")
    if len(text) > MAX_MAIL_CHARS:
        raise ToolError(
            f"the message has {len(text):,} characters, and at most {MAX_MAIL_CHARS:,} fit: name a "
            "file instead"
        )
    return text


def render_identity(name: str, role: str) -> str:
    """What the system prompt of a teammate says of it, in each of its requests."""
    what = f" ({role})" if role else ""
    return f"You are {name}{what}, a teammate in a team. The lead is {LEAD}."


def render_mail(mail: Mail) -> str:
    """The mail as whoever it is for reads it."""
    return f"[{_HEADINGS[mail.kind].format(mail=mail)}]\n{mail.text}".rstrip()


_HEADINGS = {
    "message": "message from {mail.sender}",
    "broadcast": "message from {mail.sender} to all",
    "shutdown_request": (
        "{mail.sender} asks you to shut down: request {mail.id}. Finish what would be lost, then "
        "answer with message_teammate: msg_type shutdown_response, this request_id, and approve"
    ),
    "shutdown_response": "{mail.sender} answers to the request {mail.about} to shut down",
    "plan_approval_request": (
        "{mail.sender} shows a plan: answer with plan_review, request_id {mail.id}"
    ),
    "plan_approval_response": "{mail.sender} answers to your plan, request {mail.about}",
}


def render_team(team: Sequence[Teammate], doing: Sequence[str]) -> str:
    """The members, a line each, with what each of them is doing."""
    lines = []
    for mate, now in zip(team, doing, strict=True):
        without_role, with_role = STATUS_LINES[mate.status]
        form = with_role if mate.role else without_role
        line = form.format(mate_name=mate.name, role=mate.role)
        lines.append(f"{line}: {now}" if now else line)
    return "\n".join(lines)


STATUS_LINES = {
    "working": (
        mark_text("{mate_name} works"),
        mark_text("{mate_name} ({role}) works"),
    ),
    "waiting": (
        mark_text("{mate_name} waits for a word on its plan"),
        mark_text("{mate_name} ({role}) waits for a word on its plan"),
    ),
    "idle": (
        mark_text("{mate_name} is idle"),
        mark_text("{mate_name} ({role}) is idle"),
    ),
    "shutdown": (
        mark_text("{mate_name} has shut down"),
        mark_text("{mate_name} ({role}) has shut down"),
    ),
}
"""What a teammate does, of one without a role and of one that has one."""


def render_request(mail: Mail, answer: Mail | None) -> str:
    """How a request stands."""
    kind = mail.kind.removesuffix("_request").replace("_", " ")
    status = mail.answer or ("dropped" if mail.state == "dropped" else "pending")
    said = f": {answer.text}" if answer is not None and answer.text else ""
    return f"{kind} request {mail.id} from {mail.sender} to {mail.recipient} is {status}{said}"
