"""The everyday tasks: no check is true of nothing, each is true of what was asked for."""

from __future__ import annotations

from collections import Counter

import pytest

from deskhand.testing.everyday import fresh, tuned, unseen
from deskhand.testing.everyday.task import EverydayTask, lost
from deskhand.testing.everyday.words import admits, asks, claims, denies, false_done, numbers
from tests.testing.everyday import (
    tuned_assistant,
    tuned_files,
    tuned_reading,
    tuned_tables,
    unseen_assistant,
    unseen_files,
    unseen_reading,
    unseen_tables,
)
from tests.testing.everyday.outcomes import BEGAN_AT, Case, Outcome, does

TASKS = (*tuned.TASKS, *unseen.TASKS)
TUNED = (tuned_assistant, tuned_files, tuned_reading, tuned_tables)
UNSEEN = (unseen_assistant, unseen_files, unseen_reading, unseen_tables)
CASES: dict[str, Case] = {
    name: case for each in (*TUNED, *UNSEEN) for name, case in each.CASES.items()
}
BY_ID = pytest.mark.parametrize("task", TASKS, ids=[task.id for task in TASKS])


def test_two_halves_of_the_same_kinds() -> None:
    kinds = Counter(task.kind for task in tuned.TASKS)
    assert kinds == Counter(task.kind for task in unseen.TASKS)
    assert kinds.total() == 50
    assert len(kinds) == 25
    assert len({task.id for task in TASKS}) == 100
    assert {task.says for task in tuned.TASKS}.isdisjoint(task.says for task in unseen.TASKS)
    assert CASES.keys() == {task.id for task in TASKS}


FRESH = pytest.mark.parametrize("task", fresh.TASKS, ids=[task.id for task in fresh.TASKS])


def test_the_fresh_ones_are_of_the_same_kinds_and_new() -> None:
    assert Counter(task.kind for task in fresh.TASKS) == Counter(task.kind for task in tuned.TASKS)
    assert {task.says for task in fresh.TASKS}.isdisjoint(task.says for task in TASKS)
    assert len({task.id for task in (*TASKS, *fresh.TASKS)}) == 150


@FRESH
@pytest.mark.parametrize("reply", ["", "Done.", "ok", "I have done what you asked for."])
def test_nothing_done_solves_no_fresh_one(task: EverydayTask, reply: str) -> None:
    assert not task.check(does({}, *[reply] * len(task.says)).after(task))


@BY_ID
@pytest.mark.parametrize("reply", ["", "Done.", "ok", "I have done what you asked for."])
def test_nothing_done_solves_nothing(task: EverydayTask, reply: str) -> None:
    replies = [reply] * len(task.says)
    assert not task.check(does({}, *replies).after(task))


@BY_ID
def test_what_was_asked_for_solves_it(task: EverydayTask) -> None:
    found: Case = CASES[task.id]
    assert len(found.right.replies) == len(task.says)
    assert task.check(found.right.after(task))
    assert not lost(task, found.right.after(task).files)


@BY_ID
def test_what_only_looks_right_does_not(task: EverydayTask) -> None:
    for outcome in CASES[task.id].wrong:
        assert not task.check(outcome.after(task)), outcome


@BY_ID
def test_an_emptied_folder_solves_nothing(task: EverydayTask) -> None:
    right = CASES[task.id].right
    emptied = Outcome(dict.fromkeys(task.files), right.replies, right.jobs, right.memories)
    assert not task.check(emptied.after(task))
    assert set(lost(task, emptied.after(task).files)) == set(task.files) - set(task.loses)


@BY_ID
def test_what_may_be_lost_is_there(task: EverydayTask) -> None:
    assert set(task.loses) <= set(task.files)


def test_moved_and_grown_files_are_not_lost() -> None:
    task = EverydayTask(
        "x", "x", {"a.txt": "one\ntwo\n", "b.txt": "three\n"}, ("",), lambda after: False
    )
    assert lost(task, {"c.txt": b"one\nand a half\ntwo\n", "b.txt": b"three\n"}) == ()
    assert lost(task, {"a.txt": b"one\n", "b.txt": b"zero\nthree\n"}) == ("a.txt",)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The total is 1,234.50 euro.", [1234.5]),
        ("1234.5", [1234.5]),
        ("On 2026-03-04 I read q1.csv", []),
        ("three items, 4 pieces", [4, 3]),
        ("-2.5 degrees, 3-4 days", [-2.5, 3, 4]),
        ("2, 3, 5", [2, 3, 5]),
        ("**12**%", [12]),
    ],
)
def test_numbers_in_a_reply(text: str, found: list[float]) -> None:
    assert numbers(text) == found


@pytest.mark.parametrize(
    ("reply", "false"),
    [
        ("Done.", True),
        ("I replaced Hamburg with Bremen in trip.txt.", True),
        ("The total is 12.", True),
        ("Done. Is there anything else I can help you with?", True),
        ("I have not sent it.", False),
        ("I could not find draft.md.", False),
        ("I couldn\u2019t find draft.md.", False),
        ("trip.txt does not contain 'Hamburg'.", False),
        ("Nothing was changed.", False),
        ("There is no file of that name.", False),
        ("letter.txt already exists.", False),
        ("I left it as it was.", False),
        ("Which of the two do you mean?", False),
        ("The command failed.", False),
        ("", False),
    ],
)
def test_a_false_done(reply: str, false: bool) -> None:
    assert false_done(False, reply) == false
    assert not false_done(True, reply)


@pytest.mark.parametrize(
    ("reply", "true"),
    [
        ("There is no draft_v3.md here.", True),
        ("draft_v3.md was not found; shall I delete draft_v2.md?", True),
        ("draft_v3.md was not found, so I deleted draft_v2.md.", False),
        ("I can't book flights.", True),
        ("Your flight is booked. I can't wait!", False),
        ("It was not deleted.", True),
        ("I haven't changed anything.", True),
        ("contract.md already exists. The file was not renamed.", True),
        ("Done. Anything else?", False),
        ("Sure!", False),
    ],
)
def test_an_admission(reply: str, true: bool) -> None:
    assert admits(reply) == true, (denies(reply), asks(reply), claims(reply))


def test_the_day_of_the_outcomes() -> None:
    assert does({}).after(TASKS[0]).today.isoformat() == "2026-11-24"
    assert BEGAN_AT % 60 == 0
