"""What programs may do with lines, boxes, labels and times, and the slips of a small model that are
forgiven."""

from __future__ import annotations

from pathlib import Path

import pytest

from deskhand.tools.program.inside.texts import find_section_end, insert_lines, tick_entries
from deskhand.tools.program.inside.values import Stop, minutes_between, time_of

from .folder import run

RECIPE = "# Cake\n\n## Ingredients\n\n- 2 eggs\n- 1 lemon\n\n## How\n\n1. Mix.\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")
    return tmp_path / "in"


# Where lines are added


@pytest.mark.parametrize(
    ("text", "heading", "line"),
    [
        (RECIPE, "Ingredients", 6),
        (RECIPE, "## ingredients", 6),
        (RECIPE, "How", 10),
        (RECIPE, "Salt", None),
        ("Buy:\nmilk\nbread\n\nCall:\nBen\n", "Buy", 3),
        ("Buy:\nmilk\n\nCall:\nBen\n", "call:", 5),
        ("# Empty\n", "Empty", 1),
        ("", "Empty", None),
    ],
)
def test_a_part_ends_with_its_last_line(text: str, heading: str, line: int | None) -> None:
    assert find_section_end(text, heading) == line


@pytest.mark.parametrize(
    ("text", "at", "whole"),
    [
        ("- a\n- b\n", 1, "- a\n- new\n- b\n"),
        ("1. a\n2. b\n", 2, "1. a\n2. b\n3. new\n"),
        ("a\nb\n", 0, "new\na\nb\n"),
        ("", 0, "new\n"),
        ("- [ ] a\n", 1, "- [ ] a\n- [ ] new\n"),
    ],
)
def test_new_lines_look_like_those_around_them(text: str, at: int, whole: str) -> None:
    assert insert_lines(text, "new", at) == whole


def test_lines_are_added_under_a_heading_and_beside_a_line() -> None:
    came = run("append('cake.md', 'a pinch of salt', under='Ingredients')", {"cake.md": RECIPE})
    assert came.files["cake.md"] == RECIPE.replace("- 1 lemon\n", "- 1 lemon\n- a pinch of salt\n")
    after = run("insert('list.txt', 'tea', after='milk')", {"list.txt": "milk\nbread\n"})
    assert after.files["list.txt"] == "milk\ntea\nbread\n"
    before = run("insert('list.txt', 'tea', before='bread')", {"list.txt": "milk\nbread\n"})
    assert before.files["list.txt"] == "milk\ntea\nbread\n"


@pytest.mark.parametrize(
    "program",
    ["append('cake.md', 'salt', under='Spices')", "insert('cake.md', 'salt', after='pepper')"],
)
def test_a_place_that_is_not_there_stops_the_program(program: str) -> None:
    came = run(program, {"cake.md": RECIPE})
    assert came.stopped.startswith("cake.md has no line with ") and came.files["cake.md"] == RECIPE


# Boxes and labels


def test_a_box_is_ticked_and_unticked() -> None:
    text = "# Trip\n- [ ] tent\n- [x] map\n- rope\n"
    assert tick_entries(text, "Tent", True) == text.replace("[ ] tent", "[x] tent")
    assert tick_entries(text, "map", False) == text.replace("[x] map", "[ ] map")
    assert tick_entries(text, "rope", True) is None
    assert run("tick('t.md', 'rope')", {"t.md": text}).stopped == "t.md has no box with 'rope'"


@pytest.mark.parametrize(
    ("text", "label", "value"),
    [
        ("name: Kim\nstart: 3 May\n", "start", "3 May"),
        ("**Start:** 3 May\n", "Start:", "3 May"),
        ("- Start: 3 May\n", "start", "3 May"),
        ("[web]\nport = 80\n", "port", "80"),
        ("at 10:30: tea\nstart: 09:00\n", "start", "09:00"),
    ],
)
def test_what_stands_behind_a_label(text: str, label: str, value: str) -> None:
    assert run(f"say(value('f.txt', {label!r}))", {"f.txt": text}).said == value


def test_a_label_that_is_not_there_stops_the_program() -> None:
    assert (
        run("say(value('f.txt', 'end'))", {"f.txt": "start: 3\n"}).stopped
        == "f.txt has no line 'end: ...'"
    )


