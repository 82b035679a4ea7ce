"""A reply ends before a text that somebody named, however it comes in pieces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from deskhand.models.stops import StopTexts


def told(text: str, stops: list[str], size: int) -> tuple[str, bool]:
    texts = StopTexts(stops)
    pieces = [texts.feed(text[i : i + size]) for i in range(0, len(text), size)]
    return "".join(pieces) + texts.close(), texts.stopped


@given(
    st.text("abc", max_size=30),
    st.lists(st.text("abc", min_size=1, max_size=4), max_size=3),
    st.integers(1, 7),
)
def test_what_is_told_ends_before_the_first_of_them(text: str, stops: list[str], size: int) -> None:
    found, stopped = told(text, stops, size)
    whole, _ = told(text, stops, max(1, len(text)))
    assert text.startswith(found) and stopped == any(stop in text for stop in stops)
    assert not any(stop in found for stop in stops)
    if not stopped:
        assert found == text
    assert min(len(found), len(whole)) == min(
        (text.find(stop) for stop in stops if stop in text), default=len(text)
    )


def test_only_what_may_begin_one_is_held_back() -> None:
    texts = StopTexts(["END"])
    assert [texts.feed(piece) for piece in ("one E", "N", "D two", " three")] == [
        "one ",
        "",
        "",
        "",
    ]
    texts = StopTexts(["END"])
    assert [texts.feed(piece) for piece in ("one E", "nd", "!")] == ["one ", "End", "!"]
