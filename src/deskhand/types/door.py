"""The one way in for every surface, and what it can follow."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Literal, Protocol

import msgspec

from .events import Recorded
from .identity import Inbound, Principal, Receipt, When
from .messages import Message, ResultStatus
from .moment import Moment
from .options import SessionOptions

PREVIEW_CHARS = 2_000
TEXT_CHARS = 1_000_000
"""The longest message that a conversation takes; more belongs in a file."""


class Progress(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What happens between two events; never stored, may be dropped.

    `n` is the event that this is going to become, `attempt` counts tries at it, `offset` is where
    in the text (in characters) this piece begins. `snapshot` is all the text so far, for who comes
    late; `reset` means that a try failed and its text is void. `tool_result` is the beginning of
    what came of one of several calls that run side by side, with its `status`; the event follows
    when all of them are over. `step` is what a sub-agent does, for chats. The first piece of a
    reply names the `model` that gives it, which was asked with `recalled` memories. In a
    conversation that is traced, `prompt` is the system prompt with which the model is asked now,
    which owners alone are shown, and `request` the rest of it (see `agent.trace`).
    """

    kind: Literal[
        "text",
        "thinking",
        "tool_output",
        "tool_result",
        "step",
        "status",
        "snapshot",
        "reset",
        "prompt",
        "request",
    ]
    n: int
    attempt: int = 0
    offset: int = 0
    text: str = ""
    call_id: str = ""
    status: ResultStatus = "ok"
    model: str = ""
    recalled: int = 0


class Door(Protocol):
    """How a surface acts. Nothing passes it unauthorized, and what `submit` accepted is durable."""

    async def submit(self, inbound: Inbound) -> Receipt:
        """Authorise, route and store. Returns once the row is on disk (or refused); raises
        StoreUnavailable when it cannot be stored, in which case the platform must not be told that
        it was."""
        ...

    def follow(
        self, session: str, principal: Principal, after: int = 0
    ) -> AsyncGenerator[Recorded | Progress]:
        """The session's events after number `after`, then live ones for ever, with progress between
        them. Close it when you have seen enough (`contextlib.aclosing`).

        Raises Refused when the session is not the principal's to see.
        """
        ...

    def follow_in_batches(
        self, session: str, principal: Principal, after: int = 0
    ) -> AsyncGenerator[Sequence[Recorded | Progress]]:
        """The same, for who sends on: each time all that there is by then."""
        ...

    def watch(self, principal: Principal, after_seq: int = 0) -> AsyncGenerator[Recorded]:
        """The events of all sessions that the principal may see, after `seq`, then what happens,
        for ever. Close it too."""
        ...

    async def stop(self, session: str, principal: Principal) -> Receipt:
        """Stop what runs in the session, at once and journalled."""
        ...

    async def rewind(
        self,
        session: str,
        principal: Principal,
        to_n: int,
        message: Message | None = None,
        when: When = "steer",
    ) -> Receipt:
        """Hand in that the conversation goes back to how it was after event `to_n`, and on from
        there with `message`: see `types.identity.Rewind`. What speaks against it in the session
        itself is answered there."""
        ...

    async def configure(
        self, session: str, principal: Principal, options: SessionOptions
    ) -> Receipt:
        """Hand in how the conversation is to be held."""
        ...

    async def answer(self, ask_id: str, choice: str, principal: Principal) -> Receipt:
        """Hand in the answer to whatever is open under this id, in any session that the principal
        may see. Whether it counts is decided there: the yes of somebody who may not approve is
        answered in words."""
        ...

    async def get_state_at(self, session: str, principal: Principal, n: int) -> Moment:
        """How the conversation was after event n. Raises Refused."""
        ...

    async def branch(
        self, session: str, principal: Principal, at_n: int, to: str | None = None
    ) -> Receipt:
        """Begin session `to` (None: named after this one) as this one was at its last rest up to
        event `at_n`. It is there when this returns. Raises StaleSession when there is a session
        `to` already."""
        ...
