"""The log under other rules, and what was said for good: asked on the command line of a home where
something happened."""

from __future__ import annotations

from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
import pytest
from click.testing import CliRunner, Result

from deskhand.cli.root import cli
from deskhand.config.config import read_settings
from deskhand.models.base import Request
from deskhand.runtime.app import Parts, open_app
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.identity import Principal
from deskhand.types.messages import Message, ToolCall

ANN = Principal("ann", ("owner",))
CONFIG = """
defaults: {models: [scripted/x]}
channels: {memory: {type: telegram}}
policy: [{verdict: ask, tool: shell, commands: [touch]}]
"""
OTHER = """
- {verdict: deny, tool: shell, commands: [rm], because: nothing is removed}
- {verdict: ask, tool: write_file, channel: memory}
- {verdict: allow, tool: shell}
"""
CALLS: list[tuple[str, dict[str, object]]] = [
    ("bash", {"cmd": "ls"}),
    ("shell", {"command": "rm -f x"}),
    ("write_file", {"path": "f", "content": "x"}),
    ("shell", {"command": "touch made"}),
    ("fly", {}),
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "deskhand.yaml").write_text(CONFIG)
    return tmp_path / "home"


async def happened(home: Path) -> None:
    """All of the calls in one turn, with a lasting yes to what was asked."""

    def script(request: Request) -> Message:
        done = sum(shown.message.role == "tool" for shown in request.messages)
        if done == len(CALLS):
            return say("done")
        name, arguments = CALLS[done]
        return say("", ToolCall(f"c{done}", name, msgspec.Raw(msgspec.json.encode(arguments))))

    settings = read_settings(None, {"DESKHAND_HOME": str(home), "HOME": str(home.parent)})
    channel = MemoryChannel()
    model = ScriptedModel(script)
    parts = Parts(lambda name: model, channels=(channel,), authorize=lambda inbound: ANN)
    async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        channel.write("go")
        with anyio.fail_after(30):
            while not await app.store.open_asks(ANN):
                await anyio.sleep(0.01)
            channel.write("always")
            while await app.store.open_sessions():
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()


async def deskhand(home: Path, *arguments: str) -> Result:
    runner = CliRunner(env={"DESKHAND_HOME": str(home), "HOME": str(home.parent)})
    return await anyio.to_thread.run_sync(lambda: runner.invoke(cli, arguments))


async def test_what_other_rules_would_have_decided(home: Path) -> None:
    await happened(home)
    file = home.parent / "other.yaml"
    file.write_text(OTHER)
    done = await deskhand(home, "policy", "what-if", str(file))
    assert done.exit_code == 0, done
    first, *lines = done.stdout.splitlines()
    assert first == "3 of 4 calls in the last 30 days would be decided differently.", (
        "there is no tool called fly"
    )
    assert lines[:3] == ["  allow       3 -> 2", "  ask         1 -> 1", "  deny        0 -> 1"]
    assert {tuple(line.split("\t")) for line in lines[3:6]} == {
        ("shell", "local_write", "allow -> deny", "1"),
        ("shell", "local_write", "ask -> allow", "1"),
        ("write_file", "local_write", "allow -> ask", "1"),
    }
    assert "    allow -> deny: nothing is removed" in lines
    same = await deskhand(home, "policy", "what-if", str(home / "same.yaml"))
    assert same.exit_code == 2
    (home / "same.yaml").write_text(CONFIG[CONFIG.index("policy:") :])
    same = await deskhand(home, "policy", "what-if", str(home / "same.yaml"))
    assert same.stdout.startswith("0 of 4 calls")
    found = msgspec.json.decode(
        (await deskhand(home, "policy", "what-if", str(file), "--json")).stdout
    )
    assert [
        (each["tool"], each["now"], each["then"], each["who"], each["channel"]) for each in found
    ] == [
        ("shell", "allow", "deny", "ann", "memory"),
        ("write_file", "allow", "ask", "ann", "memory"),
        ("shell", "ask", "allow", "ann", "memory"),
    ]


async def test_why_knows_what_was_said_for_good(home: Path) -> None:
    await happened(home)
    call = ("policy", "why", "shell", '{"command":"touch made"}')
    found = await deskhand(home, *call, "--as", "ann:owner")
    assert (
        found.stdout.startswith("allow: ann answered always to this exact call\n")
        and "approvals grants" in found.stdout
    )
    for other in (("--as", "bob:owner"), ("--as", "ann:owner", "--untrusted")):
        assert (await deskhand(home, *call, *other)).stdout.startswith("ask: rule 1"), (
            "that is another question"
        )
    another = await deskhand(
        home, "policy", "why", "shell", '{"command":"touch other"}', "--as", "ann:owner"
    )
    assert another.stdout.startswith("ask: rule 1")
