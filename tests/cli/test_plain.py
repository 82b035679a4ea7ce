"""No control sequence of a model or a tool reaches the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand import cli
from deskhand.cli.encoded import to_json
from deskhand.cli.plain import cell_width, escape_control, shorten_line

ANYTHING = st.text(st.characters()) | st.text(
    st.sampled_from("\x1b[]31m;\x07\x9b\x90\u202e\u200b\u200d\U000e0041aé👩\r\n\t")
)
OBEYED = {*map(chr, range(0x20)), "\x7f", *map(chr, range(0x80, 0xA0))} - {"\n", "\t"}
UNSEEN = {*"\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff\u00ad"}
TAGS = {chr(code) for code in range(0xE0000, 0xE0080)}


@given(ANYTHING)
def test_nothing_that_is_obeyed_or_unseen_gets_through(text: str) -> None:
    shown = escape_control(text)
    assert not (OBEYED | UNSEEN | TAGS) & set(shown)
    shown.encode()  # no half of a surrogate pair either


@given(ANYTHING)
def test_what_is_shown_is_shown_as_it_is(text: str) -> None:
    assert escape_control(escape_control(text)) == escape_control(text)


@given(ANYTHING, st.integers(2, 100))
def test_one_line_fits(text: str, width: int) -> None:
    line = shorten_line(text, width)
    assert "\n" not in line
    assert cell_width(line) <= width


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "␛[31mred"),
        ("\x1b]0;title\x07", "␛]0;title␇"),
        ("\x9b2J", "<U+009B>2J"),
        ("rm \u202ecod.txt", "rm <U+202E>cod.txt"),
        ("over\rwritten", "over␍written"),
        ("a\r\nb\tc", "a\nb\tc"),
        ("zero\u200bwidth", "zero<U+200B>width"),
        ("hi\U000e0069", "hi<U+E0069>"),
        ("a\u200db", "a<U+200D>b"),
        ("👩\u200d🚀 \u0645\u06cc\u200c\u062e", "👩\u200d🚀 \u0645\u06cc\u200c\u062e"),
        ("naïve 日本 ✓", "naïve 日本 ✓"),
    ],
)
def test_examples(text: str, shown: str) -> None:
    assert escape_control(text) == shown


@given(st.text())
def test_json_is_the_same_for_programs_and_hides_nothing_from_eyes(text: str) -> None:
    for indent in (0, 2):
        told = to_json({"a": [text]}, indent)
        assert json.loads(told) == {"a": [text]} and escape_control(told) == told


def test_no_command_writes_json_in_another_way() -> None:
    written = [
        path.name
        for path in Path(cli.__file__).parent.glob("*.py")
        if "echo(msgspec" in path.read_text()
    ]
    assert written == []
