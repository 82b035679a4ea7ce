"""What is wrong with what a program came to, though it ran well."""

from __future__ import annotations

import pytest

from deskhand.models.shim_outcomes import (
    find_agreed_program,
    find_lost_columns,
    find_program_problem,
    find_table_problem,
)
from deskhand.models.shim_programs import ProgramTry, find_unasked_column
from deskhand.models.shim_turn import Did, Move, ShimTurn
from deskhand.types.programs import SURVEY_FILES, ChangeKind, FileChange, ProgramCall, Rehearsed

HEAD = "--- m.csv\n+++ m.csv\n@@ -1,3 +1,3 @@\n"


def turn(request: str) -> ShimTurn:
    return ShimTurn(
        request,
        1,
        did=(
            Did(
                Move(SURVEY_FILES, {"about": request, "purpose": "change"}),
                "Files here: none",
                "ok",
            ),
        ),
    )


@pytest.mark.parametrize(
    ("diff", "lost"),
    [
        (f"{HEAD}-time,temp_f\n+time,temp_c\n 08:00,68", ["temp_f"]),
        (f"{HEAD}-time,temp_f\n-1,2\n+time,temp_f,temp_c\n+1,2,3", []),
        (f"{HEAD} time,temp_f\n-1,2\n+1,3", []),
        ("--- m.csv\n+++ m.csv\n@@ -7,3 +7,3 @@\n-7,8\n+7,9", []),
        ("", []),
    ],
)
def test_columns_that_are_gone(diff: str, lost: list[str]) -> None:
    assert find_lost_columns(FileChange("m.csv", "changed", "d", diff)) == lost


@pytest.mark.parametrize(
    ("program", "request_", "column"),
    [
        ("unique(rows('a.csv'), by='donor')", "some lines came in twice", "donor"),
        ("unique(rows('a.csv'), by='mail')", "keep one row for each mail", ""),
        ("unique(lines('a.txt'), by=str.lower)", "some came in twice", ""),
        ("unique(lines('a.txt'))", "some came in twice", ""),
        ("unique(rows('a.csv'), 'donor')", "some lines came in twice", "donor"),
        ("no program(", "", ""),
    ],
)
def test_a_column_that_nobody_named(program: str, request_: str, column: str) -> None:
    assert find_unasked_column(program, request_) == column


@pytest.mark.parametrize(
    ("request_", "count", "wrong"),
    [
        ("the bread is gone, delete that reminder", 2, True),
        ("the bread is gone, delete that reminder", 1, False),
        ("cancel all my reminders", 2, False),
        ("delete both", 2, False),
    ],
)
def test_more_than_one_reminder_is_cancelled_only_where_that_is_said(
    request_: str, count: int, wrong: bool
) -> None:
    calls = tuple(
        ProgramCall("cron", {"mode": "remove", "job_id": f"job {n}"}) for n in range(count)
    )
    tried = ProgramTry("cancel('x')", (), Rehearsed(calls=calls))
    assert bool(find_program_problem(tried, turn(request_), wants=True, assist=True)) is wrong


def test_a_column_that_is_gone_is_a_problem_unless_it_was_asked_for() -> None:
    change = FileChange("m.csv", "changed", "d", f"{HEAD}-time,temp_f\n+time,temp_c\n 08:00,68")
    tried = ProgramTry("replace('m.csv', 'temp_f', 'temp_c')", (), Rehearsed(changes=(change,)))
    assert "temp_f is gone" in find_program_problem(
        tried, turn("add a column temp_c to m.csv"), wants=True, assist=False
    )
    assert not find_program_problem(
        tried, turn("rename temp_f to temp_c in m.csv"), wants=True, assist=False
    )


@pytest.mark.parametrize(
    ("request_", "changes", "wrong"),
    [
        ("save the good ones of m.csv as good.csv", (FileChange("m.csv", "changed", "d"),), True),
        ("save the good ones of m.csv as good.csv", (FileChange("good.csv", "new", "d"),), False),
        ("rename m.csv to n.csv", (FileChange("m.csv", "moved", "d", to="n.csv"),), False),
        (
            "add 'see plan.txt' to m.csv",
            (FileChange("m.csv", "changed", "d", "+see plan.txt"),),
            False,
        ),
        ("put tea on m.csv", (FileChange("m.csv", "changed", "d"),), False),
    ],
)
def test_a_file_that_is_named_and_not_there_is_made(
    request_: str, changes: tuple[FileChange, ...], wrong: bool
) -> None:
    did = (
        Did(
            Move(SURVEY_FILES, {"about": request_, "purpose": "change"}),
            "Files here:\n- m.csv: 3 lines",
            "ok",
        ),
    )
    tried = ProgramTry("save_rows('m.csv', good)", (), Rehearsed(changes=changes))
    assert (
        "the request names"
        in find_program_problem(tried, ShimTurn(request_, 1, did=did), wants=True, assist=False)
    ) is wrong


