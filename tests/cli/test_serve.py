"""`deskhand serve` as it is run: two processes, a terminal beside them, and how all of it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import termios
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import apsw
import msgspec
import pytest

from deskhand.testing.llm import FakeLLM
from deskhand.testing.llm_script import Behaviour, FakeCall
from deskhand.testing.telegram.server import TelegramServer

DESKHAND = (sys.executable, "-m", "deskhand")


class Served:
    """A home with the echo model, and what is run in it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.env = {
            "PATH": os.environ["PATH"],
            "DESKHAND_HOME": str(home),
            "HOME": str(home.parent),
        }
        home.mkdir()
        self.write("defaults: {models: [scripted/echo]}\n")

    def write(self, config: str) -> None:
        (self.home / "deskhand.yaml").write_text(config)

    def health(self) -> dict[str, Any]:
        """What the page says of it."""
        url = json.loads((self.home / "state" / "web.json").read_text())["url"]
        with urllib.request.urlopen(f"{url}/health", timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        argv = [*DESKHAND, *args]
        return subprocess.run(
            argv,
            env=self.env,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    @contextmanager
    def serving(self, *before: str, **env: str) -> Iterator[subprocess.Popen[str]]:
        argv = [*DESKHAND, *before, "serve"]
        pipes = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT,
        }
        with subprocess.Popen(argv, env=self.env | env, text=True, **pipes) as process:  # type: ignore[call-overload]
            try:
                self.until(self.drives)
                self.until((self.home / "state" / "web.json").exists)
                yield process
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
                    process.wait(15)

    def drives(self) -> bool:
        return self.last_start.exists()

    @property
    def last_start(self) -> Path:
        return self.home / "state" / "last_start"

    def until(self, true: Callable[[], bool]) -> None:
        for _ in range(1500):
            if true():
                return
            time.sleep(0.01)
        raise AssertionError("not in 15 s")

    def worker_of(self, parent: int) -> int:
        (child,) = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        return int(child)


@pytest.fixture
def served(tmp_path: Path) -> Served:
    return Served(tmp_path / "home")


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_it_works_and_ends_when_told(served: Served) -> None:
    with served.serving() as process:
        worker = served.worker_of(process.pid)
        assert served.run("ask", "hello", "-s", "beside").stdout == "You said: hello\n", (
            "through the same database"
        )
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=15)
    assert process.returncode == 0, out
    assert gone(worker)
    assert "Web page: http://127.0.0.1:" in out
    assert not (served.home / "state" / "startup_error.json").exists()
    assert "`deskhand serve` last started at" in served.run("doctor").stdout


@pytest.mark.parametrize(
    ("flags", "variable", "value"),
    [
        ((), "DESKHAND_VERBOSE", ""),
        (("-v",), "DESKHAND_VERBOSE", ""),
        ((), "DESKHAND_VERBOSE", "1"),
        ((), "DESKHAND_VERBOSE", "false"),
        ((), "OPERATOR_VERBOSE", "1"),
    ],
)
def test_the_log_is_shown_where_that_is_wanted(
    served: Served, flags: tuple[str, ...], variable: str, value: str
) -> None:
    with served.serving(*flags, **{variable: value}) as process:
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=15)
    assert ("INFO deskhand.runtime.worker: Driving." in out) == (bool(flags) or value == "1")
    assert (
        "INFO deskhand.runtime.worker: Driving."
        in (served.home / "logs" / "deskhand.log").read_text()
    )


def test_a_model_that_is_named_answers_also_where_a_service_runs(served: Served) -> None:
    with served.serving():
        assert served.run("ask", "-s", "talk", "hello").stdout == "You said: hello\n"
        other = served.run("ask", "-s", "talk", "-m", "scripted/tour", "hello")
        assert other.returncode == 0 and "Try: " in other.stdout, "the tour says what else there is"
        refused = served.run("ask", "-m", "nosuch/model", "hello")
        assert refused.returncode == 2 and "nosuch" in refused.stderr


def test_a_hangup_has_the_configuration_read_again_by_the_same_worker(served: Served) -> None:
    log = served.home / "logs" / "deskhand.log"
    with served.serving() as process:
        worker = served.worker_of(process.pid)
        process.send_signal(signal.SIGHUP)
        served.until(lambda: "Reloaded the configuration. Changed: nothing" in log.read_text())
        assert served.worker_of(process.pid) == worker
        served.write("defaults: {models: [scripted/echo], steps: 7}\n")
        served.until(lambda: "Reloaded the configuration. Changed: defaults" in log.read_text())
        assert served.worker_of(process.pid) == worker


