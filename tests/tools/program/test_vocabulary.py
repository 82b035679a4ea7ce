"""What programs may do with files: what is harmless is forgiven, what would lose or invent is
refused."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from deskhand.tools.program.inside.values import (
    date_of,
    dates,
    emails,
    links,
    number,
    parse_number,
    phones,
    unique,
)

from .folder import run

CSV = "name,amount\nAda,12.50\nBob,3\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")
    return tmp_path / "in"


# Reading


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("docs/Plan.md", "docs/Plan.md"),
        ("./docs/../docs/Plan.md", "docs/Plan.md"),
        ("DOCS/plan.MD", "docs/Plan.md"),
        ("plan.md", "docs/Plan.md"),
        ("Plan", "docs/Plan.md"),
        ("wrong/plan.md", "docs/Plan.md"),
    ],
)
def test_a_name_that_is_nearly_right_is_found(path: str, found: str) -> None:
    came = run(f"say(read({path!r}))", {"docs/Plan.md": "tea\n", "b.txt": "x"})
    assert (came.said, came.stopped, came.read) == ("tea", "", [found])


@pytest.mark.parametrize("path", ["plan.md", "Plan", "missing.txt", "doc"])
def test_a_name_that_may_be_two_or_none_is_refused(path: str) -> None:
    came = run(f"say(read({path!r}))", {"a/plan.md": "1", "b/plan.md": "2"})
    assert came.stopped == f"there is no file {path}" and came.said == ""


OUTSIDE = ["../x", "/etc/passwd", "a/../../x", "~root/../../../x"]


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize(
    "call",
    [
        "read({})",
        "write({}, 'x')",
        "append({}, 'x')",
        "delete({})",
        "move('a', {})",
        "copy('a', {})",
        "make_folder({})",
    ],
)
def test_what_lies_outside_is_refused(here: Path, path: str, call: str) -> None:
    (here.parent / "x").write_text("mine")
    came = run(call.format(repr(path)), {"a": "1"})
    assert came.stopped == f"{path} is outside of the folder"
    assert came.files == {"a": "1"} and (here.parent / "x").read_text() == "mine"


def test_a_path_in_full_is_one_inside(here: Path) -> None:
    assert run(f"say(read({str(here / 'a')!r}))", {"a": "1"}).said == "1"


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        ("read('sub')", "sub is a folder"),
        ("read('pic.bin')", "pic.bin is no text"),
        ("load_json('a.txt')", "a.txt is no JSON that can be read"),
        ("files('*.png')", "there are no files *.png"),
        ("files('*', 'nowhere')", "there is no folder nowhere"),
        ("search('zebra')", "no file contains 'zebra'"),
        ("replace('a.txt', 'zebra', 'cow')", "a.txt does not contain 'zebra'"),
        ("replace('a.txt', '', 'cow')", "the text that is to be replaced is empty"),
        ("move('a.txt', 'b.txt')", "b.txt exists already and would be lost"),
        ("copy('a.txt', 'b.txt')", "b.txt exists already and would be lost"),
        ("rename('a.txt', 'b')", "b.txt exists already and would be lost"),
        ("move('a.txt', 'sub')", "sub/a.txt exists already and would be lost"),
        ("delete('nowhere.txt')", "there is no file nowhere.txt"),
        ("make_folder('a.txt')", "a.txt is a file already"),
        ("write('sub', 'x')", "sub is a folder"),
        ("write('', 'x')", "a file needs a name"),
        ("save_rows('c.csv', [])", "no rows are left for c.csv"),
        ("table([])", "there are no rows for the table"),
        ("pack('b.txt', 'a.txt')", "b.txt exists already and would be lost"),
        ("run('exit 3')", "'exit 3' failed with exit code 3"),
        ("run('echo oh >&2; false')", "failed with exit code 1: oh"),
        ("date_of('tea')", "'tea' is no date"),
    ],
)
def test_what_would_lose_or_invent_ends_the_program_with_a_sentence(
    program: str, sentence: str
) -> None:
    files: dict[str, str | bytes] = {
        **{"a.txt": "tea\n", "b.txt": "rice\n", "sub/a.txt": "deep\n", "t.csv": CSV},
        "pic.bin": b"\xff\xfe\x00\x01",
    }
    came = run(program, files)
    assert sentence in came.stopped and not came.failed
    assert (
        came.files.keys() == files.keys()
        and came.files["a.txt"] == "tea\n"
        and came.files["b.txt"] == "rice\n"
    )


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("number('tea')", "'tea' is no number"),
        ("rows('t.csv')[0]['name'] * 2", "'Ada' is no number"),
        ("float(Cell(''))", "a value is empty where a number is needed"),
    ],
)
def test_what_is_no_number_is_for_who_wrote_the_program(program: str, words: str) -> None:
    came = run(program, {"t.csv": CSV})
    assert words in came.failed and not came.stopped


def test_what_a_program_says_before_it_breaks_names_the_line() -> None:
    assert (
        run("x = 1\ny = x / 0").failed
        == "ZeroDivisionError: division by zero in the line: y = x / 0"
    )
    assert run("x = (").failed.startswith("SyntaxError")
    assert run("say(1)\nraise SystemExit\nsay(2)").said == "1"


# Tables


@pytest.mark.parametrize(
    "text",
    [
        "name,amount\nAda,12.50\nBob,3\n",
        "name;amount\nAda;12,50\nBob;3\n",
        "name\tamount\nAda\t12.50\nBob\t3\n",
        "\ufeffname, amount\r\nAda, 12.50\r\n\r\nBob, 3\r\n",
        'name,amount\n"Ada","12.50"\n,\nBob,3',
    ],
)
def test_tables_of_all_kinds(text: str) -> None:
    program = (
        "found = rows('t.csv')\nsay([r['name'] for r in found], sum(r['amount'] for r in found))"
    )
    assert run(program, {"t.csv": text}).said == "Ada, Bob 15.5"


def test_quoted_commas_and_empty_cells_stay_what_they_are() -> None:
    text = 'name,note\n"Moss, Ada","says ""hi"""\nBob,\n'
    assert run("save_rows('t.csv', rows('t.csv'))", {"t.csv": text}).files["t.csv"] == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a;b\n1;2\n3;4\n", "a;b\n3;4\n"),
        ("a,b\r\n1,2\r\n3,4\r\n", "a,b\r\n3,4\r\n"),
        ("a\tb\n1\t2\n3\t4\n", "a\tb\n3\t4\n"),
    ],
)
def test_a_table_keeps_its_signs_and_its_line_ends(before: str, after: str) -> None:
    came = run("save_rows('t.csv', [r for r in rows('t.csv') if r['a'] > 2])", {"t.csv": before})
    assert came.files["t.csv"] == after and came.blind == []


