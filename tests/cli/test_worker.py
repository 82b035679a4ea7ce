"""`deskhand worker` beside `deskhand serve`, as they are run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from deskhand.testing.llm import FakeLLM
from deskhand.testing.postgres import open_schema, running_server

DESKHAND = (sys.executable, "-m", "deskhand")
CONFIG = """
store: {url}
providers: {{fake: {{base_url: "{llm}"}}}}
defaults: {{models: [fake/model]}}
agents: {{ann: {{}}, ben: {{}}, cal: {{on_server: true}}}}
web: {{port: 0}}
"""


class House:
    """A home whose database is PostgreSQL, and what is run in it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        home.mkdir()
        self.env = {
            "PATH": os.environ["PATH"],
            "DESKHAND_HOME": str(home),
            "HOME": str(home.parent),
        }

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*DESKHAND, *args],
            env=self.env,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
            timeout=60,
        )

    @contextmanager
    def running(self, *args: str) -> Iterator[subprocess.Popen[bytes]]:
        with subprocess.Popen(
            [*DESKHAND, *args],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                yield process
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(30)

    def shares(self) -> dict[str, list[str]]:
        """Who drives what, as `deskhand status` says."""
        shown = json.loads(self.run("status", "--json").stdout or "null")
        facts: list[dict[str, Any]] = shown["facts"] if shown else []
        detail = next((fact["detail"] for fact in facts if fact["name"] == "workers"), "")
        found = {}
        for each in detail.split("; "):
            who, _, agents = each.partition(": ")
            found["server" if who.endswith("(server)") else "worker"] = agents.split(", ")
        return found

    def until(self, true: Callable[[], bool], seconds: float = 30.0) -> None:
        give_up = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < give_up, f"not in {seconds:.0f} s: {self.shares()}"
            time.sleep(0.1)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path / "home")


def test_a_worker_needs_a_database_that_can_be_shared(house: House) -> None:
    done = house.run("worker")
    assert done.returncode == 2
    assert "needs a database that several processes can use" in done.stderr
    assert "deskhand store move" in done.stderr


def test_a_name_that_is_no_name(house: House) -> None:
    done = house.run("worker", "../x")
    assert done.returncode == 2 and "a worker cannot be called '../x'" in done.stderr


@pytest.mark.timeout(180)
async def test_agents_are_shared_and_taken_over(house: House) -> None:
    async with FakeLLM() as llm:
        with running_server() as server, open_schema(server) as url:
            (house.home / "deskhand.yaml").write_text(CONFIG.format(url=url, llm=f"{llm.url}/v1"))
            await anyio.to_thread.run_sync(share_and_take_over, house)


@pytest.mark.timeout(180)
async def test_a_server_leaves_its_agents_to_the_workers(house: House) -> None:
    async with FakeLLM() as llm:
        with running_server() as server, open_schema(server) as url:
            config = CONFIG.format(url=url, llm=f"{llm.url}/v1") + "server_drives: false\n"
            (house.home / "deskhand.yaml").write_text(config)
            await anyio.to_thread.run_sync(serve_only, house)


def serve_only(house: House) -> None:
    with house.running("serve"):
        with house.running("worker", "two"):
            house.until(lambda: house.shares() == {"server": ["cal"], "worker": ["ann", "ben"]})
            said = house.run("ask", "--agent", "ann", "hello")
            assert (said.returncode, said.stderr) == (0, "") and said.stdout.strip()
        house.until(lambda: house.shares().get("server") == ["ann", "ben", "cal"])


def share_and_take_over(house: House) -> None:
    with house.running("serve"):
        house.until(lambda: house.shares().get("server") == ["ann", "ben", "cal"])
        with house.running("worker", "two") as worker:
            house.until(lambda: house.shares().get("worker") in (["ann"], ["ben"], ["cal"]))
            (moved,) = house.shares()["worker"]
            assert moved in ("ann", "ben"), "cal is the server's"
            said = house.run("ask", "--agent", moved, "hello")
            assert (said.returncode, said.stderr) == (0, "") and said.stdout.strip()
            taken = house.run("worker", "two")
            assert taken.returncode == 1 and "is the worker 'two' of" in taken.stderr
            (child,) = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()
            os.kill(int(child), signal.SIGSTOP)
            house.until(lambda: house.shares().get("server") == ["ann", "ben", "cal"])
            said = house.run("ask", "--agent", moved, "hello again")
            assert (said.returncode, said.stderr) == (0, "") and said.stdout.strip()
            os.kill(int(child), signal.SIGCONT)
            house.until(lambda: len(house.shares().get("worker", [])) == 1)
        house.until(lambda: house.shares().get("server") == ["ann", "ben", "cal"])
