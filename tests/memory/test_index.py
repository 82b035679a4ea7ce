"""The index of vectors: what it finds is what comparing everything would find, whatever has come
and gone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.memory import index
from deskhand.memory.index import Halves, Ids, Index, VectorPartition

from ..examples import examples

ANN = ("user", "ann", False)
BOB = ("user", "bob", False)


def vectors(count: int, dimensions: int, seed: int = 0) -> Halves:
    """Like those of a real model: in groups, and with something that all have in common."""
    rng = np.random.default_rng(seed)
    groups = rng.standard_normal((max(count // 20, 1), dimensions))
    rows = (
        groups[rng.integers(0, len(groups), count)] + rng.standard_normal((count, dimensions)) + 2.0
    )
    found: Halves = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
    return found


def none(ids: Ids) -> Halves:
    raise AssertionError("these are in memory")


def exact(rows: Halves, asked: Halves, top_k: int) -> list[int]:
    return [
        int(each)
        for each in np.argsort(-(rows.astype(np.float32) @ asked.astype(np.float32)))[:top_k]
    ]


@pytest.mark.parametrize(("count", "dimensions"), [(1, 8), (300, 384), (3_000, 1536), (9_000, 384)])
def test_the_nearest_are_found(count: int, dimensions: int) -> None:
    rows = vectors(count, dimensions)
    shelf = VectorPartition(dimensions)
    shelf.add(np.arange(count), rows)
    hits = wanted = 0
    for number in range(0, count, max(count // 20, 1)):
        asked = rows[number].astype(np.float32)
        found = [id_ for id_, _ in shelf.find_nearest(asked, 5, none)]
        assert found[0] == number
        hits += len({*found} & {*exact(rows, rows[number], 5)})
        wanted += min(5, count)
    assert hits >= 0.97 * wanted


def test_beyond_what_is_kept_the_rows_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "EXACT_SEARCH_MAX_VALUES", 1_000)
    monkeypatch.setattr(index, "MAX_VALUES_IN_MEMORY", 100_000)
    rows, shelf, asked_for = vectors(4_000, 64), VectorPartition(64), list[int]()

    def fetch(ids: Ids) -> Halves:
        asked_for.extend(ids.tolist())
        return rows[ids]

    for start in range(0, 4_000, 500):
        shelf.add(np.arange(start, start + 500), rows[start : start + 500])
    found = shelf.find_nearest(rows[77].astype(np.float32), 5, fetch)
    assert found[0][0] == 77 and 5 <= len(asked_for) < 4_000
    shelf.remove(np.array([77]))
    assert 77 not in [id_ for id_, _ in shelf.find_nearest(rows[77].astype(np.float32), 5, fetch)]


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["add", "drop", "move"]), st.integers(1, 40)), max_size=40),
    st.booleans(),
)
def test_what_came_and_went(steps: list[tuple[str, int]], many: bool) -> None:
    """The same as a plain dictionary, with bits from the first vector on or without."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "EXACT_SEARCH_MAX_VALUES", 0 if many else 1 << 20)
        rows = vectors(42, 64)
        found = Index()
        known = dict[int, tuple[str, str, bool]]()
        for step, id_ in steps:
            if step == "drop":
                found.remove(np.array([id_]))
                known.pop(id_, None)
            else:
                key = BOB if step == "move" else ANN
                found.upsert(key, np.array([id_]), rows[[id_]])
                known[id_] = key
            assert found.size == len(known)
        for key in (ANN, BOB):
            here = {id_ for id_, where in known.items() if where == key}
            assert {
                id_ for id_, _ in found.find_nearest(rows[0].astype(np.float32), [key], 50, none)
            } == here
        every = found.find_nearest(rows[0].astype(np.float32), None, 50, none)
        assert {id_ for id_, _ in every} == set(known)
        nears = [near for _, near in every]
        assert nears == sorted(nears, reverse=True)


def test_vectors_of_another_length_are_not_compared() -> None:
    found = Index()
    found.upsert(ANN, np.array([1]), vectors(1, 8))
    assert found.find_nearest(np.ones(16, np.float32), None, 5, none) == []
    found.upsert(ANN, np.array([2]), vectors(1, 16))
    assert [id_ for id_, _ in found.find_nearest(np.ones(16, np.float32), None, 5, none)] == [2]
