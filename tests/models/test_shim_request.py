"""What the words of a request tell without a model."""

from __future__ import annotations

import pytest

from deskhand.models.shim_request import CHANGE, QUESTION, goes_on, obvious, questions_in
from deskhand.models.shim_turn import Turn


@pytest.mark.parametrize(
    "request_",
    [
        "What can you do?",
        "whats your name, and what kind of things can you do for me?",
        "Hi! I've no idea what you're good for. What could I ask you to do?",
        "what are you good at",
    ],
)
def test_a_question_about_deskhand_needs_no_model(request_: str) -> None:
    assert obvious(request_) == "self"


@pytest.mark.parametrize("request_", ["what could you do with a.txt?", "what is your plan.md about?", "who are they?"])
def test_what_is_no_question_about_deskhand(request_: str) -> None:
    assert obvious(request_) != "self"


@pytest.mark.parametrize(
    ("request_", "parts"),
    [
        (
            "Why don't we take the old mill, and what does the parish hall cost?",
            ["Why don't we take the old mill", "what does the parish hall cost?"],
        ),
        (
            "Who lives there and what is the number of the flat?",
            ["Who lives there and what is the number of the flat?"],
        ),
        ("what is black and white?", ["what is black and white?"]),
        ("Tell me who came to the party and why they left", ["Tell me who came to the party and why they left"]),
        ("", [""]),
    ],
)
def test_questions_that_stand_on_their_own(request_: str, parts: list[str]) -> None:
    assert questions_in(request_) == parts


@pytest.mark.parametrize(
    ("said", "request_", "goes_on_"),
    [
        ("I will remind you tomorrow at 15:30: the vet", "the vet is off, so you can drop that one", True),
        ("You have two reminders.", "cancel it", True),
        ("Changed plan.txt.", "delete that one", False),
        ("I will remind you tomorrow", "delete all of it in plan.txt", False),
    ],
)
def test_a_request_that_goes_on_about_reminders(said: str, request_: str, goes_on_: bool) -> None:
    assert goes_on(Turn(request_, 3, (("user", "..."), ("assistant", said)))) is goes_on_


@pytest.mark.parametrize(
    ("request_", "changes", "asks"),
    [
        ("when i imported it some lines came in twice, throw them out", True, False),
        ("when is my flight", False, True),
        ("bring it into the order of the times", True, False),
        ("how long does milk keep?", False, True),
    ],
)
def test_what_changes_and_what_asks(request_: str, changes: bool, asks: bool) -> None:
    assert (bool(CHANGE.search(request_)), bool(QUESTION.search(request_))) == (changes, asks)
