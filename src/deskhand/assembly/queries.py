"""Typed queries for the search in past conversations."""

from __future__ import annotations

from ..store.base import Store


async def sessions_of_place(store: Store, agent: str, place: str, limit: int) -> list[str]:
    """The sessions of this agent at a place and in its threads, the latest first."""
    rows = await store.query("past_of_place", (agent, place, limit))
    return [session for (session,) in rows]
