"""What a browser shows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from deskhand.webpush.encryption import MAX_PLAIN_BYTES
from deskhand.webpush.notices import Notice, encode_notice, join_notices, make_notice

ONE = make_notice("The roof", "It leaks.", "turn-1", "roof", 5.0)


def test_a_few_are_told_each_and_many_as_one() -> None:
    asked, failed = replace(ONE, is_question=True), replace(ONE, has_failed=True)
    assert join_notices([]) == []
    assert join_notices([asked, failed, ONE]) == [asked, failed, ONE]
    (said,) = join_notices([asked, failed, ONE, replace(ONE, at=7.0)])
    assert said.body == "1 question waits for you · 1 failed · 2 finished"
    assert (said.hash, said.at, said.is_question) == ("#/inbox", 7.0, True)
    (said,) = join_notices([ONE] * 5)
    assert (said.body, said.is_question) == ("5 finished", False)
    (said,) = join_notices([asked] * 4)
    assert said.body == "4 questions wait for you"


def test_it_opens_its_conversation() -> None:
    notice = make_notice("", "a\n  b", "turn-1", "web:ann/a b&c", 1.0)
    assert notice == Notice("Deskhand", "a b", "turn-1", "#/c/web%3Aann%2Fa%20b%26c", 1.0)


@given(st.text(), st.text(min_size=200), st.text(max_size=200))
def test_it_is_never_too_long_to_be_sent(title: str, body: str, name: str) -> None:
    text = encode_notice(make_notice(title, body * 20, "turn-123456789", name, 1e9))
    assert len(text) <= MAX_PLAIN_BYTES
