"""Taking back what agents did: files, commands and key-values, and taking that back again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from deskhand.config.clock import RandomIds, SystemClock
from deskhand.config.statements import load_statements
from deskhand.store.blobs import Blobs
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.tools import owner_context
from deskhand.tools.base import Context, Done, Tool
from deskhand.tools.files import edit_file, write_file
from deskhand.tools.kv import kv_delete, kv_set
from deskhand.tools.queries import StoredValue, find_value, set_value, tasks_of
from deskhand.tools.task_board import task_create, task_update, todo_write
from deskhand.tools.task_graph import find_violation
from deskhand.tools.tasks import manage_tasks
from deskhand.tools.watch import FileWatch
from deskhand.types.commit import Change
from deskhand.types.errors import Refused, ToolError
from deskhand.types.events import AnyEvent, CommandRun, Undone
from deskhand.types.identity import Address, Principal
from deskhand.types.labels import Label
from deskhand.types.tasks import Task
from deskhand.workspace.scope import SandboxProvider, ToolScopes
from deskhand.workspace.undo_journal import UndoJournal, summarize_outcomes

ANN = Principal("ann", ("owner",))
BOB = Principal("bob")


class World:
    """A workspace, its key-values and the journal; `act` does one thing as a tool would."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / "workspace"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.calls = 0
        self.open()

    def open(self) -> None:
        """As after a restart: nothing is remembered but what is on disk."""
        self.store = SqliteStore(self.home / "deskhand.db", load_statements())
        self.blobs = Blobs(self.home / "blobs")
        self.store._statements["test_kv"] = "SELECT * FROM kv ORDER BY 1, 2, 3"
        self.store._statements["test_after"] = "UPDATE effect_item SET after = ? WHERE effect = ?"
        self.reaches = ToolScopes(self.store, self.blobs, SandboxProvider())
        self.effects = UndoJournal(
            self.store,
            lambda agent: self.reaches.open_scope(agent, self.folder),
            SystemClock(),
            RandomIds(),
        )

    async def close(self) -> None:
        self.reaches.close()
        await self.store.close()

    async def context(self, who: Principal = ANN, session: str = "s") -> Context:
        self.calls += 1
        reach = await self.reaches.open_scope("default", self.folder)
        key = f"{session}#{self.calls}.c{random.random()}"
        address = Address("memory", chat="1")
        return owner_context(reach, session=session, principal=who, address=address, key=key)

    async def call(
        self, tool: Tool, /, who: Principal = ANN, session: str = "s", **arguments: Any
    ) -> None:
        context = await self.context(who, session)
        done = await tool.run(msgspec.Raw(msgspec.json.encode(arguments)), context)
        assert isinstance(done, Done)
        await self.store.change(done.changes)

    async def shell(self, script: str, who: Principal = ANN, session: str = "s") -> None:
        """What the tool does, without the time that the sandbox takes."""
        async with await FileWatch.start(await self.context(who, session), script) as watch:
            subprocess.run(
                ["/bin/bash", "-c", script], cwd=self.folder, check=False, stderr=subprocess.DEVNULL
            )
            looked = await watch.finish()
        await self.store.change(looked.rows)

    async def killed(self, script: str) -> None:
        """A command that is under way when the process is killed, and the next process."""
        context = await self.context()
        await FileWatch.start(context, script)
        subprocess.run(
            ["/bin/bash", "-c", script], cwd=self.folder, check=False, stderr=subprocess.DEVNULL
        )
        assert context.reach.shadow is not None
        # as the kernel does it: the lock goes, what was noted stays
        context.reach.shadow.notes.close()
        await self.close()
        self.open()
        await self.effects.record_interrupted(["default"])

    async def undo(
        self, count: int = 1, *, again: bool = False, force: bool = False, who: Principal = ANN
    ) -> list[Any]:
        found = self.effects.list_redoable if again else self.effects.list_undoable
        live = await found(who, count)
        return [await self.effects.undo(who, effect, force=force) for effect in live]

    def hash(self) -> str:
        """Of everything in the workspace, and of all key-values."""
        found = []
        for path in sorted(self.folder.rglob("*")):
            status = path.lstat()
            what = os.fsencode(path.readlink()) if path.is_symlink() else b""
            what = path.read_bytes() if path.is_file() and not path.is_symlink() else what
            mode = 0 if path.is_symlink() else status.st_mode
            found.append((os.fsencode(path.relative_to(self.folder)), mode, what))
        kv = self.store.query_sync("test_kv")
        return sha256(repr((found, kv)).encode()).hexdigest()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path / "home")
    yield made
    await made.close()


