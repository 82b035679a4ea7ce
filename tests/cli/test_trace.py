"""`deskhand trace`, over the log of a real conversation."""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec
import pytest
from click.testing import CliRunner, Result

from deskhand.cli.root import cli

KEY = "sk-0123456789-abcdef"


@pytest.fixture
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("home")
    variables = {
        "DESKHAND_HOME": str(home),
        "HOME": str(home),
        "DESKHAND_MODELS": "scripted/echo",
        "MY_KEY": KEY,
    }
    return variables


def deskhand(env: dict[str, str], *args: str) -> Result:
    return CliRunner().invoke(cli, args, env=env, prog_name="deskhand")


def test_what_is_not_there(env: dict[str, str]) -> None:
    unknown = deskhand(env, "trace", "nope")
    assert unknown.exit_code == 2
    assert (
        "there is no conversation 'nope'; list conversations with: deskhand sessions list"
    ) in unknown.stderr
    assert deskhand(env, "trace", "nope", "-f").exit_code == 2
    deskhand(env, "ask", "/status", "--session", "talk")
    empty = deskhand(env, "trace", "talk")
    assert (empty.exit_code, empty.stdout) == (0, "No calls yet in talk.\n")


def test_each_call_is_a_line(env: dict[str, str]) -> None:
    assert "You said: one" in deskhand(env, "ask", "one", "--session", "talk").stdout
    deskhand(env, "ask", "two", "--session", "talk")
    shown = deskhand(env, "trace", "talk")
    lines = [line.split("\t") for line in shown.stdout.splitlines()]
    assert [(line[2], line[5]) for line in lines] == [("scripted/echo", "stop")] * 2
    assert int(lines[0][0]) < int(lines[1][0]) and lines[0][3].endswith(" s")
    assert "2 model calls, 0 tool calls; " in shown.stderr
    spans = [
        msgspec.json.decode(line)
        for line in deskhand(env, "trace", "talk", "--json").stdout.splitlines()
    ]
    assert [(span["kind"], span["name"]) for span in spans] == [
        ("llm_call", "scripted/echo"),
        ("agent_run", "default"),
    ] * 2
    assert {"seq", "n", "took_s", "input_tokens", "status", "parent", "session", "began_at"} <= set(
        spans[0]
    )
    assert spans[0]["preview"] == "You said: one" and spans[0]["parent_id"] == spans[1]["span_id"]


def test_it_goes_on_as_calls_end(env: dict[str, str]) -> None:
    deskhand(env, "ask", "one", "--session", "talk")
    argv = [sys.executable, "-m", "deskhand", "trace", "talk", "--json", "-f"]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, text=True, env={**os.environ, **env}
    ) as process:
        assert process.stdout is not None
        first = msgspec.json.decode(process.stdout.readline())
        deskhand(env, "ask", "two", "--session", "talk")
        turn = msgspec.json.decode(process.stdout.readline())
        second = msgspec.json.decode(process.stdout.readline())
        assert (first["kind"], turn["kind"], turn["status"]) == ("llm_call", "agent_run", "done")
        assert second["seq"] > turn["seq"] > first["seq"] and second["name"] == "scripted/echo"
        process.send_signal(2)
        assert process.wait(5) == 130
