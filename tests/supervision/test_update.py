"""`deskhand update` in a real checkout, with a real service: what works takes the place of the old
version, and what does not leaves everything as it was."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import apsw
import pytest

from deskhand.store.schema import load_migrations

ROOT = Path(__file__).parents[2]
MIGRATION = "src/deskhand/store/migrations/{:04}_later.sql"
NEWEST = load_migrations()[-1][0]
SECONDS = 60.0
pytestmark = pytest.mark.timeout(400)


class World:
    """A repository that others publish in, a checkout of it, and a home."""

    def __init__(self, place: Path) -> None:
        self.published = place / "published"
        self.checkout = place / "checkout"
        self.home = place / "home"
        self.command = str(self.checkout / ".venv" / "bin" / "deskhand")
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ["HOME"],
            "DESKHAND_HOME": str(self.home),
        }
        self.home.mkdir()
        config = {"defaults": {"models": ["scripted/echo"]}, "web": {"port": 0}}
        (self.home / "deskhand.yaml").write_text(json.dumps(config))

        git(place, "clone", "--quiet", "--depth=1", f"file://{ROOT}", str(self.published))
        shutil.rmtree(self.published / "src")
        skip = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / "src", self.published / "src", ignore=skip)
        self.publish({})
        git(place, "clone", "--quiet", str(self.published), str(self.checkout))
        subprocess.run(["make", "--silent", ".venv/.run"], cwd=self.checkout, check=True)

    def publish(self, files: dict[str, str]) -> str:
        """Commit these files, or what is added to the changelog."""
        for name, text in files.items():
            (self.published / name).write_text(text)
        git(self.published, "add", "--all")
        git(self.published, "commit", "--quiet", "--allow-empty", "--message=next")
        return git(self.published, "rev-parse", "HEAD")

    def read(self, name: str) -> str:
        return (self.published / name).read_text()

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.command, *words],
            env=self.env,
            cwd=self.home,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    @contextmanager
    def serving(self) -> Iterator[subprocess.Popen[bytes]]:
        with subprocess.Popen(
            [self.command, "serve"],
            env=self.env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                until(lambda: (self.home / "state" / "last_start").exists())
                yield process
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(30)

    @property
    def commit(self) -> str:
        return git(self.checkout, "rev-parse", "HEAD")

    @property
    def schema(self) -> int:
        db = apsw.Connection(str(self.home / "state" / "deskhand.db"))
        row = db.execute("SELECT max(version) FROM schema_version").fetchone()
        db.close()
        assert row is not None and isinstance(row[0], int)
        return row[0]

    def heard(self) -> list[str]:
        """What people wrote, as the log of the conversations has it."""
        listed = json.loads(self.run("sessions", "list", "--json").stdout)
        return sorted(each["title"] for each in listed)


def git(folder: Path, *words: str) -> str:
    name = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    done = subprocess.run(
        ["git", *name, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def until(true: Callable[[], object]) -> None:
    give_up = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < give_up
        time.sleep(0.05)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_newer_version_takes_the_place_of_the_old_one(world: World) -> None:
    """While the service works: also one that changes the database."""
    assert world.run("update", "--check").stdout == "Deskhand is up to date.\n"
    new = world.publish(
        {
            MIGRATION.format(NEWEST + 1): "CREATE TABLE later(x INTEGER);\n",
            "CHANGELOG.md": world.read("CHANGELOG.md").replace(
                "## Unreleased\n", "## Unreleased\n\nIt can fly.\n", 1
            ),
        }
    )
    with world.serving() as service:
        assert world.run("ask", "before").stdout == "You said: before\n"
        old = world.commit
        checked = world.run("update", "--check")
        assert checked.returncode == 1
        assert f"{old[:8]} -> {new[:8]}, 1 commit." in checked.stdout
        assert "  It can fly.\n" in checked.stdout and world.commit == old

        done = world.run("update", "--yes")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.endswith(f"Updated to {new[:8]}.\n")
        assert (world.commit, world.schema) == (new, NEWEST + 1)
        assert service.poll() is None
        assert world.run("ask", "after").stdout == "You said: after\n"
        assert {"before", "after"} <= {*world.heard()}
    assert git(world.checkout, "worktree", "list").count("\n") == 0


def test_one_that_does_not_answer_is_not_installed(world: World) -> None:
    world.publish({"src/deskhand/cli/ask.py": "1 / 0\n"})
    with world.serving() as service:
        assert world.run("ask", "before").returncode == 0
        old = world.commit
        done = world.run("update", "--yes")
        assert done.returncode == 1
        assert "not updated: deskhand failed" in done.stderr
        assert "ZeroDivisionError" in done.stderr and "Nothing was changed" in done.stderr
        assert world.commit == old and service.poll() is None
        assert world.run("ask", "after").stdout == "You said: after\n"


BROKEN = ("    app.supervised, app.on_up", "    1 / 0\n    app.supervised, app.on_up")


def test_one_with_which_the_service_does_not_start_goes_again(world: World) -> None:
    broken = world.read("src/deskhand/runtime/worker.py").replace(*BROKEN, 1)
    world.publish({"src/deskhand/runtime/worker.py": broken})
    with world.serving():
        assert world.run("ask", "before").returncode == 0
        old = world.commit
        done = world.run("update", "--yes")
        assert done.returncode == 1
        assert f"did not start, so {old[:8]} is back. Start it with: deskhand serve" in done.stderr
        assert world.commit == old
    (world.home / "state" / "last_start").unlink()
    with world.serving():
        assert world.run("ask", "after").stdout == "You said: after\n"
        assert {"before", "after"} <= {*world.heard()}


def test_one_that_has_changed_the_database_stays(world: World) -> None:
    """The old version does not know it, and nothing that was stored is thrown away."""
    broken = world.read("src/deskhand/runtime/worker.py").replace(*BROKEN, 1)
    new = world.publish(
        {
            MIGRATION.format(NEWEST + 1): "CREATE TABLE later(x INTEGER);\n",
            "src/deskhand/runtime/worker.py": broken,
        }
    )
    with world.serving():
        assert world.run("ask", "before").returncode == 0
        done = world.run("update", "--yes")
    assert done.returncode == 1
    assert "It has changed the database, so" in done.stderr and "cannot come back" in done.stderr
    assert (world.commit, world.schema) == (new, NEWEST + 1)
    assert {"before"} <= {*world.heard()}


def test_what_is_going_on_does_not_go_on_in_the_copy(world: World) -> None:
    """A turn that is open is not driven by the trial: it would be done twice."""
    asked = list[str]()
    over = threading.Event()

    class Hanging(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            over.wait(SECONDS)

    with ThreadingHTTPServer(("127.0.0.1", 0), Hanging) as model:
        threading.Thread(target=model.serve_forever, daemon=True).start()
        config = {
            "defaults": {"models": ["fake/x"]},
            "providers": {"fake": {"base_url": f"http://127.0.0.1:{model.server_port}/v1"}},
            "web": {"port": 0},
        }
        (world.home / "deskhand.yaml").write_text(json.dumps(config))
        world.publish({"README.md": "new\n"})
        with (
            world.serving() as service,
            subprocess.Popen([world.command, "ask", "hello"], env=world.env) as person,
        ):
            until(lambda: asked)
            service.kill()
            person.kill()
        done = world.run("update", "--yes")
        over.set()
        model.shutdown()
    assert (done.returncode, done.stderr) == (0, "")
    assert len(asked) == 1


def test_what_a_person_changed_is_left_alone(world: World) -> None:
    world.publish({"README.md": "new\n"})
    old = world.commit
    readme = world.checkout / "README.md"
    readme.write_text("mine\n")
    refused = world.run("update", "--yes")
    assert refused.returncode == 1 and "has changes of yours (README.md)" in refused.stderr
    git(world.checkout, "commit", "--quiet", "--all", "--message=mine")
    refused = world.run("update", "--yes")
    assert refused.returncode == 1 and "has commits of yours" in refused.stderr
    assert readme.read_text() == "mine\n"
    git(world.checkout, "reset", "--quiet", "--hard", old)
    refused = world.run("update", "--to", "nowhere")
    assert refused.returncode == 1 and "there is no version 'nowhere'" in refused.stderr
    assert world.run("update", "--to", old).stdout == f"{old} is not newer than what runs.\n"
