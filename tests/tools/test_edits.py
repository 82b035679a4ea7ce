"""What is replaced everywhere, whatever ends the lines."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.tools.edits import Replacement, apply_edits
from deskhand.types.errors import ToolError

from ..examples import examples

LINES = st.lists(st.sampled_from(["a", "b", "\n", "\r\n", "aa", ""]), max_size=12).map("".join)


@settings(max_examples=examples(1_000))
@given(LINES, LINES)
def test_every_place_is_found_in_one_go(text: str, old: str) -> None:
    """As the expression says in which a line end stands in two ways; it takes long where much
    begins alike."""
    wanted = r"\r?\n".join(map(re.escape, re.split(r"\r?\n", old)))
    expected, count = re.subn(wanted, "!", text) if old else (text, 0)
    if not count:
        with pytest.raises(ToolError):
            apply_edits(text, [Replacement(old, "!", replace_all=True)])
        return
    assert apply_edits(text, [Replacement(old, "!", replace_all=True)]) == expected
