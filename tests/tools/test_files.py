"""Reading, writing and editing real files, and everything that a file can be."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from deskhand.tools.conversation_tools import read_output
from deskhand.tools.files import MAX_LINES, edit_file, read_file, write_file
from deskhand.tools.label_marks import load_marks
from deskhand.types.errors import OutsideWorkspace, ProtectedPath, ToolError
from deskhand.types.identity import Principal
from deskhand.types.labels import LOCAL, OWNER, Label

from . import documents as make
from .conftest import Hands

READ_LIMIT = 10 << 20


async def undone(hands: Hands) -> list[tuple[str, bytes | None]]:
    """The undo rows, the latest first: path, and what was there."""
    reach = (await hands.context()).reach
    found = []
    for effect in await hands.store.query("effect_list", (1, "", "", 1 << 60, 100)):
        for place, before, after, blob in await hands.store.query(
            "effect_items", (effect[0], 100, 0)
        ):
            if not (after or before).startswith("d"):
                found.append(
                    (place.decode(), None if blob is None else await reach.host.get_blob(blob))
                )
    return found


READ: list[tuple[bytes, dict[str, Any], str]] = [
    (b"a\nb\nc\n", {}, "1 | a\n2 | b\n3 | c"),
    (b"a\nb\nc", {}, "1 | a\n2 | b\n3 | c"),
    (b"a\nb\nc\n", {"start_line": 2}, "2 | b\n3 | c\n[lines 2-3 of 3]"),
    (b"a\nb\nc\n", {"start_line": 2, "end_line": 2}, "2 | b\n[lines 2-2 of 3]"),
    (b"a\nb\nc\n", {"end_line": 2}, "1 | a\n2 | b\n[lines 1-2 of 3]"),
    (b"a\nb\nc\n", {"end_line": 99}, "1 | a\n2 | b\n3 | c"),
    (b"a\nb\nc\n", {"start_line": -5}, "1 | a\n2 | b\n3 | c"),
    (b"a\r\nb\r\n", {}, "1 | a\n2 | b"),
    (b"\xef\xbb\xbfa\n", {}, "1 | a"),
    (b"", {}, "[the file is empty]"),
    (b"\n", {}, "1 | "),
    (b"caf\xe9\n", {}, "1 | caf\ufffd"),
    ("one\u2028still one\x0cand\x85so\n".encode(), {}, "1 | one\u2028still one\x0cand\x85so"),
]


@pytest.mark.parametrize(("content", "arguments", "expected"), READ)
async def test_read(hands: Hands, content: bytes, arguments: dict[str, Any], expected: str) -> None:
    hands.write("f.txt", content)
    assert await hands(read_file, path="f.txt", **arguments) == expected


async def test_documents_are_read_as_their_text(hands: Hands) -> None:
    hands.write("report.pdf", make.pdf([make.shown("Hello"), make.shown("Bye")]))
    hands.write(
        "no extension", make.word(make.paragraph("One") + make.paragraph("evil", run="<w:vanish/>"))
    )
    pages = "1 | [page 1 of 2]\n2 | Hello\n3 | \n4 | [page 2 of 2]\n5 | Bye"
    assert await hands(read_file, path="report.pdf") == f"{pages}\n[the text of a PDF file]"
    one = await hands(read_file, path="report.pdf", start_line=5)
    assert one == "5 | Bye\n[lines 5-5 of 5]\n[the text of a PDF file]"
    unseen = "[removed because it is not visible to people: hidden text (1)]"
    assert (
        await hands(read_file, path="no extension")
        == f"1 | One\n[the text of a Word document]\n{unseen}"
    )
    with pytest.raises(ToolError, match=r"'bad\.pdf' is damaged"):
        hands.write("bad.pdf", b"%PDF-1.7 and nothing")
        await hands(read_file, path="bad.pdf")
    with pytest.raises(ToolError, match="'no extension' is not a text file"):
        await hands(edit_file, path="no extension", edits=[{"old": "One", "new": "Two"}])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"start_line": 9}, r"has only 3 lines"),
        ({"start_line": 3, "end_line": 2}, r"end_line 2 comes before start_line 3"),
        ({"path": "nothing"}, r"there is no file 'nothing'$"),
        ({"path": "Notes.TXT"}, r"there is no file 'Notes.TXT'; did you mean 'notes.txt'\?"),
        ({"path": "nota.txt"}, r"did you mean 'notes.txt'\?"),
        ({"path": "folder"}, r"'folder' is not a file that can be read: a folder"),
        ({"path": "notes.txt/x"}, r"Not a directory"),
        ({"path": "binary"}, r"'binary' is not a text file \(5 bytes\)"),
        ({"path": "huge"}, r"'huge' is larger than 10 MB; read it with shell"),
        ({"path": "pipe"}, r"a pipe"),
        ({"path": "out"}, r"outside the workspace"),
        ({"path": "../home/deskhand.db"}, r"outside the workspace.*deskhand allow path"),
        ({"path": ""}, r"the path is empty"),
    ],
)
async def test_what_cannot_be_read(hands: Hands, arguments: dict[str, Any], sentence: str) -> None:
    hands.write("notes.txt", b"a\nb\nc\n")
    hands.write("binary", b"ab\0cd")
    hands.write("huge", b"x" * (READ_LIMIT + 1))
    (hands.folder / "folder").mkdir()
    os.mkfifo(hands.folder / "pipe")
    (hands.folder / "out").symlink_to("/etc/passwd")
    with pytest.raises(ToolError, match=sentence):
        await hands(read_file, **{"path": "notes.txt"} | arguments)


async def test_exactly_ten_megabytes_are_read(hands: Hands) -> None:
    hands.write("f", b"x" * READ_LIMIT)
    said = await hands(read_file, path="f")
    assert said.startswith("1 | xxx") and "are not shown" in said and len(said) < 25_000


async def test_a_long_file_is_read_in_pieces(hands: Hands) -> None:
    lines = [f"line {n} — ü" for n in range(1, 20_001)]
    hands.write("long.txt", "\n".join(lines).encode())
    said = await hands(read_file, path="long.txt")
    head, _, tail = said.partition("\n…[")
    assert (
        head.startswith("1 | line 1 —")
        and tail.rstrip().endswith("20000 | line 20000 — ü")
        and len(said) < 25_000
    )
    handle = said.split("handle='")[1].split("'")[0]
    offset = int(said.split("offset=")[1].split(")")[0])
    whole = head
    while True:
        piece = await hands(read_output, handle=handle, offset=offset)
        text, _, note = piece.rpartition("\n[bytes ")
        whole += text
        if "offset=" not in note:
            break
        offset = int(note.split("offset=")[1].rstrip("]"))
    assert whole == "\n".join(f"{n} | {line}" for n, line in enumerate(lines, 1))


async def test_millions_of_lines_do_not_fill_the_memory(hands: Hands) -> None:
    hands.write("newlines", b"\n" * (4 << 20))
    said = await hands(read_file, path="newlines")
    assert said.endswith(f"[lines 1-{MAX_LINES} of {4 << 20}]")


@pytest.mark.parametrize(
    "name",
    ["with space", "üñí.txt", "quote'\".txt", "-rf", "a;b", "$(id)", "漢字", "emoji 🎉", "%2e"],
)
async def test_odd_names(hands: Hands, name: str) -> None:
    await hands(write_file, path=f"sub/{name}", content="x\n")
    assert await hands(read_file, path=f"sub/{name}") == "1 | x"
    assert (hands.folder / "sub" / name).read_text() == "x\n"


ANN = Principal("ann", ("owner",))
GAVIN = Principal("gavin", ("approver",))
BOB = Principal("bob", ("member",))
OF_BOB = Label("member", by=("bob",))


@pytest.mark.parametrize(
    ("asks", "label", "allows", "by"),
    [
        (ANN, OWNER, ANN, ()),
        (ANN, OWNER, GAVIN, ("gavin",)),
        (ANN, OF_BOB, ANN, ()),
        (ANN, OF_BOB, GAVIN, ("bob", "gavin")),
        (BOB, OF_BOB, ANN, ("bob",)),
        (BOB, OF_BOB, GAVIN, ("bob", "gavin")),
    ],
)
async def test_whose_word_is_what_somebody_allowed(
    hands: Hands, asks: Principal, label: Label, allows: Principal, by: tuple[str, ...]
) -> None:
    hands.label = label
    context = msgspec.structs.replace(await hands.context(), principal=asks, approver=allows)
    call = msgspec.json.encode({"path": "a.txt", "content": "word"})
    outcome = await write_file.run(msgspec.Raw(call), context)
    await hands.store.change(outcome.changes)  # type: ignore[union-attr]
    marks = await load_marks(await hands.context())
    assert marks.file_label(marks.resolve_place("a.txt")) == msgspec.structs.replace(LOCAL, by=by)


async def test_write(hands: Hands) -> None:
    assert (
        await hands(write_file, path="a/b/c.txt", content="1\n2")
        == "ok, created a/b/c.txt: 2 lines, 3 bytes"
    )
    assert (
        await hands(write_file, path="a/b/c.txt", content="3\n")
        == "ok, replaced a/b/c.txt: 1 lines, 2 bytes"
    )
    assert await hands(write_file, path="a/b/c.txt", content="4", mode="append") == (
        "ok, added to a/b/c.txt: 2 lines, 3 bytes"
    )
    assert (hands.folder / "a/b/c.txt").read_text() == "3\n4"
    await hands(write_file, path="a/b/c.txt", content="5", mode="append")
    assert (hands.folder / "a/b/c.txt").read_text() == "3\n4\n5"
    await hands(write_file, path="new.txt", content="n", mode="append")
    await hands(write_file, path="fresh.txt", content="n", mode="create")
    await hands(write_file, path="empty.txt", content="", empty=True)
    assert (hands.folder / "empty.txt").read_bytes() == b""
    assert await undone(hands) == [
        ("empty.txt", None),
        ("fresh.txt", None),
        ("new.txt", None),
        ("a/b/c.txt", b"3\n4"),
        ("a/b/c.txt", b"3\n"),
        ("a/b/c.txt", b"1\n2"),
        ("a/b/c.txt", None),
    ]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"content": ""}, "set empty=true"),
        ({"mode": "create"}, "exists already"),
        (
            {"mode": "prepend"},
            (
                r"Invalid enum value 'prepend'.*Expected an object with: path, content, mode\?, "
                r"empty\?"
            ),
        ),
        ({"mode": "append", "path": "huge"}, "larger than 10 MB, too large to be kept for undo"),
        ({"path": "huge"}, "larger than 10 MB, too large to be kept for undo"),
        ({"path": "folder"}, "a folder"),
        ({"path": "f.txt/below"}, "Not a directory"),
        ({"path": "../x"}, "outside the workspace"),
        ({"path": "link"}, "a symbolic link"),
        ({"path": "twin"}, "hard link"),
        ({"path": "a\nb"}, "an invisible character"),
        ({"path": "x" * 300}, "File name too long"),
    ],
)
async def test_what_cannot_be_written(
    hands: Hands, arguments: dict[str, Any], sentence: str
) -> None:
    hands.write("f.txt", b"before")
    huge = hands.write("huge", b"x" * (READ_LIMIT + 100))
    (hands.folder / "folder").mkdir()
    (hands.folder / "link").symlink_to("f.txt")
    (hands.folder / "twin").hardlink_to(hands.write("one", b"1"))
    with pytest.raises(ToolError, match=sentence):
        await hands(write_file, **{"path": "f.txt", "content": "after"} | arguments)
    assert (
        hands.folder / "f.txt"
    ).read_bytes() == b"before" and huge.stat().st_size == READ_LIMIT + 100
    assert await undone(hands) == []


@pytest.mark.parametrize(
    "path", [".git/hooks/pre-commit", ".env", "RULES.md", ".bashrc", ".mcp.json"]
)
async def test_protected_files_are_refused(hands: Hands, path: str) -> None:
    with pytest.raises(ProtectedPath):
        await hands(write_file, path=path, content="x")
    assert not (hands.folder / path).exists()


async def test_allowed_folders(hands: Hands, tmp_path: Path) -> None:
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "f").write_text("there")
    with pytest.raises(OutsideWorkspace, match=f"not read. .* deskhand allow path {beside}$"):
        await hands(read_file, path=str(beside / "f"))
    edits = [{"old": "there", "new": "here"}]
    for change in ((write_file, {"content": "x"}), (edit_file, {"edits": edits})):
        with pytest.raises(
            OutsideWorkspace, match=f"not written. .* deskhand allow path {beside} --write$"
        ):
            await hands(change[0], path=str(beside / "f"), **change[1])
    await hands.allow(beside)
    with pytest.raises(OutsideWorkspace, match=f"deskhand allow path {beside} --write$"):
        await hands(edit_file, path=str(beside / "f"), edits=edits)
    assert await hands(read_file, path=str(beside / "f")) == "1 | there"
    with pytest.raises(OutsideWorkspace, match="--write"):
        await hands(write_file, path=str(beside / "g"), content="x")
    await hands.allow(beside, write=True)
    await hands(write_file, path=str(beside / "g"), content="x")
    assert (beside / "g").read_text() == "x"
    await hands.revoke(beside)
    with pytest.raises(OutsideWorkspace):
        await hands(read_file, path=str(beside / "f"))


async def test_a_link_in_the_place_of_an_allowed_folder_leads_nowhere(
    hands: Hands, tmp_path: Path
) -> None:
    """A command may put it there; after a restart the folders are opened anew."""
    inside = hands.folder / "data"
    inside.mkdir()
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("TOPSECRET")
    await hands.allow(inside, write=True)
    inside.rmdir()
    inside.symlink_to(secret)
    for path in ("data/key", str(inside / "key"), str(secret / "key")):
        with pytest.raises(ToolError):
            await hands(read_file, path=path)


async def test_a_folder_that_was_made_anew_is_found(hands: Hands) -> None:
    await hands(write_file, path="f", content="1")
    hands.folder.rename(hands.folder.with_name("old"))
    hands.folder.mkdir()
    await hands(write_file, path="g", content="2")
    assert [each.name for each in hands.folder.iterdir()] == ["g"]


EDITS: list[tuple[bytes, list[dict[str, Any]], bytes]] = [
    (b"a b c\n", [{"old": "b", "new": "B"}], b"a B c\n"),
    (b"a b c\n", [{"old": "a", "new": "x"}, {"old": "x b", "new": "y"}], b"y c\n"),
    (b"a\nb\nc", [{"old": "a\nb", "new": "x"}], b"x\nc"),
    (b"a\r\nb\r\nc\r\n", [{"old": "a\nb", "new": "x\ny\nz"}], b"x\r\ny\r\nz\r\nc\r\n"),
    (b"a\r\nb\r\n", [{"old": "a", "new": "1\n2"}], b"1\r\n2\r\nb\r\n"),
    (b"a\nb\r\nc\n", [{"old": "a\nb\nc", "new": "x\ny"}], b"x\ny\n"),
    (b"a\nb\n", [{"old": "a\r\nb", "new": "x\r\ny"}], b"x\ny\n"),
    (b"\xef\xbb\xbfa\n", [{"old": "a", "new": "b"}], b"\xef\xbb\xbfb\n"),
    (b"x(.*)\\1$\n", [{"old": "(.*)\\1$", "new": "\\g<0>\\n"}], b"x\\g<0>\\n\n"),
    ("naïve ∑\n".encode(), [{"old": "ï", "new": "i"}], "naive ∑\n".encode()),
    (b"gone\nkept\n", [{"old": "gone\n", "new": ""}], b"kept\n"),
    (b"a b a\na\n", [{"old": "a", "new": "aa", "replace_all": True}], b"aa b aa\naa\n"),
    (
        b"a\r\nb\r\na\r\nb\r\n",
        [{"old": "a\nb", "new": "x\ny", "replace_all": True}],
        b"x\r\ny\r\nx\r\ny\r\n",
    ),
    (b"aaa\n", [{"old": "aa", "new": "\\1", "replace_all": True}], b"\\1a\n"),
]


@pytest.mark.parametrize(("before", "edits", "after"), EDITS)
async def test_edit(hands: Hands, before: bytes, edits: list[dict[str, Any]], after: bytes) -> None:
    path = hands.write("f.txt", before)
    path.chmod(0o751)
    await hands(edit_file, path="f.txt", edits=edits)
    assert path.read_bytes() == after and path.stat().st_mode & 0o777 == 0o751
    assert await undone(hands) == [("f.txt", before)]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"edits": [{"old": "z", "new": "x"}]}, "edit 1: the old text was not found"),
        (
            {"edits": [{"old": "a", "new": "x"}, {"old": "a", "new": "y"}]},
            "edit 2: the old text was not found",
        ),
        ({"edits": [{"old": "b", "new": "x"}]}, "edit 1: the old text occurs more than once"),
        ({"edits": [{"old": "bb", "new": "x"}]}, "occurs more than once"),
        ({"edits": [{"old": "", "new": "x"}]}, "edit 1: the old text is empty"),
        (
            {"edits": [{"old": "", "new": "x", "replace_all": True}]},
            "edit 1: the old text is empty",
        ),
        (
            {"edits": [{"old": "z", "new": "x", "replace_all": True}]},
            "edit 1: the old text was not found",
        ),
        ({"edits": [{"old": "a", "new": "a"}]}, "would not change"),
        ({"edits": []}, "either edits or a patch"),
        ({}, "either edits or a patch"),
        (
            {"edits": [{"old": "a", "new": "x"}], "patch": "@@ -1 +1 @@\n-a\n+b"},
            "either edits or a patch",
        ),
        ({"edits": [{"old": "a"}]}, r"missing required field `new` - at `\$.edits\[0\]`"),
        (
            {"edits": [{"old": "a", "new": "b", "count": 2}]},
            r"unknown field `count` - at `\$.edits\[0\]`",
        ),
        ({"edits": "no json"}, r"Expected `array`, got `str` - at `\$.edits`"),
        ({"patch": "just words"}, "the patch has no hunk"),
        ({"path": "latin", "edits": [{"old": "a", "new": "b"}]}, "not UTF-8"),
        ({"path": "nothing", "edits": [{"old": "a", "new": "b"}]}, "there is no file"),
    ],
)
async def test_what_is_not_edited(hands: Hands, arguments: dict[str, Any], sentence: str) -> None:
    hands.write("f.txt", b"a bbb\n")
    hands.write("latin", b"a\xe9")
    with pytest.raises(ToolError, match=sentence):
        await hands(edit_file, **{"path": "f.txt"} | arguments)
    assert (hands.folder / "f.txt").read_bytes() == b"a bbb\n"


@pytest.mark.parametrize("read_as", ["f.txt", "./f.txt", "sub/../f.txt", "ABSOLUTE", "link/f.txt"])
async def test_a_stale_file_is_refused_however_it_was_named(hands: Hands, read_as: str) -> None:
    path = hands.write("f.txt", b"a\n")
    (hands.folder / "sub").mkdir()
    (hands.folder / "link").symlink_to(".")
    await hands(read_file, path=read_as.replace("ABSOLUTE", str(path)))
    path.write_bytes(b"a\nsomebody was here\n")
    with pytest.raises(ToolError, match="has changed since you read it; read it again first"):
        await hands(edit_file, path="f.txt", edits=[{"old": "a", "new": "b"}])
    await hands(read_file, path="f.txt")
    await hands(edit_file, path="f.txt", edits=[{"old": "a\n", "new": "b\n"}])
    await hands(
        edit_file, path="f.txt", edits=[{"old": "b\n", "new": "c\n"}]
    )  # its own edit made nothing stale
    assert path.read_bytes() == b"c\nsomebody was here\n"


async def test_another_session_has_its_own_memory(hands: Hands) -> None:
    path = hands.write("f.txt", b"a\n")
    await hands(read_file, path="f.txt")
    path.write_bytes(b"b\n")
    hands.session = "default/memory:2"
    await hands(edit_file, path="f.txt", edits=[{"old": "b", "new": "c"}])
    assert path.read_bytes() == b"c\n"


async def test_what_was_read_is_remembered_in_bounds(hands: Hands) -> None:
    seen = (await hands.context()).reach.seen
    seen.update({("s", str(n)): "" for n in range(5000)})
    hands.write("f", b"a")
    await hands(read_file, path="f")
    assert len(seen) == 2000 and list(seen)[-1][1] == str(hands.folder / "f")


async def test_an_edit_tells_nothing_of_what_is_for_others(hands: Hands) -> None:
    """Whether a change can be made tells what stands there: it is judged before anything is read,
    in the same words."""
    path = hands.write("memory/diary.md", b"her secret\n")
    await hands(
        edit_file, path="memory/diary.md", edits=[{"old": "her secret", "new": "her own secret"}]
    )
    hands.audience = ()  # others read along
    said = set[str]()
    for old, new in (
        ("her own secret", "her own secret"),
        ("her own", "his"),
        ("nothing", "nothing"),
        ("no", "yes"),
    ):
        for given in (
            {"edits": [{"old": old, "new": new}]},
            {"patch": f"@@ -1 +1 @@\n-{old}\n+{new}\n"},
        ):
            for name in ("memory/diary.md", "USER.md"):
                with pytest.raises(ToolError) as refused:
                    await hands(edit_file, path=name, **given)
                said.add(str(refused.value).replace(name, "it"))
    assert len(said) == 1 and path.read_text() == "her own secret\n"
