"""`deskhand subagents`: what is at work, and how it is stopped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import anyio
from click.testing import CliRunner, Result

from deskhand.cli.root import cli
from deskhand.config.statements import load_statements
from deskhand.store.queries import tasks_of_subagent
from deskhand.store.sqlite import SqliteStore
from deskhand.subagents.queries import TaskName, TaskPlace, add_task, mark_given
from deskhand.types.identity import Address, Principal
from deskhand.types.labels import LOCAL
from deskhand.types.subagents import SubagentTask, TaskRequest, subagent_session

OWNER = Principal("owner", ("owner",))
HERE = Address("terminal", chat="main")
PARENT = "default/terminal:main"
REQUEST = TaskRequest(
    principal=OWNER,
    task="look",
    label=LOCAL,
    root=PARENT,
    people=HERE,
    address=HERE,
    path=("explore: look",),
)


def run(home: Path, *args: str) -> Result:
    env = {"DESKHAND_HOME": str(home), "HOME": str(home)}
    return CliRunner().invoke(cli, ("subagents", *args), env=env, prog_name="deskhand")


async def fill(home: Path, ids: Sequence[str]) -> None:
    home.mkdir(exist_ok=True)
    (home / "state").mkdir()
    store = SqliteStore(home / "state" / "deskhand.db", load_statements())
    for at, id_ in enumerate(ids):
        place = TaskPlace(PARENT, subagent_session("default", id_))
        row = add_task(TaskName(id_), place, REQUEST, 1000.0 + at)
        await store.change((row,))
        (task,) = await tasks_of_subagent(store, id_)
        await store.change((mark_given(task),))
    await store.close()


async def find(home: Path, id_: str) -> SubagentTask:
    store = SqliteStore(home / "state" / "deskhand.db", load_statements())
    (task,) = await tasks_of_subagent(store, id_)
    await store.close()
    return task


def test_they_are_listed_and_stopped(tmp_path: Path) -> None:
    home = tmp_path / "home"
    anyio.run(fill, home, ("aaaa1111", "aabb2222"))
    listed = run(home).output
    assert "aaaa1111" in listed and "explore: look" in listed and "main" in listed
    found = json.loads(run(home, "list", "--json").output)
    assert [each["id"] for each in found] == ["aabb2222", "aaaa1111"]
    several = run(home, "stop", "aa")
    assert several.exit_code == 2 and "several sub-agents match 'aa'" in several.output
    assert run(home, "stop", "aabb").output == "Stopped aabb2222: explore: look\n"
    assert anyio.run(find, home, "aabb2222").stop == "stopped by owner"
    assert "no sub-agent at work matches 'x'" in run(home, "stop", "x").output


def test_none_are_at_work(tmp_path: Path) -> None:
    home = tmp_path / "home"
    anyio.run(fill, home, ())
    assert run(home).output == (
        "No sub-agents are at work. To include those that ended, add --all.\n"
    )
    assert run(home, "list", "--all").output == "There are no sub-agents.\n"
