"""What an agent changed in the Python of the service is taken back when the service no longer
starts with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import anyio
import pytest

from deskhand.config.config import Home, read_settings
from deskhand.config.statements import load_statements
from deskhand.store.sqlite import SqliteStore
from deskhand.supervision.lock import Holder, acquire_lock
from deskhand.testing.temporary_home import TemporaryHome
from deskhand.types.commit import Change

from .test_serve import DESKHAND, Served

GOOD = """from deskhand.tools.define import tool
from deskhand.tools.plugin import Plugin
from deskhand.types.labels import LOCAL


@tool(reads=LOCAL)
async def greet() -> str:
    \"\"\"Greets.\"\"\"
    return "hello"


class Mine(Plugin):
    def get_tools(self):
        return [greet]


plugin = Mine
"""
SESSION = "default/terminal:1"
BREAKS = {
    "ends the process": "import os\nos._exit(3)\n",
    "does not load": GOOD + "\nimport no_such_module\n",
}


class Workshop(Served):
    """A home in which an agent may write plugins, and one that works."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.write("defaults: {models: [scripted/echo]}\nplugins: [mine]\n")
        self.plugin = home / "plugins" / "mine.py"
        self.plugin.parent.mkdir(mode=0o700)
        self.plugin.write_text(GOOD)
        self.plugin.chmod(0o600)

    def edited(self, *texts: str) -> None:
        """The agent writes the plugin so, one after the other."""

        async def main() -> None:
            desk = TemporaryHome(self.home)
            async with desk.running() as app:
                row = ("default", str(self.plugin.parent), 1, 0.0, "owner")
                await app.store.change([Change("path_grant_set", row)])
                await desk.call(app, "write_file", path="notes.py", content="print('mine')")
                for text in texts:
                    said = await desk.call(app, "write_file", path=str(self.plugin), content=text)
                    assert self.plugin.read_text() == text, said

        anyio.run(main)

    def owner_reads(self) -> str:
        return self.run("sessions", "show", SESSION).stdout


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    shop = Workshop(tmp_path / "home")
    with shop.serving():
        pass
    return shop


@pytest.mark.parametrize("how", BREAKS)
def test_it_starts_again_without_what_broke_it(workshop: Workshop, how: str) -> None:
    workshop.edited(GOOD.replace("hello", "good day"), BREAKS[how])
    before = workshop.last_start.read_text()
    with workshop.serving() as process:
        workshop.until(lambda: workshop.last_start.read_text() != before)
        notes = workshop.home / "agents" / "default" / "workspace" / "notes.py"
        assert notes.read_text() == "print('mine')", (
            "what the service does not run is none of its business"
        )
        assert workshop.plugin.read_text() == GOOD, (
            "all of them, up to what the last good start had"
        )
        workshop.until(lambda: "I undid my changes" in workshop.owner_reads())
        said = " ".join(workshop.owner_reads().split())
        assert str(workshop.plugin) in "".join(said.split()) and "deskhand undo --redo" in said
        wanted = (
            "it did not load"
            if "load" in how
            else "the service did not start (it exited with code 3)"
        )
        assert wanted in said
        assert said.count("I undid my changes") == 1 and process.poll() is None
        assert "greet" in workshop.run("tools").stdout
    assert "undid change" in (workshop.home / "logs" / "deskhand.log").read_text()
    redone = workshop.run("undo", "--redo")
    assert redone.returncode == 0 and workshop.plugin.read_text() != GOOD, (
        "what was written is not lost"
    )


def test_what_a_person_wrote_stays(workshop: Workshop) -> None:
    """Nobody takes back what the agent did not do, nor what worked at the last good start."""
    workshop.plugin.write_text(BREAKS["ends the process"])
    ended = workshop.run("serve")
    assert ended.returncode == 3 and workshop.plugin.read_text() == BREAKS["ends the process"]
    workshop.plugin.write_text(GOOD)
    workshop.edited(GOOD + "# mine\n")
    before = workshop.last_start.read_text()
    with workshop.serving():
        workshop.until(lambda: workshop.last_start.read_text() != before)
    workshop.plugin.write_text(BREAKS["ends the process"])
    assert workshop.run("serve").returncode == 3
    assert workshop.plugin.read_text() == BREAKS["ends the process"]


def test_who_goes_on_there_learns_of_it(workshop: Workshop) -> None:
    workshop.edited(BREAKS["ends the process"])

    async def owed() -> None:
        settings = read_settings(None, workshop.env)
        store = SqliteStore(settings.home.database, load_statements())
        who = json.dumps({"id": "owner", "roles": ["owner"]}).encode()
        place = json.dumps({"channel": "terminal", "chat": "1"}).encode()
        row = ("k", SESSION, who, place, "try the tool", b'{"integrity": "tool_local"}', "run", 0.0)
        await store.change([Change("restart_add", row)])
        await store.close()

    anyio.run(owed)
    with workshop.serving():
        workshop.until(
            lambda: "You said: [after the restart] try the tool" in workshop.owner_reads()
        )
        said = " ".join(workshop.owner_reads().partition("You said:")[2].split())
        assert "try the tool [I undid my changes in" in said


HANGS = {
    "in Python": "while True:\n    pass\n",
    "deaf": (
        "import signal, time\nsignal.signal(15, lambda *_: None)\nwhile True:\n    time.sleep(9)\n"
    ),
}


@pytest.mark.parametrize("how", HANGS)
def test_a_start_that_hangs_has_failed(workshop: Workshop, how: str) -> None:
    workshop.write("defaults: {models: [scripted/echo]}\nplugins: [mine]\nstart_s: 3\n")
    workshop.edited(HANGS[how])
    before = workshop.last_start.read_text()
    with workshop.serving() as process:
        workshop.until(lambda: workshop.last_start.read_text() != before)
        assert workshop.plugin.read_text() == GOOD
        said = " ".join(workshop.owner_reads().split())
        assert "the service did not start (it was not ready 3 s after its start)" in said
        workshop.until(lambda: "greet" in workshop.run("tools").stdout)
        assert process.poll() is None


def test_a_slow_start_of_which_nothing_is_to_be_taken_back_is_left_alone(
    workshop: Workshop,
) -> None:
    slow = GOOD + "\nimport time\ntime.sleep(4)\n"
    workshop.write("defaults: {models: [scripted/echo]}\nplugins: [mine]\nstart_s: 2\n")
    workshop.plugin.write_text(slow)
    before = workshop.last_start.read_text()
    with workshop.serving() as process:
        workshop.until(lambda: workshop.last_start.read_text() != before)
        assert workshop.plugin.read_text() == slow
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30)
    assert "it was not ready 2 s after its start. Waiting for it." in out


@pytest.mark.parametrize("waits", [False, True])
def test_a_worker_says_when_it_is_ready(tmp_path: Path, waits: bool) -> None:
    """It drives, or it waits for another that does."""
    served = Served(tmp_path / "home")
    (told, tells) = os.pipe()
    home = Home(served.home)
    home.make_folder(home.state)
    held = acquire_lock(home.lock, Holder(os.getpid(), 0.0)) if waits else None
    argv = [*DESKHAND, "serve", "--worker", str(os.getpid())]
    env = served.env | {"DESKHAND_READY": str(tells)}
    with subprocess.Popen(argv, env=env, pass_fds=(tells,)) as worker:
        os.close(tells)
        assert os.read(told, 1) == b"1" and os.read(told, 1) == b""
        if waits:
            assert not served.last_start.exists()
        else:
            served.until(served.last_start.exists)
        assert worker.poll() is None
        worker.terminate()
    os.close(told)
    if held is not None:
        os.close(held)