@pytest.mark.parametrize(
    ("request_", "path", "wrong"),
    [
        ("print Labels A4.txt twice", "jars.txt", True),
        ("put tea on Labels A4.txt", "Labels A4.txt", False),
        ("put a blue label on the jars", "jars.txt", False),
        ("put tea on it", "jars.txt", False),
        ("put tea on all files", "jars.txt", False),
    ],
)
def test_a_file_that_nobody_named_is_not_changed_in_the_place_of_another(
    request_: str, path: str, wrong: bool
) -> None:
    listing = "Files here:\n- Labels A4.txt: 3 lines, begins\n    blue: 3\n- jars.txt: 2 lines"
    did = (Did(Move(SURVEY_FILES, {"about": request_, "purpose": "change"}), listing, "ok"),)
    tried = ProgramTry(
        "append('x', 'tea')", (), Rehearsed(changes=(FileChange(path, "changed", "d"),))
    )
    assert (
        "nobody named"
        in find_program_problem(tried, ShimTurn(request_, 1, did=did), wants=True, assist=False)
    ) is wrong


@pytest.mark.parametrize(
    ("said", "chosen"),
    [
        (
            (
                "It costs 1249.00, the other 19.50.",
                "The Telescope costs 1,249.00, the Compass 19.50.",
            ),
            1,
        ),
        (
            ("The Telescope costs 1249.00.", "The Telescope costs 1249.00, and the Compass 19.50."),
            0,
        ),
        (("It costs 1249.00.", "It costs 1249.00, in 2 shops."), 0),
        (("It costs 1249.00.", "The Telescope costs 12.00."), None),
    ],
)
def test_of_two_that_agree_the_one_is_said_that_tells_whose_the_figures_are(
    said: tuple[str, ...], chosen: int | None
) -> None:
    tries = [ProgramTry(f"say({each!r})", (), Rehearsed(said=each)) for each in said]
    believed = find_agreed_program(tries, wants=False, ordered=False)
    assert believed is (None if chosen is None else tries[chosen])


def changed(path: str, kind: ChangeKind, *lines: str) -> Rehearsed:
    return Rehearsed(
        changes=(FileChange(path, kind, "d", "\n".join(("--- x", "+++ x", "@@ -1 +1 @@", *lines))),)
    )


@pytest.mark.parametrize(
    ("request_", "program", "came", "wrong"),
    [
        (
            "a list bag.txt, soap must be in it",
            "write('bag.txt', 'Tea')",
            changed("bag.txt", "new", "+Tea"),
            "'soap' must",
        ),
        (
            "a list bag.txt, soap must be in it",
            "write('bag.txt', 'Soap')",
            changed("bag.txt", "new", "+Soap"),
            "",
        ),
        (
            "make bag.txt and don't forget soap",
            "write('bag.txt', 'Tea')",
            changed("bag.txt", "new", "+Tea"),
            "'soap' must",
        ),
        (
            "set port to 9 in a.ini and turn the cache off",
            "replace('a.ini', 'port=8', 'port=9')",
            changed("a.ini", "changed", "-port=8", "+port=9"),
            "it leaves out: turn the cache off",
        ),
        (
            "set port to 9 in a.ini and turn the cache off",
            "set_value('a.ini', 'port', 9)",
            changed("a.ini", "changed", "-port=8", "-cache=on", "+port=9", "+cache=off"),
            "",
        ),
        (
            "we moved from gate 12 to gate 31, fix a.md",
            "write('a.md', x)",
            changed("a.md", "changed", "-gate 12", "-12 seats", "+gate 31", "+31 seats"),
            "it changes a line without 'gate 12'",
        ),
        (
            "we moved from gate 12 to gate 31, fix a.md",
            "replace('a.md', 'gate 12', 'gate 31')",
            changed("a.md", "changed", "-gate 12", "+gate 31"),
            "",
        ),
        (
            "count the birds of a.md in b.csv, capital letters don't matter",
            "save_rows('b.csv', x)",
            changed("b.csv", "new", "+bird,count", "+Robin,2", "+wren,1", "+robin,1"),
            "'Robin' and 'robin' are the same",
        ),
        (
            "half of every ingredient in a.md",
            "replace('a.md', '8 people', '4 people')",
            changed("a.md", "changed", "-for 8 people", "+for 4 people"),
            "it changes one line",
        ),
        (
            "who wrote in a.md? put the names in n.txt",
            "write('n.txt', x)",
            changed(
                "n.txt",
                "new",
                "--- /dev/null",
                "+++ n.txt",
                "@@ -0,0 +1,2 @@",
                "+[12.05., 18",
                "+[13.05., 07",
            ),
            "'[12.05., 18' is only a piece",
        ),
        (
            "count the birds of a.md in b.csv",
            "save_rows('b.csv', x)",
            changed("b.csv", "new", "+bird,count", "+Robin,2", "+wren,1", "+robin,1"),
            "",
        ),
    ],
)
def test_all_of_a_request_is_done_and_no_more(
    request_: str, program: str, came: Rehearsed, wrong: str
) -> None:
    there = "Files here:\n- a.ini: 2 lines\n- a.md: 2 lines"
    asked = ShimTurn(
        request_,
        1,
        did=(Did(Move(SURVEY_FILES, {"about": request_, "purpose": "change"}), there, "ok"),),
    )
    note = find_program_problem(ProgramTry(program, (), came), asked, wants=True, assist=False)
    assert note.startswith(wrong) and bool(note) == bool(wrong), note


