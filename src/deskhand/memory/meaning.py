"""Search by meaning: keeps the vectors of each embedding model in memory, and computes missing
ones."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import anyio
import anyio.to_thread
import numpy as np

from ..models.embeddings import Embedder, Vectors
from ..store.base import Store
from ..types.errors import ContextOverflow, MalformedReply, ModelError, ModelRequestRefused
from . import queries
from .index import Floats, Halves, Ids, Index
from .queries import FactText, Owners, StoredVector

log = logging.getLogger(__name__)

PAGE = 5_000
BATCH = 32
CHANGES = 5_000
MAX_FACTS_LOADED_IN_SEARCH = 20_000
SEARCH_TIMEOUT_S = 3.0
"""How long a search waits for a model. After that it goes on without that model."""
COOLDOWN_S = 30.0
MAX_TIMEOUTS = 2
"""A model that is too slow so many times in a row is left out for COOLDOWN_S, so that not every
message waits for it."""
MAX_ID = (1 << 62) - 1
Near = list[tuple[int, float, float]]
"""(id, relevance, cosine), the nearest first."""


class Meanings:
    """Search by meaning with several models. Implements `recall.Meaning`."""

    def __init__(self, store: Store, embedders: Sequence[Embedder]) -> None:
        self._store = store
        self._indexes = [_EmbeddingIndex(embedder, store) for embedder in embedders]

    @property
    def model_names(self) -> tuple[str, ...]:
        return tuple(index.embedder.name for index in self._indexes)

    @property
    def needs_reindex(self) -> bool:
        """True when a model now makes vectors of another length than the stored ones."""
        return any(index.needs_reindex for index in self._indexes)

    async def find_nearest(self, text: str, owners: Owners, held: bool, top_k: int) -> list[Near]:
        """One ranking for each model: (id, relevance, cosine), the nearest first. Empty for a model
        that failed or was too slow."""
        rankings: list[Near] = [[] for _ in self._indexes]

        async def ask(place: int, index: _EmbeddingIndex) -> None:
            if anyio.current_time() < index.rests_until:
                return
            with anyio.move_on_after(SEARCH_TIMEOUT_S) as patience:
                rankings[place] = await index.find_nearest(text, owners, held, top_k)
            index.record_wait(timed_out=patience.cancelled_caught)

        async with anyio.create_task_group() as tasks:
            for place, index in enumerate(self._indexes):
                tasks.start_soon(ask, place, index)
        return rankings

    async def embed_missing(self) -> int:
        """Read what has changed, and compute a batch of missing vectors for each model.

        Returns for how many facts; 0 when none are missing. Raises ModelError, StoreError.
        """
        made = 0
        for index in self._indexes:
            await index.refresh()
            facts = await index.next_missing()
            if facts:
                made += await self._embed_batch(index, facts)
        return made

    async def _embed_batch(self, index: _EmbeddingIndex, facts: list[FactText]) -> int:
        try:
            await self._write_vectors(index, facts)
        except (ContextOverflow, MalformedReply, ModelRequestRefused) as error:
            refused: list[tuple[FactText, ModelError]] = [(facts[0], error)]
            if len(facts) > 1:
                refused = await self._embed_one_by_one(index, facts)
                if len(refused) == len(facts):  # the model fails, not a text: try again later
                    raise
            for fact, why in refused:
                log.warning("Memory #%s has no vector and is found by words only: %s", fact.id, why)
        index.mark_done([fact.id for fact in facts])
        return len(facts)

    async def _embed_one_by_one(
        self, index: _EmbeddingIndex, facts: list[FactText]
    ) -> list[tuple[FactText, ModelError]]:
        """Returns the facts that the model refuses, each with the reason."""
        refused: list[tuple[FactText, ModelError]] = []
        for fact in facts:
            try:
                await self._write_vectors(index, [fact])
            except (ContextOverflow, MalformedReply, ModelRequestRefused) as error:
                refused.append((fact, error))
        return refused

    async def _write_vectors(self, index: _EmbeddingIndex, facts: list[FactText]) -> None:
        vectors = await index.embedder.embed([fact.text for fact in facts], "passage")
        index.check_dimensions(vectors)
        model = index.embedder.name
        changes = [
            queries.add_vector(fact.id, model, vector.tobytes())
            for fact, vector in zip(facts, vectors.astype(np.float16), strict=True)
        ]
        await self._store.change(changes)


class _EmbeddingIndex:
    """The vectors of one model that are in memory, and the facts that still lack one."""

    def __init__(self, embedder: Embedder, store: Store) -> None:
        self.embedder = embedder
        self._store = store
        self._reader = store.open_reader()
        self._index = Index()
        self._seq = -1
        self._lock = anyio.Lock()
        self._complained = False
        self._below = MAX_ID
        self._made_seq = -1
        self._later: list[int] = []
        self._vector_bytes = 0
        self.needs_reindex = False
        self.rests_until = 0.0
        self._timeouts = 0

    def record_wait(self, *, timed_out: bool) -> None:
        """A search has waited for this model. After MAX_TIMEOUTS in a row the model is left out for
        a while."""
        self._timeouts = self._timeouts + 1 if timed_out else 0
        if self._timeouts >= MAX_TIMEOUTS:
            log.warning(
                "%s is too slow: memory is searched without it for %.0f s",
                self.embedder.name,
                COOLDOWN_S,
            )
            self.rests_until = anyio.current_time() + COOLDOWN_S
            self._timeouts = MAX_TIMEOUTS - 1

    def check_dimensions(self, vectors: Vectors) -> None:
        """Compare the length of new vectors with those in memory. When it differs, all vectors of
        this model are computed again; until then the old ones stay."""
        size = 2 * vectors.shape[1]
        if size == self._vector_bytes:
            return
        self._vector_bytes = size
        if any(2 * dimensions != size for _, dimensions in self._index.partitions):
            log.warning(
                "%s now makes vectors of another length: all are computed again",
                self.embedder.name,
            )
            self.needs_reindex = True

    async def find_nearest(self, text: str, owners: Owners, held: bool, top_k: int) -> Near:
        if self._seq < 0:
            count = sum(queries.count_open(self._store).values())
            if count > MAX_FACTS_LOADED_IN_SEARCH:
                return []  # too many to load now: `refresh` is reading them
        try:
            asked: Vectors = await self.embedder.embed([text], "query")
        except ModelError as error:
            if not self._complained:
                log.warning("Memory is searched by words only: %s", error)
            self._complained = True
            return []
        self._complained = False

        keys: list[tuple[str, str, bool]] | None = None
        if owners is not None:
            keys = [(*owner, False) for owner in owners]
            if held:
                keys += [(*owner, True) for owner in owners]
        async with self._lock:
            found = await anyio.to_thread.run_sync(self._search, asked[0], keys, top_k)
        self.check_dimensions(asked)

        floor = self.embedder.floor
        return [
            (id_, min((cosine - floor) / (1 - floor), 1.0), cosine)
            for id_, cosine in found
            if cosine > floor
        ]

    def _search(
        self, asked: Floats, keys: list[tuple[str, str, bool]] | None, top_k: int
    ) -> list[tuple[int, float]]:
        self._refresh()
        return self._index.find_nearest(asked, keys, top_k, self._fetch)

    async def refresh(self) -> None:
        """Read all changes of facts since the last time."""
        behind = True
        while behind:
            async with self._lock:
                behind = await anyio.to_thread.run_sync(self._refresh)

    def _refresh(self) -> bool:
        """Read one page of changes. Returns whether there may be more."""
        if self._seq < 0:
            self._load()
        changes = queries.changes_since(self._reader, self._seq, CHANGES)
        if not changes:
            return False
        if self._has_gap(min(change.first_seq for change in changes)):
            self._load()
            return True
        ids = [change.fact for change in changes]
        self._index.remove(np.array(ids, np.int64))
        self._add(queries.vectors_of(self._reader, self.embedder.name, ids))
        self._seq = changes[-1].seq
        return True

    def _has_gap(self, first: int) -> bool:
        """Whether changes between the last one read and `first` have been forgotten."""
        wanted = self._seq + 1
        return first > wanted and queries.first_kept_change(self._reader) > wanted

    def _load(self) -> None:
        """Read all vectors of this model."""
        seq = queries.last_change(self._reader)
        last = 0
        self._index = Index()
        while page := queries.load_vectors(self._reader, self.embedder.name, last, PAGE):
            self._add(page)
            last = page[-1].fact
        self._seq = seq

    def _add(self, vectors: list[StoredVector]) -> None:
        partitions: dict[tuple[tuple[str, str, bool], int], list[StoredVector]] = {}
        for vector in vectors:
            key = (vector.scope, vector.owner, vector.held)
            partitions.setdefault((key, len(vector.data)), []).append(vector)
        for (key, size), found in partitions.items():
            whole = b"".join(vector.data for vector in found)
            rows = np.frombuffer(whole, np.float16).reshape(-1, size // 2)
            self._index.upsert(key, np.array([vector.fact for vector in found], np.int64), rows)

    def _fetch(self, ids: Ids) -> Halves:
        """The vectors of these facts, in their order; zeros for one that is gone."""
        found = queries.vector_bytes(self._reader, self.embedder.name, ids.tolist())
        size = max(map(len, found.values()), default=0)
        zeros = bytes(size)
        rows = []
        for id_ in ids.tolist():
            row = found.get(id_, zeros)
            rows.append(row if len(row) == size else zeros)
        return np.frombuffer(b"".join(rows), np.float16).reshape(len(ids), -1)

    # Missing vectors: of all facts once, from the latest to the oldest, then of those that change.

    async def next_missing(self) -> list[FactText]:
        """The next batch of facts that have no vector of this model; empty when none is left."""
        async with self._lock:
            return await anyio.to_thread.run_sync(self._next_missing)

    def _next_missing(self) -> list[FactText]:
        model = self.embedder.name
        if self.needs_reindex:
            self._below = MAX_ID
            self.needs_reindex = False
        if self._made_seq < 0:
            self._made_seq = queries.last_change(self._reader)
        if self._below:
            facts = queries.facts_without_vector(
                self._reader, model, below=self._below, limit=BATCH, size=self._vector_bytes
            )
            if facts:
                return facts
            self._below = 0
        while not self._later:
            changes = queries.changes_since(self._reader, self._made_seq, CHANGES)
            if not changes:
                return []
            ids = [change.fact for change in changes]
            self._later = [fact.id for fact in self._lacking(ids)]
            self._made_seq = changes[-1].seq
        facts = self._lacking(self._later[:BATCH])
        if not facts:
            del self._later[:BATCH]
            return self._next_missing()
        return facts

    def _lacking(self, ids: list[int]) -> list[FactText]:
        return queries.facts_without_vector_among(
            self._reader, self.embedder.name, ids, self._vector_bytes
        )

    def mark_done(self, ids: list[int]) -> None:
        """The vectors of these facts have been written, or cannot be computed."""
        if self._below:
            self._below = min(ids)
        else:
            done = set(ids)
            self._later = [id_ for id_ in self._later if id_ not in done]
