"""What a person is asked about is seen as it is."""

from __future__ import annotations

import sys
from unicodedata import category, normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand.policy.visible import escape_invisible

PLAIN = (
    "rm notes.txt",
    "Grüße an Zoë",
    "日本語のテキスト",
    "❤️ 👍🏽 ✈️",
    "क्षि हिन्दी",
    "עברית العربية",
    "naïve café",
    "1️⃣",
)
LOOK_ALIKE = (
    ("notes.txt", "notes.txt\ufe00"),
    ("notes.txt", "no\U000e0101tes.txt"),
    ("notes.txt", "notes\u3164.txt"),
    ("notes.txt", "\U000e006enotes.txt"),
    ("notes.txt", "not\u200bes.txt"),
    ("notes.txt", "notes\u034f.txt"),
    ("notes.txt", "notes\u2800.txt"),
    ("café", "cafe\u0301"),
    ("\u212bngström", "Ångström"),
    ("300 K", "300 \u212a"),
    ("한", "\u1112\u1161\u11ab"),
    ("txt.exe", "\u202eexe.txt"),
    ("👍", "👍\ufe0f\ufe0f"),
)


@pytest.mark.parametrize("text", PLAIN)
def test_what_people_write_is_shown_as_it_is(text: str) -> None:
    assert escape_invisible(text) == text


@pytest.mark.parametrize(("one", "other"), LOOK_ALIKE)
def test_what_looks_alike_is_shown_apart(one: str, other: str) -> None:
    assert normalize("NFC", escape_invisible(one)) != normalize("NFC", escape_invisible(other))
    assert "\\" in escape_invisible(one) + escape_invisible(other)


def test_nothing_that_is_not_seen_gets_through() -> None:
    """Every character of which Unicode says that it is a format, control or private one, or no
    character."""
    hidden = [
        chr(n)
        for n in range(sys.maxunicode + 1)
        if category(chr(n)) in ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp")
    ]
    assert [char for char in hidden if char in escape_invisible(f"a{char}b")] == []


@given(st.text())
def test_two_that_differ_never_look_alike_by_their_normal_form(text: str) -> None:
    shown = escape_invisible(text)
    assert normalize("NFC", shown) == shown
