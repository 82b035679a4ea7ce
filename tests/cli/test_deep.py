"""`deskhand deep`: how far the work is that goes on by itself."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner, Result

from deskhand.cli.root import cli
from deskhand.config.config import read_settings
from deskhand.config.statements import load_statements
from deskhand.store.sqlite import SqliteStore
from deskhand.tools.queries import import_tasks
from deskhand.types.commit import Commit
from deskhand.types.events import (
    AnyEvent,
    CommandRun,
    MessageReceived,
    ModelReplied,
    OptionsSet,
    TurnEnded,
)
from deskhand.types.identity import Address, Principal
from deskhand.types.messages import Message, Text, Usage
from deskhand.types.options import SessionOptions
from deskhand.types.tasks import Task, TaskStatus

OWNER = Principal("owner", ("owner",))
PLACE = Address("terminal", chat="x")
SAID = MessageReceived(2, OWNER, PLACE, Message("user", (Text("do it"),)), "1")
REPLY = ModelReplied(Message("assistant", (Text("so"),)), "scripted/x", "stop", Usage(1_000, 234))


def _deep(home: Path, *args: str) -> Result:
    env = {"DESKHAND_HOME": str(home), "HOME": str(home)}
    return CliRunner().invoke(cli, ("deep", *args), env=env, prog_name="deskhand")


def _happened(home: Path, session: str, *events: AnyEvent, tasks: tuple[Task, ...] = ()) -> None:
    async def main() -> None:
        settings = read_settings(None, {"DESKHAND_HOME": str(home), "HOME": str(home)})
        settings.home.make_folder(settings.home.state)
        store = SqliteStore(settings.home.database, load_statements())
        await store.commit(Commit(session, 1, 1.0, events))
        await store.change(import_tasks(session, tasks, 1.0))
        await store.close()

    anyio.run(main)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    tasks = (
        Task(1, "one", status="completed"),
        Task(2, "two", status="in_progress", active="Doing two"),
    )
    deep = OptionsSet(1, OWNER, SessionOptions(mode="deep_work"))
    _happened(tmp_path, "default/terminal:taxes", deep, SAID, REPLY, tasks=tasks)
    goal = CommandRun(1, OWNER, "goal", "two pages")
    _happened(tmp_path, "default/terminal:book", goal, SAID, REPLY, TurnEnded("done", (2,)))
    return tmp_path


def test_all_and_one(home: Path) -> None:
    assert [line.split("\t") for line in _deep(home).stdout.splitlines()] == [
        ["book", "-", "goal: two pages", "1,234", "498,766", "it rests"],
        ["taxes", "50 % (1/2)", "#2 Doing two", "1,234", "1,498,766", "it is at work"],
    ]
    assert _deep(home, "taxes").stdout == (
        "Deep work: 50 % (1 of 2 tasks); it is at work.\nNow: #2 Doing two\n"
        "1,234 of 1,500,000 tokens are used, 1,498,766 are left.\n[x] #1 one\n[>] #2 two\n"
    )
    assert _deep(home, "book").stdout == (
        "Goal: two pages\nWorked on again 0 of 20 times, 1,234 of 500,000 tokens used; it rests.\n"
    )
    assert "To continue this work: deskhand serve" in _deep(home, "book").stderr
    found = json.loads(_deep(home, "--json").stdout)
    assert [(each["session"], each["state"], each["used"]) for each in found] == [
        ("default/terminal:book", "resting", 0 + 1_234),
        ("default/terminal:taxes", "working", 1_234),
    ]


def test_followed_to_its_end(home: Path) -> None:
    tasks = (Task(1, "one", status="completed"),)
    deep = OptionsSet(1, OWNER, SessionOptions(mode="deep_work"))
    _happened(
        home, "default/terminal:done", deep, SAID, REPLY, TurnEnded("done", (2,)), tasks=tasks
    )
    found = _deep(home, "done", "--follow")
    assert (
        found.stdout == "100 %  1/1  all tasks are done; 1,234 of 1,500,000 tokens\n"
        and found.exit_code == 0
    )


@pytest.mark.parametrize(
    ("end", "state"),
    [
        (CommandRun(3, OWNER, "stop", "turn"), "stopped"),
        (TurnEnded("done", (2,)), "blocked"),
        (TurnEnded("stopped", (2,)), "resting"),
        (
            ModelReplied(
                Message("assistant", (Text("x"),)), "scripted/x", "stop", Usage(2_000_000, 0)
            ),
            "spent",
        ),
    ],
)
def test_what_goes_on_no_more_is_followed_no_longer(
    tmp_path: Path, end: AnyEvent, state: str
) -> None:
    """Also for programs: an object a line, and what is said to people beside it."""
    (tmp_path / "deskhand.yaml").write_text("deep_work: {compactions: 0}\n")
    status: TaskStatus = "blocked" if state == "blocked" else "pending"
    deep = OptionsSet(1, OWNER, SessionOptions(mode="deep_work"))
    ended = () if isinstance(end, TurnEnded) else (TurnEnded("done", (2,)),)
    _happened(
        tmp_path,
        "default/terminal:it",
        deep,
        SAID,
        REPLY,
        end,
        *ended,
        tasks=(Task(1, "one", status=status),),
    )
    found = _deep(tmp_path, "it", "--follow", "--json")
    assert [json.loads(line)["state"] for line in found.stdout.splitlines()] == [
        state
    ] and found.exit_code == 0
    assert "It has stopped. To continue it, write in that conversation." in found.stderr
    assert "deskhand serve" not in found.stderr


def test_where_there_is_nothing(home: Path, tmp_path: Path) -> None:
    assert (
        "No long-running work. Start it in a conversation: /deep REQUEST"
        in _deep(tmp_path / "other").stdout
    )
    _happened(home, "default/terminal:plain", SAID, REPLY)
    assert "plain has no long-running work." in _deep(home, "plain").stdout
    assert "It does not continue by itself." in _deep(home, "plain", "--follow").stdout
    assert _deep(home, "--follow").exit_code == 2
