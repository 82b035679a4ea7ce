"""What is tried after a failure, as lists: failures in, decision out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand.models.chain import (
    ChainLink,
    GiveUp,
    ModelFailure,
    ModelTry,
    decide_next_try,
    with_cooldown,
    without_cooldown,
)

A = ChainLink("a/1", 8_000)
B = ChainLink("b/2", 100_000)
C = ChainLink("c/3")
BUSY = "ModelOverloaded"
DOWN = "ModelUnavailable"
SLOW = "ModelTimeout"
KEY = "ModelKeyRefused"
GONE = "ModelUnknown"
BAD = "ModelRequestRefused"
ODD = "MalformedReply"
LONG = "ContextOverflow"


def fail(error: str, link: ChainLink = A, after: float | None = None) -> ModelFailure:
    return ModelFailure(link.model, error, 100, after)


@pytest.mark.parametrize(
    ("failures", "expected"),
    [
        ([], ModelTry("a/1", 100)),
        ([fail(DOWN)], ModelTry("a/1", 101.5)),
        ([fail(DOWN), fail(SLOW)], ModelTry("a/1", 102.5)),
        ([fail(DOWN)] * 3, ModelTry("b/2", 100)),
        ([fail(BUSY, after=2)], ModelTry("a/1", 102)),
        ([fail(BUSY, after=0)], ModelTry("a/1", 100)),
        ([fail(BUSY, after=60)], ModelTry("a/1", 160)),
        ([fail(BUSY, after=9999)], ModelTry("b/2", 100)),
        ([fail(BUSY, after=61)], ModelTry("b/2", 100)),
        ([fail(BUSY, after=9999), fail(BAD, B), fail(BUSY, C, 3600)], ModelTry("c/3", 3700)),
        (
            [fail(BUSY, after=9999), fail(BAD, B), fail(BUSY, C, 3601)],
            GiveUp("its provider asks to wait for more than an hour"),
        ),
        ([fail(KEY)], ModelTry("b/2", 100)),
        ([fail(GONE)], ModelTry("b/2", 100)),
        ([fail(BAD), fail(KEY, B), fail(GONE, C)], GiveUp("every model of the chain failed")),
        ([fail(ODD)], ModelTry("a/1", 100)),
        ([fail(ODD), fail(ODD)], ModelTry("b/2", 100)),
        ([fail(LONG)], ModelTry("b/2", 100)),
        ([fail(LONG, B)], GiveUp("no model of the chain can read a conversation of this length")),
        ([fail(DOWN)] * 3 + [fail(DOWN, B)] * 2, GiveUp("5 tries failed")),
        ([fail("SomethingNew")], ModelTry("b/2", 100)),
        ([fail("BudgetSpent")], GiveUp("a budget is used up")),
        ([fail(DOWN, ChainLink("no longer there"))], ModelTry("a/1", 100)),
    ],
)
def test_decisions(failures: list[ModelFailure], expected: ModelTry | GiveUp) -> None:
    assert decide_next_try([A, B, C], failures, {}, 100, 0.5) == expected


def test_a_cooling_model_is_passed_over() -> None:
    assert decide_next_try([A, B], [], {"a/1": 130}, 100, 0) == ModelTry("b/2", 100)
    assert decide_next_try([A, B], [], {"a/1": 130, "b/2": 120}, 100, 0) == ModelTry("b/2", 120)
    assert decide_next_try([A], [], {"a/1": 10_000}, 100, 0) == ModelTry("a/1", 160)
    assert decide_next_try([A], [], {"a/1": 90}, 100, 0) == ModelTry("a/1", 100)
    assert decide_next_try([], [], {}, 100, 0) == GiveUp("no model is configured")


def test_cooldowns() -> None:
    before = {"b/2": 101.0, "old": 99.0}
    assert with_cooldown(before, fail(BUSY, after=7), 100) == {"a/1": 107, "b/2": 101}
    assert with_cooldown(before, fail(BUSY), 100) == {"a/1": 105, "b/2": 101}
    assert with_cooldown(before, fail(BUSY, after=9999), 100) == {"a/1": 1000, "b/2": 101}
    assert with_cooldown(before, fail(DOWN), 100) == {"b/2": 101}
    assert with_cooldown({"a/1": 500.0}, fail(BUSY, after=1), 100) == {"a/1": 500}
    assert without_cooldown({"a/1": 500.0, "b/2": 500.0}, "a/1", 100) == {"b/2": 500}
    assert before == {"b/2": 101.0, "old": 99.0}


ERRORS = st.sampled_from([BUSY, DOWN, SLOW, KEY, GONE, BAD, ODD, LONG, "SomethingNew"])
WAITS = st.none() | st.floats(allow_nan=True, allow_infinity=True) | st.floats(0, 200)
LINKS = st.lists(st.builds(ChainLink, st.sampled_from("abcdef"), st.integers(0, 3)), max_size=6)
SCRIPT = st.lists(
    st.tuples(ERRORS, WAITS, st.floats(0, 0.999), st.floats(0, 100)), min_size=8, max_size=8
)


@given(LINKS, SCRIPT, st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 1e6)))
def test_every_turn_ends_politely(
    chain: list[ChainLink],
    script: list[tuple[str, float | None, float, float]],
    cooldowns: dict[str, float],
) -> None:
    now = 1000.0
    failures = list[ModelFailure]()
    dead = set[str]()
    for error, after, jitter, took in script:
        step = decide_next_try(chain, failures, cooldowns, now, jitter)
        if isinstance(step, GiveUp):
            break
        assert step.model not in dead
        assert now <= step.at <= now + 3600
        now = step.at + took
        failures.append(ModelFailure(step.model, error, now, after))
        cooldowns = dict(with_cooldown(cooldowns, failures[-1], now))
        if error not in (BUSY, DOWN, SLOW, ODD):
            dead.add(step.model)
    else:
        raise AssertionError("it never gave up")
    assert len(failures) <= 5
    assert all([f.model for f in failures].count(link.model) <= 3 for link in chain)
    assert bool(failures) == bool(chain)
