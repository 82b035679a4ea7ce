"""`deskhand tools` and the Python files of a workspace."""

from __future__ import annotations

from pathlib import Path

import anyio
import msgspec
from click.testing import CliRunner

from deskhand.cli.root import cli
from deskhand.config.config import read_settings
from deskhand.runtime.app import Parts, open_app
from deskhand.testing.scripted import ScriptedModel
from deskhand.tools.base import Tools


def test_all_that_an_agent_has_while_deskhand_runs_is_listed_and_nothing_is_made(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    env = {"DESKHAND_HOME": str(home), "HOME": str(tmp_path), "DESKHAND_MODELS": "scripted/echo"}
    found = CliRunner().invoke(cli, ("tools",), env=env)
    assert found.exit_code == 0 and not (home / "state").exists()
    lines = [line.split("\t") for line in found.stdout.splitlines()]

    async def really() -> Tools:
        async with open_app(read_settings(None, env), Parts(lambda name: ScriptedModel())) as app:
            return app.current.agent("default").tools

    assert [name for name, *_ in lines] == list(tools := anyio.run(really)) and "cron" in tools
    later = [int(tokens) for _, _, tokens, mark, _ in lines if mark == "deferred"]
    now = [int(tokens) for _, _, tokens, mark, _ in lines if not mark]
    assert found.stderr == (
        f"{len(now)} tools are in each request, about {sum(now):,} tokens; {len(later)} are "
        "deferred,"
        f" about {sum(later):,} more once all are loaded\n"
    )
    assert "tokens, deferred\n" in CliRunner().invoke(cli, ("tools", "cron"), env=env).stderr
    shown = msgspec.json.decode(CliRunner().invoke(cli, ("tools", "bash"), env=env).stdout)
    assert shown["name"] == "shell" and shown["parameters"]["required"] == ["command"]
    missing = CliRunner().invoke(cli, ("tools", "web_fetsch"), env=env)
    assert missing.exit_code == 2 and "did you mean 'web_fetch'?" in missing.stderr


def test_tools_of_own_files_are_listed(tmp_path: Path) -> None:
    env = {
        "DESKHAND_HOME": str(tmp_path),
        "HOME": str(tmp_path),
        "DESKHAND_MODELS": "scripted/echo",
    }
    folder = tmp_path / "agents" / "default" / "workspace" / "skills"
    folder.mkdir(parents=True)
    (folder / "money.py").write_text(
        "async def convert(amount: float):\n    'Converts euros.'\nasync def shell(): ...\n"
    )
    found = CliRunner().invoke(cli, ("tools",), env=env)
    lines = [line.split("\t") for line in found.stdout.splitlines()]
    assert ["convert", "local_write", "[skill] Converts euros."] in [
        [name, effect, last] for name, effect, *_, last in lines
    ]
    assert (
        "deskhand: skills/money.py: shell is not a tool: another one has this name"
    ) in found.stderr
