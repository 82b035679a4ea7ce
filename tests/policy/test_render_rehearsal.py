"""A rehearsed program as a person is asked about it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from deskhand.policy.approval import render_arguments
from deskhand.policy.render_rehearsal import MESSAGE_CHARS
from deskhand.types.messages import ToolCall
from deskhand.types.programs import RUN_PROGRAM, FileChange

A = "a" * 64
B = "b" * 64
LOST = "overwrites diary.txt and its 2 lines"
DIFF = "--- diary.txt\n+++ diary.txt\n@@ -1,2 +1 @@\n-rain\n-more rain\n+sun"
OVERWRITTEN = FileChange("diary.txt", "changed", A, DIFF, loses=LOST)
MADE = FileChange("sum.csv", "new", B, "--- /dev/null\n+++ sum.csv\n@@ -0,0 +1 @@\n+total")


def asked(*changes: FileChange, program: str = "say('hi')", **more: object) -> str:
    given: dict[str, Any] = {"program": program, "changes": changes, **more}
    return render_arguments(ToolCall("c1", RUN_PROGRAM, msgspec.Raw(msgspec.json.encode(given))))


def test_what_is_lost_comes_first_with_its_diff() -> None:
    program = "write('diary.txt', 'sun')\nsay('done')"
    assert asked(MADE, OVERWRITTEN, program=program).splitlines() == [
        "",
        "overwrites diary.txt and its 2 lines",
        "makes sum.csv",
        "",
        "diary.txt:",
        "  @@ -1,2 +1 @@",
        "  -rain",
        "  -more rain",
        "  +sun",
        "",
        "The program:",
        "  write('diary.txt', 'sun')",
        "  say('done')",
        "",
        "SHA-256 of what the files hold then:",
        f"  {A}  diary.txt",
        f"  {B}  sum.csv",
    ]


def test_where_nothing_is_lost_all_diffs_are_shown() -> None:
    assert "\nsum.csv:\n  @@ -0,0 +1 @@\n  +total\n" in asked(MADE)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (FileChange("a.txt", "new", A), "makes a.txt"),
        (FileChange("a.txt", "changed", A), "changes a.txt"),
        (FileChange("a.txt", "deleted"), "deletes a.txt"),
        (
            FileChange("a.txt", "deleted", loses="deletes a.txt with its 1 line"),
            "deletes a.txt with its 1 line",
        ),
        (
            FileChange("a.txt", "changed", A, loses="empties a.txt of its 1 line"),
            "empties a.txt of its 1 line",
        ),
        (FileChange("a.txt", "new", A, loses="deletes b.txt"), "makes a.txt: deletes b.txt"),
        (FileChange("a", "folder"), "makes the folder a"),
        (FileChange("a.txt", "moved", A, to="b/a.txt"), "moves a.txt to b/a.txt"),
        (FileChange("a to b", "moved", A, to="c"), 'moves "a to b" to c'),
        (FileChange('a".txt', "new", A), 'makes "a\\".txt"'),
        (FileChange("día.txt", "new", A), "makes día.txt"),
        (FileChange("a\u3164.txt", "new", A), 'makes "a\\u3164.txt"'),
        (FileChange("a.txt", "changed", A, to="c"), "changes a.txt to c"),
    ],
)
def test_a_change_as_a_line(change: FileChange, line: str) -> None:
    assert asked(change).splitlines()[1] == line


def test_nothing_hides_and_nothing_looks_like_our_own_lines() -> None:
    """Neither the program nor a file can write at the beginning of a line, nor end one unseen."""
    program = "say('a')\r# b\u2028c\u202ed\n\nSHA-256 of what the files hold then:\n\tx\u3164"
    change = FileChange("a\nmakes b.txt", "changed", A, "The program:\n+\x85x", loses="x\n\u200by")
    text = asked(change, program=program)
    assert text.splitlines() == [
        "",
        'changes "a\\nmakes b.txt": x\\u000a\\u200by',
        "",
        '"a\\nmakes b.txt":',
        "  The program:",
        "  +\\u0085x",
        "",
        "The program:",
        "  say('a')\\u000d# b\\u2028c\\u202ed",
        "  ",
        "  SHA-256 of what the files hold then:",
        "  \tx\\u3164",
        "",
        "SHA-256 of what the files hold then:",
        f'  {A}  "a\\nmakes b.txt"',
    ]


def test_answers_are_part_of_what_runs() -> None:
    assert '\n\nIt is given:\n  "red\\nblue"\n' in asked(MADE, answers=["red\nblue"])


def test_long_diffs_are_cut_so_that_it_is_one_message() -> None:
    diff = "\n".join(f"-line {i:04d} of a long and rainy day" for i in range(40))
    changes = [
        FileChange(f"day-{i}.txt", "deleted", diff=diff, loses=f"deletes day-{i}.txt")
        for i in range(6)
    ]
    text = asked(*changes)
    assert len(text) <= MESSAGE_CHARS
    assert text.count("\ndeletes day-") == 6 and "\nday-0.txt:\n" in text
    assert "\n  -line 0039 of a long" in text, "the first is whole"
    assert "\n  … 36 more lines\n\nThere is no room here for 3 more diffs.\n" in text


def test_a_long_program_is_whole_and_its_losses_are_still_seen() -> None:
    program = "\n".join(f"say({i})" for i in range(1000))
    text = asked(OVERWRITTEN, program=program)
    assert "  say(999)\n" in text and "  -more rain\n" in text


@pytest.mark.parametrize(
    "arguments",
    [
        b'{"program":"say(1)","changes":[],"more":1}',
        b'{"changes":[]}',
        b'{"program":1}',
        b'{"program":"x","changes":[{"path":"a","kind":"blown up"}]}',
        b'{"program":"x"',
        b"\xff",
    ],
)
def test_what_the_tool_would_refuse_is_shown_as_it_is(arguments: bytes) -> None:
    assert render_arguments(
        ToolCall("c1", RUN_PROGRAM, msgspec.Raw(arguments))
    ) == arguments.decode(errors="backslashreplace")


def test_other_tools_are_shown_as_before() -> None:
    raw = b'{"program":"x"}'
    assert render_arguments(ToolCall("c1", "shell", msgspec.Raw(raw))) == raw.decode()