async def test_a_file_and_back_and_forth(world: World) -> None:
    await world.call(write_file, path="d/a.txt", content="one\n")
    await world.call(edit_file, path="d/a.txt", edits=[{"old": "one", "new": "two"}])
    path = world.folder / "d/a.txt"
    path.chmod(0o640)
    (done,) = await world.undo()
    assert "a.txt was changed since, outside" in done.words and path.read_text() == "two\n"
    path.chmod(0o644)
    (done,) = await world.undo()
    assert done.words == "Put back: d/a.txt." and path.read_text() == "one\n"
    (done,) = await world.undo()
    assert set(done.back) == {"d", "d/a.txt"} and not path.parent.exists()
    assert await world.undo() == []
    for text in ("one\n", "two\n"):
        await world.undo(again=True)
        assert path.read_text() == text
    assert await world.undo(again=True) == [] and [
        each.tool for each in await world.effects.timeline(ANN)
    ] == [*("redo", "redo", "undo", "undo", "edit_file", "write_file")]
    await world.undo(2)
    assert not path.exists()


async def test_a_file_that_changed_since_is_not_overwritten(world: World) -> None:
    await world.call(write_file, path="a", content="one\n")
    await world.call(write_file, path="a", content="two\n")
    await world.shell("echo three > a")
    _, first, _ = await world.effects.list_undoable(ANN, 3)
    done = await world.effects.undo(ANN, first)
    assert (
        done.undo is None
        and "a was changed since by change 3 (shell: echo three > a)" in done.words
    )
    assert (world.folder / "a").read_text() == "three\n"
    done = await world.effects.undo(ANN, first, force=True)
    assert (world.folder / "a").read_text() == "one\n" and done.undo is not None
    await world.undo(again=True)
    assert (world.folder / "a").read_text() == "three\n"
    with pytest.raises(Refused, match="no change 99"):
        await world.effects.get(ANN, 99)


async def test_values(world: World) -> None:
    label = Label("untrusted", None, "https://x")
    before = StoredValue("k", "0", 9e9, label)
    await world.store.change((set_value("default", "n", before),))
    await world.call(kv_set, key="k", value="1", namespace="n")
    await world.call(kv_delete, key="k", namespace="n")
    await world.call(kv_delete, key="k", namespace="n")
    assert [each.tool for each in await world.effects.timeline(ANN)] == ["kv_delete", "kv_set"]
    assert [each.words for each in await world.undo(2)] == ["Put back: n/k."] * 2
    assert await find_value(world.store, "default", "n", "k", 0.0) == before
    await world.undo(again=True)
    await world.store.change((set_value("default", "n", StoredValue("k", "mine")),))
    (done,) = await world.undo()
    assert done.undo is None and "changed since" in done.words
    await world.undo(force=True)
    assert await find_value(world.store, "default", "n", "k", 0.0) == before


async def test_each_sees_their_own(world: World) -> None:
    await world.call(write_file, path="a", content="a", who=ANN)
    await world.call(write_file, path="b", content="b", who=BOB)
    assert [each.what for each in await world.effects.timeline(BOB)] == ["b"]
    assert [each.what for each in await world.effects.timeline(ANN)] == ["b", "a"]
    with pytest.raises(Refused, match="no change 1"):
        await world.effects.get(BOB, 1)
    assert [each.entry.what for each in await world.undo(9, who=BOB)] == ["b"]
    assert (world.folder / "a").exists()


