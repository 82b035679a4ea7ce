"""What a small model does next, from what has happened in its turn: lists in, steps out."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from deskhand.models.shim_programs import ProgramTry, extract_program, is_plain
from deskhand.models.shim_prompts import ABOUT_REPLY, RequestKind
from deskhand.models.shim_request import classify_obvious
from deskhand.models.shim_steps import (
    MAX_TRIES,
    MIN_STOPS,
    AnswerStep,
    Do,
    SayStep,
    ShimStep,
    Sort,
    Write,
    first_step,
    is_stuck,
    next_step,
)
from deskhand.models.shim_turn import Did, Move, ShimTurn
from deskhand.models.shim_words import render_done, replace_false_claim
from deskhand.types.programs import FileChange, ProgramCall, Rehearsed

NEW = FileChange("n.txt", "new", "1" * 64, "--- /dev/null\n+++ n.txt\n@@ -0,0 +1 @@\n+hello")
OTHER = FileChange("n.txt", "new", "2" * 64, "--- /dev/null\n+++ n.txt\n@@ -0,0 +1 @@\n+bye")


def survey(purpose: str = "change", listing: str = "Files here:\n- a.csv: 3 lines") -> Did:
    return Did(Move("survey_files", {"about": "x", "purpose": purpose}), listing, "ok")


def tried(program: str, came: Rehearsed, *answers: str) -> Did:
    given: dict[str, Any] = {"program": program} | ({"answers": list(answers)} if answers else {})
    return Did(Move("rehearse_program", given), msgspec.json.encode(came).decode(), "ok")


def after(request: str, *did: Did) -> ShimStep:
    return next_step(ShimTurn(request, 4, did=did))


def ran(program: str, *changes: FileChange, status: str = "ok", result: str = "done") -> Did:
    given = {"program": program, "changes": msgspec.to_builtins(changes)}
    return Did(Move("run_program", given), result, status)


def tools_of(step: ShimStep) -> list[str]:
    assert isinstance(step, Do), step
    return [move.tool for move in step.moves]


def said(step: ShimStep) -> str:
    assert isinstance(step, SayStep), step
    return step.text


# The first step


@pytest.mark.parametrize(
    ("request_", "word"),
    [
        *(("What can you do?", "self"), ("Who are you?", "self"), ("help", "self")),
        *(
            ("Remind me tomorrow at 9 to call mum", "assist"),
            ("every monday at 8 tell me to water", "assist"),
        ),
        *(("order two pizzas for us", "talk"), ("book the early train", "talk")),
        *(
            ("undo that", "assist"),
            ("oh no, the wrong one! bring it back please", "assist"),
            ("Take that back, please".replace(",", ""), "assist"),
            ("Undo", "assist"),
        ),
        *(("remember that I like tea", "assist"), ("Cancel all my reminders", "assist")),
        *(("what did you just change?", "assist"), ("forget my birthday", "assist")),
        ("What does https://x.example/a say?", "read"),
        *(
            ("rename a.txt to b.txt", None),
            ("How many lines has poem.txt?", None),
            ("Thank you!", None),
        ),
        *(("Sort every line of a.txt", None), ("What is a remainder?", None)),
    ],
)
def test_what_needs_no_model_to_be_sorted(request_: str, word: RequestKind | None) -> None:
    assert classify_obvious(request_) == word


@pytest.mark.parametrize(
    ("word", "request_", "step"),
    [
        ("self", "who are you", SayStep(ABOUT_REPLY, failed=False)),
        ("talk", "thanks", AnswerStep()),
        ("assist", "undo that", Do((Move("undo_change", {}),))),
        ("assist", "remind me at 9", Write("assistant")),
        (
            "read",
            "see https://x.example/a?b=1.",
            Do((Move("web_fetch", {"url": "https://x.example/a?b=1"}),)),
        ),
        (
            "read",
            "what is the rent?",
            Do((Move("survey_files", {"about": "what is the rent?", "purpose": "read"}),)),
        ),
        (
            "change",
            "sort it",
            Do((Move("survey_files", {"about": "sort it", "purpose": "change"}),)),
        ),
        (
            "talk",
            "who is my dentist?",
            Do((Move("survey_files", {"about": "who is my dentist?", "purpose": "read"}),)),
        ),
    ],
)
def test_how_a_request_begins(word: RequestKind, request_: str, step: ShimStep) -> None:
    assert first_step(word, ShimTurn(request_, 4)) == step


# The steps after it


def test_what_follows_the_first_step() -> None:
    assert after("sort it") == Sort()
    step = after("sort it", survey())
    assert (
        isinstance(step, Write)
        and (step.kind, step.number) == ("files", 0)
        and "a.csv" in step.listing
    )
    texts = "--- a.txt\nThe rent is 900.\n--- end of a.txt"
    assert after("what is the rent?", survey("read", texts)) == AnswerStep(texts)
    assert isinstance(after("what is the rent?", survey("read")), Write), "no file was named"
    assert after("should I learn the piano?", survey("read", texts)) == AnswerStep(), (
        "no text speaks of it"
    )
    made = after("who wrote in a.txt? put the names in b.txt", survey("read", texts))
    assert isinstance(made, Do) and made.moves[0].arguments["purpose"] == "change", (
        "b.txt is to be made"
    )
    fetched = Did(Move("web_fetch", {"url": "http://x"}), "The text.", "ok")
    step = after("see http://x", fetched)
    assert isinstance(step, AnswerStep) and "The text." in step.texts
    undone = Did(Move("undo_change", {}), "Put back: a.txt.", "ok")
    assert after("undo", undone) == SayStep("Put back: a.txt.", failed=False)


@pytest.mark.parametrize("tool", ["survey_files", "web_fetch", "undo_change"])
def test_a_first_step_that_fails_is_said(tool: str) -> None:
    step = after("do it", Did(Move(tool, {}), "there is nothing here\nmore", "error"))
    assert isinstance(step, SayStep) and step.failed and "there is nothing here" in step.text


@pytest.mark.parametrize("status", ["denied", "expired", "unasked", "interrupted"])
def test_what_was_not_done_is_never_called_done(status: str) -> None:
    program = "write('n.txt', 'hello')"
    came = tried(program, Rehearsed("ok", changes=(NEW,)))
    step = after(
        "write hello into n.txt",
        survey(),
        came,
        ran(program, NEW, status=status, result="ann said no."),
    )
    assert isinstance(step, SayStep) and step.failed and "ann said no." in step.text


def test_a_plain_program_is_done_at_once() -> None:
    program = "write('n.txt', 'hello')\nsay('done')"
    step = after(
        "write hello into n.txt", survey(), tried(program, Rehearsed("done", changes=(NEW,)))
    )
    assert step == Do(
        (Move("run_program", {"program": program, "changes": msgspec.to_builtins((NEW,))}),)
    )


COMPUTED = "write('n.txt', [l for l in lines('a.csv') if {n}])\nsay(f'{{1}} line')"


def test_two_equal_outcomes_win() -> None:
    first = COMPUTED.format(n=1)
    second = COMPUTED.format(n=2)
    one, same = (tried(each, Rehearsed("1 line", changes=(NEW,))) for each in (first, second))
    asked = "write the vegan guests into n.txt"
    step = after(asked, survey(), one)
    assert isinstance(step, Write) and step.number == 1, (
        "it is not plain, so it is not believed alone"
    )
    assert tools_of(after(asked, survey(), one, same)) == ["run_program"]
    other = tried(COMPUTED.format(n=3), Rehearsed("2 lines", changes=(OTHER,)))
    step = after(asked, survey(), other, one, same)
    assert isinstance(step, Do) and step.moves[0].arguments["changes"] == msgspec.to_builtins(
        (NEW,)
    )


def test_two_that_say_the_same_number_agree() -> None:
    def saying(text: str) -> Did:
        return tried("n = len(rows('a.csv'))\nsay(n)", Rehearsed(text))

    asked = "how many rows has a.csv?"
    assert isinstance(after(asked, survey("compute"), saying("There are 1,200 rows.")), Write)
    step = after(
        asked, survey("compute"), saying("There are 1,200 rows."), saying("It has 1200 rows")
    )
    assert isinstance(step, SayStep) and not step.failed and "1,200" in step.text


def test_two_that_stop_refuse_with_their_sentence() -> None:
    stopped = tried("read('b.txt')", Rehearsed(stopped="there is no file b.txt"))
    step = after("sort b.txt", survey(), *[stopped] * (MIN_STOPS - 1))
    assert isinstance(step, Write)
    step = after("sort b.txt", survey(), *[stopped] * MIN_STOPS)
    assert isinstance(step, SayStep) and step.failed
    assert "there is no file b.txt" in step.text and "Nothing was changed" in step.text


def test_it_does_not_try_for_ever() -> None:
    for came in (
        Rehearsed(failed="NameError: x"),
        Rehearsed("I did it."),
        Rehearsed("1", needs=None, changes=()),
    ):
        step = after("sort a.csv", survey(), *[tried("say('I did it.')", came)] * MAX_TRIES)
        assert isinstance(step, SayStep) and step.failed


@pytest.mark.parametrize(
    ("request_", "purpose", "program", "came"),
    [
        ("sort a.csv", "change", "say('I sorted it.')", Rehearsed("I sorted it.")),
        (
            "how many rows has a.csv?",
            "compute",
            "say('It has 42 rows.')",
            Rehearsed("It has 42 rows."),
        ),
        ("how many rows has a.csv?", "compute", "x = 1", Rehearsed()),
        (
            "how many rows has a.csv?",
            "compute",
            "write('n.txt', 'x')",
            Rehearsed("1", changes=(NEW,)),
        ),
        ("how many rows has a.csv?", "compute", "1 / 0", Rehearsed(failed="ZeroDivisionError")),
        ("sort a.csv", "change", "write('n.txt', 'x')", Rehearsed("x", stopped="no")),
    ],
)
def test_what_is_wrong_is_written_again(
    request_: str, purpose: str, program: str, came: Rehearsed
) -> None:
    step = after(request_, survey(purpose), tried(program, came))
    assert isinstance(step, Write) and step.number == 1


def test_what_code_can_mend_is_not_written_again() -> None:
    wrong = "x = {r['name']: sum(number(r['km'])) for r in rows('a.csv')}"
    failed = tried(wrong, Rehearsed(failed="TypeError: 'Number' object is not iterable"))
    step = after("sum the km of each name in a.csv", survey("compute"), failed)
    assert (
        isinstance(step, Do)
        and "other_r['name'] == r['name']" in step.moves[0].arguments["program"]
    )
    again = after(
        "sum the km of each name in a.csv",
        survey("compute"),
        failed,
        tried(wrong, Rehearsed(failed="x")),
    )
    assert isinstance(again, Write) and is_stuck(ShimTurn("", 1, did=(failed, failed)))


def test_a_text_that_came_out_as_it_was_is_changed_by_a_program() -> None:
    shown = survey("read", "--- a.md\nTee\n--- end of a.md")
    same = tried(
        "read('a.md')\nwrite('a.md', 'Tee')\nsay('done')", Rehearsed(said="done", read=("a.md",))
    )
    step = after("correct the spelling in a.md", shown, same)
    assert isinstance(step, Do) and step.moves[0].arguments["purpose"] == "change"
    assert isinstance(after("correct the spelling in a.md", shown, same, survey()), Write)


def test_a_result_that_is_no_rehearsal_is_a_failure() -> None:
    broken = Did(
        Move("rehearse_program", {"program": "x"}), "programs run only in the sandbox", "error"
    )
    step = after("sort a.csv", survey(), broken)
    assert isinstance(step, Write) and "sandbox" in step.note
    assert isinstance(after("sort a.csv", survey(), Did(broken.move, "odd", "ok")), Write)


def test_what_a_program_needs_is_called_and_it_is_rehearsed_again() -> None:
    program = "cancel('dentist')"
    listing = "j1: at 9: Call the dentist"
    needs = tried(program, Rehearsed(needs=ProgramCall("cron", {"mode": "list"})))
    asked = "cancel the reminder about the dentist"
    assert after(asked, needs) == Do((Move("cron", {"mode": "list"}),))
    listed = Did(Move("cron", {"mode": "list"}), listing, "ok")
    again = Move("rehearse_program", {"program": program, "answers": [listing]})
    assert after(asked, needs, listed) == Do((again,))
    call = ProgramCall("cron", {"mode": "remove", "job_id": "j1"}, "I cancelled this: dentist")
    came = tried(program, Rehearsed(calls=(call,)), listing)
    assert after(asked, needs, listed, came) == Do((Move("cron", dict(call.arguments)),))
    removed = Did(Move("cron", dict(call.arguments)), "ok, removed", "ok")
    assert after(asked, needs, listed, came, removed) == SayStep(
        "I cancelled this: dentist", failed=False
    )
    failed = msgspec.structs.replace(listed, result="the clock is off", status="error")
    assert "the clock is off" in said(after(asked, needs, failed))


# What is believed, and what is said


@pytest.mark.parametrize(
    ("request_", "program", "plain"),
    [
        ("delete a.txt", "delete('a.txt')", True),
        ("rename a.txt to b.txt", "rename('a.txt', 'b.txt')\nsay('done')", True),
        ("write a poem into n.txt", "write('n.txt', 'roses')", True),
        ("delete a.txt", "delete('b.txt')", False),
        ("delete a.txt", "for p in files('*'): delete(p)", False),
        ("delete a.txt", "x = 'a.txt'\ndelete(x)", False),
        ("delete a.txt", "delete(files('*')[0])", False),
        ("delete a.txt", "delete(", False),
        ("append x to a.txt", "import os", False),
    ],
)
def test_is_plain(request_: str, program: str, plain: bool) -> None:
    assert (
        is_plain(
            ProgramTry(program, (), Rehearsed("", changes=(NEW,))),
            ShimTurn(request_, 4, did=(survey(),)),
        )
        is plain
    )


def test_over_a_file_that_is_there_nothing_plain_is_written() -> None:
    changed = FileChange("a.txt", "changed", "1" * 64)
    turn = ShimTurn("write a poem into a.txt", 4, did=(survey(),))
    assert not is_plain(
        ProgramTry("write('a.txt', 'roses')", (), Rehearsed("", changes=(changed,))), turn
    )


def test_what_was_done_is_told_by_what_happened() -> None:
    changes = (
        NEW,
        FileChange("a.txt", "changed", "1" * 64, "--- a\n+++ a\n+x\n-y\n-z"),
        FileChange("b.txt", "deleted"),
        FileChange("c.txt", "moved", to="d/c.txt"),
        FileChange("e", "folder"),
    )
    words = render_done(
        ProgramTry("say('I made coffee.')", (), Rehearsed("I made coffee.", changes=changes))
    ).lower()
    assert "coffee" not in words
    for part in (
        "made n.txt",
        "changed a.txt",
        "deleted b.txt",
        "moved c.txt to d/c.txt",
        "made the folder e",
    ):
        assert part in words
    assert "1 added, 2 removed" in words
    many = tuple(FileChange(f"f{n}", "deleted") for n in range(20))
    assert "12 more" in render_done(ProgramTry("", (), Rehearsed("", changes=many)))


@pytest.mark.parametrize(
    ("words", "kept"),
    [("I wrote 3 names to n.txt.", True), ("I wrote 3 names to names.txt.", False)],
)
def test_words_that_name_a_file_that_was_not_touched_are_dropped(words: str, kept: bool) -> None:
    told = render_done(
        ProgramTry("say(f'I wrote {n} names')", (), Rehearsed(words, changes=(NEW,)))
    )
    assert (words in told) is kept and "n.txt" in told


def test_what_failed_in_the_middle_is_said_beside_what_was_done() -> None:
    program = "write('n.txt', 'hello')\nremember('tea')"
    call = ProgramCall("save_memory", {"content": "tea"}, "I will remember")
    came = tried(program, Rehearsed("", changes=(NEW,), calls=(call,)))
    failed = Did(Move("save_memory", {"content": "tea"}), "memory is off", "error")
    step = after(
        "write hello into n.txt and remember tea", survey(), came, ran(program, NEW), failed
    )
    assert (
        isinstance(step, SayStep)
        and step.failed
        and "n.txt" in step.text
        and "memory is off" in step.text
    )
    held = msgspec.structs.replace(failed, result="kept for review", status="ok")
    assert "kept for review" in said(
        after("remember tea", tried(program, Rehearsed("", calls=(call,))), held)
    )


def test_what_was_denied_after_a_change_does_not_unsay_the_change() -> None:
    """It would say `Nothing was changed`, and the file has been written."""
    program = "write('n.txt', 'hello')\nsend('hi')"
    call = ProgramCall("send_message", {"text": "hi"}, "I sent this: hi")
    came = tried(program, Rehearsed("", changes=(NEW,), calls=(call,)))
    denied = Did(Move("send_message", {"text": "hi"}), "ann said no.", "denied")
    text = said(
        after("write hello into n.txt and send hi", survey(), came, ran(program, NEW), denied)
    )
    assert "n.txt" in text and "Nothing was changed" not in text


@pytest.mark.parametrize(
    "request_", ["take it", "help me sort it", "add https://x.example to links.txt"]
)
def test_what_is_not_obvious(request_: str) -> None:
    """No undo, no text about ourselves, and no page that is fetched in place of what was asked
    for."""
    assert classify_obvious(request_) is None


@pytest.mark.parametrize(
    ("words", "asked", "kept"),
    [
        ("I have booked a table.", "book a table", False),
        ("I've sent it.", "send it to Bob", False),
        ("I will remind you.", "wake me", False),
        ("", "hello", False),
        ("Paris is the capital of France.", "capital of France?", True),
        ("I set the table in the play.", "Who set the table in it?", True),
        ("You are welcome!", "Thank you", True),
    ],
)
def test_a_deed_that_nobody_did_is_not_claimed(words: str, asked: str, kept: bool) -> None:
    assert (replace_false_claim(words, asked=asked) == words) is kept
    assert replace_false_claim(words, asked=asked)


@pytest.mark.parametrize(
    "written",
    [
        "x()",
        "```python\nx()\n```",
        "Sure:\n```py\nx()\n```\nThere.",
        "```\nx()",
        "`x()`",
        "```python\nx()",
    ],
)
def test_a_program_is_found_in_what_was_written(written: str) -> None:
    assert extract_program(written) == "x()"
