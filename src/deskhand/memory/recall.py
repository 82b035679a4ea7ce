"""Finds facts again, for whoever may see them: by words, by meaning where a model compares that,
and by both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import anyio
import anyio.to_thread
import msgspec

from ..store.base import Store
from ..types.clock import Clock
from .claims import contradict, parse_claim
from .facts import Fact, FactHit, Scope, Viewer, encode_owners, parse_fact_row
from .fuse import WORDS_WEIGHT, Ranked, fuse_rankings
from .words import (
    build_fts_query,
    compute_word_overlap,
    extract_names,
    extract_words,
    normalize_text,
)

MOST_FOUND = 50
DEPTH = 50
"""So far down each order is read before they become one."""
INLINE_SEARCH_FACTS = 2_000
"""So many facts are searched for words in less time than it takes to go to another thread and
back."""
DUPLICATE_COSINE = 0.9
"""As near as this two facts say the same."""
Owners = Sequence[tuple[str, str]] | None
Read = Callable[[str, tuple[str | int | float | bytes | None, ...]], list[tuple[Any, ...]]]


class Meaning(Protocol):
    """Compares meanings, by one model or several, whose `names` these are. `memory/meaning.py`
    implements it."""

    @property
    def model_names(self) -> tuple[str, ...]: ...

    @property
    def needs_reindex(self) -> bool:
        """Whether vectors that there are must be made anew."""
        ...

    async def find_nearest(
        self, text: str, owners: Owners, held: bool, top_k: int
    ) -> Sequence[Sequence[tuple[int, float, float]]]:
        """An order for each model: (id, relevance, cosine)."""
        ...

    async def embed_missing(self) -> int:
        """Make some of the vectors that are missing. Returns how many. Raises ModelError,
        StoreError."""
        ...


class Only(msgspec.Struct, frozen=True):
    """A choice among facts: those of one owner, those that are pinned, those that are held."""

    owner: str = ""
    pinned: bool = False
    held: bool = False


ALL = Only()


class Memory:
    """What is known. Everything that is asked takes a Viewer: there is no other way to a fact.
    Without `meaning` words alone are compared."""

    def __init__(self, store: Store, clock: Clock, meaning: Meaning | None = None) -> None:
        self._store = store
        self._clock = clock
        self.meaning = meaning
        self._seq = -1
        self._room: Mapping[tuple[str, str], int] = {}
        self._pins: tuple[Fact, ...] = ()
        self._reader: Read | None = None
        self._one = anyio.Lock()

    # What is asked at every turn: from memory, and brought up to date where a fact has changed.

    def count(self, viewer: Viewer) -> int:
        """How many there are for this viewer, those included that are held. Does not wait."""
        self._refresh()
        owners = viewer.owners()
        return (
            sum(self._room.values())
            if owners is None
            else sum(self._room.get(each, 0) for each in owners)
        )

    def count_owned(self, scope: Scope, owner: str) -> int:
        """How many one owner has. Does not wait."""
        self._refresh()
        return self._room.get((scope, owner), 0)

    def pinned(self, viewer: Viewer) -> list[Fact]:
        """What is always told, the oldest first. Does not wait."""
        self._refresh()
        return [fact for fact in self._pins if viewer.sees(fact)]

    @property
    def seq(self) -> int:
        """A number that changes with the facts. Does not wait."""
        self._refresh()
        return self._seq

    def _refresh(self) -> None:
        seq = int(self._store.query_sync("fact_last_change")[0][0])
        if seq != self._seq:
            self._room = {
                (scope, owner): facts for scope, owner, facts in self._store.query_sync("fact_room")
            }
            self._pins = tuple(parse_fact_row(row) for row in self._store.query_sync("fact_pinned"))
        self._seq = seq

    # Searches

    async def search(
        self, query: str, viewer: Viewer, top_k: int = 5, scope: str = ""
    ) -> list[FactHit]:
        """The facts that answer this best, the best first, at most `top_k` (of MOST_FOUND)."""
        owners = viewer.owners(scope)
        orders = [await self._search_words(query, owners, viewer.held)]
        if self.meaning is not None and query.strip():
            near = await self.meaning.find_nearest(query, owners, viewer.held, DEPTH)
            orders += [Ranked([(id_, relevance) for id_, relevance, _ in hits]) for hits in near]
        found = fuse_rankings(orders)
        facts = await self._fetch_facts([id_ for id_, _ in found[: 2 * MOST_FOUND]])
        now = self._clock.now()
        shown = [
            FactHit(facts[id_], relevance)
            for id_, relevance in found
            if id_ in facts and relevance > 0
        ]
        return [each for each in shown if _is_valid(each.fact, now) and viewer.sees(each.fact)][
            : min(top_k, MOST_FOUND)
        ]

    async def _search_words(self, query: str, owners: Owners, held: bool) -> Ranked:
        words = extract_words(query)
        if not words:
            return Ranked(())
        args = (build_fts_query(query), encode_owners(owners), self._clock.now(), int(held), DEPTH)
        rows = await self._search_index(args)
        return Ranked(
            [(id_, compute_word_overlap(words, text)) for id_, text in rows], WORDS_WEIGHT
        )

    async def _search_index(
        self, args: tuple[str | int | float | None, ...]
    ) -> list[tuple[int, str]]:
        """Ask the index of words: in a thread, where there are so many facts that it takes long."""
        self._refresh()
        if sum(self._room.values()) <= INLINE_SEARCH_FACTS:
            return [(row[0], row[1]) for row in self._store.query_sync("fact_find", args)]
        async with self._one:
            self._reader = self._reader or self._store.open_reader()
            rows = await anyio.to_thread.run_sync(self._reader, "fact_find", args)
            return [(row[0], row[1]) for row in rows]

    async def find_exact(self, text: str, owners: Sequence[tuple[str, str]]) -> list[Fact]:
        """The facts of these owners that say this in the same words, also those that are held."""
        words = " ".join(f'"{word}"' for word in normalize_text(text).split()[:64])
        rows = (
            await self._search_index((words, encode_owners(owners), self._clock.now(), 1, 20))
            if words
            else []
        )
        same = await self._fetch_facts(
            [id_ for id_, said in rows if normalize_text(said) == normalize_text(text)]
        )
        return list(same.values())

    async def find_duplicate(self, text: str, scope: Scope, owner: str) -> Fact | None:
        """The fact of this owner that says the same already: in the same words, or in others about
        the same names."""
        owners = [(scope, owner)]
        now = self._clock.now()
        if same := await self.find_exact(text, owners):
            return same[0]
        near = (
            await self.meaning.find_nearest(text, owners, False, 3)
            if self.meaning is not None
            else ()
        )
        ids = {hits[0][0] for hits in near if hits and hits[0][2] >= DUPLICATE_COSINE}
        if (
            not near
            or len(ids) != 1
            or not all(hits and hits[0][2] >= DUPLICATE_COSINE for hits in near)
        ):
            return None
        for fact in (await self._fetch_facts([*ids])).values():
            if _is_valid(fact, now) and extract_names(fact.text) == extract_names(text):
                return fact
        return None

    async def find_contradicted(self, text: str, scope: Scope, owner: str) -> list[Fact]:
        """The facts of this owner that cannot hold any more when this does; what is held is not
        among them.

        `I` and `the user` name somebody only in what belongs to one person: elsewhere several may
        have said it.
        """
        claim = parse_claim(text)
        if claim is None or (not claim.subject and scope != "user"):
            return []
        words = " OR ".join(f'"{word}"' for word in normalize_text(text).split()[:64])
        rows = await self._search_index(
            (words, encode_owners([(scope, owner)]), self._clock.now(), 0, DEPTH)
        )
        ids = [
            id_
            for id_, said in rows
            if (known := parse_claim(said)) is not None and contradict(claim, known)
        ]
        return sorted((await self._fetch_facts(ids)).values(), key=lambda fact: fact.id)

    async def list_facts(
        self, viewer: Viewer, scope: str = "", limit: int = 50, offset: int = 0, *, only: Only = ALL
    ) -> list[Fact]:
        """What holds now, the latest first."""
        return self.list_facts_sync(viewer, scope, limit, offset, only=only)

    async def get(self, id_: int, viewer: Viewer) -> Fact | None:
        """One fact, also where it has been closed; None where it is not for this viewer."""
        return self.get_sync(id_, viewer)

    def list_facts_sync(
        self, viewer: Viewer, scope: str = "", limit: int = 50, offset: int = 0, *, only: Only = ALL
    ) -> list[Fact]:
        """The same as `facts`. Does not wait."""
        page = (int(only.pinned), limit, offset, scope, only.owner, int(only.held))
        args = (
            encode_owners(viewer.owners() if viewer.all_seeing else viewer.owners(scope)),
            self._clock.now(),
        )
        rows = self._store.query_sync("fact_list", (*args, int(viewer.held), *page))
        return [fact for row in rows if viewer.sees(fact := parse_fact_row(row))]

    def get_sync(self, id_: int, viewer: Viewer) -> Fact | None:
        """The same as `get`. Does not wait."""
        rows = (
            self._store.query_sync("fact_get", (msgspec.json.encode([id_]).decode(),))
            if 0 < id_ < 1 << 62
            else []
        )
        return next((fact for row in rows if viewer.sees(fact := parse_fact_row(row))), None)

    async def history(self, id_: int, viewer: Viewer) -> list[Fact]:
        """All that this came in place of, and what came in its place, the oldest first."""
        rows = await self._store.query("fact_history", (id_,))
        return [fact for row in rows if viewer.sees(fact := parse_fact_row(row))]

    async def _fetch_facts(self, ids: list[int]) -> dict[int, Fact]:
        rows = (
            await self._store.query("fact_get", (msgspec.json.encode(ids).decode(),)) if ids else []
        )
        return {fact.id: fact for row in rows for fact in [parse_fact_row(row)]}


def _is_valid(fact: Fact, now: float) -> bool:
    return fact.valid_to is None and (fact.expires_at is None or fact.expires_at > now)