@pytest.mark.parametrize(
    ("program", "written"),
    [
        ("save_rows('n', [['Ada', 1.0], ['Bob', 2.5]], ['name', 'n'])", "name,n\nAda,1\nBob,2.5\n"),
        ("save_rows('n', [{'a': 1, 'b': 2}, {'a': 3}])", "a,b\n1,2\n3,\n"),
        ("save_rows('n', [{'a': 1, 'b': 2}], ['b'])", "b\n2\n"),
        ("save_rows('n', ['x', 'y'])", "x\ny\n"),
        ("write('n', [{'a': 1}])", "a\n1\n"),
        ("write('n', ['x', 'y\\n', 3])", "x\ny\n3\n"),
        ("write('n', {'a': Cell('5'), 'b': Cell('007')})", '{\n  "a": 5,\n  "b": "007"\n}\n'),
        ("save_json('n', [Cell('1.5'), Cell('é')])", '[\n  1.5,\n  "é"\n]\n'),
        ("write('n', table([{'a': 'x|y', 'b': 1}]))", "| a | b |\n| --- | --- |\n| x\\|y | 1 |\n"),
        ("write('n', '')", ""),
        ("write('new/deep/n', 'x')\nmove('new/deep/n', 'n')", "x\n"),
    ],
)
def test_values_become_the_text_of_a_file(program: str, written: str) -> None:
    assert run(program).files["n"] == written


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("Cell('10') > Cell('9')", True),
        ("Cell('1,200') >= 1200", True),
        ("Cell('b') > 'a'", True),
        ("Cell('5') == 5 and Cell('5') == '5' and Cell('5') != 6", True),
        ("Cell('5') == '5.0'", False),
        ("Cell('5') in ('4', '5')", True),
        ("sorted([Cell('10'), Cell('9'), Cell('-1')])", "-1, 9, 10"),
        ("max(map(Cell, ('9', '100', '20')))", "100"),
        ("Cell('0.1') + Cell('0.2')", 0.3),
        ("Cell('3') - 1", 2),
        ("10 - Cell('3')", 7),
        ("2 * Cell('1,50')", 3),
        ("Cell('7') / 2", 3.5),
        ("Cell('a') + 'b'", "ab"),
        ("'a' + Cell('5')", "a5"),
        ("sum([Cell('0.1')] * 10)", 1),
        ("int(Cell('12.9'))", 12),
        ("f\"{Cell('3'):.2f} {Cell('x'):>3} {Cell('4'):d}\"", "3.00   x 4"),
        ("{Cell('a'): 1}['a']", 1),
    ],
)
def test_cells_are_numbers_where_they_are_ones(expression: str, value: Any) -> None:
    assert run(f"say({expression})").said == str(value)


