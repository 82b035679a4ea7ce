"""A program changes what it means and nothing more: not another file of that name, not the text
around a table."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from deskhand.tools.program.inside.tables import parse_markdown_rows
from deskhand.tools.program.inside.values import date_of, dates, minutes_between

from .folder import run


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")


@pytest.mark.parametrize(
    ("program", "files"),
    [
        ("delete('old/notes.txt')", {"notes.txt": "1\n"}),
        ("delete('draft.txt')", {"draft.txt.bak": "1\n"}),
        ("move('old/notes.txt', 'new/')", {"notes.txt": "1\n"}),
        ("remove_lines('old/notes.txt', '1')", {"notes.txt": "1\n"}),
        ("replace('old/notes.txt', '1', '2')", {"a/notes.txt": "1\n"}),
        ("tick('a.md', '')", {"a.md": "- [ ] tea\n"}),
        ("insert('a.md', 'x', after='')", {"a.md": "- [ ] tea\n"}),
        ("remove_lines('a.md', '')", {"a.md": "tea\nmilk\n"}),
        ("save_rows('a.txt', [{'a': '1'}])", {"a.txt": "My dear diary\n"}),
        ("save_rows('a.md', [{'a': '1'}])", {"a.md": "# Diary\n\nIt rains.\n"}),
        ("pack('a.rar', ['a.md'])", {"a.md": "1\n"}),
    ],
)
def test_what_is_not_there_or_not_told_is_refused(program: str, files: dict[str, str]) -> None:
    came = run(program, files)
    assert came.stopped and came.files == files


@pytest.mark.parametrize(
    ("program", "before", "after"),
    [
        ("delete('A.MD')", {"a.md": "1\n"}, {}),
        (
            "append('a/notes.txt', 'x')",
            {"notes.txt": "1\n"},
            {"notes.txt": "1\n", "a/notes.txt": "x\n"},
        ),
        ("remove_lines('a.md', '')", {"a.md": "tea\n\nmilk\n"}, {"a.md": "tea\nmilk\n"}),
        ("remove_lines('a.md', 'tea')", {"a.md": "tea\nold\fnew\n"}, {"a.md": "old\fnew\n"}),
        (
            "tick('a.md', 'tea')",
            {"a.md": "- [ ] steam\n- [ ] tea\n"},
            {"a.md": "- [ ] steam\n- [x] tea\n"},
        ),
        ("append('a.csv', ['Bo', 3])", {"a.csv": "n,m\nAda,1\n"}, {"a.csv": "n,m\nAda,1\nBo,3\n"}),
        (
            "r = rows('a.md')\nr[0]['n'] = '2'\nsave_rows('a.md', r)",
            {"a.md": "# Stock\n\n| n |\n| - |\n| 1 |\n\nCounted by Ada.\n"},
            {"a.md": "# Stock\n\n| n |\n| --- |\n| 2 |\n\nCounted by Ada.\n"},
        ),
        (
            (
                "r = rows('a.csv')\nr.sort(key=lambda x: number(x['n']), "
                "reverse=True)\nsave_rows('a.csv', r)"
            ),
            {"a.csv": "n,m\n,1\n2,007\n10,0.10\n"},
            {"a.csv": "n,m\n10,0.10\n2,007\n,1\n"},
        ),
        (
            "save_rows('a.csv', sorted(rows('a.csv'), key=lambda x: number(x['n'])))",
            {"a.csv": "n,\n,x\n2,y\n1,z\n"},
            {"a.csv": "n,\n1,z\n2,y\n,x\n"},
        ),
        (
            (
                "r = rows('a.csv')\nfor x in r:\n    x['twice'] = number(x['n']) * "
                "2\nsave_rows('a.csv', r)"
            ),
            {"a.csv": "n\n12345678901234567890\n1\n"},
            {"a.csv": "n,twice\n12345678901234567890,24691357802469134336\n1,2\n"},
        ),
    ],
)
def test_all_else_stays_as_it_was(
    program: str, before: dict[str, str], after: dict[str, str]
) -> None:
    came = run(program, before)
    assert (came.stopped, came.failed, came.files) == ("", "", after)


def test_an_empty_cell_is_neither_the_most_nor_the_least_and_is_written_as_nothing() -> None:
    files = {"a.csv": "who,n\nAda,\nBo,2\nCy,10\n"}
    ends = (
        "say(max(rows('a.csv'), key=lambda r: number(r['n']))['who'], min(number(r['n']) for r "
        "in rows('a.csv')))"
    )
    assert run(ends, files).said == "Cy 2"
    program = (
        "r = rows('a.csv')\nfor x in r:\n    x['n'] = number(x['n']) + 1\nsave_rows('a.csv', r)"
    )
    assert run(program, files).files == {"a.csv": "who,n\nAda,\nBo,3\nCy,11\n"}


def test_two_columns_of_one_name_are_not_read_as_one() -> None:
    assert "two columns 'n'" in run("say(rows('a.csv'))", {"a.csv": "n,n\n1,2\n"}).failed
    unnamed = {"a.csv": ",,n,n\n1,2,3,4\n"}
    assert "two columns 'n'" in run("say(rows('a.csv'))", unnamed).failed
    assert run("say(rows('a.csv')[0]['n'])", {"a.csv": "n,,\n1,,\n"}).said == "1"


def test_a_number_that_is_longer_than_any_stays_a_text() -> None:
    digits = "9" * 400
    program = "save_json('a.json', rows('a.csv'))"
    written = run(program, {"a.csv": f"n\n{digits}\n"}).files["a.json"]
    assert msgspec.json.decode(written) == [{"n": digits}]


def test_dates_and_times() -> None:
    assert str(date_of("03/05/24")) == "2024-03-05"
    assert dates("10.0.12.24, version 1.2.2024.5, 192.168.1.20") == []
    assert int(minutes_between("2026-05-01 9:00", "10:30")) == 90
    with pytest.raises(ValueError, match="before"):
        minutes_between("2026-05-02 9:00", "2026-05-01 10:30")
    assert run("say(files('a/*.md', 'a'))", {"a/b/x.md": "1"}).said == "a/b/x.md"
    assert run("say(weekday('23 November'))", {}).said == "Monday"


def test_a_long_line_is_no_rule_of_a_table() -> None:
    assert parse_markdown_rows("| a |\n" + "|" + "-|" * 100_000 + "x") == []
    assert parse_markdown_rows("a | b\n" + "-:" * 100_000) == []
