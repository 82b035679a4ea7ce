"""Programs see what lies in the workspace, and nothing else, whatever is exchanged meanwhile; and
whose word it is."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.tools.program.copying import copy_source
from deskhand.tools.program.source import Source
from deskhand.tools.program.survey import survey_source
from deskhand.tools.watch import FileWatch
from deskhand.types.commit import Change
from deskhand.types.errors import ToolError
from deskhand.types.labels import LOCAL, Label

from .conftest import Programs, label_of, told
from .folder import source_of

PAGE = Label("untrusted", source="https://page.test/")
WORD = "kanari"
TRIES = 300


@contextmanager
def exchanging(one: Path, other: Path) -> Iterator[None]:
    """What a command in the background does: the two names change places as fast as they can."""
    libc, over = ctypes.CDLL(None, use_errno=True), threading.Event()

    def swap() -> None:
        while not over.is_set():
            libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A workspace, with a link that leads out of it."""
    for folder in ("work/d", "home"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "home" / "key").write_text(f"{WORD}\n")
    (tmp_path / "work" / "d" / "key").write_text("mine\n")
    (tmp_path / "work" / ".l").symlink_to(tmp_path / "home")
    return tmp_path


def test_a_folder_that_becomes_a_link_is_not_followed(place: Path) -> None:
    source = source_of(place / "work")
    with exchanging(place / "work" / "d", place / "work" / ".l"):
        for number in range(TRIES):
            assert WORD not in survey_source(source, "what is in d/key", "read")[0]
            copy = place / f"copy{number}"
            copy.mkdir()
            with suppress(ToolError):
                copy_source(source, copy)
            assert all(WORD not in path.read_text() for path in copy.rglob("*") if path.is_file())


def test_a_folder_that_becomes_a_link_when_it_was_listed(place: Path) -> None:
    """At the worst moment: it has been listed, and is a link when its files are read."""
    source = source_of(place / "work")
    seen = list[str]()
    for each in source.iter_entries():
        if each.path == "d/key":
            (place / "work" / "d").rename(place / "work" / "e")
            (place / "work" / "d").symlink_to(place / "home")
            with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
                source.read("d/key")
            with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
                source.copy("d/key", place / "key")
            with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
                source.list_names("d")
        seen.append(each.path)
    assert seen == ["d", "d/key"] and not (place / "key").exists()


def test_where_it_was_read_is_told(place: Path) -> None:
    """Its folder changes places with another one, and back: the place is that of the file that was
    read."""
    (place / "work" / "x").mkdir()
    (place / "work" / "x" / "key").write_text(f"{WORD}\n")
    source = Source(os.open(place / "work", os.O_RDONLY | os.O_DIRECTORY))
    inode = (place / "work" / "x" / "key").stat().st_ino
    with exchanging(place / "work" / "d", place / "work" / "x"):
        for _ in range(TRIES):
            with suppress(OSError):  # it was moved just then
                found = source.read("d/key")
                assert (found.place.inode == inode) == (WORD in found.data.decode())


async def mark(programs: Programs, name: str, label: Label = PAGE) -> None:
    row = (str(programs.hands.folder / name), msgspec.json.encode(label), "s", 0.0)
    await programs.hands.store.change((Change("file_label_set", row),))


@pytest.mark.parametrize("program", ["say(files())", "say(read('w.txt'))", "say(files('in'))"])
async def test_what_is_being_written_is_judged(programs: Programs, program: str) -> None:
    """A command that has read a page is not over yet, so that nothing of it is marked."""
    hands = programs.hands
    hands.write("in/plain.txt", b"plain\n")
    await anyio.sleep(0.05)
    hands.label = PAGE
    async with await FileWatch.start(await hands.context(), "make"):
        hands.write("w.txt", f"{WORD}\n".encode())
        hands.write(f"in/{WORD}.txt", b"x\n")
        hands.label = LOCAL
        done = await programs.rehearsed(program)
        assert WORD in told(done)["said"]
        assert label_of(done).integrity == "untrusted"


@pytest.mark.parametrize("program", ["say(files())", "append('b.txt', str(files()))"])
async def test_the_name_of_a_folder_is_judged(programs: Programs, program: str) -> None:
    hands = programs.hands
    hands.write(f"{WORD}/a.txt", b"plain\n")
    await mark(programs, WORD)
    hands.label = LOCAL
    done = await programs.rehearsed(program)
    assert label_of(done).integrity == "untrusted"
