"""What is shown of a conversation, and what is believed of an answer."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from deskhand.memory.fact_extraction import (
    EARLIER_CHARS,
    MODEL,
    READ_CHARS,
    ForgottenFact,
    Stored,
    TranscriptLine,
    drop_mentioned_again,
    is_forgotten,
    make_excerpt,
    normalize_words,
    parse_answer,
)
from deskhand.types.labels import OWNER, Label

TEXTS = st.lists(st.text(max_size=3_000), max_size=12)


def lines(*texts: str) -> list[TranscriptLine]:
    return [
        TranscriptLine(n, "ann" if n % 2 else MODEL, text, OWNER) for n, text in enumerate(texts, 1)
    ]


@given(TEXTS, st.integers(0, 12))
def test_an_excerpt_is_the_end_of_what_is_new_and_bounded(texts: list[str], after: int) -> None:
    said = lines(*texts)
    shown = make_excerpt(said, after)
    assert all(line.n > after for line in shown.new) and all(
        line.n <= after for line in shown.earlier
    )
    assert sum(len(line.text) for line in shown.new) <= READ_CHARS + 1
    assert sum(len(line.text) for line in shown.earlier) <= EARLIER_CHARS + 1
    new = [line.n for line in said if line.n > after]
    assert [line.n for line in shown.new] == new[len(new) - len(shown.new) :]


def test_what_memory_put_in_is_not_a_new_fact() -> None:
    """Also where the model has said it again in its own answer."""
    shown = make_excerpt(lines("what does Ann like?", "Ann likes tea."), 0)
    told = ["Ann likes tea"]
    answer = {"facts": [{"text": "Ann likes tea!", "n": 2}, {"text": "Ann likes it green", "n": 2}]}
    assert [
        fact.text
        for fact in parse_answer(msgspec.json.encode(answer).decode(), shown, (), told).facts
    ] == ["Ann likes it green"]


def test_the_label_is_that_of_all_that_was_read() -> None:
    said = [
        TranscriptLine(1, "ann", "see below", OWNER),
        TranscriptLine(2, "ann", "a mail", Label("untrusted", source="mail")),
    ]
    known = [Stored(7, "y", OWNER), Stored(8, "z", OWNER, pinned=True)]
    answer = '{"facts": [{"text": "x", "n": 1, "replaces": [7, 8, 9]}]}'
    found = parse_answer(answer, make_excerpt(said, 0), known)
    assert found.label == Label("untrusted", source="mail") and found.facts[0].replaces == ()
    assert parse_answer(answer, make_excerpt(said[:1], 0), known).facts[0].replaces == (7,)


@given(st.text())
def test_bare_words_are_the_same_however_they_are_written(text: str) -> None:
    assert normalize_words(normalize_words(text)) == normalize_words(text)


def test_a_correction_of_what_was_forgotten_is_something_else() -> None:
    gone = [ForgottenFact("Bob is allergic to nuts", 5.0)]
    for text in (
        "Bob is not allergic to nuts",
        "Bob isn\u2019t allergic to nuts",
        "Bob was never allergic to nuts",
    ):
        assert not is_forgotten(text, 1.0, gone) and is_forgotten(
            text, 1.0, [ForgottenFact(f"{text} at all", 5.0)]
        ), text
    assert not is_forgotten("Bob hat keine Katze", 1.0, [ForgottenFact("Bob hat eine Katze", 5.0)])
    assert is_forgotten("Bob is allergic to nuts and soy", 1.0, gone) and not is_forgotten(
        "Bob is allergic to nuts", 6.0, gone
    )


def test_what_somebody_speaks_of_since_it_was_forgotten_counts() -> None:
    gone = [ForgottenFact("The owner lives in Paris", 5.0)]
    before = TranscriptLine(1, "ann", "I live in Paris", OWNER, 1.0)
    thanks = "thank you"
    model = "Paris is nice"
    assert (
        drop_mentioned_again(
            [
                before,
                TranscriptLine(2, "ann", thanks, OWNER, 9.0),
                TranscriptLine(3, MODEL, model, OWNER, 9.0),
            ],
            gone,
        )
        == gone
    )
    assert (
        drop_mentioned_again(
            [before, TranscriptLine(2, "ann", "I do live in Paris", OWNER, 9.0)], gone
        )
        == []
    )
