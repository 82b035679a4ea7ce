"""Text as every database, wire and terminal can hold it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand.types.messages import clean_text

anything = st.text(st.characters(codec=None, exclude_categories=()))


@pytest.mark.parametrize(
    ("dirty", "text"),
    [
        ("", ""),
        ("a\0b", "a\ufffdb"),
        ("é\0", "é\ufffd"),
        ("\ud800", "?"),
        ("a\udfffé\0", "a?é\ufffd"),
        ("\U0001f600", "\U0001f600"),
    ],
)
def test_clean(dirty: str, text: str) -> None:
    assert clean_text(dirty) == text


@given(anything)
def test_cleaned_text_can_be_stored_anywhere(text: str) -> None:
    cleaned = clean_text(text)
    assert "\0" not in cleaned and clean_text(cleaned) == cleaned and len(cleaned) == len(text)
    assert msgspec.json.decode(msgspec.json.encode(cleaned)) == cleaned
