"""The family of a session: where it was branched from, and what was branched from it."""

from __future__ import annotations

import msgspec

from ..types.events import MessageReceived, decode_event
from ..types.identity import Principal
from .base import Store

READ_CHARS = 2_000
"""So much of a message is read: whoever shows less of it takes out secrets first."""


class BranchRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A session of a family. `origin` is the nearest session above it that the reader may see, ''
    for a root; it left that one after event `from_n`, where `turn` turns had ended, those included
    that the origin itself took along. `after` is how the last message before that begins, `words`
    how the first message begins that was said in this session itself, '' where there is none.
    `last_at` is when it was last used (seconds since the epoch)."""

    session: str
    title: str
    origin: str
    from_n: int
    turn: int
    after: str
    words: str
    last_at: float
    archived: bool


async def family_of(
    store: Store, principal: Principal, session: str, limit: int
) -> list[BranchRow]:
    """The session that all of them come from and every branch below it, of those that `principal`
    may see; each after its `origin`. The sessions that lead to this one come first, so that a
    `limit` leaves them in. A session that was erased is not among them, and its branches are roots.
    """
    sees_all = int("owner" in principal.roles)
    found = []
    for row in await store.query("branch_family", (session, sees_all, principal.id, limit)):
        name, title, origin, from_n, turn, last_at, archived, after, words = row
        found.append(
            BranchRow(
                session=name,
                title=title,
                origin=origin,
                from_n=from_n,
                turn=turn,
                after=_beginning(after),
                words=_beginning(words),
                last_at=last_at,
                archived=bool(archived),
            )
        )
    return found


def _beginning(body: bytes | None) -> str:
    """How the message in this event begins."""
    event = decode_event(body) if body is not None else None
    if not isinstance(event, MessageReceived):
        return ""
    return (event.message.own_text or event.message.text)[:READ_CHARS]
