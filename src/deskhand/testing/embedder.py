"""An embedder that needs no model: texts are near each other where they share words. For tests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

import anyio.lowlevel
import numpy as np

from ..models.embeddings import TextKind, Vectors, normalize_rows
from ..types.errors import ModelUnavailable

_WORD = re.compile(r"\w+")


class WordEmbedder:
    """Words of one group in `alike` count as the same word. While `broken` it fails, and `asked`
    keeps what it was given."""

    floor = 0.0

    def __init__(
        self, name: str = "fake/words", dimensions: int = 256, alike: Iterable[Sequence[str]] = ()
    ) -> None:
        self.name = name
        self.broken = False
        self.asked: list[str] = []
        self._dimensions = dimensions
        self._same: Mapping[str, str] = {word: group[0] for group in alike for word in group}

    async def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        await anyio.lowlevel.checkpoint()
        if self.broken:
            raise ModelUnavailable(f"{self.name} is broken, as the test wants")
        self.asked += texts
        return normalize_rows(
            np.array([self._row(text) for text in texts], np.float32).reshape(-1, self._dimensions)
        )

    def _row(self, text: str) -> list[float]:
        row = [0.0] * self._dimensions
        for word in _WORD.findall(text.casefold()) or [text]:
            known = self._same.get(word, word).encode("utf-8", "replace")
            digest = int.from_bytes(blake2b(known, digest_size=8).digest(), "big")
            for part in range(4):  # several places, so that two words seldom meet in all of them
                place = (digest >> (16 * part)) % self._dimensions
                sign = (digest >> (16 * part + 15)) & 1
                row[place] += 1.0 if sign else -1.0
        return row
