"""Each program of the library does what it is shown for: it is run, and what it says and leaves
behind is compared.

A case in `data/library_runs.txt` is the beginning of what is asked, then what is there before
(`path < text`, `path => where it lies then`, `path @ day of the last change`) and what has changed
then (`path > text`, `path > (gone)`, `say > text`). A line ends with ` / `; ` // ` is the sign
itself, and `path > *` has some text.
"""

from __future__ import annotations

import os
import re
from datetime import datetime
from pathlib import Path

import msgspec
import pytest

from deskhand.models import shim_library
from tests.tools.program.folder import fill, run, texts

EXAMPLES = [each for each in shim_library._load_examples() if not each.always]


class Case(msgspec.Struct):
    """What one program starts with, and what it comes to."""

    asked: str
    before: dict[str, str]
    after: dict[str, str]
    gone: list[str]
    days: dict[str, str]
    said: str = ""


def _cases(table: str) -> list[Case]:
    found: list[Case] = []
    for line in filter(None, table.split("\n")):
        if line.startswith("# "):
            found.append(Case(line[2:], {}, {}, [], {}))
            continue
        path, sign, text = re.split(r" (<|>|=>|@)(?: |$)", line, maxsplit=1)
        told = text.replace(" / ", "\n").replace(" // ", " / ")
        case = found[-1]
        if sign == ">" and path == "say":
            case.said = told
        elif text == "(gone)":
            case.before[path] = path
            case.gone.append(path)
        elif sign == "=>":
            case.before[path] = case.after[text] = path
            case.gone.append(path)
        elif sign == "@":
            case.days[path] = text
        else:
            (case.before if sign == "<" else case.after)[path] = told + "\n" * bool(told)
    return found


CASES = _cases(Path(__file__).with_name("data").joinpath("library_runs.txt").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda each: each.asked)
def test_a_program_does_what_is_asked(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (example,) = (each for each in EXAMPLES if each.asked.startswith(case.asked))
    fill(case.before)
    for path, day in case.days.items():
        at = datetime.fromisoformat(f"{day}T12:00").timestamp()
        os.utime(path, (at, at))
    before = texts()
    came = run(example.program)
    assert (came.failed, came.stopped, came.said) == ("", "", case.said)
    left = {
        path: "*\n" if path in case.after and case.after[path] == "*\n" else text
        for path, text in came.files.items()
    }
    kept = {path: text for path, text in before.items() if path not in case.gone}
    assert left == kept | case.after


def test_what_is_long_or_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    split, large = (
        next(e for e in EXAMPLES if e.asked.startswith(s))
        for s in ("split names.txt", "move all files over")
    )
    lines = [str(n) for n in range(1, 121)]
    came = run(split.program, {"names.txt": "\n".join(lines) + "\n", "a.mov": b"0" * 1_200_000})
    assert [came.files[f"names_{n}.txt"].split() for n in (1, 2, 3)] == [
        lines[:50],
        lines[50:100],
        lines[100:],
    ]
    came = run(large.program)
    assert {path for path in came.files if ".mov" in path} == {"big/a.mov"}


def test_each_program_is_run() -> None:
    assert [
        each.asked
        for each in EXAMPLES
        if not any(each.asked.startswith(case.asked) for case in CASES)
    ] == []
