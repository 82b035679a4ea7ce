"""`deskhand ps`, beside a Deskhand in whose conversation something runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from click.testing import CliRunner, Result

from deskhand.cli.root import cli
from deskhand.testing.temporary_home import processes_with

_HOLDING = Path(__file__).parents[1] / "workspace" / "holding.py"


def _ps(home: Path, *args: str) -> Result:
    env = {"DESKHAND_HOME": str(home), "HOME": str(home)}
    return CliRunner().invoke(cli, ("ps", *args), env=env, prog_name="deskhand")


def _until_gone(mark: str) -> None:
    pause = 0.05
    until = time.monotonic() + 30
    while processes_with(mark):
        assert time.monotonic() < until, "it lives on"
        time.sleep(pause)


def test_list_and_kill(tmp_path: Path) -> None:
    mark = f"73{os.getpid()}"
    assert "No background commands are running." in _ps(tmp_path).output
    argv = [sys.executable, str(_HOLDING), str(tmp_path), mark]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as holding:
        assert holding.stdout is not None and holding.stdout.readline() == "holding\n"
        said = _ps(tmp_path).output
        assert said.count("running") == 2 and f"sleep {mark}3" in said
        found = {
            each["kind"]: each["id"] for each in json.loads(_ps(tmp_path, "list", "--json").output)
        }
        assert len(json.loads(_ps(tmp_path, "list", "--json", "--limit", "1").output)) == 1
        refused = _ps(tmp_path, "kill", "zzzz")
        assert refused.exit_code == 2 and "no running command matches 'zzzz'" in refused.output
        assert "Stopped" in _ps(tmp_path, "kill", found["background"][:6]).output
        _until_gone(f"{mark}3")
        assert processes_with(f"{mark}5"), "the other one goes on"
        assert "Stopped" in _ps(tmp_path, "kill", found["session"]).output
        _until_gone(f"{mark}5")
        until = time.monotonic() + 30
        while (
            _ps(tmp_path, "list", "--all").output.count("stopped by owner") < 2
        ):  # it looks after them first
            assert time.monotonic() < until, "nobody says how they ended"
            time.sleep(0.1)
        holding.kill()
    said = _ps(tmp_path, "list", "--all").output
    assert said.count("stopped by owner") == 2 and "running" not in said
