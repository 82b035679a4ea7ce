"""What a small model wrote beyond what it was asked for is taken out, and what is plain needs no
second program."""

from __future__ import annotations

import pytest

from deskhand.models.shim_programs import (
    ProgramTry,
    find_sample_value,
    is_enumerating,
    is_plain,
    prune_program,
)
from deskhand.models.shim_turn import Did, Move, ShimTurn
from deskhand.types.programs import SURVEY_FILES, FileChange, Rehearsed

# What nobody asked for


@pytest.mark.parametrize(
    ("request_", "kept", "gone"),
    [
        (
            "throw the old bikes out of bikes.csv",
            "save_rows('bikes.csv', kept)",
            "write('parts.txt', found)",
        ),
        ("add a column to m.csv", "save_rows('m.csv', r)", "replace('device.txt', 'a', 'b')"),
        (
            "move the pdfs to a/papers",
            "move('a/kim.pdf', 'a/papers/')",
            "move('a/zoo.txt', 'a/papers/')",
        ),
        ("the photos go to pics", "move('x.jpeg', 'pics/')", "move('x.md', 'pics/')"),
        ("move photo.jpg to pics", "move('photo.jpg', 'pics/')", "move('plan.md', 'pics/')"),
        (
            "the pdfs go to a/docs, leave the rest",
            "for p in files('*.pdf', 'a'):\n    move(p, 'a/docs/')",
            "for p in files('*.txt', 'a'):\n    move(p, 'a/docs/')",
        ),
        (
            "put tea on list.txt",
            "append('list.txt', 'tea')",
            "append('list.txt', 'sugar')\nappend('other.txt', 'x')",
        ),
    ],
)
def test_what_nobody_asked_for_is_taken_out(request_: str, kept: str, gone: str) -> None:
    assert (
        prune_program(f"{kept}\n{gone}\nsay('done')", request_).splitlines()[
            : len(kept.splitlines())
        ]
        == kept.splitlines()
    )
    last = gone.splitlines()[-1]
    assert (
        last
        not in prune_program(f"{kept}\n{gone}\nsay('done')", request_).splitlines()[
            len(kept.splitlines()) :
        ]
    )


@pytest.mark.parametrize(
    ("request_", "program"),
    [
        (
            "put the open ones in a file of their own, see a.csv",
            "save_rows('a.csv', x)\nsave_rows('open.csv', y)",
        ),
        ("write the sum down", "write('sum.txt', '4')"),
        ("a csv for each class of a.csv please", "save_rows('4b.csv', x)\nsave_rows('a.csv', y)"),
        (
            "tidy up, pdfs and csv files to docs",
            "move('kim.pdf', 'docs/')\nmove('ben.csv', 'docs/')",
        ),
        ("move everything to old", "move('a.pdf', 'old/')\nmove('b.csv', 'old/')"),
        (
            "fix the typos in a.txt",
            "replace('a.txt', 'teh', 'the')\nreplace('a.txt', 'adn', 'and')",
        ),
        ("x", "this is no program("),
        (
            "take the paid bills out of bills.csv",
            "r = rows('bills.csv')\nsave_rows('bills.csv', r)\nsave_rows('bills_paid.csv', p)",
        ),
        (
            "move what is done out of todo.md",
            "append('done.md', 'tea')\nremove_lines('todo.md', 'tea')",
        ),
    ],
)
def test_what_may_be_meant_stays(request_: str, program: str) -> None:
    assert prune_program(program, request_) == program


# What needs no second program


@pytest.mark.parametrize(
    ("request_", "program", "plain"),
    [
        (
            "put tea at the top of my todo list",
            "prepend('todo.md', 'tea')\nsay('Tea is there.')",
            True,
        ),
        ("tick off the tent in trip.md", "tick('trip.md', 'tent')", True),
        ("move offer.md to archive", "move('offer.md', 'archive/')", True),
        ("put tea on the list", "append('list.txt', 'coffee')", False),
        ("put tea on the list", "append('other.txt', 'tea')", False),
        (
            "change 3 May to 4 May in all dates of a.txt",
            "replace('a.txt', '3 May', '4 May')",
            False,
        ),
        (
            "write the dates like 2025-05-03 in a.txt",
            "replace('a.txt', '3.5.2025', '2025-05-03')",
            False,
        ),
        ("put tea under drinks in list.md", "append('list.md', 'tea', under='drinks')", False),
        ("how much is it", "say('4')", False),
        ("run check.py for me", "run('python3 check.py')", True),
        ("clean up for me", "run('rm -r photos')", False),
    ],
)
def test_what_is_plain(request_: str, program: str, plain: bool) -> None:
    came = Rehearsed(changes=(FileChange("a.txt", "changed"),))
    assert is_plain(ProgramTry(program, (), came), ShimTurn(request_, 1)) is plain


def test_one_line_for_each_thing_is_seen() -> None:
    lines = [f"replace('course.txt', '2027-01-{n:02}', '2027-01-{n + 7:02}')" for n in range(1, 12)]
    assert is_enumerating("\n".join(lines))
    assert not is_enumerating("\n".join(lines[:6]))
    assert not is_enumerating(
        "\n".join(f"line {n} of a text that is written" * (n % 2 + 1) for n in range(3))
    )
    poem = ["The sea is wide,", "the wind is cold,", "a boat at night,", "a story told,"] * 4
    assert not is_enumerating("\n".join(poem))
    assert not is_enumerating(
        "write('plan.md', [\n" + "\n".join(f"- [ ] Chapter {n}: read it" for n in range(20))
    )


@pytest.mark.parametrize(
    ("program", "sample"),
    [
        ("say('It is the Binoculars.')", "Binoculars"),
        ("say(f'The {item} has a price of {price}.')", ""),
        ("say(rows('c.csv')[0]['item'])", ""),
    ],
)
def test_a_value_of_the_row_that_is_shown_is_seen_and_the_name_of_a_column_is_not(
    program: str, sample: str
) -> None:
    listing = (
        "Files here:\n- c.csv: a CSV; rows('c.csv')[0] is {'item': 'Binoculars', 'price': '189.00'}"
    )
    did = (Did(Move(SURVEY_FILES, {}), listing, "ok"),)
    assert find_sample_value(program, ShimTurn("which costs the most?", 1, did=did)) == sample


@pytest.mark.parametrize(
    ("program", "request_", "kept"),
    [
        ("delete(files('*.bak', 'work/'))", "delete all .bak files", "delete(files('*.bak'))"),
        (
            "delete(files('*.bak', 'work/'))",
            "delete all .bak files in work",
            "delete(files('*.bak', 'work/'))",
        ),
        ("delete(files('*.bak', '.'))", "delete all .bak files", "delete(files('*.bak', '.'))"),
    ],
)
def test_a_folder_that_nobody_named_is_no_bound(program: str, request_: str, kept: str) -> None:
    assert prune_program(program, request_) == kept
