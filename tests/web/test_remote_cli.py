"""`deskhand remote` and `deskhand acp stdio`, as a person and a program run them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from deskhand.remote_agents.discover import list_hosts
from deskhand.types.errors import ConfigError

from .served import Served
from .test_compat_operator import running

DESKHAND = (sys.executable, "-m", "deskhand")


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {**kept, "HOME": str(home), "DESKHAND_HOME": str(home / "desk"), **more}


async def deskhand(
    home: Path, *words: str, fails: bool = False, more: dict[str, str] | None = None
) -> str:
    """What it printed."""
    with anyio.fail_after(60):
        done = await anyio.run_process(
            [*DESKHAND, *words], check=False, env=environment(home, **(more or {}))
        )
    said = done.stdout.decode() + done.stderr.decode()
    assert bool(done.returncode) == fails, said
    return said


def token_of(served: Served) -> str:
    return served.owner.headers["authorization"].removeprefix("Bearer ")


async def test_an_agent_is_added_listed_asked_and_removed(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    async with running(tmp_path / "theirs") as served:
        given = {"FRIEND": token_of(served)}
        options = ("--token-env", "FRIEND", "--for", "everything")
        added = await deskhand(
            tmp_path, "remote", "add", "friend", served.url, *options, more=given
        )
        assert "main: The agent main of a Deskhand" in added and "Added friend." in added
        file = yaml.safe_load((tmp_path / "desk" / "deskhand.yaml").read_text())
        assert file["remote_agents"]["friend"]["url"] == served.url
        assert given["FRIEND"] not in str(file)

        again = await deskhand(tmp_path, "remote", "add", "friend", served.url, fails=True)
        assert "deskhand remote remove friend" in again
        assert "everything" in await deskhand(tmp_path, "remote")
        assert await deskhand(tmp_path, "remote", "run", "friend", "hello", more=given) == (
            "echo: hello\n"
        )
        asked = await deskhand(
            tmp_path, "remote", "run", "friend", "ask me", fails=True, more=given
        )
        assert "Which one?" in asked and "waits for an answer" in asked
        unset = await deskhand(tmp_path, "remote", "run", "friend", "hello", fails=True)
        assert "FRIEND is not set" in unset
        await deskhand(tmp_path, "remote", "remove", "friend")
        assert "No agents elsewhere yet" in await deskhand(tmp_path, "remote")


async def test_agents_are_found(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    async with running(tmp_path / "theirs") as served:
        port = served.url.rpartition(":")[2]
        found = await deskhand(
            tmp_path, "acp", "discover", "--port", port, "--timeout", "10", "--add"
        )
        assert f"{served.url} (A2A)" in found and "added as agent1" in found
        again = await deskhand(
            tmp_path, "remote", "discover", "--port", port, "--timeout", "10", "--add"
        )
        assert "known already" in again
        listed = await deskhand(tmp_path, "acp", "list", served.url)
        assert "main: The agent main" in listed
    nothing = await deskhand(tmp_path, "remote", "discover", "--port", port)
    assert "No agent answers" in nothing


@pytest.mark.parametrize("network", ["8.8.8.0/24", "10.0.0.0/8", "here"])
def test_only_a_small_network_of_ones_own_is_searched(network: str) -> None:
    with pytest.raises(ConfigError):
        list_hosts(network)


def test_the_addresses_of_a_network() -> None:
    assert list_hosts("") == ["127.0.0.1"]
    assert list_hosts("192.168.1.7/30") == ["192.168.1.5", "192.168.1.6"]


async def test_json_rpc_over_standard_streams(tmp_path: Path) -> None:
    home = tmp_path / "desk"
    home.mkdir()
    (home / "deskhand.yaml").write_text("defaults: {models: [scripted/echo]}\n")
    lines: list[Any] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize"},
        {"jsonrpc": "2.0", "id": 2, "method": "agent/run", "params": {"text": "hi"}},
        {
            "jsonrpc": "2.0",
            "id": 3,
            "method": "agent/stream",
            "params": {"text": "one two", "session_id": "s"},
        },
        {"jsonrpc": "2.0", "id": 4, "method": "agent/run", "params": {}},
        {"jsonrpc": "2.0", "id": 5, "method": "what"},
        [],
    ]
    asked = "\n".join([*map(json.dumps, lines), "{", ""]).encode()
    with anyio.fail_after(60):
        done = await anyio.run_process(
            [*DESKHAND, "acp", "stdio"], input=asked, check=False, env=environment(tmp_path)
        )
    assert done.returncode == 0, done.stderr.decode()
    said = [json.loads(line) for line in done.stdout.splitlines()]
    answers = {each.get("id"): each for each in said if "method" not in each and each.get("id")}
    assert answers[1]["result"]["capabilities"]["streaming"]
    assert "hi" in answers[2]["result"]["output"] and answers[2]["result"]["session_id"]
    assert answers[3]["result"]["session_id"] == "s"
    [chunk] = [each for each in said if each.get("method") == "agent/chunk"]
    assert chunk["params"] == {"id": 3, "text": answers[3]["result"]["output"]}
    assert said.index(chunk) < said.index(answers[3])
    assert answers[4]["error"]["code"] == -32600
    assert answers[5]["error"]["code"] == -32601
    nameless = [
        each["error"]["code"] for each in said if each.get("id") is None and "error" in each
    ]
    assert sorted(nameless) == [-32700, -32600]
