"""Secrets are found in whatever they are wrapped, in a whole text and in one that comes in
pieces."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand.testing.wrappings import OF_SECRETS, leaks
from deskhand.types.secret_search import MAX_HELD_CHARS, SecretSearch, SecretStream

KEY = "sk-ant-api03-AbCd1234_EfGh5678-IjKl90MnOpQr"
PHRASE = "correct horse battery staple"
NAMED = {KEY: "{{secret:anthropic}}", PHRASE: "{{secret:phrase}}"}
SEARCH = SecretSearch(NAMED)

keys = st.text(string.ascii_letters + string.digits + "-_+/.", min_size=24, max_size=80).filter(
    lambda text: (
        sum(char.isalnum() for char in text) > 20
        and any(map(str.isdigit, text))
        and any(map(str.isupper, text))
    )
)
words = st.lists(
    st.sampled_from(("the", "key", "is", "Here:", "you", "see", "\n", "1.", "—", "🙂")), max_size=8
).map(" ".join)


@pytest.mark.parametrize("name", OF_SECRETS)
def test_each_wrapping(name: str) -> None:
    wrapped = OF_SECRETS[name](KEY)
    hidden = SEARCH.redact(f"It is {wrapped} , I think.")
    assert "{{secret:anthropic}}" in hidden and not leaks(hidden, KEY)
    assert hidden.startswith("It ") and hidden.endswith(" I think.")


@given(st.sampled_from(sorted(OF_SECRETS)), keys, words, words)
def test_nothing_of_a_secret_is_left(name: str, key: str, before: str, after: str) -> None:
    search = SecretSearch({key: "{{secret:k}}", PHRASE: "{{secret:phrase}}"})
    assert not leaks(search.redact(f"{before} {OF_SECRETS[name](key)} {after}"), key)


@given(st.sampled_from(sorted(OF_SECRETS)), words, words, st.lists(st.integers(1, 9), min_size=1))
def test_nothing_of_it_is_left_where_it_comes_in_pieces(
    name: str, before: str, after: str, sizes: list[int]
) -> None:
    text = f"{before} {OF_SECRETS[name](KEY)} {after} and that is all."
    stream = SecretStream(SEARCH)
    shown = ""
    at = 0
    while at < len(text):
        size = sizes[len(shown) % len(sizes)]
        shown += stream.feed(text[at : at + size])
        at += size
    assert not leaks(shown + stream.close(), KEY)


@given(st.text(max_size=400))
def test_other_text_is_left_as_it_is(text: str) -> None:
    assert SEARCH.redact(text) == text
    stream = SecretStream(SEARCH)
    assert "".join([stream.feed(char) for char in text]) + stream.close() == text


@given(st.text(max_size=200), st.sampled_from(sorted(OF_SECRETS)))
def test_hiding_twice_changes_nothing(text: str, name: str) -> None:
    once = SEARCH.redact(text + OF_SECRETS[name](KEY) + text)
    assert SEARCH.redact(once) == once


def test_words_are_no_secret() -> None:
    """A prefix of a provider, a part of a phrase and a value of ordinary letters stand in ordinary
    texts."""
    text = (
        "Keys begin with sk-ant-api03-. The horse has a battery. A deskhand is a worker, desk hand."
    )
    assert SecretSearch({**NAMED, "deskhand": "{{secret:word}}"}).redact(text) == text.replace(
        "deskhand", "{{secret:word}}"
    )
    assert SEARCH.redact("Correct-horse, **battery** staple!") == "{{secret:phrase}}!"


def test_each_line_of_a_long_secret_counts() -> None:
    lines = [f"MIIEvQIBADANBgkqhkiG9w0BAQEFAASC{number:030d}" for number in range(40)]
    search = SecretSearch({"\n".join(lines): "{{secret:pem}}"})
    assert search.redact(f"see {lines[7][:30]} {lines[7][30:]}") == "see {{secret:pem}}"


def test_a_stream_holds_back_no_more_than_it_says() -> None:
    stream = SecretStream(SEARCH)
    shown = "".join([stream.feed("a1") for _ in range(5 * MAX_HELD_CHARS)])
    assert len(shown) >= 9 * MAX_HELD_CHARS, "a word without an end is shown in the end"
