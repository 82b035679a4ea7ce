"""Reasoning between tags, however the stream is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand.models.think import ThinkTags

CASES = [
    ("Hello", "", "Hello"),
    ("<think>hm</think>\n\nHello", "hm", "Hello"),
    ("\n <think>a < b </thin k></think>Yes", "a < b </thin k>", "Yes"),
    ("<think>never closed", "never closed", ""),
    ("<thin air> is text", "", "<thin air> is text"),
    ("Look: <think> is a tag</think>", "", "Look: <think> is a tag</think>"),
    ("<think></think>", "", ""),
    ("<", "", "<"),
    ("", "", ""),
]


def split(pieces: list[str]) -> tuple[str, str]:
    tags = ThinkTags()
    found = [piece for text in pieces for piece in tags.feed(text)] + tags.close()
    assert all(text for _, text in found), "an empty piece"
    return tuple(
        "".join(text for kind, text in found if kind == wanted) for wanted in ("thinking", "text")
    )  # type: ignore[return-value]


@pytest.mark.parametrize(("whole", "thinking", "text"), CASES)
@given(data=st.data())
def test_any_cut_gives_the_same(whole: str, thinking: str, text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    pieces = [
        whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True) if whole[a:b]
    ]
    assert split(pieces) == (thinking, text)
    assert split(list(whole)) == (thinking, text)
