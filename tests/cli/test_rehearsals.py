"""Programs of small models in the terminal: what they change and came to, in words."""

from __future__ import annotations

import msgspec
import pytest

from deskhand.cli.paint import Paint
from deskhand.cli.rehearsals import describe_arguments, describe_result, style_question
from deskhand.policy.approval import render_arguments
from deskhand.types.messages import ToolCall
from deskhand.types.programs import (
    REHEARSE_PROGRAM,
    RUN_PROGRAM,
    SURVEY_FILES,
    FileChange,
    Rehearsed,
)

from .test_view import Talk, asked, finished, replied

DIFF = "--- diary.txt\n+++ diary.txt\n@@ -1,2 +1 @@\n-rain\n+sun"
LOST = FileChange(
    "diary.txt", "changed", "a" * 64, DIFF, loses="overwrites diary.txt and its 2 lines"
)


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall("c1", name, msgspec.Raw(msgspec.json.encode(arguments)))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (call(RUN_PROGRAM, program="x", changes=[LOST]), "change diary.txt"),
        (
            call(RUN_PROGRAM, program="x", changes=[LOST, FileChange("b", "new")]),
            "change diary.txt, make b",
        ),
        (call(RUN_PROGRAM, program=1), None),
        (call(REHEARSE_PROGRAM, program="say(1)", answers=["2"]), "say(1)"),
        (call(SURVEY_FILES, about="how many?", purpose="read"), "how many?"),
        (call(SURVEY_FILES, purpose="read"), None),
        (call("shell", command="ls"), None),
        (ToolCall("c1", REHEARSE_PROGRAM, msgspec.Raw(b"{")), None),
        (ToolCall("c1", SURVEY_FILES, msgspec.Raw(b"[]")), None),
    ],
)
def test_what_is_called(made: ToolCall, words: str | None) -> None:
    assert describe_arguments(made) == words


def test_what_came_of_it() -> None:
    came = msgspec.json.encode(Rehearsed("ok", changes=(LOST,))).decode()
    assert describe_result(REHEARSE_PROGRAM, came) == "would change diary.txt"
    assert describe_result(REHEARSE_PROGRAM, came[:-9]) == "rehearsed"
    assert describe_result(REHEARSE_PROGRAM, "the program is empty") == "the program is empty"
    assert describe_result("shell", came) == came


def test_a_turn_by_programs() -> None:
    talk = Talk(70)
    came = msgspec.json.encode(Rehearsed("ok", changes=(LOST,))).decode()
    lines = talk.see(replied("", call(REHEARSE_PROGRAM, program="say(1)\nsay(2)")), finished(came))
    assert lines == ["✓ rehearse_program  say(1) say(2)", "  would change diary.txt"]
    run = call(RUN_PROGRAM, program="say(1)", changes=[LOST])
    lines = talk.see(replied("", run), finished("It is tidy."))
    assert lines == ["✓ run_program  change diary.txt", "  It is tidy."]


def test_the_question_is_coloured() -> None:
    made = call(RUN_PROGRAM, program="x = 1\n-x", changes=[LOST])
    question = f"{RUN_PROGRAM} {render_arguments(made)}"
    lines = style_question(question)
    assert "\n".join(line for line, _ in lines) == question
    assert [(line.strip(), style) for line, style in lines if style] == [
        ("overwrites diary.txt and its 2 lines", "warn"),
        ("@@ -1,2 +1 @@", "quiet"),
        ("-rain", "bad"),
        ("+sun", "good"),
        ("SHA-256 of what the files hold then:", "quiet"),
        (f"{'a' * 64}  diary.txt", "quiet"),
    ]
    assert style_question("shell \n\n  -x") == [("shell \n\n  -x", "")]
    assert "│ overwrites diary.txt and its 2 lines                     │" in Talk(60).see(
        asked(question)
    )
    coloured = Paint(lambda: 60, "standard").panel(lines, "title")
    assert any("\x1b[31m  -rain" in line for line in coloured)
    assert not any("\x1b[31m  -x" in line for line in coloured)
