"""A home that an older Deskhand left is taken over whole: conversations, jobs, settings, users,
memories, a question that is still open, and what can be undone.

`homes/` has one such home for each time that much was rebuilt, named by its date. It was made by a
scripted model: in `default/1` it wrote notes.txt twice and remembered a fact; in `careful/2` it
waits for a yes to a command.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import apsw
import pytest

from deskhand.config.config import read_settings
from deskhand.models.base import Request
from deskhand.runtime.app import Parts, open_app
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.clock import Shift, ShiftedClock
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.events import ApprovalAsked, ToolFinished, TurnEnded
from deskhand.types.identity import Address, Answer, Inbound, Principal
from deskhand.types.messages import Message

HOMES = sorted((Path(__file__).parent / "homes").glob("*.tar.gz"))
PLACE = Path("/var/tmp/deskhand-upgrade")
"""Where the homes were made: what can be undone names the folder that it is in."""
Cli = Callable[..., str]


@pytest.fixture(params=HOMES, ids=lambda path: path.name.partition(".")[0])
def home(request: pytest.FixtureRequest) -> Iterator[Path]:
    with PLACE.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(PLACE, ignore_errors=True)
        with tarfile.open(request.param) as archive:
            archive.extractall(PLACE, filter="data")
        keep_undo(PLACE / "home")
        yield PLACE / "home"
        shutil.rmtree(PLACE)


def keep_undo(home: Path) -> None:
    """What was done there was done just now: after some weeks it could not be undone any more."""
    db = apsw.Connection(str(home / "state" / "deskhand.db"))
    db.execute("UPDATE effect SET at = ?", (time.time() - 60,)).fetchall()
    db.close()


def clock_before(event: ApprovalAsked, tmp_path: Path) -> ShiftedClock:
    """It shows an hour before nobody may answer that any more."""
    shift = Shift(tmp_path / "shift")
    shift.set(event.until - 3600 - time.time())
    return ShiftedClock(shift)


async def open_question(database: Path) -> ApprovalAsked:
    store = SqliteStore(database)
    events = [each.event for each in await store.events("careful/2")]
    await store.close()
    (ask,) = [event for event in events if isinstance(event, ApprovalAsked)]
    return ask


@pytest.fixture
def cli(home: Path) -> Cli:
    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "deskhand", *arguments]
        environment = {"DESKHAND_HOME": str(home), "PATH": "/usr/bin:/bin", "HOME": str(home)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_everything_is_there(home: Path, cli: Cli) -> None:
    assert "Shopping" in cli("sessions", "list")
    assert "You said: Hello, my name is Gavin." in cli("sessions", "export", "default/1")
    assert "brief\ton\t" in cli("jobs", "list")
    assert "gavin\tmember\ttelegram:12345678" in cli("users", "list")
    assert "Gavin likes green." in cli("memories", "list")
    assert cli("config", "get", "defaults.posture").strip() == "workspace-free"
    assert (home / "deskhand.yaml").read_text().startswith("# The comment of a person.")


def test_what_was_done_can_be_undone(home: Path, cli: Cli) -> None:
    notes = home / "agents" / "default" / "workspace" / "notes.txt"
    assert notes.read_text() == "milk, bread\n"
    cli("undo", "2")
    assert notes.read_text() == "milk\n"
    cli("undo", "--redo")
    assert notes.read_text() == "milk, bread\n"
    cli("undo", "2")
    assert not notes.exists()


def script(request: Request) -> Message:
    return say("That is done.")


async def test_an_open_question_can_be_answered(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = read_settings(environment={"DESKHAND_HOME": str(home), "PATH": "/usr/bin:/bin"})
    owner = Principal("owner", ("owner",))
    ask = await open_question(settings.home.database)
    clock = clock_before(ask, tmp_path)
    parts = Parts(lambda name: ScriptedModel(script), authorize=lambda inbound: owner, clock=clock)
    async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        events = [each.event for each in await app.store.events("careful/2")]
        answer = Answer(ask.ask_id, "yes")
        now = clock.now()
        await app.door.submit(
            Inbound("yes", Address("terminal", chat="2"), "owner", now, answer, "careful/2")
        )
        with anyio.fail_after(30):
            while not any(isinstance(event, TurnEnded) for event in events):
                await anyio.sleep(0.02)
                events = [each.event for each in await app.store.events("careful/2")]
        (finished,) = [event for event in events if isinstance(event, ToolFinished)]
        assert finished.result.status == "ok"
        assert (home / "agents/careful/workspace/got.txt").read_text() == "over\n"
        tasks.cancel_scope.cancel()
