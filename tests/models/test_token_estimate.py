"""How long a message is taken to be."""

from __future__ import annotations

from deskhand.models.token_estimate import estimate_tokens
from deskhand.types.messages import Image, Thinking

from .tools import assistant, called, result, user

LONG = "x" * 7000


def test_a_message_is_as_long_as_what_is_in_it() -> None:
    said = (user(LONG), assistant(called("c", LONG, "")), result("c", LONG))
    thought = (assistant(Thinking(LONG, "w", "seal")), assistant(Thinking("", "w", redacted=LONG)))
    assert [estimate_tokens(message) for message in (*said, *thought)] == [2008] * 5


def test_a_mark_of_a_provider_is_nothing_and_a_picture_is_a_page() -> None:
    assert estimate_tokens(assistant(Thinking("", "w", "final_answer"))) == 8
    assert estimate_tokens(user(Image("sha256:a", "image/png"))) == 8 + int(4000 / 3.5)
