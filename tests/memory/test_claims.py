"""Which facts contradict each other, told by their form alone."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from deskhand.memory.claims import contradict, parse_claim

PAIRS: dict[str, list[tuple[str, str]]] = msgspec.json.decode(
    (Path(__file__).parent / "contradictions.json").read_bytes(),
    type=dict[str, list[tuple[str, str]]],
)
NAMES = [(name, one, two) for name, pairs in PAIRS.items() for one, two in pairs]


def found(one: str, two: str) -> bool:
    old = parse_claim(one)
    new = parse_claim(two)
    return old is not None and new is not None and contradict(new, old)


@pytest.mark.parametrize(
    ("name", "one", "two"), NAMES, ids=[f"{one} - {two}" for _, one, two in NAMES]
)
def test_pairs(name: str, one: str, two: str) -> None:
    """Those under `unseen` were written down before the rules, and no rule was made for one of
    them."""
    wanted = name.endswith("replaced")
    assert found(one, two) == found(two, one) == wanted
    assert not found(one, one)
