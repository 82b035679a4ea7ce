"""Two names change places right after one of them was opened, so that it leads elsewhere when it is
judged. Whoever reads is told whose word that is which they were given, and not whose it would be by
now."""

from __future__ import annotations

import ast
import ctypes
import os
from pathlib import Path

import msgspec
import pytest

from deskhand.skills.skill import Skills, SkillSource
from deskhand.skills.tools import skill_tools
from deskhand.tools.base import Context, Done, Tool
from deskhand.tools.execute_tool import run_tool
from deskhand.tools.files import edit_file, read_file, write_file
from deskhand.tools.folders import list_files, search_files
from deskhand.tools.label_marks import load_marks
from deskhand.tools.paths import Listed, OpenedFile, Workspace, openat2_beneath
from deskhand.tools.send_file import SendFile
from deskhand.tools.symbols import find_references, list_symbols
from deskhand.tools.watch import FileWatch
from deskhand.types.commit import Change
from deskhand.types.errors import ToolError
from deskhand.types.identity import Principal, list_reader_names
from deskhand.types.labels import LOCAL, Label
from deskhand.types.messages import File, Text

from .conftest import Hands

PAGE = Label("untrusted", source="https://page.test/")
BOB = list_reader_names(Principal("bob", ("member",)))
WORD = "kanari"
SOURCE = Path(__file__).parents[2] / "src" / "deskhand"


