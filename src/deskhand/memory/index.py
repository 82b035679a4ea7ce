"""Vectors in memory, to be compared with one. Needs numpy.

Small ones are compared as they are. Of many the sign of each number is kept as a bit: those whose
bits are nearest are looked at again as they are, from memory, or beyond KEPT from whoever keeps
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Halves = npt.NDArray[np.float16]
Floats = npt.NDArray[np.float32]
Fetch = Callable[[Ids], Halves]
"""Gives the vectors of these ids, in their order; zeros for one that is gone."""

EXACT_SEARCH_MAX_VALUES = 1 << 21
"""Up to so many numbers are compared one by one; reading more takes longer than bits and a second
look."""
MAX_VALUES_IN_MEMORY = 20_000_000
"""Up to so many numbers stay in memory as they are: 50,000 vectors of a small model."""
CHUNK = 65_536
RERANK_MIN = 512
RERANK_SHARE = 16
RERANK_MAX = 2_048
"""At least so many, or one in so many, are looked at again, and so many at most."""


class VectorPartition:
    """The vectors of one owner. Not for several threads at once."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.size = 0
        self._words = -(-dimensions // 64)
        self._ids: Ids = np.zeros(0, np.int64)
        self._rows: Floats | None = np.zeros((0, dimensions), np.float32)
        self._bits: npt.NDArray[np.uint64] | None = None
        self._mean: Floats = np.zeros(dimensions, np.float32)

    def add(self, ids: Ids, rows: Halves) -> None:
        """These too. None of them may be here already."""
        size = self.size + len(ids)
        self._grow(size)
        self._ids[self.size : size] = ids
        if self._rows is not None:
            self._rows[self.size : size] = rows
        if self._bits is not None:
            self._bits[:, self.size : size] = self._pack_signs(rows)
        elif size * self.dimensions > EXACT_SEARCH_MAX_VALUES:
            self._require_rows()[self.size : size] = rows
            self._build_bits(size)
        self.size = size
        if size * self.dimensions > MAX_VALUES_IN_MEMORY:
            self._rows = None

    def remove(self, ids: Ids) -> None:
        """Without those of these that are here."""
        for place in np.flatnonzero(np.isin(self._ids[: self.size], ids))[::-1]:
            last = self.size = self.size - 1
            self._ids[place] = self._ids[last]
            if self._rows is not None:
                self._rows[place] = self._rows[last]
            if self._bits is not None:
                self._bits[:, place] = self._bits[:, last]

    def find_nearest(self, asked: Floats, top_k: int, fetch: Fetch) -> list[tuple[int, float]]:
        """(id, cosine) of the nearest, the nearest first."""
        if not self.size:
            return []
        if self._bits is None:
            ids = self._ids[: self.size]
            near = _compute_cosines(self._require_rows()[: self.size], asked)
        else:
            places = self._find_candidates(asked, self._bits, top_k)
            ids = self._ids[places]
            rows = self._rows[places] if self._rows is not None else fetch(ids).astype(np.float32)
            near = _compute_cosines(rows, asked)
        best = np.argsort(-near, kind="stable")[:top_k]
        return [(int(ids[each]), float(near[each])) for each in best]

    def _find_candidates(self, asked: Floats, bits: npt.NDArray[np.uint64], top_k: int) -> Ids:
        """The places of those whose bits differ least."""
        wanted = min(
            max(RERANK_MIN, 4 * top_k, min(self.size // RERANK_SHARE, RERANK_MAX)), self.size
        )
        signs = self._pack_signs(asked[None, :])
        apart = np.empty(self.size, np.uint16)
        differing = np.empty(CHUNK, np.uint64)
        counts = np.empty(CHUNK, np.uint8)
        for start in range(0, self.size, CHUNK):
            end = min(start + CHUNK, self.size)
            part = apart[start:end]
            width = end - start
            part[:] = 0
            for word in range(self._words):
                np.bitwise_xor(bits[word, start:end], signs[word], out=differing[:width])
                np.bitwise_count(differing[:width], out=counts[:width])
                np.add(part, counts[:width], out=part)
        # By counting: to sort them, even in part, takes longer than to compare them.
        limit = int(np.searchsorted(np.cumsum(np.bincount(apart)), wanted))
        places: Ids = np.flatnonzero(apart <= limit)
        if len(places) > 2 * wanted:
            nearer = np.flatnonzero(apart < limit)
            level = np.flatnonzero(apart == limit)
            places = np.concatenate((nearer, level[: max(wanted - len(nearer), 0)]))
        return places

    def _build_bits(self, size: int) -> None:
        """Bits for all. What all vectors have in common says nothing about any: it is taken off
        before."""
        rows = self._require_rows()[:size]
        self._mean = rows[:: max(1, size // 1_000)].mean(axis=0)
        self._bits = np.zeros((self._words, len(self._ids)), np.uint64)
        for start in range(0, size, CHUNK):
            end = min(start + CHUNK, size)
            self._bits[:, start:end] = self._pack_signs(rows[start:end])

    def _pack_signs(self, rows: Halves | Floats) -> npt.NDArray[np.uint64]:
        """A bit for each number, a column for each row."""
        packed = np.packbits(rows > self._mean, axis=1)
        whole = np.zeros((len(rows), self._words * 8), np.uint8)
        whole[:, : packed.shape[1]] = packed
        return np.ascontiguousarray(whole.view(np.uint64).T)

    def _require_rows(self) -> Floats:
        assert self._rows is not None, "the rows stay as long as there are no bits"
        return self._rows

    def _grow(self, size: int) -> None:
        """Room for so many, and for as many again, so that adding one costs nothing."""
        if size <= len(self._ids):
            return
        room = max(size + size // 2, 64)
        self._ids = np.resize(self._ids, room) if len(self._ids) else np.zeros(room, np.int64)
        if self._rows is not None:
            rows = np.zeros((room, self.dimensions), np.float32)
            rows[: self.size] = self._rows[: self.size]
            self._rows = rows
        if self._bits is not None:
            bits = np.zeros((self._words, room), np.uint64)
            bits[:, : self.size] = self._bits[:, : self.size]
            self._bits = bits


def _compute_cosines(rows: Floats, asked: Floats) -> Floats:
    """In this thread alone: a product of matrices takes all cores, and waits for each where they
    are busy."""
    found: Floats = np.vecdot(rows, asked)
    return found


class Index:
    """The vectors of one model, on a shelf for each key and length: whoever may see some keys is
    never shown another's, and vectors of another length, which a model of the same name made
    before, are compared with none."""

    def __init__(self) -> None:
        self.partitions: dict[tuple[tuple[str, str, bool], int], VectorPartition] = {}
        self._where: npt.NDArray[np.uint8] = np.zeros(1024, np.uint8)

    @property
    def size(self) -> int:
        return sum(shelf.size for shelf in self.partitions.values())

    def upsert(self, key: tuple[str, str, bool], ids: Ids, rows: Halves) -> None:
        """These are here now, and nowhere else."""
        self.remove(ids)
        place = (key, rows.shape[1])
        if place not in self.partitions:
            self.partitions[place] = VectorPartition(rows.shape[1])
        self.partitions[place].add(ids, rows)
        self._presence_map(ids)[ids] = 1

    def remove(self, ids: Ids) -> None:
        """These are gone."""
        known = self._presence_map(ids)
        here = ids[known[ids] != 0]
        if len(here):
            for shelf in self.partitions.values():
                shelf.remove(here)
            known[here] = 0

    def find_nearest(
        self, asked: Floats, keys: Sequence[tuple[str, str, bool]] | None, top_k: int, fetch: Fetch
    ) -> list[tuple[int, float]]:
        """(id, cosine) of the nearest under these keys, or under all."""
        wanted = {key for key, _ in self.partitions} if keys is None else dict.fromkeys(keys)
        found = list[tuple[int, float]]()
        for key in wanted:
            if shelf := self.partitions.get((key, len(asked))):
                found += shelf.find_nearest(asked, top_k, fetch)
        return sorted(found, key=lambda hit: (-hit[1], hit[0]))[:top_k]

    def _presence_map(self, ids: Ids) -> npt.NDArray[np.uint8]:
        """Which ids are here, with room for these."""
        highest = int(ids.max(initial=0))
        if highest >= len(self._where):
            room = np.zeros(2 * highest, np.uint8)
            room[: len(self._where)] = self._where
            self._where = room
        return self._where
