"""What the words of a request tell without a model."""

from __future__ import annotations

import pytest

from deskhand.models.shim_request import (
    CHANGE_VERB,
    QUESTION,
    classify_obvious,
    is_reminder_followup,
    is_undo,
    make_reminder_program,
    split_questions,
)
from deskhand.models.shim_turn import ShimTurn


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
    assert classify_obvious(request_) == "self"


@pytest.mark.parametrize(
    "request_",
    [
        "what could you do with a.txt?",
        "Translate 'What is your name?' into French",
        "what is your plan.md about?",
        "who are they?",
    ],
)
def test_what_is_no_question_about_deskhand(request_: str) -> None:
    assert classify_obvious(request_) != "self"


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
        (
            "where is the rehearsal on sunday and which folder do i bring? it's in the mail",
            ["where is the rehearsal on sunday", "which folder do i bring?"],
        ),
        ("what is black and white?", ["what is black and white?"]),
        (
            "Tell me who came to the party and why they left",
            ["Tell me who came to the party and why they left"],
        ),
        ("", [""]),
    ],
)
def test_questions_that_stand_on_their_own(request_: str, parts: list[str]) -> None:
    assert split_questions(request_) == parts


@pytest.mark.parametrize(
    ("said", "request_", "goes_on_"),
    [
        (
            "I will remind you tomorrow at 15:30: the vet",
            "the vet is off, so you can drop that one",
            True,
        ),
        ("You have two reminders.", "cancel it", True),
        ("Changed plan.txt.", "delete that one", False),
        ("I will remind you tomorrow", "delete all of it in plan.txt", False),
        ("I will remind you tomorrow", "Delete all the tmp files here, I don't need them", False),
        ("I will remind you tomorrow", "Throw out the old files. Delete them", False),
        ("I will remind you tomorrow", "I called her already, please forget about it.", True),
    ],
)
def test_a_request_that_goes_on_about_reminders(said: str, request_: str, goes_on_: bool) -> None:
    assert (
        is_reminder_followup(ShimTurn(request_, 3, (("user", "..."), ("assistant", said))))
        is goes_on_
    )


@pytest.mark.parametrize(
    ("request_", "changes", "asks"),
    [
        ("when i imported it some lines came in twice, throw them out", True, False),
        ("when is my flight", False, True),
        ("bring it into the order of the times", True, False),
        ("how long does milk keep?", False, True),
        ("could you tell me how many have 5 stars", False, True),
        ("could you write them down", True, False),
    ],
)
def test_what_changes_and_what_asks(request_: str, changes: bool, asks: bool) -> None:
    assert (bool(CHANGE_VERB.search(request_)), bool(QUESTION.search(request_))) == (changes, asks)


@pytest.mark.parametrize(
    ("request_", "program"),
    [
        (
            "Please remember that our guest Frieda likes tea.",
            "remember('Our guest Frieda likes tea.')",
        ),
        (
            "and please also remember that Noah must not eat nuts",
            "remember('Noah must not eat nuts.')",
        ),
        ("keep in mind for me that the code is 4821", "remember('The code is 4821.')"),
        ("Please remember: my sister Iris is 30", "remember('My sister Iris is 30.')"),
        (
            "remind me tomorrow at 9 to call the dentist",
            "remind('tomorrow at 9', 'Call the dentist.')",
        ),
        ("could you remind me in 2 hours to eat?", "remind('in 2 hours', 'Eat.')"),
        ("remind me to eat in 2 hours", "remind('in 2 hours', 'Eat.')"),
        ("remind me every day at 6:30 to feed the cat", "every('day at 6:30', 'Feed the cat.')"),
        (
            "delete the reminder about the bread please",
            "cancel('delete the reminder about the bread please')",
        ),
        ("cancel all my reminders", "for line in reminders():\n    cancel(line)"),
        ("remind me to cancel the reminder service", ""),
        ("please delete every one of my alarms", "for line in reminders():\n    cancel(line)"),
        ("cancel all reminders except the one about the dentist", ""),
        ("cancel all reminders about the dentist", ""),
        ("Set an alarm for 7 to drop off the kids", ""),
        ("Set a reminder at 8 to cancel my gym membership", ""),
        ("Do not delete the reminder about the bread", ""),
        ("Cancel the reminder about the gym and set one for Friday", ""),
        ("Remember that Ann likes tea and remind me at 5 to buy some", ""),
        ("Remember this!", ""),
        ("remind me tomorrow to eat and in 3 hours to drink", ""),
        ("delete the old file", ""),
        ("remember to buy milk", ""),
        ("do you remember my name?", ""),
        ("remember what I said?", ""),
        ("remind me at 5 to lock up, and every day at noon to drink", ""),
        ("remind me to call Ben", ""),
        ("I like tea. Remember that.", ""),
        ("", ""),
    ],
)
def test_what_is_said_so_plainly_that_no_model_is_asked(request_: str, program: str) -> None:
    assert make_reminder_program(request_) == program


@pytest.mark.parametrize(
    ("request_", "back"),
    [
        ("Undo that.", True),
        ("hm, my aunt says 200 was right. please take it back", True),
        ("he is coming after all! please undo that", True),
        ("take the book back to the library, add it to todo.md", False),
        ("what does undo do?", False),
        ("Add this line to notes.txt: undo that", False),
        ("Write a rule in the list, undo that", False),
        ("Do not touch it again, undo that", False),
        ("if something breaks, undo it", False),
        ("", False),
    ],
)
def test_a_request_that_takes_back(request_: str, back: bool) -> None:
    assert is_undo(request_) is back
