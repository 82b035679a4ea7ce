"""Listing and searching, in folders as people and programs leave them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deskhand.tools.folders import MAX_FOLDER_ENTRIES, MAX_LISTED, list_files, search_files
from deskhand.types.errors import OutsideWorkspace, ToolError

from .conftest import Hands


async def test_list(hands: Hands) -> None:
    for name in (
        "b.txt",
        "A.txt",
        "sub/c.txt",
        "sub/deep/d.txt",
        ".hidden",
        ".git/config",
        "node_modules/x.js",
    ):
        hands.write(name, b"1234")
    (hands.folder / "link").symlink_to("sub")
    os.mkfifo(hands.folder / "pipe")
    expected = (
        "sub/\n  deep/\n  c.txt  4 bytes\nA.txt  4 bytes\nb.txt  4 bytes\nlink  (link)\npipe  "
        "(other)"
    )
    assert await hands(list_files) == expected
    assert (
        await hands(list_files, depth=1)
        == "sub/\nA.txt  4 bytes\nb.txt  4 bytes\nlink  (link)\npipe  (other)"
    )
    assert await hands(list_files, path="sub", depth=5) == "deep/\n  d.txt  4 bytes\nc.txt  4 bytes"
    (hands.folder / "empty").mkdir()
    assert await hands(list_files, path="empty") == "[the folder is empty]"


async def test_names_that_look_alike_say_so(hands: Hands) -> None:
    for name in (
        "README.md",
        "readme.md",
        "caf\u00e9/a",
        "cafe\u0301/a",
        "notes.txt",
        "notes.txt\ufe00",
        "other.txt",
    ):
        hands.write(name, b"1234")
    said = await hands(list_files, depth=1)
    assert said.splitlines() == [
        "cafe\\u0301/  (another name differs only by its normal form: 'caf\u00e9')",
        "caf\u00e9/  (another name differs only by its normal form: 'cafe\\u0301')",
        (
            "notes.txt  4 bytes  (another name differs only by invisible characters: "
            "'notes.txt\\ufe00')"
        ),
        (
            "notes.txt\\ufe00  4 bytes  (another name differs only by invisible characters: "
            "'notes.txt')"
        ),
        "other.txt  4 bytes",
        "README.md  4 bytes  (another name differs only by case: 'readme.md')",
        "readme.md  4 bytes  (another name differs only by case: 'README.md')",
    ]


@pytest.mark.parametrize("path", ["nothing", "f.txt", "../..", "/etc"])
async def test_what_cannot_be_listed(hands: Hands, path: str) -> None:
    hands.write("f.txt", b"")
    with pytest.raises(ToolError):
        await hands(list_files, path=path)


async def test_odd_names_break_nothing(hands: Hands) -> None:
    odd = [b"new\nline", b"no utf-8 \xff", b"\x1b[31mred", "turned \u202e round".encode()]
    for name in odd:
        Path(os.fsdecode(os.fsencode(hands.folder) + b"/" + name)).mkdir()
        Path(os.fsdecode(os.fsencode(hands.folder) + b"/" + name + b"/inner.txt")).write_text(
            "needle\n"
        )
        Path(os.fsdecode(os.fsencode(hands.folder) + b"/file " + name)).write_text("needle\n")
    hands.write("plain.txt", b"needle\n")
    said = await hands(list_files)
    assert "plain.txt  7 bytes" in said and said.count("file ") == 4 and said.isascii()
    assert "file new\\u000aline" in said and "file no utf-8 \\udcff" in said and "\x1b" not in said
    assert "plain.txt:1: needle" in await hands(search_files, text="needle")
    assert "file new\\u000aline" in await hands(search_files, text="file ")


async def test_a_list_has_bounds(hands: Hands) -> None:
    for folder in range(6):
        for number in range(MAX_FOLDER_ENTRIES + 5):
            hands.write(f"{folder}/{number}", b"")
    said = (await hands(list_files, path="0")).splitlines()
    assert (
        len(said) == MAX_FOLDER_ENTRIES + 1
        and said[-1] == "[and more: only 500 names of a folder are listed]"
    )
    whole = (await hands(list_files)).splitlines()
    assert len(whole) <= MAX_LISTED + 10 and whole[-1].startswith("[and more: only 2000 names")


async def test_search(hands: Hands) -> None:
    hands.write("notes.txt", b"one\r\nThe NEEDLE here\r\n")
    hands.write("sub/needle.md", b"nothing in it\n")
    hands.write("sub/code.py", "x = 'Straße'\n".encode())
    hands.write("binary", b"needle\0")
    hands.write(".hidden", b"needle")
    hands.write("node_modules/needle.js", b"needle")
    assert await hands(search_files, text="needle") == "notes.txt:2: The NEEDLE here\nsub/needle.md"
    assert await hands(search_files, text="needle", path="sub") == "sub/needle.md"
    assert (
        await hands(search_files, text="NEEDLE", path="notes.txt") == "notes.txt:2: The NEEDLE here"
    )
    assert await hands(search_files, text="STRASSE") == "sub/code.py:1: x = 'Straße'"
    assert await hands(search_files, text=".*") == "nothing contains '.*'"


async def test_long_lines_are_shown_around_the_hit(hands: Hands) -> None:
    hands.write("long", b"a" * 100_000 + b"needle" + b"b" * 100_000)
    said = await hands(search_files, text="needle")
    assert "needle" in said and len(said) < 400


async def test_a_search_has_bounds(hands: Hands) -> None:
    hands.write("many", b"needle\n" * 1000)
    hands.write("large", b"needle\n" * 100_000)
    said = (await hands(search_files, text="needle")).splitlines()
    assert (
        len(said) == 202
        and said[200] == "[only the first 200 hits; search one folder, or for a longer text]"
    )
    (hands.folder / "many").unlink()
    said = (await hands(search_files, text="needle")).splitlines()
    assert said == [
        "nothing contains 'needle'",
        "[1 files over 512 KB were not searched; use grep in shell]",
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the search text is empty"),
        ("  ", "the search text is empty"),
        ("a\nb", "one line at a time"),
    ],
)
async def test_what_is_not_searched(hands: Hands, text: str, sentence: str) -> None:
    with pytest.raises(ToolError, match=sentence):
        await hands(search_files, text=text)


async def test_neither_leaves_the_workspace(hands: Hands, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("needle")
    (hands.folder / "out").symlink_to(secret)
    assert await hands(search_files, text="needle") == "nothing contains 'needle'"
    for tool, arguments in ((search_files, {"text": "needle"}), (list_files, {})):
        with pytest.raises(OutsideWorkspace):
            await hands(tool, path="out", **arguments)
    await hands.allow(secret)
    assert await hands(search_files, text="needle", path="out") == "out/key:1: needle"
    assert await hands(list_files, path=str(secret)) == "key  6 bytes"
