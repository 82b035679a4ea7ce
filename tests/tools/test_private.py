"""What is about the owner stays where it is, and theirs, whatever a command makes of its names."""

from __future__ import annotations

from pathlib import Path

import pytest

from deskhand.memory.project_write import replace_if_unchanged
from deskhand.tools.files import write_file
from deskhand.tools.label_marks import OWNER_READERS, load_marks
from deskhand.tools.paths import Workspace
from deskhand.tools.shell import shell
from deskhand.tools.watch import FileWatch
from deskhand.types.labels import LOCAL, Label

from .conftest import Hands

SECRET = b"her secret\n"
WAYS = {
    "moved": "mv memory m2; ln -s m2 memory",
    "moved, by its whole path": 'mv memory m2; ln -s "$PWD/m2" memory',
    "copied": "cp -r memory m2; rm -rf memory; ln -s m2 memory",
    "emptied": "rm -rf memory; mkdir m2; ln -s m2 memory",
    "outside": "rm -rf memory; ln -s /tmp memory",
    "another spelling": "mkdir m2; ln -s m2 Memory",
    "a file": "mv USER.md u.md; ln -s u.md USER.md",
    "a file that was not there": "ln -s note.txt MEMORY.md",
    "in it": "mkdir m2; ln -s ../m2 memory/sub",
    "in it, over another": "mkdir m2; ln -s m2 way; ln -s ../way memory/sub",
}


def furnished(hands: Hands) -> dict[str, bytes]:
    files = {"USER.md": SECRET, "memory/MEMORY.md": SECRET, "memory/deep/old.md": SECRET}
    for name, data in files.items():
        hands.write(name, data)
    hands.write("note.txt", b"plain\n")
    return files


async def readers(hands: Hands, name: str) -> tuple[str, ...] | None:
    hands.label = LOCAL
    marks = await load_marks(await hands.context())
    return marks.file_label(marks.resolve_place(name)).readers


@pytest.mark.parametrize(
    "label", [LOCAL, Label("member", source="bob", by=("bob",))], ids=["the owner", "a member"]
)
@pytest.mark.parametrize("way", WAYS)
async def test_its_names_are_no_links(hands: Hands, way: str, label: Label) -> None:
    before = furnished(hands)
    hands.label = label
    said = await hands(shell, command=WAYS[way])
    assert "was restored" in said
    for path in [
        hands.folder / name for name in ("USER.md", "MEMORY.md", "Memory", "memory", "memory/sub")
    ]:
        assert not path.is_symlink()
    assert {name: (hands.folder / name).read_bytes() for name in before} == before
    for path in hands.folder.rglob("*"):
        if path.is_file() and path.read_bytes() == SECRET:
            assert await readers(hands, str(path)) == OWNER_READERS, path


@pytest.mark.parametrize(
    "line", ["ln -s MEMORY.md memory/latest.md", "rm -r memory", "mv memory old", "rm USER.md"]
)
async def test_what_leads_nowhere_else_stays(hands: Hands, line: str) -> None:
    furnished(hands)
    assert "restored" not in await hands(shell, command=line)
    for path in hands.folder.rglob("*"):
        if path.is_file() and path.read_bytes() == SECRET:
            assert await readers(hands, str(path)) == OWNER_READERS, path


@pytest.mark.parametrize(
    "path", ["memory/diary.md", "{folder}/memory/diary.md", "./x/../memory/diary.md"]
)
async def test_what_is_written_by_its_name_is_theirs_wherever_it_lies(
    hands: Hands, path: str
) -> None:
    """A command that is not over yet has made it a link."""
    furnished(hands)
    (hands.folder / "x").mkdir()
    hands.label = LOCAL
    async with await FileWatch.start(await hands.context(), "make"):
        (hands.folder / "memory").rename(hands.folder / "m2")
        (hands.folder / "memory").symlink_to("m2")
        await hands(write_file, path=path.format(folder=hands.folder), content="her secret, too")
        assert (hands.folder / "m2/diary.md").read_text() == "her secret, too"
        assert await readers(hands, "m2/diary.md") == OWNER_READERS
    assert await readers(hands, "m2/diary.md") == OWNER_READERS
    assert not (hands.folder / "memory").is_symlink()


async def test_what_is_kept_in_a_file_is_judged_by_where_it_is_written(
    hands: Hands, tmp_path: Path
) -> None:
    furnished(hands)
    (hands.folder / "memory").rename(hands.folder / "m2")
    (hands.folder / "memory").symlink_to("m2")
    told = list[str]()
    with Workspace(str(hands.folder)) as files:
        assert replace_if_unchanged(files, "memory/day.md", None, b"1", told.append)
        assert replace_if_unchanged(files, "memory/day.md", b"1", b"2", told.append)
    assert set(told) == {str(hands.folder / "m2/day.md")}
