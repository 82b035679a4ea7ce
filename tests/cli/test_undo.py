"""`deskhand undo`: what agents did to files and key-values, listed and put back from the shell."""

from __future__ import annotations

from pathlib import Path

import anyio
import msgspec
import pytest
from click.testing import CliRunner

from deskhand.cli.root import cli
from deskhand.config.statements import load_statements
from deskhand.store.blobs import Blobs
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.tools import owner_context
from deskhand.tools.base import Done
from deskhand.tools.files import write_file
from deskhand.workspace.scope import SandboxProvider, ToolScopes


def desk(home: Path, *args: str, code: int = 0) -> str:
    result = CliRunner().invoke(
        cli, ["undo", *args], env={"DESKHAND_HOME": str(home)}, prog_name="deskhand"
    )
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


async def wrote(home: Path, *files: tuple[str, str]) -> None:
    """As an agent writes them, in a process that is over."""
    workspace = home / "agents/default/workspace"
    workspace.mkdir(parents=True, exist_ok=True)
    (home / "state").mkdir(exist_ok=True)
    store = SqliteStore(home / "state/deskhand.db", load_statements())
    reaches = ToolScopes(store, Blobs(home / "state/blobs"), SandboxProvider())
    for path, content in files:
        reach = await reaches.open_scope("default", workspace)
        context = owner_context(reach)
        done = await write_file.run(
            msgspec.Raw(msgspec.json.encode({"path": path, "content": content})), context
        )
        assert isinstance(done, Done)
        await store.change(done.changes)
    reaches.close()
    await store.close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    anyio.run(wrote, tmp_path, ("a", "one\n"), ("a", "two\n"), ("b", "x\n"))
    return tmp_path


def test_list_undo_and_redo(home: Path) -> None:
    folder = home / "agents/default/workspace"
    lines = [line.split("\t") for line in desk(home, "--list").splitlines()]
    assert [(each[0], each[2], each[5]) for each in lines] == [
        ("3", "t", "write_file: b"),
        ("2", "t", "write_file: a"),
        ("1", "t", "write_file: a"),
    ]
    assert desk(home, "2") == "3  Put back: b.\n2  Put back: a.\n"
    assert (folder / "a").read_text() == "one\n" and not (folder / "b").exists()
    assert desk(home, "--redo") == "5  Put back: a.\n" and (folder / "a").read_text() == "two\n"
    assert [
        each["undone_at"] is None
        for each in msgspec.json.decode(desk(home, "--list", "--json", "3"))
    ]
    assert desk(home, "--change", "2", "-s", "t", code=2).startswith(
        "deskhand: --change cannot be combined"
    )
    assert "there is nothing to undo" in desk(home, "-s", "other", code=1)
    assert "there is no change 99" in desk(home, "--change", "99", code=1)
    assert "is undone already" in desk(home, "--change", "3", code=1)


def test_what_was_changed_since_needs_force(home: Path) -> None:
    path = home / "agents/default/workspace/a"
    path.write_text("mine\n")
    said = desk(home, "--change", "2", code=1)
    assert said.startswith(
        "2  Not undone, write_file: a: a was changed since, outside of Deskhand.\n"
    )
    assert "deskhand undo --change 2 --force" in said and path.read_text() == "mine\n"
    assert (
        desk(home, "--change", "2", "--force") == "2  Put back: a.\n"
        and path.read_text() == "one\n"
    )
    desk(home, "--redo")
    assert path.read_text() == "mine\n"


def test_the_diff_of_a_change(home: Path) -> None:
    assert desk(home, "--diff", "2") == "2  write_file: a\n    @@ -1 +1 @@\n    -one\n    +two\n"
    found = msgspec.json.decode(desk(home, "--diff", "1", "--json"))
    assert found["files"][0]["diff"] == "--- /dev/null\n+++ a\n@@ -0,0 +1 @@\n+one"
    assert (home / "agents/default/workspace/a").read_text() == "two\n"
    assert "there is no change 99" in desk(home, "--diff", "99", code=1)
