"""What the pages on sub-agents, teams and code mode tell people to write works as it stands
there."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import anyio
import msgspec
import pytest
import yaml
from click.testing import CliRunner

from deskhand.cli.root import cli
from deskhand.config.config import Config
from deskhand.runtime.app import App
from deskhand.store.queries import subagents_of
from deskhand.testing.temporary_home import TemporaryHome, wait_for
from deskhand.types.events import CommandRun

DOCS = Path(__file__).parents[2] / "docs"
PARENT = "default/terminal:1"
PAGES = ("subagents", "teams", "code-mode")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(page: str, kind: str) -> list[str]:
    text = (DOCS / f"{page}.md").read_text()
    return [body for name, body in _BLOCK.findall(text) if name == kind]


@pytest.mark.parametrize("page", PAGES)
def test_settings_are_accepted(page: str) -> None:
    for block in blocks(page, "yaml"):
        config = msgspec.convert(yaml.safe_load(block), Config)
        assert config.subagents.model or config.subagents.kinds


async def test_the_script_counts_what_is_open(tmp_path: Path) -> None:
    desk = TemporaryHome(tmp_path)
    async with desk.running() as app:
        reports = app.settings.home.workspace("default") / "reports"
        reports.mkdir(parents=True)
        (reports / "may.md").write_text("TODO one\nTODO two\n")
        (reports / "june.md").write_text("TODO three\n")
        (reports / "raw.csv").write_text("TODO not counted\n")
        (script,) = blocks("code-mode", "python")
        assert await desk.call(app, "run_script", script=script) == "3 open in 2 reports"
        several = 'print(call_all([("read_file", {"path": "reports/june.md"})])[0].count("TODO"))'
        assert await desk.call(app, "run_script", script=several) == "1"


async def replies(app: App, number: int) -> list[str]:
    events = [each.event for each in await app.store.events(PARENT)]
    found = [each.reply for each in events if isinstance(each, CommandRun)]
    return found if len(found) >= number else []


async def test_chat_commands(tmp_path: Path) -> None:
    desk = TemporaryHome(tmp_path)
    async with desk.running() as app:
        written = ("/teams on", "/teams", "/teams off", "/stop", "/undo")
        for number, command in enumerate(written, 1):
            await desk.say(app, command)
            await wait_for(partial(replies, app, number))
        on, who, off, *_ = await replies(app, len(written))
        assert "team" in on and "Nobody is in it yet" in who and "no more teammates" in off


def run(home: Path, *args: str) -> str:
    env = {"DESKHAND_HOME": str(home), "HOME": str(home)}
    return CliRunner().invoke(cli, args, env=env, prog_name="deskhand").output


async def test_commands_of_the_terminal(tmp_path: Path) -> None:
    desk = TemporaryHome(tmp_path)
    async with desk.running() as app:
        await desk.call(app, "spawn_agent", task="look")
        (task,) = subagents_of(app.store, PARENT, 10)
    shown = partial(anyio.to_thread.run_sync, abandon_on_cancel=True)
    assert "spawn_agent" in await shown(partial(run, tmp_path, "trace", PARENT))
    assert "No sub-agents are at work" in await shown(partial(run, tmp_path, "subagents"))
    stopped = await shown(partial(run, tmp_path, "subagents", "stop", task.id))
    assert task.id in stopped
