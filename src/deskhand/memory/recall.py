"""Search in memory: by words, and by meaning when an embedding model is configured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

import anyio
import anyio.to_thread
import msgspec

from ..store.base import Store, SyncStatementReader
from ..types.clock import Clock
from . import queries
from .claims import contradict
from .contradictions import parse_fact_claim
from .facts import Fact, FactHit, Scope, Viewer
from .queries import MAX_ID, FactPage, FactText, Owners
from .rank_fusion import WORDS_WEIGHT, Ranked, fuse_rankings
from .words import (
    build_fts_query,
    compute_word_overlap,
    extract_names,
    extract_words,
    normalize_text,
)

MOST_FOUND = 50
DEPTH = 50
"""So many hits of each ranking are read before the rankings are fused."""
INLINE_SEARCH_FACTS = 2_000
"""Up to so many facts a search for words is faster than a trip to another thread and back."""
DUPLICATE_COSINE = 0.9
"""Two facts whose vectors are at least so similar say the same."""


class Meaning(Protocol):
    """Search by meaning, with one embedding model or several. Implemented by
    `memory.meaning.Meanings`."""

    @property
    def model_names(self) -> tuple[str, ...]: ...

    @property
    def needs_reindex(self) -> bool:
        """True when stored vectors no longer fit the model and must be computed again."""
        ...

    async def find_nearest(
        self, text: str, owners: Owners, held: bool, top_k: int
    ) -> Sequence[Sequence[tuple[int, float, float]]]:
        """One ranking for each model, as (id, relevance, cosine), the nearest first. Empty for a
        model that failed or was too slow."""
        ...

    async def embed_missing(self) -> int:
        """Compute a batch of missing vectors. Returns for how many facts; 0 when none are missing.

        Raises ModelError, StoreError.
        """
        ...


class Only(msgspec.Struct, frozen=True):
    """Lists only the facts of one owner, only pinned ones, only held ones, only those with an id
    below `before`."""

    owner: str = ""
    pinned: bool = False
    held: bool = False
    before: int = MAX_ID


ALL = Only()


class FactsPage(msgspec.Struct, frozen=True):
    """Some of the facts that a viewer sees. `next` is where the following page begins, None after
    the last one."""

    facts: list[Fact]
    next: int | None


class Memory:
    """The facts of this home, as far as a Viewer may see them. Without `meaning` facts are found by
    words only."""

    def __init__(self, store: Store, clock: Clock, meaning: Meaning | None = None) -> None:
        self._store = store
        self._clock = clock
        self.meaning = meaning
        self._seq = -1
        self._open_counts: Mapping[tuple[str, str], int] = {}
        self._pinned: Sequence[Fact] = ()
        self._reader: SyncStatementReader | None = None
        self._reader_lock = anyio.Lock()

    # Asked at every turn: answered from a cache that is read again when a fact has changed.

    def count(self, viewer: Viewer) -> int:
        """How many open facts this viewer's owners have, held ones included. Does not wait."""
        self._refresh()
        owners = viewer.owners()
        if owners is None:
            return sum(self._open_counts.values())
        return sum(self._open_counts.get(owner, 0) for owner in owners)

    def count_owned(self, scope: Scope, owner: str) -> int:
        """How many open facts one owner has. Does not wait."""
        self._refresh()
        return self._open_counts.get((scope, owner), 0)

    def pinned(self, viewer: Viewer) -> list[Fact]:
        """The pinned facts that this viewer sees, the oldest first. Does not wait."""
        self._refresh()
        return [fact for fact in self._pinned if viewer.sees(fact)]

    @property
    def seq(self) -> int:
        """A number that changes whenever a fact changes. Does not wait."""
        seq = queries.last_change(self._store)
        if seq != self._seq:
            self._reload(seq)
        return seq

    def _refresh(self) -> None:
        seq = queries.last_change(self._store)
        if seq != self._seq:
            self._reload(seq)

    def _reload(self, seq: int) -> None:
        self._open_counts = queries.count_open(self._store)
        self._pinned = queries.pinned_facts(self._store)
        self._seq = seq

    # Searches

    async def search(
        self, query: str, viewer: Viewer, top_k: int = 5, scope: str = ""
    ) -> list[FactHit]:
        """The open facts that answer this best, the best first: at most `top_k`, and never more
        than MOST_FOUND."""
        owners = viewer.owners(scope)
        rankings = [await self._rank_by_words(query, owners, viewer.held)]
        if self.meaning is not None and query.strip():
            by_meaning = await self.meaning.find_nearest(query, owners, viewer.held, DEPTH)
            rankings += [Ranked([(id_, near) for id_, near, _ in hits]) for hits in by_meaning]

        fused = fuse_rankings(rankings)
        facts = await self._facts_by_id([id_ for id_, _ in fused[: 2 * MOST_FOUND]])
        now = self._clock.now()

        found = []
        for id_, relevance in fused:
            fact = facts.get(id_)
            if fact is None or relevance <= 0:
                continue
            if _is_valid(fact, now) and viewer.sees(fact):
                found.append(FactHit(fact, relevance))
        return found[: min(top_k, MOST_FOUND)]

    async def _rank_by_words(self, query: str, owners: Owners, held: bool) -> Ranked:
        words = extract_words(query)
        if not words:
            return Ranked(())
        matches = await self._match_words(build_fts_query(query), owners, held, DEPTH)
        ranking = [(match.id, compute_word_overlap(words, match.text)) for match in matches]
        return Ranked(ranking, WORDS_WEIGHT)

    async def _match_words(
        self, query: str, owners: Owners, held: bool, limit: int
    ) -> list[FactText]:
        """Ask the full-text index. With many facts that takes long, and is done in a thread."""
        self._refresh()
        search = partial(
            queries.search_words,
            query=query,
            owners=owners,
            now=self._clock.now(),
            held=held,
            limit=limit,
        )
        if sum(self._open_counts.values()) <= INLINE_SEARCH_FACTS:
            return search(self._store)
        async with self._reader_lock:
            self._reader = self._reader or self._store.open_reader()
            return await anyio.to_thread.run_sync(search, self._reader)

    async def find_exact(self, text: str, owners: Sequence[tuple[str, str]]) -> list[Fact]:
        """The open facts of these owners that say this in the same words, held ones included."""
        wanted = normalize_text(text)
        if not wanted:
            return []
        query = " ".join(f'"{word}"' for word in wanted.split()[:64])
        matches = await self._match_words(query, owners, True, 20)
        same = [match.id for match in matches if normalize_text(match.text) == wanted]
        return list((await self._facts_by_id(same)).values())

    async def find_duplicate(self, text: str, scope: Scope, owner: str) -> Fact | None:
        """The fact of this owner that says the same: in the same words, or in other words about the
        same names, if all embedding models agree on that."""
        owners = [(scope, owner)]
        if same := await self.find_exact(text, owners):
            return same[0]
        if self.meaning is None:
            return None

        nearest = set[int]()
        rankings = await self.meaning.find_nearest(text, owners, False, 3)
        for hits in rankings:
            if not hits or hits[0][2] < DUPLICATE_COSINE:
                return None
            nearest.add(hits[0][0])
        if len(nearest) != 1:
            return None

        now = self._clock.now()
        for fact in (await self._facts_by_id(list(nearest))).values():
            if _is_valid(fact, now) and extract_names(fact.text) == extract_names(text):
                return fact
        return None

    async def find_contradicted(self, text: str, scope: Scope, owner: str) -> list[Fact]:
        """The open facts of this owner that cannot hold together with this one, by id. Held ones
        are left out."""
        claim = parse_fact_claim(text, scope)
        if claim is None:
            return []
        query = " OR ".join(f'"{word}"' for word in normalize_text(text).split()[:64])
        ids = []
        for match in await self._match_words(query, [(scope, owner)], False, DEPTH):
            known = parse_fact_claim(match.text, scope)
            if known is not None and contradict(claim, known):
                ids.append(match.id)
        return sorted((await self._facts_by_id(ids)).values(), key=lambda fact: fact.id)

    # Lists, and single facts

    async def list_facts(
        self, viewer: Viewer, scope: str = "", limit: int = 50, offset: int = 0, *, only: Only = ALL
    ) -> list[Fact]:
        """The open facts that this viewer sees, the latest first."""
        return self.list_facts_sync(viewer, scope, limit, offset, only=only)

    async def get(self, id_: int, viewer: Viewer) -> Fact | None:
        """One fact, also a closed one; None when there is none that this viewer sees."""
        return self.get_sync(id_, viewer)

    def list_facts_sync(
        self, viewer: Viewer, scope: str = "", limit: int = 50, offset: int = 0, *, only: Only = ALL
    ) -> list[Fact]:
        """As `list_facts`. Does not wait."""
        rows = self._read_list(viewer, scope, limit, offset, only)
        return [fact for fact in rows if viewer.sees(fact)]

    def _read_list(
        self, viewer: Viewer, scope: str, limit: int, offset: int, only: Only
    ) -> list[Fact]:
        page = FactPage(
            owners=viewer.owners("" if viewer.all_seeing else scope),
            now=self._clock.now(),
            limit=limit,
            offset=offset,
            held=viewer.held,
            pinned=only.pinned,
            scope=scope,
            owner=only.owner,
            only_held=only.held,
            before=only.before,
        )
        return queries.list_facts(self._store, page)

    def list_page(self, viewer: Viewer, scope: str, limit: int, only: Only) -> FactsPage:
        """The next open facts that this viewer sees, the latest first: at most `limit`, and fewer
        where the label of one is for others. Does not wait."""
        rows = self._read_list(viewer, scope, limit + 1, 0, only)
        shown = [fact for fact in rows[:limit] if viewer.sees(fact)]
        return FactsPage(shown, rows[limit - 1].id if len(rows) > limit else None)

    async def list_closed(
        self, viewer: Viewer, words: str, limit: int, before: int = 0
    ) -> FactsPage:
        """The next facts of this viewer's that were closed and not replaced, the last closed first.
        `words` stand in their text."""
        rows = await queries.closed_facts(
            self._store, viewer.owners() or (), words=words, before=before, limit=limit + 1
        )
        shown = [fact for fact in rows[:limit] if viewer.sees(fact)]
        return FactsPage(shown, rows[limit - 1].id if len(rows) > limit else None)

    def get_sync(self, id_: int, viewer: Viewer) -> Fact | None:
        """As `get`. Does not wait."""
        if not 0 < id_ <= MAX_ID:
            return None
        fact = queries.find_fact(self._store, id_)
        return fact if fact is not None and viewer.sees(fact) else None

    async def history(self, id_: int, viewer: Viewer) -> list[Fact]:
        """The fact, all that it replaced and all that replaced it, the oldest first."""
        return [fact for fact in await queries.fact_history(self._store, id_) if viewer.sees(fact)]

    async def _facts_by_id(self, ids: Sequence[int]) -> dict[int, Fact]:
        return {fact.id: fact for fact in await queries.get_facts(self._store, ids)}


def _is_valid(fact: Fact, now: float) -> bool:
    return fact.valid_to is None and (fact.expires_at is None or fact.expires_at > now)
