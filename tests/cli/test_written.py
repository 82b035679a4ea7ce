"""`deskhand written`: what agents changed in folders of the owner, reviewed from the shell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from click.testing import CliRunner, Result

from deskhand.cli.root import cli
from deskhand.config.statements import load_statements
from deskhand.store.blobs import Blobs
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.tools import owner_context
from deskhand.tools.watch import FileWatch
from deskhand.workspace.scope import SandboxProvider, ToolScopes


class Owner:
    """A home, a folder that an agent may write, and the commands that the owner gives."""

    def __init__(self, home: Path) -> None:
        self.home = home / "deskhand"
        self.repo = home / "src/app"
        self.repo.mkdir(parents=True)
        (self.repo / "Makefile").write_text("all:\n\techo built\n")

    def __call__(self, *args: str, code: int = 0, typed: str = "") -> str:
        return self.run(*args, code=code, typed=typed).stdout

    def run(self, *args: str, code: int = 0, typed: str = "") -> Result:
        env = {"DESKHAND_HOME": str(self.home)}
        result = CliRunner().invoke(cli, args, env=env, prog_name="deskhand", input=typed)
        assert result.exit_code == code, (result.output, result.exception)
        return result

    def agent(self, script: str, *, killed: bool = False) -> None:
        """As a command of an agent does it, in a process that is over."""
        anyio.run(self._agent, script, killed)

    async def _agent(self, script: str, killed: bool) -> None:
        workspace = self.home / "agents/default/workspace"
        workspace.mkdir(parents=True, exist_ok=True)
        store = SqliteStore(self.home / "state/deskhand.db", load_statements())
        reaches = ToolScopes(store, Blobs(self.home / "state/blobs"), SandboxProvider())
        reach = await reaches.open_scope("default", workspace)
        context = owner_context(reach)
        watch = await FileWatch.start(context, script)
        subprocess.run(["/bin/bash", "-c", script], cwd=self.repo, check=False)
        if not killed:
            await store.change((await watch.finish()).rows)
        if reach.shadow is not None:
            reach.shadow.notes.close()
            reach.shadow.for_folder(str(self.repo)).notes.close()
        reaches.close()
        await store.close()


@pytest.fixture
def owner(tmp_path: Path) -> Owner:
    made = Owner(tmp_path)
    said = made("allow", "path", str(made.repo), "--write")
    assert f"See and review what it changes there: deskhand written {made.repo}" in said
    return made


def test_review_and_accept(owner: Owner) -> None:
    assert owner("written").startswith("Nothing to review")
    assert owner("written", "--check") == "Nothing to review.\n"
    owner.agent("printf '\\techo evil\\n' >> Makefile; echo x > 'a b'; git init -q .")
    said = owner.run("written", str(owner.repo)).output
    assert f"{owner.repo}/Makefile  changed  (" in said and "    +\techo evil" in said
    assert (
        f"{owner.repo}/a b  made" in said
        and "of git's own files" in said
        and "add --accept" in said
    )
    assert f"{owner.repo}/.git/HEAD" not in said and f"{owner.repo}/.git/HEAD" in owner(
        "written", "--all", "--names"
    )
    assert owner("written", "--check", code=1).endswith("to review\n")
    assert owner("written", str(owner.home)).startswith("Nothing")
    assert "choose one" in owner.run("written", "--accept", "--discard", code=2).stderr
    owner("written", "--accept", code=1, typed="n\n")
    assert "Accepted: " in owner("written", "--accept", typed="y\n")
    assert owner("written").startswith("Nothing to review")


def test_put_back(owner: Owner) -> None:
    owner.agent("printf x > Makefile; mkdir -p d; echo x > d/conftest.py; chmod 755 d/conftest.py")
    assert f"Put back in {owner.repo}: 2." in owner(
        "written", f"{owner.repo}/d", "--discard", "--yes"
    )
    assert [each.name for each in owner.repo.iterdir()] == ["Makefile"]
    facts: dict[str, Any] = msgspec.json.decode(owner("written", "--json"))
    assert [(each["path"], each["did"]) for each in facts["files"]] == [
        (f"{owner.repo}/Makefile", "changed")
    ]
    owner("written", "--discard", "-y")
    assert (owner.repo / "Makefile").read_text() == "all:\n\techo built\n"
    assert owner("written").startswith("Nothing to review")


def test_what_a_killed_command_did_is_found(owner: Owner) -> None:
    owner.agent("echo evil > .envrc; echo evil > Makefile", killed=True)
    said = owner("written")
    assert f"{owner.repo}/Makefile  changed" in said and "may contain untrusted content" in said
    assert not (owner.repo / ".envrc").exists()


def test_names_that_are_no_text_and_controls(owner: Owner) -> None:
    owner.agent("printf x > $'\\xff'; printf x > $'\\e[31mred'; ln -s /etc l")
    said = owner("written")
    assert "\\xff  made" in said and "\x1b" not in said and "A link to /etc." in said
    assert "Accepted: 3." in owner("written", "-y", "--accept")


def test_outside_is_for_writing(owner: Owner) -> None:
    assert "add --write" in owner.run("allow", "path", str(owner.repo), "--outside", code=2).stderr
    owner("allow", "path", str(owner.repo), "--write", "--outside")
    assert "also after reading untrusted content" in owner("allow", "list")
    owner("allow", "path", str(owner.repo), "--write")
    assert "from outside" not in owner("allow", "list")


def test_check_guards_what_is_run(owner: Owner) -> None:
    env = {**os.environ, "DESKHAND_HOME": str(owner.home)}
    deskhand = Path(sys.executable).parent / "deskhand"
    script = f"{deskhand} written . --check && make"

    def make() -> str:
        return subprocess.run(
            ["/bin/sh", "-c", script], cwd=owner.repo, env=env, capture_output=True, text=True
        ).stdout

    assert "built" in make()
    owner.agent("printf 'all:\\n\\techo evil\\n' > Makefile")
    assert make() == "1 to review\n"
