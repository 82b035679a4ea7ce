"""Finds facts by what they mean: keeps the vectors of each model in memory, and makes those that
are missing."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import anyio
import anyio.to_thread
import msgspec
import numpy as np

from ..models.embeddings import Embedder, Vectors
from ..store.base import Store
from ..types.commit import Change
from ..types.errors import ContextOverflow, MalformedReply, ModelError, ModelRequestRefused
from .index import Floats, Halves, Ids, Index

log = logging.getLogger(__name__)

PAGE = 5_000
BATCH = 32
CHANGES = 5_000
MAX_FACTS_LOADED_IN_SEARCH = 20_000
SEARCH_TIMEOUT_S = 3.0
"""So long a search waits for a model; then it goes on without."""
COOLDOWN_S = 30.0
MAX_TIMEOUTS = 2
"""A model that was so often too slow in a row is not waited for, for so long: else every message
would wait."""
MAX_ID = (1 << 62) - 1
Near = list[tuple[int, float, float]]
Owners = Sequence[tuple[str, str]] | None


class Meanings:
    """Of all these models, each with its own order. It implements `recall.Meaning`."""

    def __init__(self, store: Store, embedders: Sequence[Embedder]) -> None:
        self._store = store
        self._sides = [_Side(embedder, store) for embedder in embedders]

    @property
    def model_names(self) -> tuple[str, ...]:
        return tuple(side.embedder.name for side in self._sides)

    @property
    def needs_reindex(self) -> bool:
        """Whether a model makes other vectors than those that there are: all of them are to be made
        anew."""
        return any(side.needs_reindex for side in self._sides)

    async def find_nearest(self, text: str, owners: Owners, held: bool, top_k: int) -> list[Near]:
        """An order for each model: (id, relevance, cosine). One that fails or is slow has nothing
        to say."""
        orders: list[Near] = [[] for _ in self._sides]

        async def ask(place: int, side: _Side) -> None:
            if anyio.current_time() < side.rests_until:
                return
            with anyio.move_on_after(SEARCH_TIMEOUT_S) as patience:
                orders[place] = await side.find_nearest(text, owners, held, top_k)
            side.record_wait(in_vain=patience.cancelled_caught)

        async with anyio.create_task_group() as tasks:
            for place, side in enumerate(self._sides):
                tasks.start_soon(ask, place, side)
        return orders

    async def embed_missing(self) -> int:
        """Bring the index up to date, and make a batch of the vectors that are missing, for each
        model. Returns of how many facts it has seen to; 0: there are none. Raises ModelError,
        StoreError."""
        made = 0
        for side in self._sides:
            await side.refresh()
            if rows := await side.next_missing():
                made += await self._embed_batch(side, rows)
        return made

    async def _embed_batch(self, side: _Side, rows: list[tuple[int, str]]) -> int:
        try:
            await self._write_vectors(side, rows)
        except (ContextOverflow, MalformedReply, ModelRequestRefused) as error:
            refused: list[tuple[tuple[int, str], ModelError]] = [(rows[0], error)]
            if len(rows) > 1:
                refused = await self._embed_one_by_one(side, rows)
                if len(refused) == len(
                    rows
                ):  # then it is no text of them, but the model: it is asked again later
                    raise
            for (id_, _), why in refused:
                log.warning("memory #%s is found by words alone: %s", id_, why)
        side.mark_done([id_ for id_, _ in rows])
        return len(rows)

    async def _embed_one_by_one(
        self, side: _Side, rows: list[tuple[int, str]]
    ) -> list[tuple[tuple[int, str], ModelError]]:
        """One by one. Returns those that the model does not take."""
        refused = list[tuple[tuple[int, str], ModelError]]()
        for row in rows:
            try:
                await self._write_vectors(side, [row])
            except (ContextOverflow, MalformedReply, ModelRequestRefused) as error:
                refused.append((row, error))
        return refused

    async def _write_vectors(self, side: _Side, rows: list[tuple[int, str]]) -> None:
        vectors = await side.embedder.embed([text for _, text in rows], "passage")
        side.check_dimensions(vectors)
        changes = [
            Change("vector_add", (id_, side.embedder.name, half.tobytes()))
            for (id_, _), half in zip(rows, vectors.astype(np.float16), strict=True)
        ]
        await self._store.change(changes)


class _Side:
    """One model: its vectors, as far as they have been read, and what it has still to make."""

    def __init__(self, embedder: Embedder, store: Store) -> None:
        self.embedder, self._store, self._read = embedder, store, store.open_reader()
        self._index = Index()
        self._seq = -1
        self._one = anyio.Lock()
        self._complained = False
        self._below = MAX_ID
        self._made_seq = -1
        self._later: list[int] = []
        self._bytes = 0
        self.needs_reindex = False
        self.rests_until = 0.0
        self._in_vain = 0

    def record_wait(self, *, in_vain: bool) -> None:
        """A search has waited for it."""
        self._in_vain = self._in_vain + 1 if in_vain else 0
        if self._in_vain >= MAX_TIMEOUTS:
            log.warning(
                "%s is too slow: memory is searched without it for %.0f s",
                self.embedder.name,
                COOLDOWN_S,
            )
            self.rests_until = anyio.current_time() + COOLDOWN_S
            self._in_vain = MAX_TIMEOUTS - 1

    def check_dimensions(self, vectors: Vectors) -> None:
        """What the model makes now. Where it made them in another length before, under the same
        name, those are made anew; until then they stay where they are."""
        size = 2 * vectors.shape[1]
        if size != self._bytes:
            self._bytes = size
            if any(2 * dimensions != size for _, dimensions in self._index.partitions):
                log.warning(
                    "%s makes other vectors than before: all are made anew", self.embedder.name
                )
                self.needs_reindex = True

    async def find_nearest(self, text: str, owners: Owners, held: bool, top_k: int) -> Near:
        if (
            self._seq < 0
            and sum(row[2] for row in self._store.query_sync("fact_room"))
            > MAX_FACTS_LOADED_IN_SEARCH
        ):
            return []  # they are being read
        try:
            asked: Vectors = await self.embedder.embed([text], "query")
        except ModelError as error:
            if not self._complained:
                log.warning("memory is searched by words alone: %s", error)
            self._complained = True
            return []
        self._complained = False
        keys = (
            None
            if owners is None
            else [(*owner, on) for owner in owners for on in (False, True)[: 1 + held]]
        )
        async with self._one:
            found = await anyio.to_thread.run_sync(self._search, asked[0], keys, top_k)
        self.check_dimensions(asked)
        floor = self.embedder.floor
        return [
            (id_, min((near - floor) / (1 - floor), 1.0), near)
            for id_, near in found
            if near > floor
        ]

    def _search(
        self, asked: Floats, keys: list[tuple[str, str, bool]] | None, top_k: int
    ) -> list[tuple[int, float]]:
        self._refresh(pages=1)
        return self._index.find_nearest(asked, keys, top_k, self._fetch)

    async def refresh(self) -> None:
        """Take in all that has changed."""
        behind = True
        while behind:
            async with self._one:
                behind = await anyio.to_thread.run_sync(self._refresh, 1)

    def _refresh(self, pages: int) -> bool:
        """Take in what has changed since the last time, and read no more than that. Whether there
        may be more."""
        if self._seq < 0:
            self._load()
        for _ in range(pages):
            rows = self._read("fact_changes", (self._seq, CHANGES))
            if not rows:
                return False
            if self._has_gap(min(row[2] for row in rows)):
                self._load()
                return True
            ids = [row[1] for row in rows]
            self._index.remove(np.array(ids, np.int64))
            self._add_rows(
                self._read("vector_state", (self.embedder.name, msgspec.json.encode(ids).decode()))
            )
            self._seq = rows[-1][0]
        return True

    def _has_gap(self, first: int) -> bool:
        """Whether changes between the last that was taken in and this one are no longer kept."""
        return (
            first > self._seq + 1 and int(self._read("fact_changes_from", ())[0][0]) > self._seq + 1
        )

    def _load(self) -> None:
        index = Index()
        seq = int(self._read("fact_last_change", ())[0][0])
        last = 0
        self._index = index
        while rows := self._read("vector_load", (self.embedder.name, last, PAGE)):
            self._add_rows(rows)
            last = rows[-1][0]
        self._seq = seq

    def _add_rows(self, rows: list[tuple[Any, ...]]) -> None:
        shelves = dict[tuple[tuple[str, str, bool], int], list[tuple[int, bytes]]]()
        for id_, scope, owner, held, vector in rows:
            shelves.setdefault(((scope, owner, bool(held)), len(vector)), []).append((id_, vector))
        for (key, size), found in shelves.items():
            vectors = np.frombuffer(b"".join(vector for _, vector in found), np.float16).reshape(
                -1, size // 2
            )
            self._index.upsert(key, np.array([id_ for id_, _ in found], np.int64), vectors)

    def _fetch(self, ids: Ids) -> Halves:
        rows = self._read(
            "vector_fetch", (self.embedder.name, msgspec.json.encode(ids.tolist()).decode())
        )
        found = dict(rows)
        size = max(map(len, found.values()), default=0)
        nothing = bytes(size)
        whole = b"".join(
            vector if len(vector := found.get(id_, nothing)) == size else nothing
            for id_ in ids.tolist()
        )
        return np.frombuffer(whole, np.float16).reshape(len(ids), -1)

    # What it has still to make: all that there is, once, and from then on what changes.

    async def next_missing(self) -> list[tuple[int, str]]:
        async with self._one:
            return await anyio.to_thread.run_sync(self._next_missing)

    def _next_missing(self) -> list[tuple[int, str]]:
        name = self.embedder.name
        if self.needs_reindex:
            self._below = MAX_ID
            self.needs_reindex = False
        if self._made_seq < 0:
            self._made_seq = int(self._read("fact_last_change", ())[0][0])
        if self._below:
            rows = self._read("vector_missing", (name, self._below, BATCH, self._bytes))
            if rows:
                return [(id_, text) for id_, text in rows]
            self._below = 0
        while not self._later:
            changed = self._read("fact_changes", (self._made_seq, CHANGES))
            if not changed:
                return []
            ids = [row[1] for row in changed]
            rows = self._read(
                "vector_missing_of", (name, msgspec.json.encode(ids).decode(), self._bytes)
            )
            self._later = [id_ for id_, _ in rows]
            self._made_seq = changed[-1][0]
        page = msgspec.json.encode(self._later[:BATCH]).decode()
        rows = self._read("vector_missing_of", (name, page, self._bytes))
        if not rows:
            del self._later[:BATCH]
            return self._next_missing()
        return [(id_, text) for id_, text in rows]

    def mark_done(self, ids: list[int]) -> None:
        """Vectors of these have been written."""
        if self._below:
            self._below = min(ids)
        else:
            self._later = [id_ for id_ in self._later if id_ not in set(ids)]
