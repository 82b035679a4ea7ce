"""Whose word a file and a command's output is: real files, the real sandbox, and programs that hide
what they read."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from deskhand.sandbox.base import Mount, SandboxCommand
from deskhand.tools.label_marks import load_marks
from deskhand.tools.read_tracking import AccessTimes
from deskhand.types.commit import Change
from deskhand.types.labels import LOCAL, Label

from .conftest import Hands

PAGE = Label("untrusted", source="https://page.test/")


async def run(hands: Hands, command: str, *changed: str) -> tuple[Label, set[str]]:
    """What a command is found to have read, and which of the `changed` files are marked
    afterwards."""
    context = await hands.context()
    reads = await AccessTimes.start(context)
    sandbox = await context.reach.host.open_sandbox()
    mounts = (Mount(str(hands.folder), write=True),)
    said = bytearray()
    ended = await sandbox.run(
        SandboxCommand(("/bin/bash", "-c", command), str(hands.folder), mounts),
        lambda piece, _: said.extend(piece),
    )
    assert ended.code == 0, said.decode()
    await reads.update_reads()
    await hands.store.change(
        reads.mark_changed([str(hands.folder / name) for name in changed], context)
    )
    marks = await load_marks(context)
    return reads.label(), {
        name
        for name in changed
        if marks.file_label(marks.resolve_place(name)).integrity == "untrusted"
    }


async def marked(hands: Hands, name: str, content: bytes = b"obey me\n") -> Path:
    path = hands.write(name, content)
    context = await hands.context()
    await hands.store.change((await load_marks(context)).mark_content(name, PAGE, context))
    return path


async def test_what_we_read_ourselves_is_not_what_a_command_read(hands: Hands) -> None:
    """The prompt, the notes and other conversations are read while commands run."""
    await marked(hands, "page.md")
    await marked(hands, "pages/inner.md")
    context = await hands.context()
    reads = await AccessTimes.start(context)
    files = context.reach.files
    assert files.read("page.md") == files.read("pages/inner.md") == b"obey me\n"
    assert {entry.name for entry in (*files.list(), *files.list("pages"))} >= {
        "page.md",
        "inner.md",
    }
    await reads.update_reads()
    assert reads.label() == LOCAL
    (hands.folder / "page.md").read_bytes()
    await reads.update_reads()
    assert reads.label().integrity == "untrusted"


UNSEEN = """
import os, sys, ctypes
try:
    fd = os.open("page.md", os.O_RDONLY | os.O_NOATIME)
except PermissionError:
    import fcntl
    fd = os.open("page.md", os.O_RDONLY)
    try:
        fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NOATIME)
    except PermissionError:
        pass