def exchange(one: Path, other: Path) -> None:
    """Both names are there all the time, and lead to the other one from now on (renameat2,
    RENAME_EXCHANGE)."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2) == 0


class Exchanging(Workspace):
    """A workspace in which `v` and `w` change places whenever something beneath `v` was opened to
    be read: and back when it has been read (`back`), or before it is opened again."""

    def __init__(self, hands: Hands, *, back: bool) -> None:
        super().__init__(str(hands.folder), opener=self._exchanged)
        self._back = back
        self._names = (hands.folder / "v", hands.folder / "w")
        self.count = 0
        self._away = False

    def _exchanged(self, directory: int, path: str, flags: int) -> int:
        if path.split("/")[0] != "v" or flags & os.O_PATH:
            return openat2_beneath(directory, path, flags)
        self._as_before()
        descriptor = openat2_beneath(directory, path, flags)
        exchange(*self._names)
        self.count = self.count + 1
        self._away = True
        return descriptor

    def _as_before(self) -> None:
        if self._away:
            exchange(*self._names)
            self._away = False

    def read_opened(
        self, path: str, limit_bytes: int = 1000, offset: int = 0, *, to_write: bool = False
    ) -> OpenedFile:
        found = super().read_opened(path, limit_bytes, offset, to_write=to_write)
        if self._back:
            self._as_before()
        return found

    def list_folder(self, path: str = ".", limit: int = 1000) -> Listed:
        found = super().list_folder(path, limit)
        if self._back:
            self._as_before()
        return found


def furnished(hands: Hands, *, links: bool) -> None:
    """`there` holds what `mark` is for, `plain` our own; `v` and `w` lead to them, or are what they
    would lead to."""
    text = f"def {WORD}():\n    return 1\n".encode()
    names = ("there", "plain") if links else ("v", "w")
    for folder, data in zip(names, (text, b"plain\n"), strict=True):
        for name in ("m.py", f"{WORD}.py"):
            hands.write(f"{folder}/{name}", data)
    if links:
        (hands.folder / "v").symlink_to("there")
        (hands.folder / "w").symlink_to("plain")


async def mark(hands: Hands, label: Label, *, links: bool) -> None:
    for name in ("m.py", f"{WORD}.py"):
        row = (
            f"{hands.folder}/{'there' if links else 'v'}/{name}",
            msgspec.json.encode(label),
            "s",
            0.0,
        )
        await hands.store.change((Change("file_label_set", row),))


async def told(
    hands: Hands, context: Context, tool: Tool, **arguments: object
) -> list[Text | File]:
    found = await run_tool(
        tool, msgspec.Raw(msgspec.json.encode(arguments)), lambda: _given(context)
    )
    assert isinstance(found, Done)
    await hands.store.change(found.changes)
    return [part for part in found.parts if isinstance(part, Text | File)]


async def _given(context: Context) -> Context:
    return context


READS: dict[str, tuple[Tool, dict[str, object]]] = {
    "read_file": (read_file, {"path": "v/m.py"}),
    "edit_file": (edit_file, {"path": "v/m.py", "edits": [{"old": f"    {WORD} = 2", "new": "x"}]}),
    "search_files": (search_files, {"path": "v", "text": "def"}),
    "search_files for names": (search_files, {"path": "v", "text": WORD}),
    "search_files in one": (search_files, {"path": "v/m.py", "text": "def"}),
    "list_symbols": (list_symbols, {"path": "v"}),
    "find_references": (find_references, {"path": "v", "name": WORD}),
    "list_files": (list_files, {"path": "v"}),
    "a name that is nearly so": (read_file, {"path": f"v/{WORD}.p"}),
    "send_file": (SendFile(frozenset({"memory"})), {"path": "v/m.py"}),
}


@pytest.mark.parametrize("back", [True, False], ids=["and back", "once"])
@pytest.mark.parametrize("links", [True, False], ids=["links", "folders"])
@pytest.mark.parametrize("way", READS)
async def test_it_is_judged_what_was_read(hands: Hands, way: str, links: bool, back: bool) -> None:
    furnished(hands, links=links)
    await mark(hands, PAGE, links=links)
    hands.label = LOCAL
    async with await FileWatch.start(await hands.context(), "make"):  # it may move files
        context = await hands.context()
        exchanging = Exchanging(hands, back=back)
        context = msgspec.structs.replace(
            context, reach=msgspec.structs.replace(context.reach, files=exchanging)
        )
        tool, arguments = READS[way]
        parts = await told(hands, context, tool, **arguments)
        assert exchanging.count, "nothing was opened"
        if way == "send_file":  # to the owner; what it is made of decides who else may have it
            return
        said = [
            part
            for part in parts
            if isinstance(part, Text) and (WORD in part.text or way == "edit_file")
        ]
        assert said and all(part.label.integrity == "untrusted" for part in said), parts


@pytest.mark.parametrize("back", [True, False], ids=["and back", "once"])
@pytest.mark.parametrize("links", [True, False], ids=["links", "folders"])
@pytest.mark.parametrize("way", READS)
async def test_what_is_for_others_alone_is_not_told(
    hands: Hands, way: str, links: bool, back: bool
) -> None:
    furnished(hands, links=links)
    await mark(hands, Label("tool_local", ("role:owner",), "file there"), links=links)
    hands.label = LOCAL
    async with await FileWatch.start(await hands.context(), "make"):
        context = await hands.context()
        reach = msgspec.structs.replace(context.reach, files=Exchanging(hands, back=back))
        context = msgspec.structs.replace(context, reach=reach, audience=BOB)
        tool, arguments = READS[way]
        for part in await told(hands, context, tool, **arguments):
            assert not isinstance(part, File)
            told_of = (
                part.text.replace("v/m.py", "").replace(f"v/{WORD}.p", "").replace(f"'{WORD}'", "")
            )
            assert WORD not in told_of or part.label.readers is not None, (way, part)


async def test_what_is_kept_of_a_file_keeps_its_label(hands: Hands) -> None:
    """What is added to stands in the file that is written, wherever that lies by then."""
    furnished(hands, links=True)
    await mark(hands, PAGE, links=True)
    hands.label = LOCAL
    context = await hands.context()
    files = Exchanging(hands, back=False)
    context = msgspec.structs.replace(
        context, reach=msgspec.structs.replace(context.reach, files=files)
    )
    await told(hands, context, write_file, path="v/m.py", content="more", mode="append")
    marks = await load_marks(await hands.context())
    for name in ("there/m.py", "plain/m.py"):
        text = (hands.folder / name).read_text()
        label = marks.file_label(marks.resolve_place(name))
        assert WORD not in text or label.integrity == "untrusted", name


async def test_a_skill_is_judged_by_the_file_that_was_read(hands: Hands) -> None:
    """The folder of a skill changes places with one that a member has written."""
    for folder, word in (("skills/helper", "plain"), ("other", WORD)):
        hands.write(
            f"{folder}/SKILL.md", f"---\nname: helper\ndescription: {word}\n---\n{word}\n".encode()
        )
    label = Label("tool_local", by=("bob",))
    row = (f"{hands.folder}/other/SKILL.md", msgspec.json.encode(label), "s", 0.0)
    await hands.store.change((Change("file_label_set", row),))
    one = hands.folder / "skills/helper"
    other = hands.folder / "other"
    skills = Skills((SkillSource("agent", hands.folder, "skills"),))
    list_skills, _ = skill_tools(skills)
    hands.label = LOCAL
    async with await FileWatch.start(await hands.context(), "make"):
        exchange(one, other)
        skills.find()
        exchange(one, other)
        context = await hands.context()
        for part in await told(hands, context, list_skills):
            assert isinstance(part, Text)
            assert WORD not in part.text or "bob" in part.label.by


async def test_a_file_that_goes_while_it_is_read_is_read_again(hands: Hands) -> None:
    """Another one is put in its place: what was read has no name any more by which it could be
    judged."""
    hands.write("a.txt", WORD.encode())
    count = 0

    def replaced(directory: int, path: str, flags: int) -> int:
        nonlocal count
        descriptor = openat2_beneath(directory, path, flags)
        if path == "a.txt" and not count:
            count += 1
            hands.write("b.txt", b"plain")
            (hands.folder / "b.txt").rename(hands.folder / "a.txt")
        return descriptor

    with Workspace(str(hands.folder), opener=replaced) as files:
        found = files.read_opened("a.txt")
    assert (found.data, found.place.real) == (b"plain", str(hands.folder / "a.txt"))


async def test_a_file_that_is_always_replaced_is_not_read(hands: Hands) -> None:
    hands.write("a.txt", b"0")

    def replaced(directory: int, path: str, flags: int) -> int:
        descriptor = openat2_beneath(directory, path, flags)
        hands.write("b.txt", b"1")
        (hands.folder / "b.txt").rename(hands.folder / "a.txt")
        return descriptor

    with (
        Workspace(str(hands.folder), opener=replaced) as files,
        pytest.raises(ToolError, match="moved or replaced"),
    ):
        files.read_opened("a.txt")


BY_NAME = {
    "tools/label_marks.py": "where it is defined",
    "workspace/diffs.py": "what waits for a yes: before the file is read, and where there is none",
    "tools/editor_files.py": "where an editor may yet write: whoever asked for it has read nothing",
    "tools/files.py": "where there is no file: whether there is one is told to nobody who may not see it",  # noqa: E501
}
TOLD_BY_NAME = {
    "tools/execute_tool.py": "the names in a call that failed; what was read says its own label",
    "jobs/sources.py": "names that were seen when something changed",
    "workspace/undo_journal.py": "names in the journal, of which the bytes are blobs with labels of their own",  # noqa: E501
    "workspace/diffs.py": "names in the journal, of which the bytes are blobs with labels of their own",  # noqa: E501
}


@pytest.mark.parametrize(
    ("method", "known"),
    [("resolve_place", BY_NAME), ("listing_label_by_name", TOLD_BY_NAME)],
)
def test_nobody_judges_by_name_what_was_read(method: str, known: dict[str, str]) -> None:
    """`Marks` takes the place of what was read, which only whoever opened it has. Names are asked
    about where nothing was read by them."""
    used = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == method
    }
    assert used == set(known)


def test_places_are_made_by_who_opens() -> None:
    """A place that somebody else makes up would be a name again."""
    made = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Place"
    }
    assert made <= {
        "tools/paths.py",
        "tools/label_marks.py",  # by_name
        "tools/program/source.py",
        "skills/skill.py",  # of what no skill was read from
        "customtools/definitions.py",  # of what no file was read from
        "customtools/functions.py",  # the same
        "assembly/knowledge_index.py",  # of what is no topic
        "jobs/heartbeat.py",  # of a file that is not there
        "learning/notebook.py",  # of a file that is not there
    }
