"""One order from several: by the ranks that each gives, and by how much each has to say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

K = 60
"""As in "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods", SIGIR
2009."""
WORDS_WEIGHT = 0.5


class Ranked(msgspec.Struct, frozen=True):
    """One order: (id, relevance between 0 and 1), the best first."""

    hits: Sequence[tuple[int, float]]
    weight: float = 1.0


def fuse_rankings(orders: Iterable[Ranked]) -> list[tuple[int, float]]:
    """(id, relevance), the best first. A place in an order counts as much as what stands there is
    relevant: a model that finds nothing near says little, and does not outvote one that does.
    Relevance is then the highest of all."""
    worth, relevance = dict[int, float](), dict[int, float]()
    for order in orders:
        for rank, (id_, relevant) in enumerate(order.hits, 1):
            worth[id_] = worth.get(id_, 0.0) + order.weight * relevant / (K + rank)
            relevance[id_] = max(relevance.get(id_, 0.0), relevant)
    return [(id_, relevance[id_]) for id_ in sorted(worth, key=lambda id_: (-worth[id_], -id_))]