# Writing


@pytest.mark.parametrize(
    ("program", "after"),
    [
        ("append('a', 'new')", "one\ntwo\nnew\n"),
        ("append('a', ['x', 'y'])", "one\ntwo\nx\ny\n"),
        ("prepend('a', 'new')", "new\none\ntwo\n"),
        ("replace('a', 'one', '1')", "1\ntwo\n"),
        ("replace('a', 'ONE', '1')", "1\ntwo\n"),
        ("replace('a', 'one\\ntwo', '1')", "1\n"),
        ("write('a', [l for l in lines('a') if l != 'one'])", "two\n"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_changes_of_a_text_keep_its_line_ends(program: str, after: str, end: str) -> None:
    came = run(program, {"a": "one\ntwo\n".replace("\n", end).encode()})
    assert came.files == {"a": after.replace("\n", end)} and came.blind == [] and not came.stopped


@pytest.mark.parametrize("text", ["depth = 4", "depth=4", "depth :4", "Depth  =   4"])
def test_a_text_to_be_replaced_may_have_other_blanks(text: str) -> None:
    old = "depth = 4" if "=" in text else "depth: 4"
    after = f"x\n{text.replace('4', '6')}\ny\n"
    assert run(f"replace('a', {old!r}, 'depth = 6')", {"a": f"x\n{text}\ny\n"}).files == {
        "a": after
    }


@pytest.mark.parametrize(
    "call",
    ["replace(files('*.txt'), 'Bob', 'Ann')", "for p in files('*.txt'): replace(p, 'Bob', 'Ann')"],
)
def test_of_several_files_one_may_lack_the_text(call: str) -> None:
    came = run(call, {"a.txt": "Bob\n", "b.txt": "Eve\n", "c.txt": "Bob, Bob\n"})
    assert (
        came.files == {"a.txt": "Ann\n", "b.txt": "Eve\n", "c.txt": "Ann, Ann\n"}
        and not came.stopped
    )


def test_but_not_all_of_them() -> None:
    assert (
        run("replace(files(), 'Bob', 'Ann')", {"a": "x", "b": "y"}).stopped
        == "a does not contain 'Bob'"
    )


@pytest.mark.parametrize(
    ("program", "blind"),
    [
        ("write('a', 'new')", ["a"]),
        ("save_rows('a', [['new']])", ["a"]),
        ("read('a')\nwrite('a', 'new')", []),
        ("search('old')\nwrite('a', 'new')", []),
        ("write('n', '1')\nwrite('n', '2')", []),
        ("write('empty', 'new')", []),
        ("copy('a', 'n')\nwrite('n', 'new')", []),
    ],
)
def test_what_is_written_over_unread_is_told(program: str, blind: list[str]) -> None:
    assert run(program, {"a": "old\n", "empty": ""}).blind == blind


# Places


@pytest.mark.parametrize(
    ("program", "places"),
    [
        ("move('a.txt', 'sub/')", ["sub/a.txt", "sub/b.txt"]),
        ("move('a.txt', 'sub')", ["sub/a.txt", "sub/b.txt"]),
        ("move('a.txt', 'new/')", ["new/a.txt", "sub/b.txt"]),
        ("move('a.txt', 'new')", ["new/a.txt", "sub/b.txt"]),
        ("move('a.txt', 'c.md')", ["c.md", "sub/b.txt"]),
        ("move('A.TXT', 'c.md')", ["c.md", "sub/b.txt"]),
        ("move('sub', 'other')", ["a.txt", "other/b.txt"]),
        ("rename('a.txt', 'c')", ["c.txt", "sub/b.txt"]),
        ("rename('sub/b.txt', 'c')", ["a.txt", "sub/c.txt"]),
        ("rename('b.txt', 'c.md')", ["a.txt", "sub/c.md"]),
        ("copy('a.txt', 'c.txt')", ["a.txt", "c.txt", "sub/b.txt"]),
        ("copy('sub', 'more')", ["a.txt", "more/b.txt", "sub/b.txt"]),
        ("delete('a.txt')", ["sub/b.txt"]),
        ("delete('sub')", ["a.txt"]),
        ("delete(files('*.txt'))", []),
        ("make_folder('x/y')", ["a.txt", "sub/b.txt"]),
    ],
)
def test_files_find_their_places(program: str, places: list[str]) -> None:
    came = run(program, {"a.txt": "1", "sub/b.txt": "2"})
    assert (list(came.files), came.stopped, came.failed) == (places, "", "")


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("files('*.txt')", "a.txt, sub/c.txt"),
        ("files('sub/*')", "sub/c.txt"),
        ("files('sub')", "sub/c.txt"),
        ("files('*', 'sub')", "sub/c.txt"),
        ("files('c.')", "sub/c.txt"),
        ("files('./b.md')", "b.md"),
        ("folders()", "sub"),
        ("search('TEA')[0]", "b.md, Tea!"),
        ("exists('a.txt'), exists('x')", "True False"),
        ("size('b.md')", "5"),
    ],
)
def test_files_are_found(expression: str, found: str) -> None:
    files = {
        "a.txt": "1",
        "b.md": "Tea!\n",
        "sub/c.txt": "2",
        ".hidden.txt": "tea",
        "sub/.git/d.txt": "tea",
    }
    assert run(f"say({expression})", files).said == found


@pytest.mark.parametrize("name", ["all.zip", "all.tar.gz", "all.tar"])
def test_what_is_packed_can_be_unpacked(here: Path, name: str) -> None:
    came = run(f"pack({name!r}, ['a.txt', 'sub'])", {"a.txt": "1", "sub/b.txt": "2", "c.txt": "3"})
    assert not came.stopped and not came.failed
    if name.endswith("zip"):
        with zipfile.ZipFile(here / name) as zipped:
            assert zipped.namelist() == ["a.txt", "sub/b.txt"]
    else:
        with tarfile.open(here / name) as packed:
            assert packed.getnames() == ["a.txt", "sub/b.txt"]


def test_a_command_says_what_it_prints_and_has_no_keyboard() -> None:
    came = run("say(run('echo out; echo err >&2; cat; pwd | grep -c in'))")
    assert came.said == "out\n1\nerr" and came.failed == ""


# Values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(
            ("1,234.50", 1234.5),
            ("1.234,50", 1234.5),
            ("1 234", 1234.0),
            ("1\u00a0234,5", 1234.5),
            ("1'234", 1234.0),
        ),
        *(
            ("1,234", 1234.0),
            ("1,234,567", 1234567.0),
            ("1.234.567", 1234567.0),
            ("1,5", 1.5),
            ("1.234", 1.234),
        ),
        *(
            ("12 %", 12.0),
            ("\u22123", -3.0),
            ("-3.5", -3.5),
            ("+4", 4.0),
            ("5 €", 5.0),
            ("$1,200.00", 1200.0),
        ),
        *(("7 EUR", 7.0), ("7USD", 7.0), ("  8  ", 8.0), ("007", 7.0), (3, 3.0), (2.5, 2.5)),
        *(
            ("", None),
            ("tea", None),
            ("3 kg", None),
            ("a1", None),
            ("1-2", None),
            ("12:30", None),
            ("-", None),
        ),
        *((None, None), (True, None), ("3 May", None), ("1e5", None)),
    ],
)
def test_numbers_as_people_write_them(text: object, value: float | None) -> None:
    assert parse_number(text) == value
    if value is not None:
        assert number(text) == value


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("2025-05-03", "2025-05-03"),
        ("on 3.5.2025", "2025-05-03"),
        ("03.05.25", "2025-05-03"),
        ("3 May 2025", "2025-05-03"),
        ("3rd of may, 2025", "2025-05-03"),
        ("May 3, 2025", "2025-05-03"),
        ("Sept. 30th 2025", "2025-09-30"),
        ("5/3/2025", "2025-05-03"),
    ],
)
def test_dates_as_people_write_them(text: str, iso: str) -> None:
    assert date_of(text).isoformat() == iso


def test_dates_stand_in_their_order_and_what_is_none_is_left_out() -> None:
    found = dates(
        "from 1.6.2025 to 2025-07-02, not 31.2.2025, 13/13/2025 or version 1.2.3; May 9, 2024"
    )
    assert [each.isoformat() for each in found] == ["2025-06-01", "2025-07-02", "2024-05-09"]
    assert run("say(days_between('3 May 2025', '1.5.2025'), today())").said == "2 2026-11-23"


def test_addresses_and_numbers_to_call_stand_there_once() -> None:
    text = (
        "Call +49 (30) 123-456 or 0171 2345678, not 2025-05-03 or 12.50; a.b@x.example, "
        "a.b@x.example. http://x.example/a?b=1."
    )
    assert phones(text) == ["+49 (30) 123-456", "0171 2345678"]
    assert emails(text) == ["a.b@x.example"]
    assert links(f"(see https://y.example/z) {text}") == [
        "https://y.example/z",
        "http://x.example/a?b=1",
    ]
    assert unique([{"a": 1}, [2], {"a": 1}, [2], 3]) == [{"a": 1}, [2], 3]
