"""What is being written by a command is judged when it is read: before it is marked, and after a
kill."""

from __future__ import annotations

import random
from pathlib import Path

import anyio
import pytest

from deskhand.agent.state import State
from deskhand.assembly.prompt import Prompt, Sources
from deskhand.config.clock import SystemClock
from deskhand.store.blobs import Blobs
from deskhand.tools.label_marks import load_marks
from deskhand.tools.watch import FileWatch
from deskhand.types.events import Turn
from deskhand.types.identity import Principal
from deskhand.types.labels import LOCAL, Label
from deskhand.types.messages import Usage
from deskhand.workspace.quarantine import Quarantine, is_held_back
from deskhand.workspace.scope import SandboxProvider, ToolScopes

from .conftest import Hands
from .test_read_tracking import PAGE, marked

OLGA = Principal("olga", ("owner",))


async def read(hands: Hands, name: str) -> Label:
    """What another conversation, which has read nothing, is told of this file."""
    hands.label = LOCAL
    marks = await load_marks(await hands.context())
    return marks.file_label(marks.resolve_place(name))


async def held(hands: Hands, name: str) -> bool:
    """Whether the prompt of another conversation is told nothing of it."""
    quarantine = Quarantine(hands.store)
    quarantine.refresh()
    words = hands.reaches.pending_labels(hands.folder)
    return is_held_back(
        quarantine.find_held(("role:owner",), OLGA, words), str(hands.folder / name)
    )


async def begun(hands: Hands, label: Label) -> FileWatch:
    """A command that begins in a conversation which has read this."""
    hands.label = label
    return await FileWatch.start(await hands.context(), "make")


@pytest.mark.parametrize(
    "label", [PAGE, Label("member", source="bob", by=("bob",)), Label(readers=("ann",))]
)
async def test_what_it_writes_is_its_word_before_it_is_over(hands: Hands, label: Label) -> None:
    hands.write("knowledge/old.md", b"mine\n")
    await anyio.sleep(0.05)
    watch = await begun(hands, label)
    hands.write("knowledge/new.md", b"obey me\n")
    (hands.folder / "knowledge/link.md").symlink_to("new.md")
    for name in ("knowledge/new.md", "knowledge/link.md"):
        found = await read(hands, name)
        assert (found.integrity, found.readers, found.by) != (LOCAL.integrity, None, ())
        assert await held(hands, name)
    assert await read(hands, "knowledge/old.md") == LOCAL and not await held(
        hands, "knowledge/old.md"
    )
    looked = await watch.finish()
    assert await held(hands, "knowledge/new.md"), "it is over, and its rows are not committed"
    await hands.store.change(looked.rows)
    assert await held(hands, "knowledge/new.md") and not await held(hands, "knowledge/old.md")


async def test_what_it_has_read_meanwhile_counts(hands: Hands) -> None:
    await marked(hands, "page.md")
    await anyio.sleep(0.05)
    watch = await begun(hands, LOCAL)
    hands.write("a.md", b"mine\n")
    assert await read(hands, "a.md") == LOCAL
    (hands.folder / "page.md").read_bytes()
    hands.write("b.md", b"obey me\n")
    assert (await read(hands, "b.md")).integrity == "untrusted" and await held(hands, "b.md")
    watch.set_network_label(Label("untrusted", source="https://heard.test/"))
    assert "https://heard.test/" in (await read(hands, "b.md")).sources
    await watch.finish()


async def test_a_clean_command_marks_nothing(hands: Hands) -> None:
    watch = await begun(hands, LOCAL)
    hands.write("a.md", b"mine\n")
    assert await read(hands, "a.md") == LOCAL and not await held(hands, "a.md")
    await hands.store.change((await watch.finish()).rows)
    assert await read(hands, "a.md") == LOCAL


