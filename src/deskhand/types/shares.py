"""Links under which anybody may read a conversation, until a day."""

from __future__ import annotations

from typing import Protocol

import msgspec

MAX_SHARE_DAYS = 365


class Share(msgspec.Struct, frozen=True):
    """What a link shows: the events of `session` up to number `last_n`, and with `files` the files
    that stand in them. `person` made it. Times are seconds since the epoch."""

    id: str
    session: str
    last_n: int
    person: str
    at: float
    until: float
    files: bool = False


class Shares(Protocol):
    """The links of all conversations. A link ends with its day, when it is revoked, when its
    conversation is erased, and when the person who made it may not see the conversation any more.
    Raises StoreUnavailable."""

    async def add(
        self, person: str, session: str, last_n: int, days: int, *, files: bool = False
    ) -> tuple[Share, str]:
        """A new link and its secret, which is shown this once. Raises ConfigError where `days` is
        less than 1 or more than MAX_SHARE_DAYS."""
        ...

    async def find(self, secret: str) -> Share | None:
        """What this link shows now; None where it does not hold, or never did."""
        ...

    async def of(self, person: str) -> list[Share]:
        """Those that this person has made and that hold, the latest first."""
        ...

    async def revoke(self, share_id: str, person: str) -> bool:
        """End one of this person's. False where there is none such."""
        ...
