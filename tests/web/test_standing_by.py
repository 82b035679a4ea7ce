"""The page and the API of a process that does not drive yet, while the one that drives runs
commands and is killed (SIGKILL): whatever is asked, and whenever, nobody is shown what was not
marked in time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.testing.temporary_home import wait_for

from .served import Client, Served, serving

SECRET = "kanari-o"
TAINTING = Path(__file__).parents[1] / "workspace" / "tainting.py"
WRITES = {
    "a copy": "cat USER.md > copy.txt",
    "a copy of what is remembered": "cat memory/MEMORY.md > copy.txt",
    "a name": "cat USER.md > copy.txt; touch $(cat USER.md)",
    "a folder that is moved": "mkdir -p in/deep; cat USER.md > in/deep/x; mv in out; cp out/deep/x copy.txt",  # noqa: E501
    "a hard link": "cat USER.md > one.txt; ln one.txt copy.txt",
}


@contextmanager
def driving(home: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that drives, and does what it is told."""
    argv = [sys.executable, str(TAINTING), str(home)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as life:
        assert life.stdout is not None and life.stdout.readline() == "up\n"
        try:
            yield life
        finally:
            life.kill()


def tell(life: subprocess.Popen[str], command: str) -> None:
    """Begin a command that does this, and stays."""
    calls = [("shell", {"command": f"{command}; touch .gate; sleep 600"})]
    assert life.stdin is not None and life.stdout is not None
    life.stdin.write(f"!{msgspec.json.encode(calls).decode()}\n")
    life.stdin.flush()
    assert life.stdout.readline() == "over\n"


async def asked(bob: Client, work: Path) -> None:
    """All that a member can ask for of the workspace; what they ask for they know."""
    paths = ["/api/files", "/api/workspace/files", "/api/changes", "/api/files?path=out/deep"]
    for name in ("copy.txt", "one.txt", "out/deep/x", SECRET):
        paths += [
            f"/api/files/raw?path={name}",
            f"/api/files/preview?path={name}",
            f"/api/workspace/file/{name}",
        ]
    for path in paths:
        status, said = await bob.ask("GET", path)
        known = str(said).replace(f"'{SECRET}'", "") if path.endswith(SECRET) else str(said)
        assert SECRET not in known, (path, status, said)
    assert (work / "copy.txt").read_text().strip() == SECRET


async def member(served: Served) -> Client:
    await served.people.add_user("bob", "member")
    return (await served.token("bob"))[1]


def furnished(home: Path) -> Path:
    work = home / "agents/default/workspace"
    (work / "memory").mkdir(parents=True)
    for name in ("USER.md", "memory/MEMORY.md"):
        (work / name).write_text(f"{SECRET}\n")
    return work


@pytest.mark.parametrize("way", WRITES)
async def test_nothing_is_shown_before_it_is_marked(tmp_path: Path, way: str) -> None:
    home = tmp_path.resolve()
    work = furnished(home)
    config: dict[str, Any] = {"policy": [{"verdict": "allow"}]}
    with driving(home) as life:
        async with serving(home, tools=None, **config) as served:
            bob = await member(served)
            assert (await bob.ask("GET", "/api/files"))[
                0
            ] == 200  # it has looked back by now: there was nothing
            tell(life, WRITES[way])
            await wait_for(lambda: _exists(work / ".gate"))
            await asked(bob, work)
            life.kill()
            while served.app.vitals.facts() and not _drives(served):
                await asked(bob, work)
            await asked(bob, work)


async def test_the_first_request_after_a_kill(tmp_path: Path) -> None:
    home = tmp_path.resolve()
    work = furnished(home)
    config: dict[str, Any] = {"policy": [{"verdict": "allow"}]}
    with driving(home) as life:
        tell(life, WRITES["a copy"])
        await wait_for(lambda: _exists(work / ".gate"))
        life.kill()
    async with serving(home, tools=None, **config) as served:
        bob = await member(served)
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(asked, bob, work)


async def _exists(path: Path) -> bool:
    return path.exists()


def _drives(served: Served) -> bool:
    return any(fact.name == "driver" for fact in served.app.vitals.facts())
