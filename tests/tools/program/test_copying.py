"""The copy that a program is rehearsed on: what is in it, and what is found to be different
afterwards."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from deskhand.tools.program import copying
from deskhand.tools.program.copying import (
    MAX_DIFF_LINES,
    MAX_FILES,
    CopiedChanges,
    Copy,
    arm_marked,
    copy_source,
    find_changes,
    find_read_paths,
)
from deskhand.tools.program.source import is_visible
from deskhand.types.errors import ToolError
from deskhand.types.programs import FileChange

from .folder import fill, source_of

Files = dict[str, str | bytes]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workspace; the current folder, too."""
    (tmp_path / "work").mkdir()
    (tmp_path / "copy").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def rehearsed(
    here: Path, files: Files, act: Callable[[], object], marked: tuple[str, ...] = ()
) -> Copy:
    """A copy of a workspace with these files, in which this was done."""
    fill(files)
    copy = arm_marked(copy_source(source_of(here), here.parent / "copy"), marked)
    os.chdir(copy.root)
    act()
    os.chdir(here)
    return copy


def found(
    here: Path, files: Files, act: Callable[[], object], **beside: tuple[str, ...]
) -> CopiedChanges:
    return find_changes(rehearsed(here, files, act), **beside)


def in_turn(*acts: Callable[[], object]) -> Callable[[], object]:
    return lambda: [act() for act in acts]


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


# What is in it


@pytest.mark.parametrize(
    ("path", "is_seen"),
    [
        *(
            ("a.txt", True),
            ("docs/a.txt", True),
            (".hidden", False),
            ("docs/.hidden/a", False),
            (".git/config", False),
        ),
        *(
            ("node_modules/x/y.js", False),
            ("docs/node_modules/y.js", False),
            ("__pycache__/x.pyc", False),
        ),
        *(
            ("SOUL.md", False),
            ("RULES.md", False),
            ("rules.md", False),
            ("docs/skills/x.md", False),
            ("mcp.json", False),
        ),
        *((".env", False), ("memory.txt", True), ("venv/x", False)),
    ],
)
def test_what_steers_and_what_is_hidden_is_not_seen(path: str, is_seen: bool) -> None:
    assert is_visible(path) is is_seen


def test_links_are_not_followed_and_what_is_no_file_is_left_out(here: Path) -> None:
    (here.parent / "secret").mkdir()
    (here.parent / "secret" / "key").write_text("TOPSECRET")
    fill({"a.txt": "1", "sub/b.txt": "2", ".git/config": "x", "node_modules/x": "x"})
    (here / "out").symlink_to("../secret")
    (here / "key").symlink_to("../secret/key")
    (here / "to-a").symlink_to("a.txt")
    os.mkfifo(here / "pipe")
    copy = rehearsed(here, {}, lambda: None)
    assert sorted(each.path for each in source_of(copy.root).iter_entries()) == [
        "a.txt",
        "sub",
        "sub/b.txt",
    ]
    assert sorted(str(path.relative_to(copy.root)) for path in copy.root.rglob("*")) == [
        "a.txt",
        "sub",
        "sub/b.txt",
    ]
    assert find_changes(copy).changes == ()


def test_a_link_that_a_program_makes_leads_nowhere(here: Path) -> None:
    """What lies behind it is neither read nor told, and what was in its place is told as
    deleted."""
    (here.parent / "key").write_text("TOPSECRET")

    def act() -> None:
        Path("a.txt").unlink()
        Path("a.txt").symlink_to("../key")
        Path("sub").rename("gone")
        Path("sub").symlink_to("/etc")

    came = found(here, {"a.txt": "mine\n", "sub/b.txt": "2\n"}, act)
    assert came.content == {"gone/b.txt": b"2\n"}
    kinds = [(each.path, each.kind, each.to) for each in came.changes]
    assert ("a.txt", "deleted", "") in kinds and ("sub/b.txt", "moved", "gone/b.txt") in kinds


def test_too_many_files_are_refused(here: Path) -> None:
    for n in range(MAX_FILES + 1):
        (here / f"f{n}").touch()
    with pytest.raises(ToolError, match=f"more than {MAX_FILES:,} files"):
        copy_source(source_of(here), here.parent / "copy")


