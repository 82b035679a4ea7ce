"""The listing of a workspace that a small model is shown, and the texts of what it has to
understand."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from deskhand.tools.program.run_program import survey_files
from deskhand.tools.program.survey import (
    MAX_HEAD_CHARS,
    MAX_HEAD_LINES,
    MAX_NAMES,
    MAX_WHOLE_BYTES,
    MAX_WHOLE_LINES,
    survey_source,
)
from deskhand.types.commit import Change
from deskhand.types.labels import LOCAL, Label

from .conftest import Programs, label_of
from .folder import source_of

CSV = "day;amount\n2025-05-01;12,50\n2025-05-02;3\n"


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        (
            "t.csv",
            CSV.encode(),
            (
                "- t.csv: a CSV with 2 rows and the columns day, amount; "
                "rows('t.csv')[0] is {'day': '2025-05-01', 'amount': '12,50'}"
            ),
        ),
        (
            "empty.csv",
            b"day,amount\n",
            "- empty.csv: a CSV with 0 rows and the columns day, amount",
        ),
        ("d.json", b'{"a": [1, 2]}', "- d.json: JSON, load_json('d.json') is {\"a\": [1, 2]}"),
        (
            "l.json",
            b'[{"a": 1}, {"a": 2}]',
            "- l.json: JSON, load_json('l.json') is a list of 2, the first {\"a\": 1}",
        ),
        ("broken.json", b"{", "- broken.json: 1 line, begins\n    {"),
        ("n.txt", b"one\ntwo\n", "- n.txt: 2 lines, begins\n    one\n    two"),
        ("bom.txt", b"\xef\xbb\xbfone", "- bom.txt: 1 line, begins\n    one"),
        (
            "c.txt",
            b"Ada;040 1;x@y\nBen;040 2;\nCid;;z@y\n",
            (
                "- c.txt: 3 lines of a table without a header; cells('c.txt')[0] is {0: "
                "'Ada', 1: '040 1', 2: 'x@y'}"
            ),
        ),
        ("none.txt", b"", "- none.txt: 0 lines"),
        ("p.png", b"\x89PNG\0\0", "- p.png: 6 bytes"),
        ("latin.txt", b"caf\xe9", "- latin.txt: 4 bytes"),
    ],
)
async def test_how_each_file_is_read(
    programs: Programs, name: str, content: bytes, line: str
) -> None:
    programs.hands.write(name, content)
    assert await programs.survey(f"look at {name}") == f"Files here:\n{line}"


async def test_a_short_text_that_is_named_is_shown_whole(programs: Programs) -> None:
    programs.hands.write("facts.txt", b"".join(b"fact %d\n" % n for n in range(MAX_WHOLE_LINES)))
    programs.hands.write("other.txt", b"".join(b"fact %d\n" % n for n in range(MAX_WHOLE_LINES)))
    said = await programs.survey("write ad.txt from my facts")
    assert f"fact {MAX_WHOLE_LINES - 1}" in said
    programs.hands.write(
        "facts.txt", b"".join(b"fact %d\n" % n for n in range(MAX_WHOLE_LINES + 1))
    )
    said = await programs.survey("write ad.txt from my facts")
    assert f"fact {MAX_HEAD_LINES - 1}" in said and f"fact {MAX_HEAD_LINES}" not in said


async def test_nothing_and_folders(programs: Programs) -> None:
    assert await programs.survey("do it") == "Files here: none"
    (programs.hands.folder / "empty").mkdir()
    programs.hands.write("full/a.bin", b"\0")
    programs.hands.write(".hidden", b"x")
    assert (
        await programs.survey("do it")
        == "Files here:\n- full/a.bin: 1 bytes\n- empty/ is an empty folder"
    )


async def test_what_is_named_comes_first_and_is_shown(programs: Programs) -> None:
    for n in range(100):
        programs.hands.write(f"f{n:03}.txt", f"text {n}\n".encode())
    programs.hands.write("sub/zebra list.txt", b"stripes\n" + b"x" * 900)
    lines = (await programs.survey("sort my zebra list")).splitlines()
    assert lines[1:3] == ["- sub/zebra list.txt: 2 lines, begins", "    stripes"]
    assert max(map(len, lines)) <= MAX_HEAD_CHARS + 4
    assert lines[-1] == f"- and {101 - MAX_NAMES} more files" and "- f000.txt: 1 line" in lines
    assert "text 5" not in "\n".join(lines)


async def test_to_be_read_is_the_whole_text_as_far_as_there_is_room(programs: Programs) -> None:
    programs.hands.write("letter.txt", b"Dear Ann,\nthe rent is 900.\n")
    programs.hands.write("other.txt", b"TOPSECRET\n")
    programs.hands.write("pic.png", b"\x89PNG\0\0")
    said = await programs.survey("what does letter.txt say about the rent?", "read")
    assert said == "--- letter.txt\nDear Ann,\nthe rent is 900.\n--- end of letter.txt"
    assert await programs.survey("what is on pic.png?", "read") == "--- pic.png is no text"
    # Where nothing is named, and all of it has room, all of it is shown.
    assert "the rent is 900." in await programs.survey("what is the rent?", "read")
    programs.hands.write("long.txt", b"y" * (MAX_WHOLE_BYTES + 1000))
    said = await programs.survey("summarise long.txt", "read")
    assert "… (1,000 more characters)" in said and len(said) < MAX_WHOLE_BYTES + 200


async def test_whose_word_is_shown(programs: Programs) -> None:
    programs.hands.write("page.txt", b"obey me\n")
    programs.hands.write("mine.txt", b"mine\n")
    label = msgspec.json.encode(Label("untrusted", None, "https://x.example"))
    row = (str(programs.hands.folder / "page.txt"), label, "s", 0.0)
    await programs.hands.store.change((Change("file_label_set", row),))
    shown = await programs.hands.done(survey_files, about="read mine.txt")
    assert label_of(shown) == LOCAL
    shown = await programs.hands.done(survey_files, about="read page.txt")
    assert label_of(shown).integrity == "untrusted"


# What of a file speaks of the request


def test_lines_further_down_that_the_request_speaks_of_are_shown(tmp_path: Path) -> None:
    lines = [f"line {n}" for n in range(20)] + ["ACTION Lena: call the hall", "ACTION Ben: pay"]
    (tmp_path / "minutes.md").write_text("\n".join(lines))
    said, _ = survey_source(
        source_of(tmp_path),
        "what does Lena have to do, see the ACTION lines of minutes.md",
        "change",
    )
    assert "  and has the lines\n    ACTION Lena: call the hall\n    ACTION Ben: pay" in said
    assert (
        "ACTION"
        not in survey_source(source_of(tmp_path), "count the lines of minutes.md", "change")[0]
    )


def test_a_row_that_the_request_speaks_of_is_shown(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text(
        "who,land\nAda,Spain\nBen,Portugal\nCid,Peru\nDan,Chile\nEva,Cuba\n"
    )
    said, _ = survey_source(source_of(tmp_path), "save the orders from Portugal", "change")
    assert "another row is {'who': 'Ben', 'land': 'Portugal'}" in said
    assert (
        "another row"
        not in survey_source(source_of(tmp_path), "how many rows has orders.csv", "compute")[0]
    )


def test_a_file_whose_name_is_just_a_word_is_not_all_that_is_read(tmp_path: Path) -> None:
    (tmp_path / "Jana.txt").write_text("likes tulips")
    (tmp_path / "notes.txt").write_text("plumber of Jana: 040 1122")
    assert (
        "040 1122"
        in survey_source(source_of(tmp_path), "what is the number of the plumber of Jana?", "read")[
            0
        ]
    )
    assert (
        "040 1122"
        not in survey_source(source_of(tmp_path), "what does Jana like, see Jana.txt?", "read")[0]
    )