def test_a_restart_is_a_new_worker_and_is_told(served: Served) -> None:
    with served.serving() as process:
        worker = served.worker_of(process.pid)
        assert (
            served.run("ask", "/restart", "-s", "here").stdout
            == "I am restarting and will write here when I am back.\n"
        )
        told = "System restarted. Send me a message to continue."
        served.until(lambda: told in served.run("sessions", "show", "here").stdout)
        assert served.worker_of(process.pid) != worker and gone(worker)


def test_only_crashes_pause_jobs_and_status_says_how_they_go_on(served: Served) -> None:
    assert served.run("jobs", "add", "look", "-p", "x", "-s", "hourly").returncode == 0
    for _ in range(4):
        served.last_start.unlink(missing_ok=True)
        with served.serving():
            served.until(lambda: _begun(served) == 1)
        assert _begun(served) == 0
    served.last_start.unlink()
    with served.serving() as process:
        for crashes in range(1, 4):
            served.until(lambda: _begun(served) == crashes)  # noqa: B023 -- called at once
            assert "paused" not in served.run("status").stdout
            os.kill(served.worker_of(process.pid), signal.SIGKILL)
        served.until(lambda: "paused: Deskhand crashed 3 times" in served.run("status").stdout)
        said = served.run("status").stdout
        assert "is partly working" in said and "To resume: deskhand jobs resume" in said
        assert served.health()["status"] == "degraded"
        assert (
            "To resume: deskhand jobs resume" in (served.home / "logs" / "deskhand.log").read_text()
        )
        refused = served.run("jobs", "run", "look")
        assert refused.returncode == 1 and "`deskhand jobs resume`" in refused.stderr
        assert (
            "The reason for the pause was: Deskhand crashed 3 times"
            in served.run("jobs", "resume").stdout
        )
        assert "paused" not in served.run("status").stdout
        waited = served.run("jobs", "run", "look", "--wait")
        assert waited.returncode == 0 and waited.stdout.startswith("look: done: You said: ")
        assert (
            served.run("jobs", "run", "look").stdout
            == "look is running; see: deskhand jobs runs look\n"
        )


def _begun(served: Served) -> int:
    """How many processes have begun to look after jobs, and not ended in good order."""
    db = apsw.Connection(
        str(served.home / "state" / "deskhand.db"), flags=apsw.SQLITE_OPEN_READONLY
    )
    try:
        return len(db.execute("SELECT at FROM job_boot").fetchall())
    finally:
        db.close()


def test_a_second_one_is_told_who_serves(served: Served) -> None:
    with served.serving() as process:
        second = served.run("serve")
        assert second.returncode == 1 and second.stdout == ""
        assert f"process {process.pid} has served {served.home} since 2" in second.stderr
        assert ", at http://127.0.0.1:" in second.stderr and "`deskhand status`" in second.stderr
        assert not gone(process.pid)
        process.kill()
    with served.serving():
        pass


def test_a_broken_configuration_starts_all_the_same(served: Served) -> None:
    """With the last good one where there was one, else with the defaults; commands say what is
    wrong."""
    with served.serving():
        pass
    served.last_start.unlink()
    served.write("defaults: {models: [scripted/echo], steps: many}\n")
    asked = served.run("ask", "hello")
    assert asked.returncode == 2 and "defaults.steps" in asked.stderr
    with served.serving() as process:
        health = served.health()
        assert health["status"] == "degraded"
        served.write("defaults: {models: [scripted/echo]}\n")
        served.until(lambda: served.health()["status"] == "ok")
        assert served.run("ask", "hello").stdout == "You said: hello\n"
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=15)
    assert (
        "defaults.steps" in out
        and "the last valid configuration is used" in out
        and process.returncode == 0
    )


def test_a_configuration_that_was_never_good_leaves_the_defaults(served: Served) -> None:
    served.write("defaults: [\n")
    with served.serving():
        assert served.health()["status"] == "degraded"
    assert served.run("serve", "--config", "missing.yaml").returncode == 2, (
        "a file that was named must be there"
    )


def test_a_killed_parent_leaves_no_worker(served: Served) -> None:
    with served.serving() as process:
        worker = served.worker_of(process.pid)
        process.kill()
        process.wait()
        served.until(lambda: gone(worker))
    assert served.run("ask", "hello").stdout == "You said: hello\n"


