"""Fuses several rankings into one, by rank and by relevance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

K = 60
"""As in "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods", SIGIR
2009."""
WORDS_WEIGHT = 0.5


class Ranked(msgspec.Struct, frozen=True):
    """A ranking: (id, relevance between 0 and 1), the best first."""

    hits: Sequence[tuple[int, float]]
    weight: float = 1.0


def fuse_rankings(orders: Iterable[Ranked]) -> list[tuple[int, float]]:
    """(id, relevance), the best first.

    A rank counts in proportion to the relevance at that place, so that a model which finds nothing
    near does not outvote one that does. The relevance of an id is the highest of all rankings.
    """
    worth: dict[int, float] = {}
    best: dict[int, float] = {}
    for order in orders:
        for rank, (id_, relevance) in enumerate(order.hits, 1):
            worth[id_] = worth.get(id_, 0.0) + order.weight * relevance / (K + rank)
            best[id_] = max(best.get(id_, 0.0), relevance)
    ids = sorted(worth, key=lambda id_: (-worth[id_], -id_))
    return [(id_, best[id_]) for id_ in ids]