def test_too_many_bytes_are_refused(here: Path) -> None:
    (here / "large").touch()
    os.truncate(here / "large", copying.MAX_BYTES + 1)
    with pytest.raises(ToolError, match="or 200 MB"):
        copy_source(source_of(here), here.parent / "copy")


# What is different


BEFORE: Files = {
    "a.txt": "one\ntwo\n",
    "b.txt": "rice\n",
    "sub/c.txt": "tea\n",
    "sub/d.bin": b"\0\1\2",
}


def test_nothing_is_nothing(here: Path) -> None:
    def act() -> None:
        Path("a.txt").read_text()
        Path("a.txt").chmod(0o600)
        os.utime("b.txt", (1, 1))
        Path("n").touch()
        Path("n").unlink()
        Path("sub/c.txt").write_text("tea\n")

    came = found(here, BEFORE, act)
    assert (came.changes, came.content) == ((), {})


CHANGED = [
    ("new", lambda: Path("n.txt").write_text("x\n"), [FileChange("n.txt", "new", digest("x\n"))]),
    ("empty and new", lambda: Path("n.txt").touch(), [FileChange("n.txt", "new", digest(""))]),
    (
        "changed",
        lambda: Path("b.txt").write_text("oats\n"),
        [FileChange("b.txt", "changed", digest("oats\n"))],
    ),
    (
        "of the same size and time",
        in_turn(lambda: Path("b.txt").write_text("RICE\n"), lambda: os.utime("b.txt", (1, 1))),
        [FileChange("b.txt", "changed", digest("RICE\n"))],
    ),
    (
        "deleted",
        lambda: Path("b.txt").unlink(),
        [FileChange("b.txt", "deleted", loses="deletes b.txt with its 1 line")],
    ),
    (
        "renamed",
        lambda: Path("b.txt").rename("r.txt"),
        [FileChange("b.txt", "moved", digest("rice\n"), to="r.txt")],
    ),
    (
        "moved into another folder",
        in_turn(
            lambda: Path("new/deep").mkdir(parents=True),
            lambda: Path("b.txt").rename("new/deep/b.txt"),
        ),
        [FileChange("b.txt", "moved", digest("rice\n"), to="new/deep/b.txt")],
    ),
    (
        "an empty folder",
        lambda: Path("x/y").mkdir(parents=True),
        [FileChange("x", "folder"), FileChange("x/y", "folder")],
    ),
    (
        "emptied",
        lambda: Path("a.txt").write_text("\n"),
        [FileChange("a.txt", "changed", digest("\n"), loses="empties a.txt of its 2 lines")],
    ),
    (
        "bytes",
        lambda: Path("sub/d.bin").unlink(),
        [
            FileChange(
                "sub/d.bin",
                "deleted",
                diff="3 bytes before, 0 after",
                loses="deletes sub/d.bin with its 3 bytes",
            )
        ],
    ),
    (
        "copied",
        lambda: shutil.copy("b.txt", "r.txt"),
        [FileChange("r.txt", "new", digest("rice\n"))],
    ),
    (
        "exchanged",
        lambda: (
            Path("b.txt").rename("x"),
            Path("sub/c.txt").rename("b.txt"),
            Path("x").rename("sub/c.txt"),
        ),
        [
            FileChange("b.txt", "changed", digest("tea\n")),
            FileChange("sub/c.txt", "changed", digest("rice\n")),
        ],
    ),
]


@pytest.mark.parametrize(
    ("act", "changes"), [case[1:] for case in CHANGED], ids=[case[0] for case in CHANGED]
)
def test_what_is_different(
    here: Path, act: Callable[[], object], changes: list[FileChange]
) -> None:
    came = found(here, BEFORE, act, read=tuple(BEFORE)).changes
    plain = [each.diff if each.diff.endswith("after") else "" for each in came]
    assert [
        FileChange(c.path, c.kind, c.digest, diff, c.to, c.loses)
        for c, diff in zip(came, plain, strict=True)
    ] == changes


def test_a_folder_that_is_gone_comes_after_what_lay_in_it(here: Path) -> None:
    came = found(here, {"x/y/a": "1\n", "x/b": "2\n"}, lambda: shutil.rmtree("x")).changes
    assert [(each.path, each.kind) for each in came] == [
        *(("x/b", "deleted"), ("x/y/a", "deleted"), ("x/y", "deleted"), ("x", "deleted"))
    ]


