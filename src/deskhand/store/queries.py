"""Typed queries on the tables that several rooms read: sessions, their members, and the log."""

from __future__ import annotations

from ..types.commit import Change
from .base import Store

# Sessions and their members


async def members_of(store: Store, session: str) -> set[str]:
    """The ids of the principals who take part in this session."""
    return {member for (member,) in await store.query("session_members", (session,))}


def add_member(session: str, principal: str) -> Change:
    """Let this principal take part in the session. Does nothing for one who already does."""
    return Change("session_join", (session, principal))


# The log


async def last_event_number(store: Store, session: str) -> int:
    """The number of the session's last event, or 0 when it has none."""
    for n, _ in await store.query("event_head", (session,)):
        return int(n)
    return 0
