"""What some platform makes a link of is found, however it is written."""

from __future__ import annotations

import pytest

from deskhand.types.addresses import find_live_spans


@pytest.mark.parametrize("dot", [".", "\u2024", "\u3002", "\ufe52", "\uff0e", "\uff61"])
def test_every_dot_that_browsers_take_for_one(dot: str) -> None:
    """Source: UTS #46, which maps all of them to a full stop."""
    text = f"see evil{dot}test now"
    assert [text[start:end] for start, end in find_live_spans(text)] == [f"evil{dot}test"]
