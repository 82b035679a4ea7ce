"""`deskhand service` with the tools of two systems in its PATH, and `deskhand status` beside the
real service."""

from __future__ import annotations

import json
import os
import plistlib
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from deskhand.cli.status import render_health_fact
from deskhand.supervision.lock import Holder, acquire_lock
from deskhand.supervision.unit import Unit, render_launchd, render_systemd
from deskhand.types.health import HealthFact

from .test_serve import Served

SYSTEMCTL = """#!/bin/sh
echo "systemctl $*" >> "$CALLS"
case "$*" in
  *show-environment*) [ ! -e "$CALLS.broken" ] || { echo "Failed to connect to bus" >&2; exit 1; } ;;
  *is-active*) [ -e "$CALLS.active" ] ;;
  *restart*|*start*) [ ! -e "$CALLS.fails" ] || { echo "Job failed." >&2; exit 1; }; touch "$CALLS.active" ;;
  *stop*|*disable*) rm -f "$CALLS.active" ;;
esac
"""  # noqa: E501
LAUNCHCTL = """#!/bin/sh
echo "launchctl $*" >> "$CALLS"
case "$1" in
  print) [ -e "$CALLS.active" ] && echo "state = running" ;;
  bootstrap) touch "$CALLS.active" ;;
  bootout) rm -f "$CALLS.active" ;;
esac
"""