# Times


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-11-09 14:02:40 ERROR", "14:02"),
        ("7:45", "07:45"),
        ("at 5 pm", "17:00"),
        ("12:30 am", "00:30"),
        ("12 p.m.", "12:00"),
        ("kick-off 14:30, 3 goals", "14:30"),
    ],
)
def test_the_first_time_in_a_text(text: str, time: str) -> None:
    assert time_of(text) == time


@pytest.mark.parametrize("text", ["", "10 x 3", "1.30", "25:00", "v1:70"])
def test_what_holds_no_time(text: str) -> None:
    with pytest.raises(Stop):
        time_of(text)


@pytest.mark.parametrize(
    ("start", "end", "minutes"),
    [
        ("10:00", "10:42", 42),
        ("23:50", "0:10", 20),
        ("2026-11-18 23:50", "2026-11-19 00:10", 20),
        ("2026-11-18 10:00", "2026-11-20 10:00", 2880),
    ],
)
def test_the_minutes_between_two_times(start: str, end: str, minutes: float) -> None:
    assert float(minutes_between(start, end)) == minutes


# What is forgiven


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("who = 'Kim'\nsay(f'The plumber's name is {who}.')", "The plumber's name is Kim."),
        ("r = {'n': 4}\nsay(f'There are {r['n']}.')", "There are 4."),
        ("say('It's here')", "It's here"),
        ("say('a')\nsay('b')", "a\nb"),
    ],
)
def test_quotes_within_quotes(program: str, said: str) -> None:
    assert (run(program).said, run(program).failed) == (said, "")


def test_a_name_of_a_file_without_quotes() -> None:
    assert run("say(read(room.txt))", {"room.txt": "H4\n"}).said == "H4"
    assert run("room = read('room.txt')\nsay(room.upper())", {"room.txt": "h4\n"}).said == "H4"
    assert run("say(hall.txt)", {"room.txt": "H4\n"}).failed.startswith("NameError")


def test_what_no_rule_mends_fails_as_it_is() -> None:
    assert run("say('x'").failed.startswith("SyntaxError")


def test_a_file_may_be_renamed_to_its_own_name() -> None:
    came = run(
        "for p in files('*.txt'):\n    rename(p, name(p).replace(' ', '_'))",
        {"a b.txt": "1", "c.txt": "2"},
    )
    assert (came.stopped, came.files) == ("", {"a_b.txt": "1", "c.txt": "2"})


def test_lines_are_searched_in_the_files_that_are_named() -> None:
    files = {"a/x.txt": "blue key\n", "b/y.txt": "blue key\n"}
    assert run("say(search('key', 'a/x.txt'))", files).said == "a/x.txt, blue key"
    assert run("say(search('key', 'b'))", files).said == "b/y.txt, blue key"
    assert run("say(search('red', 'a'))", files).stopped == "no file contains 'red'"


def test_a_line_may_be_indented() -> None:
    files = {"m.md": "1. Date\n   ACTION Kim: call\nACTION Ben: pay\n"}
    assert run("say([l.strip() for l in lines('m.md') if l.startswith('ACTION')])", files).said == (
        "ACTION Kim: call, ACTION Ben: pay"
    )


def test_rows_are_taken_out_as_lines_are() -> None:
    rows = "name,state\nAda,open\nBen,gone\nCid,gone\n"
    for call in ("remove_lines('r.csv', *gone)", "remove_lines('r.csv', gone)"):
        came = run(
            f"gone = [r for r in rows('r.csv') if r['state'] == 'gone']\n{call}", {"r.csv": rows}
        )
        assert came.files["r.csv"] == "name,state\nAda,open\n"
    assert (
        run("remove_lines('r.csv', 'Ada', 'Cid')", {"r.csv": rows}).files["r.csv"]
        == "name,state\nBen,gone\n"
    )


@pytest.mark.parametrize(
    "program",
    [
        "remove_rows('r.csv', [r for r in rows('r.csv') if r['state'] == 'gone'])",
        "remove_rows('r.csv', 'state', 'gone')",
        "remove_rows('r.csv', *rows('r.csv', 'state', 'gone'))",
    ],
)
def test_rows_are_taken_out_by_a_value(program: str) -> None:
    came = run(program, {"r.csv": "name,state\nAda,open\nBen,gone\n"})
    assert came.files["r.csv"] == "name,state\nAda,open\n"