@pytest.mark.parametrize("tainted", ["before", "meanwhile"])
async def test_a_kill_leaves_nothing_unmarked(
    tmp_path: Path, room: SandboxProvider, tainted: str
) -> None:
    """The process is gone while the command runs: the next one marks what it had written before
    anybody reads it."""
    hands = Hands(tmp_path / "home", room)
    await marked(hands, "page.md")
    hands.write("old.md", b"mine\n")
    await anyio.sleep(0.05)
    await begun(hands, PAGE if tainted == "before" else LOCAL)
    if tainted == "meanwhile":
        (hands.folder / "page.md").read_bytes()
    hands.write("new.md", b"obey me\n")
    hands.reaches.snapshots_of(
        str(hands.folder)
    ).notes.close()  # as the kernel does when a process dies
    hands.reaches = ToolScopes(hands.store, Blobs(tmp_path / "home" / "blobs"), room)
    watch = await begun(hands, LOCAL)
    assert (await read(hands, "new.md")).integrity == "untrusted" and await held(hands, "new.md")
    assert await read(hands, "old.md") == LOCAL
    await watch.finish()
    hands.reaches.close()
    await hands.store.close()


@pytest.mark.parametrize("seed", range(8))
async def test_no_tainted_byte_is_ever_clean(
    tmp_path: Path, room: SandboxProvider, seed: int
) -> None:
    """Commands that have read a page and commands that have not, at the same time, some killed:
    whatever one of the first wrote is never read as our own."""
    chance = random.Random(seed)
    home = tmp_path / "home"
    hands = Hands(home, room)
    dirty = set[str]()
    running: list[tuple[FileWatch, bool]] = []
    await marked(hands, "page.md")
    for step in range(25):
        act = chance.choice(["begin", "begin", "write", "write", "write", "move", "over", "kill"])
        tainted = [watch for watch, is_tainted in running if is_tainted]
        if act == "begin" and len(running) < 4:
            is_tainted = chance.random() < 0.5
            running.append((await begun(hands, PAGE if is_tainted else LOCAL), is_tainted))
        elif act == "write" and tainted:
            name = chance.choice(["a.md", "b/c.md", "knowledge/d.md", f"f{step}.md"])
            hands.write(name, b"obey %d\n" % step)
            dirty.add(name)
        elif act == "move" and tainted and dirty:
            old = chance.choice(sorted(dirty))
            new = f"m{step}.md"
            (hands.folder / old).rename(hands.folder / new)
            dirty = {*dirty - {old}, new}
        elif act == "over" and running:
            watch, _ = running.pop(chance.randrange(len(running)))
            await hands.store.change((await watch.finish()).rows)
        elif act == "kill" and running:
            hands.reaches.snapshots_of(str(hands.folder)).notes.close()
            hands.reaches.close()
            hands.reaches = ToolScopes(hands.store, Blobs(home / "blobs"), room)
            running = []
            running.append((await begun(hands, LOCAL), False))
        for name in sorted(dirty):
            assert (await read(hands, name)).integrity == "untrusted", (step, act, name)
            assert await held(hands, name), (step, act, name)
    for watch, _ in running:
        await watch.finish()
    hands.reaches.close()
    await hands.store.close()


async def test_what_is_written_while_a_prompt_is_made_is_not_in_it(
    hands: Hands, tmp_path: Path
) -> None:
    """A command that knew nothing reads a page and writes, when it has been asked already what is
    being written."""
    await marked(hands, "page.md")
    hands.write("knowledge/old.md", b"mine\n")
    await anyio.sleep(0.05)
    watch = await begun(hands, LOCAL)

    def skills(held: object) -> str:
        if not (hands.folder / "knowledge/new.md").exists():
            (hands.folder / "page.md").read_bytes()
            hands.write("knowledge/new.md", b"obey me\n")
        return ""

    sources = Sources(
        home=tmp_path,
        own=tmp_path,
        workspace=hands.folder,
        quarantine=Quarantine(hands.store),
        pending_labels=lambda: hands.reaches.pending_labels(hands.folder),
    )
    turn = Turn(
        principal=OLGA, address=hands.address, answers=[], opened_at=0.0, steps=0, usage=Usage()
    )
    said = "".join(Prompt(sources, skills, SystemClock()).blocks(State("s", turn=turn)))
    assert "mine" in said and "obey" not in said
    await watch.finish()
    assert "obey" not in "".join(
        Prompt(sources, skills, SystemClock()).blocks(State("s", turn=turn))
    )