class Machine:
    """A user with a home, and a system that notes what it is told."""

    def __init__(self, root: Path, **tools: str) -> None:
        self.root = root
        self.calls = root / "calls"
        self.bin = root / "bin"
        self.bin.mkdir(parents=True)
        for name, script in tools.items():
            (self.bin / name).write_text(script)
            (self.bin / name).chmod(0o755)
        for name in ("touch", "rm"):
            (self.bin / name).symlink_to(str(shutil.which(name)))
        self.env = {"PATH": f"{self.bin}:relative", "HOME": str(root), "CALLS": str(self.calls)}

    def __call__(self, *args: str, code: int = 0) -> str:
        argv = [sys.executable, "-m", "deskhand", *args]
        done = subprocess.run(
            argv,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    @property
    def told(self) -> list[str]:
        """What the system was told since this was asked last, without the questions."""
        lines = self.calls.read_text().splitlines()
        self.calls.write_text("")
        return [
            line
            for line in lines
            if not any(word in line for word in ("show-", "is-active", " print "))
        ]


@pytest.fixture
def linux(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "user", systemctl=SYSTEMCTL, loginctl="#!/bin/sh\necho no\n")


def test_a_service_of_systemd_comes_and_goes(linux: Machine) -> None:
    file = linux.root / ".config" / "systemd" / "user" / "deskhand.service"
    assert "the service is not installed; install it with: deskhand service install" in linux(
        "service", "start", code=1
    )
    said = linux("service", "install")
    assert str(file) in said and "loginctl enable-linger" in said and "deskhand status" in said
    user = "systemctl --user"
    assert linux.told == [
        f"{user} daemon-reload",
        f"{user} enable deskhand",
        f"{user} restart deskhand",
    ]
    assert file.read_text() == linux("service", "install", "--print")
    assert f'"PATH={linux.bin}"' in file.read_text(), "what is not absolute would be somewhere else"
    assert "It runs" in linux("service", "status")
    linux("service", "restart")
    linux("service", "stop")
    assert "It does not run" in linux("service", "status", code=1)
    linux("service", "start")
    assert linux.told == [f"{user} {order} deskhand" for order in ("restart", "stop", "start")]
    assert "stay" in linux("service", "uninstall") and not file.exists()
    assert linux.told == [f"{user} disable --now deskhand", f"{user} daemon-reload"]


def test_what_the_system_answers_is_passed_on(linux: Machine) -> None:
    Path(f"{linux.calls}.fails").touch()
    assert "systemctl --user restart deskhand: Job failed." in linux("service", "install", code=1)


def test_where_nothing_keeps_services_it_says_what_to_do(linux: Machine, tmp_path: Path) -> None:
    Path(f"{linux.calls}.broken").touch()
    for order in ("install", "start", "status"):
        said = linux("service", order, code=1)
        assert "Failed to connect to bus" in said and "`deskhand serve`" in said
    bare = Machine(tmp_path / "bare")
    assert "neither systemd nor launchd is available" in bare("service", "install", code=1)
    assert "ExecStart=" in bare("service", "install", "--print"), "it can be carried elsewhere"


def test_a_service_of_launchd_comes_and_goes(tmp_path: Path) -> None:
    mac = Machine(tmp_path / "user", launchctl=LAUNCHCTL)
    file = mac.root / "Library" / "LaunchAgents" / "org.deskhand.plist"
    domain = f"gui/{os.getuid()}"
    mac("service", "install")
    assert mac.told == [
        f"launchctl bootstrap {domain} {file}",
        f"launchctl kickstart {domain}/org.deskhand",
    ]
    assert plistlib.loads(file.read_bytes())["ProgramArguments"][-1] == "serve"
    assert "It runs" in mac("service", "status")
    mac("service", "stop")
    assert "It does not run" in mac("service", "status", code=1)
    mac("service", "restart")
    mac("service", "uninstall")
    assert not file.exists() and mac.told[-1] == f"launchctl bootout {domain}/org.deskhand"


def test_a_mistake_in_the_configuration_does_not_stand_in_the_way(linux: Machine) -> None:
    (linux.root / ".deskhand").mkdir()
    (linux.root / ".deskhand" / "deskhand.yaml").write_text("defaults: [\n")
    linux("service", "install")
    linux("service", "restart")


def test_one_that_somebody_started_by_hand_is_named(linux: Machine) -> None:
    state = linux.root / ".deskhand" / "state"
    state.mkdir(parents=True)
    fd = acquire_lock(state / "serve.lock", Holder(77, 5.0))
    assert fd is not None
    assert "process 77 already serves" in linux("service", "install", code=1)
    os.close(fd)


AWKWARD = Unit(
    "deskhand-1",
    ("/a b/py%thon", "-m", 'q"uote', "$HOME", "back\\slash"),
    {"PATH": "/x y:/z%"},
    Path("/o"),
)


def test_the_unit_is_what_systemd_takes(tmp_path: Path) -> None:
    lines = dict(line.split("=", 1) for line in render_systemd(AWKWARD).splitlines() if "=" in line)
    words = shlex.split(lines["ExecStart"].replace("$$", "$").replace("%%", "%"))
    assert tuple(words) == AWKWARD.command
    assert lines["Environment"] == '"PATH=/x y:/z%%"'
    assert (lines["Restart"], lines["RestartForceExitStatus"], lines["RestartSec"]) == (
        "on-failure",
        "75",
        "5",
    )
    assert lines["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert lines["KillMode"] == "mixed", (
        "the worker would be told twice, and cut off what is under way"
    )
    assert int(lines["TimeoutStopSec"]) > 25
    if tool := shutil.which("systemd-analyze"):
        file = tmp_path / "deskhand.service"
        file.write_text(
            render_systemd(
                Unit(
                    "deskhand",
                    (sys.executable, "-m", "deskhand", "serve"),
                    AWKWARD.environment,
                    file,
                )
            )
        )
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
        done = subprocess.run(
            [tool, "--user", "verify", str(file)],
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_the_plist_is_what_launchd_takes() -> None:
    found = plistlib.loads(render_launchd(AWKWARD).encode())
    assert (
        found["ProgramArguments"] == list(AWKWARD.command)
        and found["EnvironmentVariables"] == AWKWARD.environment
    )
    assert (
        found["KeepAlive"] == {"SuccessfulExit": False}
        and found["RunAtLoad"]
        and found["ExitTimeOut"] > 25
    )


def test_another_home_is_another_service(linux: Machine) -> None:
    linux.env["DESKHAND_HOME"] = str(linux.root / "other")
    text = linux("service", "install", "--print")
    assert f'Environment="DESKHAND_HOME={linux.root / "other"}"' in text
    linux("service", "install")
    (installed,) = (linux.root / ".config/systemd/user").iterdir()
    assert installed.name.startswith("deskhand-")


# ---------------------------------------------------------------------- status


@pytest.fixture
def served(tmp_path: Path) -> Served:
    return Served(tmp_path / "home")


def test_status_tells_what_runs_and_how_it_is(served: Served) -> None:
    nothing = served.run("status")
    assert nothing.returncode == 1 and "deskhand service install" in nothing.stdout
    assert served.run("status", "--json").stdout == "null\n"
    with served.serving() as process:
        served.until(lambda: served.run("status", "-q").returncode == 0)
        said = served.run("status").stdout
        assert said.startswith("Deskhand is working. Web page: http://127.0.0.1:")
        assert said.splitlines()[1:] == ["No open requests, no problems."]
        said = served.run("status", "--verbose").stdout
        assert (
            f"Process {served.worker_of(process.pid)} works since" in said
            and "Web page: http://127.0.0.1:" in said
        )
        for part in ("driver", "store", "web", "owed", "configuration", "sandbox"):
            assert f"  {part}" in said
        assert "sweep" not in said, "while it is well"
        found = json.loads(served.run("status", "--json").stdout)
        assert found["state"] == "ok" and found["facts"][0]["name"]
        assert served.run("status", "-q").stdout == ""
        served.write("defaults: [\n")
        served.until(lambda: "the last valid configuration is used" in served.run("status").stdout)
        worker = served.worker_of(process.pid)
        os.kill(worker, signal.SIGSTOP)
        stuck = served.run("status")
        os.kill(worker, signal.SIGCONT)
    assert (
        stuck.returncode == 1
        and f"Process {process.pid} is running, but does not respond" in stuck.stdout
    )


def test_a_part_that_is_not_well_says_why() -> None:
    fact = HealthFact(
        "channel mail", "down", "", None, 1_000.0, "LoginRefused: \x1b[31mwrong key", 1_060.0, 3
    )
    first, second = render_health_fact(fact, 4_700.0, ZoneInfo("UTC"))
    assert (
        "channel mail" in first and "restarted 3 times" in first and "last success 1 h ago" in first
    )
    assert "␛[31mwrong key" in second and "1970-01-01 00:17" in second
    assert (
        len(render_health_fact(HealthFact("x", "ok", last_error="long ago"), 0.0, ZoneInfo("UTC")))
        == 1
    )
