"""Names and texts are shown as they are: nothing hides in them, and no two look the same."""

from __future__ import annotations

import sys
from unicodedata import category, normalize

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deskhand.testing.effort import least_cpu_s
from deskhand.tools.documents.invisible_characters import escape_invisible
from deskhand.tools.names import describe_lookalikes, display_name, lookalike_key

from ..examples import examples

UNSEEN = "\u00ad\u034f\u061c\u115f\u17b4\u180b\u180e\u200b\u200e\u200f\u2028\u202a\u202e\u2060\u2066\u2069\u2800\u3164"  # noqa: E501
UNSEEN += "\ufe00\ufe0d\ufeff\uffa0\ufff9\U0001bca0\U0001d173\U000e0001\U000e0041\U000e007f\U000e0100\U000e01ef\x00\x1b"  # noqa: E501
FORMAT = [chr(n) for n in range(sys.maxunicode + 1) if category(chr(n)) in ("Cc", "Cs", "Zl", "Zp")]
SIGNS = frozenset(
    [
        *map(chr, range(0x600, 0x606)),
        "\u06dd",
        "\u070f",
        "\u0890",
        "\u0891",
        "\u08e2",
        "\U000110bd",
        "\U000110cd",
    ]
)
"""Signs of Arabic, Syriac and Kaithi numbers: formats that are seen."""
HIDDEN = [
    *(char for char in FORMAT if char not in "\t\n\r"),
    *(
        chr(n)
        for n in range(sys.maxunicode + 1)
        if category(chr(n)) == "Cf" and chr(n) not in SIGNS
    ),
]
texts = st.text(
    st.one_of(
        st.sampled_from(UNSEEN), st.sampled_from("ab/. é\u0301\u200d\ufe0f👍"), st.characters()
    )
)
letters = st.text(st.one_of(st.sampled_from(UNSEEN), st.characters(exclude_characters="\\")))


@pytest.mark.parametrize(
    "text",
    [
        "Grüße,\r\n\tnaïve café",
        "日本語 葛\U000e0100",
        "❤️ 👍🏽 👩‍👩‍👧 1️⃣",
        "क्‍ष हिन्दी",
        "می‌خواهم",
        "עברית",
        "⠓⠑⠀⠇",
        "𓀀\U00013430𓀁",
        "cafe\u0301",
        "C:\\users\\u1",
    ],
)
def test_what_people_write_stays(text: str) -> None:
    assert escape_invisible(text) == text


def test_every_character_that_is_not_seen_is_written_out() -> None:
    assert [char for char in (*HIDDEN, *UNSEEN) if char in escape_invisible(f"a{char}b")] == []
    assert [char for char in (*HIDDEN, *UNSEEN) if char in display_name(f"a{char}b")] == []


@settings(max_examples=examples(1000))
@given(letters, letters)
def test_two_texts_that_differ_still_do(one: str, other: str) -> None:
    assert (escape_invisible(one) == escape_invisible(other)) == (one == other)
    assert escape_invisible(escape_invisible(one)) == escape_invisible(one)


@settings(max_examples=examples(1000))
@given(texts, st.sampled_from(UNSEEN), st.integers(0, 50))
def test_a_character_that_is_not_seen_makes_another_text(text: str, char: str, at: int) -> None:
    """Wherever it stands: none is lost, and none passes for nothing."""
    more = text[:at] + char + text[at:]
    assert display_name(more) != display_name(text)
    assert escape_invisible(more) != escape_invisible(text) or "\\" in text


@settings(max_examples=examples(1000))
@given(texts, texts)
def test_two_names_never_look_the_same(one: str, other: str) -> None:
    if one != other:
        assert display_name(one) != display_name(other)
        assert normalize("NFC", display_name(one)) != normalize("NFC", display_name(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a\u202eb", "a\\u202eb"),
        ("a\\\u202eb", "a\\\\u202eb"),
        ("a\\u005cu202e", "a\\u202e"),
        ("\\\U000e0041", "\\\\U000e0041"),
        ("café", "cafe\u0301"),
        ("notes.txt\ufe00", "notes.txt"),
    ],
)
def test_a_name_that_imitates_an_escape_is_another(one: str, other: str) -> None:
    assert display_name(one) != display_name(other)


@pytest.mark.parametrize(
    ("one", "other", "by"),
    [
        ("README.md", "readme.md", "case"),
        ("STRASSE", "straße", "case"),
        ("café", "cafe\u0301", "its normal form"),
        ("ﬁle", "file", "its normal form"),
        ("\u212bngström", "Ångström", "its normal form"),
        ("notes.txt", "notes.txt\ufe0f", "invisible characters"),
        ("notes.txt", "no\u200btes.TXT", "invisible characters"),
        ("notes.txt", "\U000e0041notes.txt", "invisible characters"),
        ("a b", "a\xa0b", "its normal form"),
    ],
)
def test_names_that_look_alike_say_so(one: str, other: str, by: str) -> None:
    notes = describe_lookalikes([one, "another", other])
    assert notes == {
        one: f"(another name differs only by {by}: '{display_name(other)}')",
        other: f"(another name differs only by {by}: '{display_name(one)}')",
    }


def test_of_many_that_look_alike_one_is_named() -> None:
    assert (
        describe_lookalikes(["a", "A", "a\u200b"])["a"]
        == "(another name differs only by case: 'A' and 1 more)"
    )
    assert describe_lookalikes(["a", "b", "a"]) == {}


@settings(max_examples=examples(1000))
@given(st.text(st.characters(), max_size=20), st.sampled_from(UNSEEN), st.integers(0, 20))
@example("0\r\n", "\u200b", 2)
def test_what_is_added_unseen_never_makes_a_name_its_own(name: str, char: str, at: int) -> None:
    more = name[:at] + char + name[at:]
    if normalize("NFC", more) == normalize("NFC", name[:at]) + char + normalize("NFC", name[at:]):
        assert lookalike_key(more) == lookalike_key(name)
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert lookalike_key(normalize(form, name)) == lookalike_key(name)


@pytest.mark.parametrize(
    "piece", ["\u200b", "\\u202e", "\u0301", "é\u200d", "\U000e0041", "\u1100"]
)
@pytest.mark.parametrize("function", [escape_invisible, display_name, lookalike_key])
def test_it_takes_no_longer_than_the_text_is_long(piece: str, function: object) -> None:
    assert callable(function)
    short = piece * 2_000
    long = piece * 16_000
    once = least_cpu_s(lambda: function(short))
    much = least_cpu_s(lambda: function(long))
    assert much < 8 * 4 * max(once, 0.0005)