def test_a_row_is_added() -> None:
    came = run(
        "add_row('r.csv', {'name': 'Cid', 'state': 'new'})", {"r.csv": "name,state\nAda,open\n"}
    )
    assert came.files["r.csv"] == "name,state\nAda,open\nCid,new\n"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        ("open 9:00, end 19:00\n", "9:00", "10:00", "open 10:00, end 19:00\n"),
        ("Mainz, Main St.\n", "Main", "Hill", "Mainz, Hill St.\n"),
        ("unhappy\n", "happy", "glad", "unglad\n"),
        ("port = 8080\nport = 80\n", "port = 80", "port = 81", "port = 8080\nport = 81\n"),
        ("a - b\n", " - ", ": ", "a: b\n"),
        ("Depth=4\n", "depth = 4", "depth = 6", "Depth=6\n"),
        (
            "  port: 8443\n  backup_port: 8443\n",
            "port = 8443",
            "port = 9443",
            "  port: 9443\n  backup_port: 8443\n",
        ),
        ('{"port": 80, "name": "a"}\n', "port = 80", "port = 81", '{"port": 81, "name": "a"}\n'),
        ("name: 'old'\n", "name = old", "name = new", "name: 'new'\n"),
        ("I said:  stop\n", "i said: stop", "I said: go", "I said: go\n"),
        ("C++ and C\n", "C++", "Rust", "Rust and C\n"),
    ],
)
def test_a_text_is_replaced_where_it_stands_as_a_whole(
    before: str, old: str, new: str, after: str
) -> None:
    assert run(f"replace('f.txt', {old!r}, {new!r})", {"f.txt": before}).files["f.txt"] == after


def test_lines_are_taken_out_where_the_text_is_a_word_of_them() -> None:
    assert (
        run("remove_lines('f.txt', 'tea')", {"f.txt": "tea\nsteak\nteam\n"}).files["f.txt"]
        == "steak\nteam\n"
    )
    assert run("remove_lines('f.txt', 'tea')", {"f.txt": "milk\nteam\n"}).files["f.txt"] == "milk\n"


def test_what_is_marked_already_keeps_its_marks() -> None:
    came = run("append('d.md', '## Cold\\n- water')", {"d.md": "# Drinks\n- tea\n"})
    assert came.files["d.md"] == "# Drinks\n- tea\n## Cold\n- water\n"


def test_a_column_of_later_rows_is_kept_and_tabs_are_for_tsv() -> None:
    came = run(
        "save_rows('a.csv', [{'n': 1}, {'n': 2, 'm': 3}])\nsave_rows('b.tsv', [{'n': 1, 'm': 2}])"
    )
    assert (came.files["a.csv"], came.files["b.tsv"]) == ("n,m\n1,\n2,3\n", "n\tm\n1\t2\n")
    came = run("save_rows('b.csv', rows('a.csv'), delimiter=';')", {"a.csv": "n,m\n1,2\n"})
    assert came.files["b.csv"] == "n;m\n1;2\n"


@pytest.mark.parametrize(
    ("looked_for", "found"),
    [
        ("'coconut milk' in read('a.md')", True),
        ("'Coconut Milk' in read('a.md')", True),
        ("'COCO' in read('a.md')", False),
    ],
)
def test_small_letters_are_found_whatever_the_case(looked_for: str, found: bool) -> None:
    assert run(f"say({looked_for})", {"a.md": "- Coconut Milk\n"}).said == str(found)
    line = looked_for.replace("read('a.md')", "lines('a.md')[0]")
    assert run(f"say({line})", {"a.md": "- Coconut Milk\n"}).said == str(found)


def test_numbers_stay_plain_in_what_is_worked_out_with_them() -> None:
    assert run("a = number('7')\nsay(f'{a // 2} {a % 2} {-a} {abs(-a)}')").said == "3 1 -7 7"


def test_a_list_without_entries_makes_no_file() -> None:
    came = run(
        "write('errors.txt', [l for l in lines('a.log') if 'ERROR' in l])", {"a.log": "fine\n"}
    )
    assert "nothing was found for errors.txt" in came.failed and "errors.txt" not in came.files
    assert run("write('empty.txt', '')").files["empty.txt"] == ""
