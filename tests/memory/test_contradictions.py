"""Stored facts that cannot both hold: found by their form, among the facts of one owner alone."""

from __future__ import annotations

import msgspec
import pytest

from deskhand.memory.contradictions import MOST_FOUND, find_contradictions
from deskhand.memory.facts import Fact, Scope
from deskhand.types.labels import OWNER

_DENTIST = "day of dentist appointment"


def fact(id_: int, text: str, scope: Scope = "user", owner: str = "ann") -> Fact:
    return Fact(
        id=id_,
        key=f"k{id_}",
        text=text,
        scope=scope,
        owner="" if scope == "global" else owner,
        session="",
        n=0,
        writer="tool",
        label=OWNER,
        confidence=1.0,
        retention="durable",
        pinned=False,
        held=False,
        at=float(id_),
        valid_from=float(id_),
        valid_to=None,
        expires_at=None,
        superseded_by=None,
        closed_why="",
        used_at=None,
        uses=0,
    )


def pairs(*facts: Fact) -> list[tuple[str, int, int]]:
    return [(each.about, each.older.id, each.newer.id) for each in find_contradictions(facts)]


@pytest.mark.parametrize(
    ("one", "other", "about"),
    [
        ("The dog is Rex", "My dog is called Max", "name of dog"),
        ("I live in Oslo", "Lives in Rome", "your home"),
        ("The garage code is 7719", "The garage code is 8820", "garage code"),
        ("The dentist appointment is on May 3", "The dentist appointment is on May 9", _DENTIST),
    ],
)
def test_what_cannot_both_hold(one: str, other: str, about: str) -> None:
    assert pairs(fact(2, other), fact(1, one)) == [(about, 1, 2)]


@pytest.mark.parametrize(
    ("one", "other"),
    [("Likes tea", "Likes coffee"), ("Ann lives in Oslo", "Bob lives in Rome")],
)
def test_what_can_both_hold(one: str, other: str) -> None:
    assert pairs(fact(1, one), fact(2, other)) == []


def test_facts_of_different_owners_are_never_compared() -> None:
    rex, max_ = "The dog is Rex", "The dog is Max"
    assert pairs(fact(1, rex), fact(2, max_, owner="bob")) == []
    assert pairs(fact(1, rex), fact(2, max_, "global")) == []
    assert pairs(fact(1, rex, "global"), fact(2, max_, "global")) == [("name of dog", 1, 2)]
    assert pairs(fact(1, "I live in Oslo", "global"), fact(2, "I live in Rome", "global")) == [], (
        "several people may have said it"
    )


def test_what_is_held_or_closed_contradicts_nothing() -> None:
    rex = fact(1, "The dog is Rex")
    for other in (
        msgspec.structs.replace(fact(2, "The dog is Max"), held=True),
        msgspec.structs.replace(fact(2, "The dog is Max"), valid_to=9.0),
    ):
        assert pairs(rex, other) == []


def test_many_contradictions_are_a_few() -> None:
    facts = [fact(n, f"The garage code is {1000 + n}") for n in range(1, 200)]
    assert len(find_contradictions(facts)) == MOST_FOUND
