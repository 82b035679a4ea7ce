"""How a conversation was at one event: what the model saw, and why each call was or was not run."""

from __future__ import annotations

from typing import Literal

import msgspec

from .labels import Label
from .messages import Message, Usage
from .options import SessionOptions

Outcome = Literal["allowed", "asked", "approved", "refused", "expired", "unasked", "closed", "open"]
"""`allowed` by the rules or a standing yes; `asked` and not answered yet; `approved` by a person;
`refused` by a person or a rule; `expired` and `unasked` as results say it; `closed` before anything
was decided; `open`: nothing is yet."""


class Judged(msgspec.Struct, frozen=True):
    """A call and what was decided about it, from the log. `n` is the event that says so, `by` the
    person."""

    n: int
    call_id: str
    tool: str
    arguments: str
    outcome: Outcome
    reason: str
    by: str = ""


class Moment(msgspec.Struct, frozen=True):
    """A conversation after event `n`. `rest` is the last event up to there that one can go back to
    or branch from.

    `messages` are what the next call of the model would be sent. `prompt` is what it would be told
    before them, for an owner alone: it is made of files that others may not read, and they are as
    they are now. `label` is the lowest of what has been read, `busy` says that a turn is open.
    """

    n: int
    at: float
    rest: int
    messages: tuple[Message, ...]
    prompt: tuple[str, ...]
    usage: Usage
    context_tokens: int
    label: Label
    options: SessionOptions
    busy: bool
    archived: bool
    judged: tuple[Judged, ...]
