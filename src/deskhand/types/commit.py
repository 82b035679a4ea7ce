"""What is written at once: the events of a session, and what they owe to the world."""

from __future__ import annotations

from typing import Literal

import msgspec

from .events import AnyEvent, Recorded
from .identity import Address
from .messages import Audio, File, Image, Text

SayPart = Text | Image | File | Audio


class Choices(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A question, for a channel that can offer the answers as buttons. What is chosen comes back as
    an `Answer` to `ask_id`, which nobody can guess. The parts of the message say the same in words
    alone. `approval`: it is about a call, and the choices are those of approvals. `note` is what
    must be known beside it. `decided` is what came of it, once that is known: then nothing is
    offered any more."""

    ask_id: str
    question: str
    choices: tuple[str, ...]
    approval: bool = False
    note: str = ""
    decided: str = ""

    @property
    def text(self) -> str:
        """All of it, where there are no buttons."""
        words = f"{self.question} ({' / '.join(self.choices)})" if self.choices else self.question
        return f"{words}\n{self.note}" if self.note else words


ActionName = Literal["stop", "retry", "undo", "document"]


class Actions(msgspec.Struct, frozen=True, gc=False):
    """Chat commands about a turn, for a channel that can offer them as buttons. `turn` is the inbox
    id of the message that opened it. What is pressed comes back as a `Command` for that turn, of
    the person who pressed. The words of the message do not name them: without buttons, people type
    the command."""

    turn: int
    names: tuple[ActionName, ...]


class Outgoing(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Something to be said at `address`. `key` is the idempotency key: at most one row has it.
    `silent`: nobody is to be notified of it, where a platform can do that. `links` are the only
    addresses that may lead anywhere when it is read, as the conversation has read something from
    outside; None: all may. `aloud` is the language in which its words are spoken, '' for the one
    that they are in: what is sent is a voice message then. A `reaction` is an emoji that is set on
    the message `reply_to`, and nothing is said. `unasked`: nobody waits for it, since a job says
    it; it is the person in whose chat it is said, '' where that is another's. `actions` are offered
    as buttons below it. `pressed` is a message with such buttons, which are removed, except those
    of `left`: one of them was pressed, and `reply_to` is that press. Its parts answer who pressed;
    there may be none. Words with the label LOCAL are Deskhand's own, and are said in the `language`
    of this code, as is all that stands around a question; '' is that of the reader.
    """

    key: str
    address: Address
    parts: tuple[SayPart, ...]
    reply_to: str = ""
    ask: Choices | None = None
    silent: bool = False
    links: tuple[str, ...] | None = None
    aloud: str | None = None
    reaction: str = ""
    unasked: str | None = None
    actions: Actions | None = None
    pressed: str = ""
    left: Actions | None = None
    language: str = ""


OutboxState = Literal["drafting", "deferred", "pending", "sending", "sent", "failed"]


class OutboxRow(msgspec.Struct, frozen=True, gc=False):
    """A row of the outbox as the sender sees it. `attempts` counts sends begun; `sent_id` is the
    platform's id."""

    id: int
    session: str
    outgoing: Outgoing
    state: OutboxState
    attempts: int
    at: float
    sent_id: str
    mark: str


class Change(msgspec.Struct, frozen=True, gc=False):
    """One row changed by a statement that a room registered with the store under this name. With
    `must` it has to change one: else nothing of its commit is written, and StaleSession raised."""

    statement: str
    args: tuple[str | int | float | bytes | None, ...]
    must: bool = False


class Commit(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One atomic step of a session: `events` become numbers n, n+1, … and everything else happens
    with them.

    `at` is when it was made, `times` when each of its events was recorded; () where that was all at
    once. `admitted` are the inbox rows that these events take in. Afterwards the session is closed
    (`close`: nothing is owed unless something waits in its inbox), rests until `wake_at` (seconds
    since the epoch), or is being driven.
    """

    session: str
    n: int
    at: float
    events: tuple[AnyEvent, ...]
    admitted: tuple[int, ...] = ()
    outbox: tuple[Outgoing, ...] = ()
    changes: tuple[Change, ...] = ()
    delivered: tuple[str, ...] = ()
    wake_at: float | None = None
    close: bool = False
    times: tuple[float, ...] = ()

    def to_recorded(self, seq: int) -> list[Recorded]:
        """Its events as they stand in the log, where the first of them has this `seq`."""
        times = self.times or (self.at,) * len(self.events)
        found = []
        for i, event in enumerate(self.events):
            found.append(Recorded(seq + i, self.session, self.n + i, times[i], event))
        return found
