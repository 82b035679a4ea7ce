"""Four MCP servers that others have written, two from PyPI and two from npm, used in conversations.
They are installed by `make test-all`; no package is fetched here."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from deskhand.mcp.setup import make_program_config
from deskhand.testing.temporary_home import TemporaryHome
from deskhand.types.messages import Image

from .working import desk_of, running, tools_of

ROOT = Path(__file__).parents[2]
PYPI = ROOT / ".venv-mcp" / "bin"
NPM = ROOT / "requirements" / "mcp_servers" / "node_modules" / ".bin"


def program(*argv: object, **more: Any) -> dict[str, Any]:
    """As `deskhand mcp add NAME -- …` sets it up."""
    made: dict[str, Any] = msgspec.to_builtins(make_program_config([*map(str, argv)], **more))
    return made


def desk(home: Path, **servers: Any) -> TemporaryHome:
    return desk_of(home, mcp=servers, policy=[{"tool": "mcp*", "verdict": "allow"}])


async def test_the_time_server(tmp_path: Path) -> None:
    found = desk(tmp_path, time=program(PYPI / "mcp-server-time"))
    async with running(found) as app:
        assert {"mcp__time__get_current_time", "mcp__time__convert_time"} <= tools_of(app)
        told = await found.call(
            app,
            "mcp__time__convert_time",
            source_timezone="Europe/Berlin",
            time="12:00",
            target_timezone="Asia/Tokyo",
        )
        assert "Asia/Tokyo" in told and ("19:00" in told or "20:00" in told)
        wrong = await found.call(app, "mcp__time__get_current_time", timezone="Nowhere/No")
        assert "Nowhere" in wrong or "timezone" in wrong.lower()


async def test_the_git_server_sees_its_folder_alone(tmp_path: Path) -> None:
    repository = tmp_path / "work"
    repository.mkdir()
    for command in (
        ["git", "init", "-q", "-b", "main"],
        ["git", "config", "user.email", "a@example.com"],
        ["git", "config", "user.name", "A"],
    ):
        subprocess.run(command, cwd=repository, check=True)
    (repository / "a.txt").write_text("one\n")
    subprocess.run(["git", "add", "."], cwd=repository, check=True)
    subprocess.run(["git", "commit", "-qm", "the first"], cwd=repository, check=True)
    (repository / "a.txt").write_text("two\n")

    home = tmp_path / "home"
    home.mkdir()
    server = program(PYPI / "mcp-server-git", "--repository", repository)
    found = desk(home, git=server)
    async with running(found) as app:
        told = await found.call(app, "mcp__git__git_diff_unstaged", repo_path=str(repository))
        assert "+two" in told
        log = await found.call(app, "mcp__git__git_log", repo_path=str(repository))
        assert "the first" in log
        other = await found.call(app, "mcp__git__git_status", repo_path=str(tmp_path))
        assert "clean" not in other
        # It was shown read-only: what it would write does not happen.
        await found.call(app, "mcp__git__git_add", repo_path=str(repository), files=["a.txt"])
        staged = subprocess.run(
            ["git", "diff", "--cached"], cwd=repository, check=True, capture_output=True
        )
        assert staged.stdout == b""


async def test_the_filesystem_server_writes_where_it_may(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.txt").write_text("milk")
    (tmp_path / "secret.txt").write_text("canary")
    home = tmp_path / "home"
    home.mkdir()
    server = program(NPM / "mcp-server-filesystem", notes, folders=[f"{notes}:rw"], trusted=True)
    found = desk(home, files=server)
    async with running(found) as app:
        path = str(notes / "a.txt")
        assert "milk" in await found.call(app, "mcp__files__read_text_file", path=path)
        await found.call(app, "mcp__files__write_file", path=str(notes / "b.txt"), content="bread")
        assert (notes / "b.txt").read_text() == "bread"
        told = await found.call(
            app, "mcp__files__read_text_file", path=str(tmp_path / "secret.txt")
        )
        assert "canary" not in told and "denied" in told.lower()


async def test_the_everything_server(tmp_path: Path) -> None:
    server = program(NPM / "mcp-server-everything", elicitation=True, sampling=True, trusted=True)
    found = desk(tmp_path, all=server)
    async with running(found) as app:
        assert "Echo: hello" in await found.call(app, "mcp__all__echo", message="hello")
        assert "5" in await found.call(app, "mcp__all__get-sum", a=2, b=3)
        await found.call(app, "mcp__all__get-tiny-image")
        log = [each.event for each in await app.store.events("default/terminal:1")]
        assert any(isinstance(part, Image) for each in log for part in _parts(each))
        structured = await found.call(app, "mcp__all__get-structured-content", location="New York")
        assert json.loads(structured)
        long = await found.call(
            app, "mcp__all__trigger-long-running-operation", duration=1, steps=2
        )
        assert "completed" in long.lower()
        resources = await found.call(app, "mcp_read", server_name="all", action="resources")
        assert "demo://" in resources or "test://" in resources
        prompts = await found.call(app, "mcp_read", server_name="all", action="prompts")
        assert "(" in prompts

        sampled = await found.call(
            app, "mcp__all__trigger-sampling-request", prompt="hi", maxTokens=50
        )
        assert "done" in sampled


def _parts(event: Any) -> Any:
    return getattr(getattr(event, "result", None), "parts", ())


@pytest.fixture(autouse=True)
def _are_installed() -> None:
    for each in (PYPI / "mcp-server-time", NPM / "mcp-server-everything"):
        assert shutil.which(each), "make test-all installs it"
