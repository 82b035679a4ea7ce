"""Typed queries on the tables of people: users, tokens, pairings, the audit trail, and alerts."""

from __future__ import annotations

from ..store.base import Store


async def roles_of(store: Store, user: str) -> tuple[str, ...] | None:
    """The roles of this user, or None when there is no such user."""
    rows = await store.query("job_person", (user,))
    if not rows:
        return None
    return tuple(role for (role,) in rows if role)
