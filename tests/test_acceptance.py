"""Every row of a finished issue is proven by tests that exist and run; `acceptance.toml` says
which."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TABLE = tomllib.loads((ROOT / "tests" / "acceptance.toml").read_text())
ROWS: dict[str, list[str]] = TABLE["rows"]
PENDING: dict[str, str] = TABLE["pending"]
LATER: dict[str, str] = TABLE["later"]
"""What comes with something that another issue brings: jobs, channels, users, sub-agents, memory,
speech."""
FINISHED: list[str] = TABLE["issues"]["finished"]
ISSUES: dict[str, list[str]] = {
    name: rows for name, rows in TABLE["issues"].items() if name != "finished"
}
WANTED = {row for rows in ISSUES.values() for row in rows}
ROW = re.compile(r"(OU|OA|AC|OG)-\d{3}|[ABC]\d{2}|F\d{1,2}")
QUOTED = re.compile(r"\b(OU|OA|AC|OG)-\d{3}\b")
GATE = re.compile(r"\b[ABC]\d{2}\b")
CODE = {".py", ".sql", ".toml", ".md", ".json", ".yaml"}
SKIPS = {"skip", "skipif", "xfail", "importorskip"}
CLAIMS = sorted({test for tests in ROWS.values() for test in tests})

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def module(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def chain(test: str) -> list[ast.Module | ast.ClassDef | Function]:
    """The file, the classes and the function that `path::Class::function[parameters]` names; it
    fails where there is none."""
    path, *names = test.partition("[")[0].split("::")
    assert (
        path.startswith("tests/") and Path(path).name.startswith("test_") and path.endswith(".py")
    ), test
    assert (ROOT / path).is_file(), f"there is no file {path}"
    assert names and names[-1].startswith("test_"), f"{test} names no test"
    found: list[ast.Module | ast.ClassDef | Function] = [module(ROOT / path)]
    for depth, name in enumerate(names, 1):
        kind = Function if depth == len(names) else ast.ClassDef
        inside = [node for node in found[-1].body if isinstance(node, kind) and node.name == name]
        assert inside, f"there is no {name} in {path}"
        found.append(inside[-1])
    return found


def skips(node: ast.Module | ast.ClassDef | Function) -> Iterator[str]:
    """Each way in which the test may not be run: a mark of the function, its classes or its file,
    or a call in it."""
    places: list[ast.AST] = (
        [node] if isinstance(node, Function) else list(getattr(node, "decorator_list", ()))
    )
    if not isinstance(node, Function):
        places += [each for each in node.body if isinstance(each, ast.Assign | ast.Expr)]
    for place in places:
        for inner in ast.walk(place):
            if (
                isinstance(inner, ast.Attribute)
                and inner.attr in SKIPS
                and "pytest" in ast.unparse(inner)
            ):
                yield ast.unparse(inner)
            elif isinstance(inner, ast.Name) and inner.id in SKIPS:
                yield inner.id


@pytest.mark.parametrize("test", CLAIMS)
def test_what_is_named_exists_and_runs(test: str) -> None:
    for node in chain(test):
        assert list(skips(node)) == [], f"{test} may be left out"


def test_every_row_is_well_formed_and_belongs_to_an_issue() -> None:
    rows = {*ROWS, *PENDING, *LATER}
    assert [row for row in {*rows, *WANTED} if not ROW.fullmatch(row)] == []
    assert rows - WANTED == set(), "rows of no issue"
    for name, listed in ISSUES.items():
        assert len(listed) == len(set(listed)), f"a row stands twice in {name}"
    assert [row for row, tests in ROWS.items() if not tests or len(tests) != len(set(tests))] == []
    assert set(PENDING) & set(LATER) == set()
    assert [
        row for row, why in {**PENDING, **LATER}.items() if not why.endswith(".") or "\n" in why
    ] == [], "one sentence each"


def test_no_row_is_forgotten() -> None:
    assert WANTED - {*ROWS, *PENDING, *LATER} == set()


def test_finished_issues_are_proven() -> None:
    assert set(FINISHED) <= set(ISSUES)
    done = {row for name in FINISHED for row in ISSUES[name]}
    assert {row: PENDING[row] for row in done if row in PENDING} == {}
    assert done - {*ROWS, *LATER} == set(), "rows without a test"


def test_row_ids_stay_here() -> None:
    """Nobody who reads the code or the pages knows them. Gates are looked for in pages alone: code
    has colours."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    code = [
        path
        for room in ("src", "tests")
        for path in (ROOT / room).rglob("*")
        if path.suffix in CODE
    ]
    everything = [*pages, *(path for path in code if path.name != "acceptance.toml")]
    found = {}
    for path in everything:
        text = path.read_text(errors="replace")
        if hits := {match[0] for match in QUOTED.finditer(text)}:
            found[str(path.relative_to(ROOT))] = hits
    gates = {str(path): match[0] for path in pages if (match := GATE.search(path.read_text()))}
    assert found == {} and gates == {}
