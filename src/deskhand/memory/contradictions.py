"""Stored facts that cannot both hold, found by their form and without a model: a person decides
which one does."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import msgspec

from .claims import Claim, contradict, parse_claim
from .facts import Fact

MOST_FOUND = 50


class Contradiction(msgspec.Struct, frozen=True):
    """Two facts of one owner that contradict each other, the older first. `about` says in a few
    words what they disagree on."""

    about: str
    older: Fact
    newer: Fact


def parse_fact_claim(text: str, scope: str) -> Claim | None:
    """The claim that a fact of this scope makes, None where that is not certain.

    `I` and `the user` name somebody only among the facts of one person: elsewhere several people
    may have said them.
    """
    claim = parse_claim(text)
    if claim is None or (not claim.subject and scope != "user"):
        return None
    return claim


def find_contradictions(facts: Iterable[Fact]) -> list[Contradiction]:
    """The pairs among these facts that contradict each other, at most MOST_FOUND. Only facts of the
    same owner are compared; closed and held ones are left out."""
    groups: dict[tuple[str, ...], list[tuple[Fact, Claim]]] = {}
    for fact in sorted(facts, key=lambda fact: fact.id):
        claim = parse_fact_claim(fact.text, fact.scope)
        if claim is None or fact.held or fact.valid_to is not None:
            continue
        key = (fact.scope, fact.owner, claim.subject, claim.attribute, claim.kind)
        groups.setdefault(key, []).append((fact, claim))

    found = [
        Contradiction(_describe(one), older, newer)
        for group in groups.values()
        for (older, one), (newer, other) in combinations(group, 2)
        if contradict(one, other)
    ]
    return found[:MOST_FOUND]


def _describe(claim: Claim) -> str:
    if claim.attribute == "value":
        return claim.subject
    attribute = claim.attribute
    if attribute == "when":
        attribute = "time" if claim.kind == "time" else "day"
    return f"{attribute} of {claim.subject}" if claim.subject else f"your {attribute}"
