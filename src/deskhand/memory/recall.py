"""Finds facts again, for whoever may see them."""

from __future__ import annotations

import msgspec

from ..store.base import Store
from ..types.clock import Clock
from .facts import Fact, Found, Viewer, fact_of, owners_in
from .words import wanted

MOST_FOUND = 50


class Memory:
    """What is known. Everything that is asked takes a Viewer: there is no other way to a fact."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def search(self, query: str, viewer: Viewer, top_k: int = 5, scope: str = "") -> list[Found]:
        """The facts that answer this best, the best first, at most `top_k` (of MOST_FOUND)."""
        words, owners = wanted(query), owners_in(viewer.owners(scope))
        if not words:
            return []
        args = (words, owners, self._clock.now(), int(viewer.held), min(top_k, MOST_FOUND))
        rows = await self._store.rows("fact_find", args)
        facts = await self._get([row[0] for row in rows])
        return [Found(facts[row[0]], 1.0) for row in rows if row[0] in facts and viewer.sees(facts[row[0]])]

    async def facts(
        self, viewer: Viewer, scope: str = "", limit: int = 50, offset: int = 0, *, pinned: bool = False
    ) -> list[Fact]:
        """What holds now, the latest first."""
        args = (owners_in(viewer.owners(scope)), self._clock.now(), int(viewer.held), int(pinned), limit, offset)
        return [fact for row in await self._store.rows("fact_list", args) if viewer.sees(fact := fact_of(row))]

    async def get(self, id_: int, viewer: Viewer) -> Fact | None:
        """One fact, also where it has been closed; None where it is not for this viewer."""
        fact = (await self._get([id_])).get(id_)
        return fact if fact is not None and viewer.sees(fact) else None

    async def history(self, id_: int, viewer: Viewer) -> list[Fact]:
        """All that this came in place of, and what came in its place, the oldest first."""
        rows = await self._store.rows("fact_history", (id_,))
        return [fact for row in rows if viewer.sees(fact := fact_of(row))]

    def pinned(self, viewer: Viewer) -> list[Fact]:
        """What is always told, the oldest first. Does not wait."""
        return [fact for row in self._store.look("fact_pinned") if viewer.sees(fact := fact_of(row))]

    async def _get(self, ids: list[int]) -> dict[int, Fact]:
        rows = await self._store.rows("fact_get", (msgspec.json.encode(ids).decode(),))
        return {fact.id: fact for row in rows for fact in [fact_of(row)]}