def test_a_worker_whose_parent_died_while_it_was_started_ends(served: Served) -> None:
    """The kernel tells of a death to come, not of one that was."""
    with subprocess.Popen(["true"]) as gone_before:
        gone_before.wait()
    done = served.run("serve", "--worker", str(gone_before.pid))
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "",
        "",
    ) and not served.last_start.exists()


def test_a_crash_is_written_down_and_the_terminal_stays_usable(served: Served) -> None:
    lock = served.home / "state" / "driver.lock"
    lock.mkdir(parents=True)
    master, slave = os.openpty()
    before = termios.tcgetattr(slave)
    with subprocess.Popen(
        [*DESKHAND, "serve"], env=served.env, stdin=slave, stdout=slave, stderr=slave
    ) as process:
        assert process.wait(15) == 76
    assert termios.tcgetattr(slave) == before
    said = os.read(master, 65536).decode()
    os.close(slave)
    os.close(master)
    assert "deskhand: the worker crashed: IsADirectoryError" in said and "Traceback" not in said
    error = msgspec.json.decode((served.home / "state" / "startup_error.json").read_bytes())
    assert error["type"] == "IsADirectoryError" and "driver.lock" in error["traceback"]
    lock.rmdir()
    assert "`deskhand serve` crashed at" in served.run("doctor").stdout
    assert served.run("ask", "hello").stdout == "You said: hello\n", "a terminal works without it"
    with served.serving():
        assert "crashed at" not in served.run("doctor").stdout, "it has begun well since"


@pytest.mark.parametrize("killed", [False, True])
async def test_a_restart_that_an_agent_asked_for_goes_on(served: Served, killed: bool) -> None:
    """Where it was asked, once; also when all of it is killed just then."""
    async with FakeLLM() as model:
        call = FakeCall("restart", '{"continue_with": "say that all is well"}')
        model.script(
            Behaviour(match="after the restart", text="All is well."),
            Behaviour(match="start a new one", calls=(call,)),
        )
        served.write(
            f"defaults: {{models: [fake/x], tools: [restart]}}\nproviders: {{fake: "
            f"{{base_url: '{model.url}'}}}}\n"
            "policy: [{verdict: allow, tool: restart}]\n"
        )

        def live() -> None:
            with served.serving() as process:
                worker = served.worker_of(process.pid)
                assert (
                    served.run("ask", "start a new one", "-s", "here").stdout
                    == "I am restarting and will continue here when I am back.\n"
                )
                if killed:
                    os.kill(process.pid, signal.SIGKILL)
                    served.until(lambda: gone(worker))
                else:
                    served.until(
                        lambda: "All is well." in served.run("sessions", "show", "here").stdout
                    )
                    assert served.worker_of(process.pid) != worker and gone(worker)
            for _ in range(2):
                served.last_start.unlink(missing_ok=True)
                with served.serving():
                    served.until(
                        lambda: "All is well." in served.run("sessions", "show", "here").stdout
                    )
                    assert served.run("sessions", "show", "here").stdout.count("All is well.") == 1

        await anyio.to_thread.run_sync(live)


async def test_a_message_on_telegram_is_answered_by_the_running_service(served: Served) -> None:
    """From the configuration alone. Killed with a message on its way, it answers that once it is
    back, and once."""
    async with TelegramServer() as server:
        address = server.base_url.removesuffix("/bot")
        served.write(
            "defaults: {models: [scripted/echo]}\n"
            f"channels: {{telegram: {{base_url: '{address}', allow_from: [77], token_env: "
            f"MY_BOT}}}}\n"
        )
        (served.home / ".env").write_text(f"MY_BOT={server.token}\n")
        (served.home / ".env").chmod(0o600)
        for words in ("hello", "on its way"):
            with served.serving() as process, anyio.fail_after(40):
                if words == "hello":
                    server.chats.says(77, words)
                while f"You said: {words}" not in "".join(server.chats.said(77)):
                    await anyio.sleep(0.02)
                if words == "hello":
                    server.chats.says(77, "on its way")
                    os.kill(served.worker_of(process.pid), signal.SIGKILL)
                    process.kill()
            served.last_start.unlink(missing_ok=True)
        said = server.chats.said(77)
    unmarked = [
        text
        for text in said
        if "on its way" in text and not text.startswith("(may be a duplicate)")
    ]
    assert len(unmarked) <= 1, said
    assert server.token not in served.home.joinpath("logs/deskhand.log").read_text()