MEMBERS = (
    "Files here:\n- m.csv: a CSV with 4 rows and the columns name, course, paid; "
    "rows('m.csv')[0] is {'name': 'Lena Abt', 'course': 'pottery', 'paid': 'no'}; course is "
    "pottery or sewing"
)


@pytest.mark.parametrize(
    ("request_", "looked_for", "wrong"),
    [
        ("Leonardo has paid, set him to yes in m.csv", "r['name'] == 'Lena Abt'", True),
        ("Lena Abt has paid, set her to yes in m.csv", "r['name'] == 'Lena Abt'", False),
        ("Leonardo has paid, set him to yes in m.csv", "'Leonardo' in r['name']", False),
        ("who of the potters has paid in m.csv?", "r['course'] == 'pottery'", False),
    ],
)
def test_who_is_not_named_is_not_taken_from_the_first_row(
    request_: str, looked_for: str, wrong: bool
) -> None:
    program = f"for r in rows('m.csv'):\n    if {looked_for}:\n        r['paid'] = 'yes'"
    asked = ShimTurn(
        request_,
        1,
        did=(Did(Move(SURVEY_FILES, {"about": request_, "purpose": "change"}), MEMBERS, "ok"),),
    )
    diff = "@@ -1,4 +1,4 @@\n name,course,paid\n-Lena Abt,pottery,no\n+Lena Abt,pottery,yes"
    came = Rehearsed(changes=(FileChange("m.csv", "changed", "d", diff),))
    note = find_program_problem(ProgramTry(program, (), came), asked, wants=True, assist=False)
    assert ("only the first row" in note) == wrong, note


CREW = "--- c.csv\n+++ c.csv\n@@ -1,4 +1,4 @@\n name,team\n"


@pytest.mark.parametrize(
    ("request_", "diff", "wrong"),
    [
        ("Ida joins the reds, change c.csv", f"{CREW}-Ida,blue\n+Ida,red", ""),
        (
            "Ida joins the reds, change c.csv",
            f"{CREW}-Ida,blue\n-Bo,blue\n+Ida,red\n+Bo,red",
            "it changes other rows",
        ),
        ("all of Ida's team are reds now", f"{CREW}-Ida,blue\n-Bo,blue\n+Ida,red\n+Bo,red", ""),
        ("blue is called red now", f"{CREW}-Ida,blue\n-Bo,blue\n+Ida,red\n+Bo,red", ""),
        (
            "Ida is called Ida, red",
            f"{CREW}-Ida,blue\n-Bo,blue\n+Ida,red,blue\n+Bo,blue",
            "rows no longer fit",
        ),
    ],
)
def test_a_table_is_changed_where_it_was_meant(request_: str, diff: str, wrong: str) -> None:
    said = find_table_problem(FileChange("c.csv", "changed", "d", diff), request_)
    assert said.startswith(wrong) and bool(said) == bool(wrong)


def test_a_folder_that_is_empty_after_a_move_is_no_other_file() -> None:
    moved = FileChange("old/a/x.txt", "moved", "d", "", "new/a/x.txt")
    came = Rehearsed(changes=(moved, FileChange("old/a", "deleted"), FileChange("old", "deleted")))
    listing = Did(
        Move(SURVEY_FILES, {"about": "x", "purpose": "change"}),
        "Files here:\n- old/a/x.txt: 1 line",
        "ok",
    )
    asked = ShimTurn("rename the folder old to new", 1, did=(listing,))
    assert (
        find_program_problem(
            ProgramTry("rename('old', 'new')", (), came), asked, wants=True, assist=False
        )
        == ""
    )