async def test_the_label_of_the_bytes_comes_back_with_them(world: World) -> None:
    path = str(world.folder / "a")
    await world.call(write_file, path="a", content="evil")
    label = msgspec.json.encode(Label("untrusted", None, "https://x"))
    await world.store.change((Change("file_label_set", (path, label, "s", 0.0)),))
    await world.call(write_file, path="a", content="good")
    await world.store.change((Change("file_label_drop", (path,)),))
    await world.undo()
    assert await world.store.query("file_label_get", (path,)) == [(label,)]
    await world.undo(again=True)
    assert await world.store.query("file_label_get", (path,)) == []


async def test_what_was_not_kept_is_told(world: World) -> None:
    large = world.folder / "large"
    large.touch()
    os.truncate(large, 101 << 20)
    (world.folder / "node_modules").mkdir()
    await world.shell("rm large; echo 1 > small; rmdir node_modules")
    (done,) = await world.undo()
    assert done.words == "Put back: small. Not put back, as it was not kept: large, node_modules."
    assert not (world.folder / "small").exists() and summarize_outcomes([done]) == (
        "Put back: small. Not put back, as it was not kept: large, node_modules. `deskhand "
        "undo --redo` takes that "
        "back. Messages sent stay as they are."
    )


async def test_old_bytes_are_let_go(world: World) -> None:
    for n in range(4):
        await world.call(write_file, path="a", content=f"{n}" * 600_000)
    await world.effects.expire(world.blobs, 30, 1)
    assert [each.n for each in await world.effects.timeline(ANN)] == [4]
    await world.effects.expire(world.blobs, -1, 1)
    assert (
        await world.effects.timeline(ANN) == []
        and await world.store.query("effect_blobs", ()) == []
    )
    assert world.blobs.collect(world.store.is_blob_used, 9e9) == 3


NAMES = ("a", "b", "d/a", "d/b", "d/e/f", "g", "w x", "\udcff", "d")


def _action(dice: random.Random) -> tuple[str, str, str]:
    """A kind, a place, and something random."""
    kinds = ("write", "edit", "shell", "shell", "shell", "kv_set", "kv_set", "kv_delete")
    return dice.choice(kinds), dice.choice(NAMES), str(dice.randrange(100))


def _script(dice: random.Random, place: str, what: str) -> str:
    other = dice.choice(NAMES)
    scripts = (
        f"echo {what} > $P",
        f"echo {what} >> $P",
        "rm -rf $P",
        "mkdir -p $P",
        "mkdir -p d/e/f/g; touch d/e/f/g/h; chmod 700 d/e",
        "mv $P $O",
        "cp -r $P $O",
        f"ln -sfn {what} $P",
        f"chmod {dice.choice(('600', '644', '755', '555', '700'))} $P",
        "rm -rf d; mkdir d",
        "rm -rf ./*",
        "ln -f $P $O",
        f"truncate -s {what} $P; touch -d @1 $P",
    )
    quoted = [
        f"$'{os.fsencode(each).hex(' ')}'".replace(" ", "\\x").replace("$'", "$'\\x")
        for each in (place, other)
    ]
    return f"P={quoted[0]} O={quoted[1]}; {dice.choice(scripts)}".replace("$P", '"$P"').replace(
        "$O", '"$O"'
    )


@pytest.mark.parametrize("seed", range(12))
async def test_as_many_undos_as_actions_give_the_same_hash(world: World, seed: int) -> None:
    """And as many redos give every later one; with a restart now and then."""
    dice = random.Random(seed)
    hashes = [world.hash()]
    for _ in range(30):
        kind, place, what = _action(dice)
        if kind == "shell" and dice.random() < 0.15:
            await world.killed(_script(dice, place, what))
        elif kind == "shell" or "\udcff" in place:
            await world.shell(_script(dice, place, what))
        elif (
            kind == "write"
            and not (world.folder / place).is_dir()
            and not (world.folder / "d").is_file()
        ):
            await _tried(world, write_file, path=place, content=what)
        elif kind == "kv_set":
            await world.call(kv_set, key=place, value=what)
        elif kind == "kv_delete":
            await world.call(kv_delete, key=place)
        if dice.random() < 0.1:
            await world.close()
            world.open()
        if (now := world.hash()) != hashes[-1]:
            hashes.append(now)
    live = await world.effects.list_undoable(ANN, 1000)
    for effect, wanted in zip(live, hashes[-2::-1], strict=True):
        done = await world.effects.undo(ANN, effect)
        assert world.hash() == wanted, (effect, done)
    for wanted in hashes[1:]:
        assert len(await world.undo(again=True)) == 1 and world.hash() == wanted


