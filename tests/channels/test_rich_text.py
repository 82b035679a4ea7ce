"""Markdown as Telegram shows it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand.channels.rich_text import Rich, Span, count_units, render_markdown, split_text

SHOWN: list[tuple[str, str, list[tuple[str, str, str]]]] = [
    ("plain", "plain", []),
    ("one\ntwo\n\nthree", "one\ntwo\n\nthree", []),
    (
        "🙂 **bold** *it* ~~no~~ `x*y`",
        "🙂 bold it no x*y",
        [
            ("bold", "bold", ""),
            ("italic", "it", ""),
            ("strikethrough", "no", ""),
            ("code", "x*y", ""),
        ],
    ),
    ("# Title\ntext", "Title\n\ntext", [("bold", "Title", "")]),
    ("- a\n- b\n  - c\n\nend", "• a\n• b\n  • c\n\nend", []),
    ("3. a\n4. b", "3. a\n4. b", []),
    ("```python\nx = 1\n```\nend", "x = 1\n\nend", [("pre", "x = 1", "python")]),
    ("> said", "said", [("blockquote", "said", "")]),
    ("[here](https://a.test/x)", "here", [("text_link", "here", "https://a.test/x")]),
    ("[run](javascript:alert)", "[run](javascript:alert)", []),
    ("![cat](https://a.test/cat.png)", "cat (https://a.test/cat.png)", []),
    ("> a\n> > b", "a\n\nb", [("blockquote", "a\n\nb", "")]),
    ("<b>no</b> &amp; 1 < 2", "<b>no</b> & 1 < 2", []),
    ("<!-- seen -->text\n\nend", "<!-- seen -->text\n\nend", []),
    ("[1]: https://a.test", "[1]: https://a.test", []),
    ("``` open", "``` open", []),
    ("***", "———", []),
    (
        "before\n\n| what | cost |\n|:--|--:|\n| tea | 3 |\n| 茶碗 | **12** |\n\nafter",
        "before\n\nwhat  cost\n────  ────\ntea      3\n茶碗    12\n\nafter",
        [("pre", "what  cost\n────  ────\ntea      3\n茶碗    12", "")],
    ),
    (
        (
            "| place | why | |\n|---|---|---|\n| Lisbon | it is warm there and not far away | x "
            "|\n| Oslo | | |"
        ),
        "Lisbon\n• why: it is warm there and not far away\n• x\n\nOslo",
        [("bold", "Lisbon", ""), ("bold", "Oslo", "")],
    ),
    (
        "| one \\| bar | `a` |\n|---|:-:|\n| x |",
        "one | bar  a\n─────────  ─\nx",
        [("pre", "one | bar  a\n─────────  ─\nx", "")],
    ),
    ("a | b", "a | b", []),
]


def parts(rich: Rich) -> list[tuple[str, str, str]]:
    encoded = rich.text.encode("utf-16-le")
    return [
        (s.kind, encoded[2 * s.start : 2 * s.end].decode("utf-16-le"), s.detail) for s in rich.spans
    ]


@pytest.mark.parametrize(("markdown", "text", "spans"), SHOWN)
def test_what_is_shown(markdown: str, text: str, spans: list[tuple[str, str, str]]) -> None:
    rich = render_markdown(markdown)
    assert (rich.text, parts(rich)) == (text, spans)


@given(st.text(alphabet="ab🙂 \n*_`[]()#>-1.é|:", max_size=300), st.integers(5, 40))
def test_pieces_fit_and_lose_nothing(markdown: str, limit: int) -> None:
    rich = render_markdown(markdown)
    pieces = list(split_text(rich, limit))
    assert all(0 < count_units(piece.text) <= limit for piece in pieces)
    assert "".join("".join(piece.text for piece in pieces).split()) == "".join(rich.text.split())
    for piece in pieces:
        for kind, shown, _ in parts(piece):
            assert shown and kind


def test_a_span_goes_on_in_the_next_piece() -> None:
    rich = Rich("🙂 aaaa bbbb", (Span("bold", 3, 12),))
    assert [(each.text, parts(each)) for each in split_text(rich, 8)] == [
        ("🙂 aaaa", [("bold", "aaaa", "")]),
        ("bbbb", [("bold", "bbbb", "")]),
    ]


def test_a_megabyte_takes_no_time() -> None:
    began = time.perf_counter()
    assert (
        sum(len(piece.text) for piece in split_text(render_markdown("word 🙂 " * 140_000)))
        > 900_000
    )
    assert time.perf_counter() - began < 5