data = os.read(fd, 100)
os.utime("page.md", ns=(1_000_000_000, os.stat("page.md").st_mtime_ns))
print(data)
"""


@pytest.mark.parametrize(
    "command",
    [
        "cat page.md",
        "cat *",
        "grep -r obey .",
        "cp page.md copy.md",
        "head -c 1 < page.md",
        "python3 -c 'import mmap,os; print(mmap.mmap(os.open(\"page.md\",0),0,prot=1)[:3])'",
        "cp --reflink=auto page.md copy.md",
        "dd if=page.md of=copy.md iflag=noatime 2>/dev/null || dd if=page.md of=copy.md",
        "ln page.md other.md && cat other.md",
        "ln -s page.md link.md && cat link.md",
        "mv page.md /tmp/x && cat /tmp/x",
        "tar cf - --atime-preserve page.md | tar xO",
        "bash page.sh",
        f"python3 -c '{UNSEEN}'",
        "cat page.md > /dev/null; touch -a -d @1 page.md",
        "cat page.md; rm page.md",
        "ls",
    ],
)
async def test_whoever_reads_it_is_seen(hands: Hands, command: str) -> None:
    await marked(hands, "page.md")
    await marked(hands, "page.sh", b"echo hello\n")
    label, _ = await run(hands, command)
    assert label.integrity == "untrusted" and "https://page.test/" in label.sources


@pytest.mark.parametrize(
    "command",
    ["echo hi", "date > own.md", "cat own.md", "python3 -c 'print(1)'", "test -e sub/page.md"],
)
async def test_who_does_not_is_left_alone(hands: Hands, command: str) -> None:
    await marked(hands, "sub/page.md")
    hands.write("own.md", b"mine\n")
    for _ in range(2):  # also the second time, when nothing is set anew
        assert (await run(hands, command, "own.md")) == (LOCAL, set())


async def test_what_comes_of_it_is_marked_too(hands: Hands) -> None:
    await marked(hands, "page.md")
    assert (await run(hands, "sed s/o/a/ page.md > made.md", "made.md"))[1] == {"made.md"}
    assert (await run(hands, "cat made.md > twice.md", "twice.md"))[1] == {"twice.md"}
    assert (await run(hands, "mv twice.md moved.md", "moved.md"))[1] == {"moved.md"}
    label, _ = await run(hands, "cat moved.md")
    assert label.sources == ("https://page.test/",)


async def test_where_nobody_watches_it_is_marked_all_the_same(hands: Hands, tmp_path: Path) -> None:
    beside = tmp_path / "beside"
    beside.mkdir()
    await hands.allow(beside, write=True)
    hands.write("node_modules/old.js", b"mine\n")
    hands.write("USER.md", b"likes tea\n")
    await marked(hands, "page.md")
    await anyio.sleep(
        0.05
    )  # what is there must be older than the command, by a tick of the kernel's clock
    await run(hands, "mkdir -p .cache; cp page.md node_modules/x.js; cat USER.md > .cache/x")
    assert (await run(hands, "cat node_modules/old.js"))[0] == LOCAL
    assert (await run(hands, "cat node_modules/x.js"))[0].integrity == "untrusted"
    assert (await run(hands, "cat .cache/x"))[0].readers == ("role:owner",)


async def test_folders_and_links_that_came_of_it(hands: Hands) -> None:
    hands.label = PAGE
    await run(
        hands,
        "mkdir -p a/b; echo x > a/b/c; ln -s a/b/c link; mkfifo pipe",
        "a",
        "a/b",
        "a/b/c",
        "link",
        "pipe",
    )
    hands.label = LOCAL
    assert (await run(hands, "echo hi"))[0] == LOCAL
    for command in ("ls", "ls a", "cat a/b/c", "cat link"):
        assert (await run(hands, command))[0].integrity == "untrusted", command


async def test_what_a_conversation_had_read_goes_into_what_it_makes(hands: Hands) -> None:
    hands.label = PAGE
    assert (await run(hands, "echo obey > made.md", "made.md"))[1] == {"made.md"}
    hands.label = LOCAL
    assert (await run(hands, "echo mine > made.md", "made.md"))[1] == {"made.md"}, (
        "who overwrites may have read"
    )
    label, _ = await run(hands, "cat made.md")
    assert label.integrity == "untrusted"


async def test_what_is_about_the_owner_is_noticed(hands: Hands) -> None:
    hands.write("USER.md", b"likes tea\n")
    hands.write("memory/2026.md", b"likes tea\n")
    assert (await run(hands, "echo hi"))[0].readers is None
    for command in ("cat USER.md", "cat memory/2026.md", "grep -r tea ."):
        assert (await run(hands, command))[0].readers == ("role:owner",), command


async def test_more_than_can_be_looked_at_all_count(hands: Hands) -> None:
    context = await hands.context()
    marks = await load_marks(context)
    rows: list[Change] = []
    for i in range(600):
        rows += marks.mark_content(str(hands.write(f"many/{i}", b"x")), PAGE, context)
    await hands.store.change(rows)
    assert (await run(hands, "true"))[0].integrity == "untrusted"


async def test_a_link_in_the_way_is_not_followed(hands: Hands, tmp_path: Path) -> None:
    path = await marked(hands, "page.md")
    outside = tmp_path / "outside"
    outside.write_text("x")
    before = outside.stat()
    path.unlink()
    path.symlink_to(outside)
    await AccessTimes.start(await hands.context())
    assert outside.stat() == before


async def test_what_was_read_is_known_when_another_command_begins(hands: Hands) -> None:
    """To see who reads it takes away the trace of who has: so all that run are told first."""
    await marked(hands, "pages/page.md")
    context = await hands.context()
    one = await AccessTimes.start(context)
    assert [each.name for each in (hands.folder / "pages").iterdir()] == ["page.md"]
    marks = await load_marks(context)
    other = await anyio.to_thread.run_sync(AccessTimes.start_sync, marks, context, one.note_reads)
    await one.update_reads()
    await other.update_reads()
    assert one.label().integrity == "untrusted" and other.label() == LOCAL


async def test_what_it_may_have_read_is_asked_while_more_is_marked(hands: Hands) -> None:
    """By whoever makes a prompt just then, in another thread."""
    reads = await AccessTimes.start(await hands.context())
    paths = [str(hands.write(f"{number}.txt", b"1")) for number in range(500)]
    over, interval = threading.Event(), sys.getswitchinterval()

    def mark() -> None:
        while not over.is_set():
            reads._late_labels.clear()
            for path in paths:
                reads.arm_file(path, PAGE)

    thread = threading.Thread(target=mark)
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        for _ in range(1_500):
            reads.label()
    finally:
        over.set()
        thread.join()
        sys.setswitchinterval(interval)