CHILD = """
import anyio, os, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_undo_journal import ANN, World

async def main():
    world = World(Path(sys.argv[1]))
    effect, left = await world.effects.get(ANN, 1), [int(sys.argv[2])]

    def hook(event, arguments):
        if event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.symlink", "os.chmod", "os.link"):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    await world.effects.undo(ANN, effect)
    await world.close()

anyio.run(main)
"""  # noqa: E501


@pytest.mark.parametrize("step", [0, 3, 5, 7, 9, 11, 14, 17])
async def test_an_undo_that_is_killed_is_finished_by_the_next(tmp_path: Path, step: int) -> None:
    world = World(tmp_path / "home")
    await world.shell("mkdir -p d/e; echo 1 > d/a; echo 1 > b; echo 1 > d/e/f; ln -s x l; true")
    before = world.hash()
    await world.store.change((Change("effect_expire", (9e9, 0)), Change("effect_item_expire", ())))
    await world.close()
    (world.home / "deskhand.db").unlink()
    world.open()
    await world.shell("rm -r d l; echo 2 > b; mkdir -p n/m; echo 3 > n/m/x; chmod 600 b; ln -s y k")
    after = world.hash()
    await world.close()
    code = textwrap.dedent(CHILD).format(tests=str(Path(__file__).parent))
    ended = subprocess.run([sys.executable, "-c", code, str(world.home), str(step)], check=False)
    assert ended.returncode in (0, -signal.SIGKILL)
    world.open()
    await world.effects.record_interrupted(["default"])
    await world.undo()
    assert world.hash() == before
    await world.undo(again=True)
    assert world.hash() == after
    await world.close()


async def _tried(world: World, tool: Tool, **arguments: Any) -> None:
    with suppress(ToolError):
        await world.call(tool, **arguments)


def turn(to_n: int) -> list[AnyEvent]:
    """What /undo comes to: back to how it was after this event."""
    return [Undone(9, ANN, to_n), CommandRun(9, ANN, "undo", "", "Undone.")]


async def taken_back(world: World, to_n: int) -> str:
    (reply,) = [
        each
        for each in await world.effects.undo_turns("s", ANN, turn(to_n))
        if isinstance(each, CommandRun)
    ]
    return reply.reply


def graph_of(world: World, session: str = "s") -> dict[int, Task]:
    return tasks_of(world.store, session)


async def test_tasks_come_back_with_their_turns_alone(world: World) -> None:
    await world.call(task_create, subject="one")
    await world.call(task_create, subject="two", session="other")
    await world.call(task_create, subject="two")
    before = graph_of(world)
    await world.call(task_update, taskId=1, status="completed", owner="me")
    await world.call(task_create, subject="three")
    await world.call(kv_set, key="k", value="1")
    others = graph_of(world, "other")
    assert [each.tool for each in await world.effects.timeline(ANN)] == ["kv_set"], (
        "the list is not full of tasks"
    )
    assert await world.store.query("ledger_files", ("s", 10)) == [], "nor is that of files"
    (done,) = await world.undo(5)
    assert done.words == "Put back: k."
    assert await taken_back(world, 3) == (
        "Undone. Put back: task #3, task #1. Messages sent stay as they are."
    ), "and no redo is promised that there is not"
    after = graph_of(world)
    assert {id_: after[id_] for id_ in before} == before and after[3].status == "deleted"
    assert (
        await taken_back(world, 3)
        == "Undone. No file, key-value or task was changed by it. Messages sent stay as they are."
    )
    await world.call(task_create, subject="four")
    assert graph_of(world)[4].title == "four", "a number is never given twice"
    assert (
        await taken_back(world, 0)
        == "Undone. Put back: task #4, task #2, task #1. Messages sent stay as they are."
    )
    assert {task.status for task in graph_of(world).values()} == {"deleted"} and graph_of(
        world, "other"
    ) == others


