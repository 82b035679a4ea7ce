"""The programs that a small model is shown when a request is like them: each of them works."""

from __future__ import annotations

import ast
import io
import json
import re
from datetime import date
from pathlib import Path

import pytest

from deskhand.models import shim_library
from deskhand.models.shim_library import (
    compute_shape,
    find_borrowed_word,
    find_similar_examples,
    has_example_shape,
)
from deskhand.models.shim_prompts import PROGRAM_SHOTS, PROGRAMMER
from deskhand.tools.program.inside.assistant import Assistant
from deskhand.tools.program.inside.folder import Folder
from deskhand.tools.program.inside.main import make_vocabulary, run_program

EXAMPLES = shim_library._load_examples()
NAMES = make_vocabulary(Folder(), Assistant([]), date(2026, 11, 23), io.StringIO())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.asked[:40])
def test_a_program_calls_what_there_is(example: shim_library.Example) -> None:
    calls = [
        node.func for node in ast.walk(ast.parse(example.program)) if isinstance(node, ast.Call)
    ]
    names = {call.id for call in calls if isinstance(call, ast.Name)}
    known = (
        set(NAMES)
        | set(dir(__builtins__))
        | set(__builtins__ if isinstance(__builtins__, dict) else ())
    )
    assert names <= known


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.asked[:40])
def test_a_program_runs_on_files_like_those_that_are_listed(
    example: shim_library.Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may say that something is not there: of a file only what the listing shows is made."""
    monkeypatch.chdir(tmp_path)
    for entry in example.files.split("\n- "):
        path, _, told = entry.partition(": ")
        if told:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(_like(told), "utf-8")
    said = io.StringIO()
    failed = run_program(example.program, date(2026, 11, 23), [], said)["failed"]
    assert failed == "" or "nothing was found for" in failed


def _like(told: str) -> str:
    """The text of a file of which this is told."""
    shown = re.search(r"\[0\] is (\{.*?\})", told)
    if shown and "cells(" in told:
        return ", ".join(ast.literal_eval(shown[1]).values()) + "\n"
    columns = re.search(r"and the columns ([\w, ]+)", told)
    if shown and "with a table" in told:
        row = ast.literal_eval(shown[1])
        return f"| {' | '.join(row)} |\n|{'---|' * len(row)}\n| {' | '.join(row.values())} |\n"
    if columns:
        row = ast.literal_eval(shown[1]) if shown else dict.fromkeys(columns[1].split(", "), "1")
        return f"{','.join(row)}\n{','.join(row.values())}\n"
    if data := re.search(r"JSON, load_json\('.*?'\) is (?:a list of \d+, the first )?(.+)", told):
        value = ast.literal_eval(data[1].replace("false", "False").replace("true", "True"))
        return json.dumps([value] if "a list of" in told else value)
    begins = told.partition("begins\n")[2]
    return (
        "\n".join(line.removeprefix("    ") for line in begins.split("\n")) + "\n"
        if begins
        else "one\ntwo\n"
    )


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.asked[:40])
def test_a_request_finds_its_own_program(example: shim_library.Example) -> None:
    assert example.always or find_similar_examples(example.asked)[-1] == example.shot


def test_an_example_for_files_of_the_same_kind_comes_before_others() -> None:
    request = "sort members by last name please"
    assert (
        "lines("
        in find_similar_examples(
            request, "Files here:\n- members.txt: 13 lines, begins\n    Ada Moss"
        )[-1][1]
    )
    assert (
        "rows("
        in find_similar_examples(
            request, "Files here:\n- members.csv: a CSV with 3 rows and the columns a, b"
        )[-1][1]
    )


def test_a_number_that_nobody_named_is_not_followed() -> None:
    program = "found = [c[0] for c in cells('a.txt') if not c[2]]\nwrite('b.txt', found)"
    first = "{0: 'Ada', 1: '040 222', 2: 'ada@x.example'}"
    listing = f"- a.txt: 12 lines of a table without a header; cells('a.txt')[0] is {first}"
    assert not has_example_shape(
        program, "who in a.txt has no mail? write the names to b.txt", listing
    )


@pytest.mark.parametrize("request_", ["", "?!", "qqq zzz"])
def test_what_is_like_nothing_finds_nothing(request_: str) -> None:
    assert find_similar_examples(request_) == ()


@pytest.mark.parametrize(
    ("request_", "program"),
    [
        ("please sort the runners in race.csv by seconds, the fastest first", "sort"),
        ("some mails are double in mails.txt, keep each only once", "unique"),
        ("turn birds.csv into a markdown table birds.md", "table("),
        ("tick off the passport in bag.md", "tick("),
        ("put old_ in front of the names of all pictures", "rename("),
        ("when is the next payment due?", "date_of("),
    ],
)
def test_a_like_request_finds_a_like_program(request_: str, program: str) -> None:
    assert any(program in shown for _, shown in find_similar_examples(request_))


def test_the_functions_of_the_prompt_are_there() -> None:
    told = PROGRAMMER[PROGRAMMER.index("read(path)") : PROGRAMMER.index("Rules:")]
    assert set(re.findall(r"\b([a-z_]+)\(", told)) <= set(NAMES)
    assert all(
        f"{name}(" in told
        for _, shown in PROGRAM_SHOTS
        for name in re.findall(r"\b(replace|rows)\(", shown)
    )


# Whether a program follows what was shown

ASKED = "sort race.csv by the points, highest first"
LIKE = """runners = rows('race.csv')
runners.sort(key=lambda r: number(r['points']), reverse=True)
save_rows('race.csv', runners)"""


@pytest.mark.parametrize(
    ("program", "follows_it"),
    [
        (LIKE, True),
        (LIKE + "\nsay('I sorted 12 runners, all of them.')", True),
        (LIKE.replace("sort(key", "remove(key"), False),
        (LIKE.replace("'points'", "'goals'"), False),
        (LIKE.replace("race.csv", "other.csv"), False),
        (LIKE + "\ndelete('race.csv')", False),
        (LIKE.replace("True", "False"), False),
        (LIKE.replace("'points'", "'b'"), False),
        ("runners = rows('race.csv')\nsave_rows('race.csv', runners)", False),
        ("this is no program(", False),
        ("", False),
    ],
)
def test_a_program_follows_what_was_shown(program: str, follows_it: bool) -> None:
    assert has_example_shape(program, ASKED, "") is follows_it
    assert not has_example_shape(program, "delete the tmp files in race.csv, points", "")
    assert not has_example_shape(program, ASKED.replace("highest", "lowest"), "")


@pytest.mark.parametrize(
    ("program", "word"),
    [
        ("for p in files('*.jpg', 'load'):\n    move(p, 'pictures/')", "load"),
        ("for p in files('*.jpg'):\n    move(p, 'pictures/')", ""),
        ("say('the load is moved')", ""),
        ("move('harbour.jpg', 'pictures/')", ""),
        ("no program(", ""),
    ],
)
def test_a_word_that_is_taken_from_an_example(program: str, word: str) -> None:
    assert (
        find_borrowed_word(
            program, "put all the photos (jpg) in a folder named pictures, tidy up", ""
        )
        == word
    )


def test_what_is_worked_out_for_an_answer_is_part_of_the_shape() -> None:
    assert compute_shape("x = 1\nsay(f'{x}')") == compute_shape("y = 2\nsay('no')\n")
    assert compute_shape("say(max(rows('a.csv')))") != compute_shape("say(min(rows('a.csv')))")
    assert (
        compute_shape("x = f'{max(y)} of {z}'")
        == compute_shape("a = f'the most: {max(b)}'")
        != compute_shape("a = f'{min(b)}'")
    )
