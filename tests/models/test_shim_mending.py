"""Programs of a small model that code mends: what was meant is plain from how they failed."""

from __future__ import annotations

import re

import pytest

from deskhand.models.shim_mending import (
    append_demanded,
    fix_delimiter,
    make_swap_program,
    mend_by_failure,
)
from deskhand.models.shim_programs import ProgramTry
from deskhand.types.programs import FileChange, Rehearsed

NOT_ITERABLE = "TypeError: 'Number' object is not iterable in the line: x"
NOTHING = "LookupError: nothing was found for days.txt in the line: x"
ROWS = [{"name": "Ada", "km": 3}, {"name": "Bo", "km": 5}, {"name": "Ada", "km": 4}]
BOX: dict[str, object] = {"rows": lambda path: ROWS, "number": float}


@pytest.mark.parametrize(
    ("program", "found"),
    [
        ("found = [r['name'] for r in rows('a.csv') if r['km'] == max(number(r['km']))]", ["Bo"]),
        (
            "found = [r['name'] for r in rows('a.csv') if min(number(r['km'])) == number(r['km'])]",
            ["Ada"],
        ),
        (
            "found = {r['name']: sum(number(r['km'])) for r in rows('a.csv')}",
            {"Ada": 7.0, "Bo": 5.0},
        ),
        (
            "all = rows('a.csv')\nfound = {each['name']: max(number(each['km'])) for each in all}",
            {"Ada": 4.0, "Bo": 5.0},
        ),
    ],
)
def test_an_aggregate_of_one_row_is_meant_of_all(program: str, found: object) -> None:
    better = mend_by_failure(ProgramTry(program, (), Rehearsed(failed=NOT_ITERABLE)))
    scope = dict(BOX)
    exec(better, scope)
    assert scope["found"] == found


@pytest.mark.parametrize(
    ("program", "failed"),
    [
        ("x = sum(number(r['km']) for r in rows('a.csv'))", NOT_ITERABLE),
        (
            "x = {r['name']: sum(r.values()) for r in rows('a.csv')}",
            "ZeroDivisionError: division by zero",
        ),
        ("x = {a: max(b, c) for a, b, c in rows('a.csv')}", NOT_ITERABLE),
        ("x = [", NOT_ITERABLE),
        ("write('days.txt', [])", NOTHING),
    ],
)
def test_what_is_not_plain_is_left_to_the_model(program: str, failed: str) -> None:
    assert mend_by_failure(ProgramTry(program, (), Rehearsed(failed=failed))) == ""


def test_dates_are_found_whatever_stands_between_their_numbers() -> None:
    program = r"days = re.findall(r'\d{2}/\d{2}/\d{4}', read('a.txt'))"
    better = mend_by_failure(ProgramTry(program, (), Rehearsed(failed=NOTHING)))
    assert better == (
        r"days = re.findall(r'\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./](?:\d{4}|\d{2})', "
        r"read('a.txt'))"
    )
    assert mend_by_failure(ProgramTry(program, (), Rehearsed(read=("a.txt",)))) == better, (
        "nothing came of it"
    )
    text = "from 01.04.2026 or 2026-05-02 or 3/4/26, section 4.2.1, no. 12.4"
    found = re.findall(better.partition("r'")[2].partition("'")[0], text)
    assert found == ["01.04.2026", "2026-05-02", "3/4/26"]
    assert mend_by_failure(ProgramTry(better, (), Rehearsed(failed=NOTHING))) == "", (
        "it is not mended twice"
    )


TEXT = "--- plan.md\nTuesday, gate 12: boarding\n12 seats\n--- end of plan.md"


@pytest.mark.parametrize(
    ("request_", "program"),
    [
        (
            "boarding moved from gate 12 to gate 31, fix plan.md",
            "replace('plan.md', 'gate 12', 'gate 31')",
        ),
        ("boarding moved from gate 11 to gate 31, fix plan.md", ""),
        ("it is wrong from 12 to 31, fix plan.md", ""),
        ("fix the spelling from top to bottom", ""),
    ],
)
def test_words_that_become_others(request_: str, program: str) -> None:
    assert make_swap_program(request_, TEXT) == program


@pytest.mark.parametrize(
    ("request_", "lines", "more"),
    [
        (
            "make bag.txt, soap must be on it",
            ("- tea", "- milk", "- bread"),
            "append('bag.txt', '- soap')",
        ),
        ("make bag.txt, soap must be on it", ("tea", "milk", "bread"), "append('bag.txt', 'soap')"),
        ("make bag.txt, soap must be on it", ("tea", "Soap", "bread"), ""),
        (
            "make bag.txt, soap must be on it",
            ("Dear Bo,", "a sentence that is much longer than a line of a list", "x"),
            "",
        ),
        ("make bag.txt", ("tea", "milk", "bread"), ""),
    ],
)
def test_what_a_list_is_to_hold_is_added(request_: str, lines: tuple[str, ...], more: str) -> None:
    diff = "\n".join(
        ("--- /dev/null", "+++ bag.txt", "@@ -0,0 +1,3 @@", *(f"+{line}" for line in lines))
    )
    made = Rehearsed(changes=(FileChange("bag.txt", "new", "d", diff),))
    assert append_demanded(ProgramTry("p", (), made), request_) == (f"p\n{more}" if more else "")


@pytest.mark.parametrize(
    ("request_", "head", "mended"),
    [
        (
            "i want semicolons instead of commas, save a.csv as b.csv",
            "name,town",
            "save_rows('b.csv', found, delimiter=';')",
        ),
        (
            "save a.csv as b.csv, separated by tabs",
            "name,town",
            "save_rows('b.csv', found, delimiter='\\t')",
        ),
        ("save a.csv with semicolons as b.csv", "name;town", ""),
        ("save a.csv as b.csv", "name,town", ""),
    ],
)
def test_a_table_has_the_sign_that_was_asked_for(request_: str, head: str, mended: str) -> None:
    diff = f"--- /dev/null\n+++ b.csv\n@@ -0,0 +1,2 @@\n+{head}\n+x"
    made = Rehearsed(changes=(FileChange("b.csv", "new", "d", diff),))
    assert fix_delimiter(ProgramTry("save_rows('b.csv', found)", (), made), request_) == mended
