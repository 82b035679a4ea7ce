"""Events are found however the bytes are cut."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand.models.sse import LineTooLong, Splitter

STREAM = (
    b": comment\n\nevent: a\ndata: one\n\ndata:two\r\n\r\nid: 7\ndata: three\ndata: "
    b"lines\n\n\n\nretry: 5\n\n"
    b"data: \xf0\x9f\x91\x8b\n\ndata: left"
)
PAYLOADS = [b"one", b"two", b"three\nlines", b"\xf0\x9f\x91\x8b", b"left"]


@given(st.lists(st.integers(0, len(STREAM))))
def test_any_cut_gives_the_same_events(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    splitter = Splitter(100)
    found: list[bytes] = []
    for start, end in itertools.pairwise(places):
        found += splitter.feed(STREAM[start:end])
    assert found + splitter.close() == PAYLOADS
    assert splitter.close() == []


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_line_has_a_limit(size: int) -> None:
    splitter = Splitter(100)
    with pytest.raises(LineTooLong):
        for _ in range(1000):
            splitter.feed(b"x" * size)


def test_an_event_has_a_limit_too() -> None:
    splitter = Splitter(100)
    with pytest.raises(LineTooLong):
        for _ in range(1000):
            splitter.feed(b"data: xxxxxxxxx\n")