def test_of_two_that_are_alike_the_one_of_that_name_is_where_it_went(here: Path) -> None:
    def act() -> None:
        shutil.copytree("old", "new")
        shutil.rmtree("old")

    came = found(here, {"old/a": "same", "old/b": "same"}, act).changes
    assert [(c.path, c.to) for c in came if c.kind == "moved"] == [
        ("old/a", "new/a"),
        ("old/b", "new/b"),
    ]


# What is lost


@pytest.mark.parametrize(
    ("text", "blind", "made", "loses"),
    [
        ("new\n", ("a.txt",), (), "overwrites a.txt and its 2 lines"),
        ("two\n", ("a.txt",), (), "overwrites a.txt and its 2 lines"),
        ("one\ntwo\nthree\n", ("a.txt",), (), ""),
        ("new\n", (), (), "overwrites a.txt and its 2 lines"),  # by other means than our functions
        ("new\n", ("a.txt",), ("a.txt",), ""),
        ("", (), (), "empties a.txt of its 2 lines"),
        ("", (), ("a.txt",), ""),
    ],
)
def test_what_would_be_missed(
    here: Path, text: str, blind: tuple[str, ...], made: tuple[str, ...], loses: str
) -> None:
    (change,) = found(
        here, BEFORE, lambda: Path("a.txt").write_text(text), blind=blind, made=made
    ).changes
    assert change.loses == loses


def test_nobody_misses_what_was_empty_or_made_by_the_agent(here: Path) -> None:
    came = found(
        here,
        {"empty": "\n", "made": "x\n"},
        in_turn(Path("empty").unlink, Path("made").unlink),
        made=("made",),
    )
    assert [each.loses for each in came.changes] == ["", ""]


# What is shown


def test_a_long_difference_is_cut_and_its_digest_is_that_of_the_whole(here: Path) -> None:
    text = "".join(f"line {n}\n" for n in range(500))
    (change,) = found(here, {}, lambda: Path("n").write_text(text)).changes
    assert change.diff.startswith("--- /dev/null\n+++ n\n@@ -0,0 +1,500 @@\n+line 0\n")
    assert change.diff.splitlines()[-1] == f"… {503 - MAX_DIFF_LINES} more lines"
    assert change.digest == digest(text)
    (change,) = find_changes(
        rehearsed_again(here, lambda: Path("w").write_text("x" * 50_000))
    ).changes
    assert len(change.diff) <= copying.MAX_DIFF_CHARS


def rehearsed_again(here: Path, act: Callable[[], object]) -> Copy:
    shutil.rmtree(here.parent / "copy")
    (here.parent / "copy").mkdir()
    return rehearsed(here, {}, act)


def test_only_the_first_changes_are_shown_in_full(here: Path) -> None:
    def act() -> None:
        for n in range(20):
            Path(f"n{n:02}").write_text("x\n")

    came = found(here, {}, act).changes
    assert [bool(each.diff) for each in came] == [True] * copying.MAX_DIFFS + [False] * (
        20 - copying.MAX_DIFFS
    )


# What was read


@pytest.mark.parametrize(
    ("act", "read"),
    [
        (lambda: None, []),
        (lambda: Path("a.txt").read_text(), ["a.txt"]),
        (lambda: Path("sub/c.txt").read_text(), ["sub/c.txt"]),
        (lambda: Path("b.txt").read_text(), []),
        (lambda: (Path("a.txt").stat(), list(Path().iterdir())), [""]),
        (lambda: list(Path("sub").iterdir()), ["sub"]),
        (lambda: shutil.copy("a.txt", "x"), ["a.txt"]),
        (lambda: Path("a.txt").rename("x"), ["a.txt"]),
        (lambda: Path("a.txt").unlink(), ["a.txt"]),
        (lambda: Path("a.txt").write_text("x"), ["a.txt"]),
        (
            in_turn(Path("a.txt").read_text, lambda: os.utime("a.txt", ns=(1_000_000_000, 1))),
            ["a.txt"],
        ),
    ],
)
def test_marked_files_count_as_read_only_where_they_were(
    here: Path, act: Callable[[], object], read: list[str]
) -> None:
    copy = rehearsed(here, BEFORE, act, ("a.txt", "sub/c.txt", "not-there", ".git/x"))
    assert find_read_paths(copy) == read