async def test_what_became_of_a_task_since_is_left_alone(world: World) -> None:
    await world.call(task_create, subject="one")
    made = graph_of(world)[1]
    await world.store.change(
        (Change("task_put", ("s", 1, "blocked", "x", msgspec.json.encode(made), 1.0)),)
    )
    assert "Put back: task #1." in await taken_back(world, 0), (
        "the row counts, not the words beside it"
    )
    await world.call(task_create, subject="two")
    other = replace(graph_of(world)[2], status="blocked")
    await world.store.change(
        (Change("task_put", ("s", 2, "blocked", "two", msgspec.json.encode(other), 1.0)),)
    )
    assert (
        "task #2 was changed since" in await taken_back(world, 0)
        and graph_of(world)[2].status == "blocked"
    )


async def test_nothing_comes_back_that_breaks_the_graph(world: World) -> None:
    """A task was completed and opened again; taking back the opening alone would have it done
    before its subtask."""
    await world.call(task_create, subject="one")
    await world.call(task_create, subject="two")
    await world.call(task_update, taskId=1, status="completed")
    await world.call(task_update, taskId=1, status="pending")
    opened = (await world.store.query("effect_turns", ("s", 1)))[0][0]
    await world.call(manage_tasks, action="update", task_id=2, parent_id=1)
    before = graph_of(world)
    done = await world.effects.undo(ANN, await world.effects.get(ANN, opened))
    assert done.undo is None and done.words.endswith(
        "#1 would be completed before #2, which it needs."
    )
    assert graph_of(world) == before


async def test_who_changed_a_task_since_is_looked_for_in_its_conversation(world: World) -> None:
    for session in ("s", "other"):
        await world.call(task_create, subject="one", session=session)
    first = await world.effects.get(ANN, 1)
    await world.call(task_update, taskId=1, owner="me")
    now = (await world.store.query("effect_task_now", ("s", 1)))[0][0]
    await world.call(task_update, taskId=1, owner="me", session="other")
    await world.store.change((Change("test_after", (now, 4)),))  # the same task, word for word
    done = await world.effects.undo(ANN, first)
    assert done.undo is None and "task #1 was changed since by change 3 (tasks: " in done.words


@pytest.mark.parametrize("seed", range(4))
async def test_any_history_of_tasks_comes_back(world: World, seed: int) -> None:
    """After every step back: sound, and what was there then is as it was; what was not is
    deleted."""
    chance = random.Random(seed)
    states = [(0, dict[int, Task]())]
    for _ in range(40):
        graph = graph_of(world)
        ids = [*graph] or [1]
        with suppress(ToolError):
            match chance.choice(
                ("create", "create", "update", "update", "block", "todos", "delete")
            ):
                case "create":
                    await world.call(task_create, subject=f"task {len(graph)}")
                case "update":
                    status = chance.choice(("pending", "in_progress", "completed", "blocked"))
                    await world.call(task_update, taskId=chance.choice(ids), status=status)
                case "block":
                    await world.call(
                        task_update, taskId=chance.choice(ids), add_blocks=[chance.choice(ids)]
                    )
                case "todos":
                    items = [
                        {"content": f"t{n}", "activeForm": "x"} for n in range(chance.randrange(4))
                    ]
                    await world.call(todo_write, items=items)
                case _:
                    await world.call(task_update, taskId=chance.choice(ids), status="deleted")
        states.append((world.calls, graph_of(world)))
    while states:
        calls, wanted = states[chance.randrange(len(states))]
        states = [each for each in states if each[0] < calls]
        said = await taken_back(world, calls)
        assert "Not undone" not in said
        now = graph_of(world)
        assert not find_violation(now) and {id_: now[id_] for id_ in wanted} == wanted
        assert all(task.status == "deleted" for id_, task in now.items() if id_ not in wanted)
