"""The tool `channel`: as operator-use has it, and for owners alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deskhand.testing.temporary_home import TemporaryHome

CHANNELS = {"telegram": {}, "family": {"type": "telegram", "enabled": False}}


def home(path: Path, **more: Any) -> TemporaryHome:
    defaults = {"models": ["scripted/x"], "also_allow": ["channel"]}
    policy = [{"verdict": "allow", "tool": "channel"}]
    return TemporaryHome(path, defaults=defaults, policy=policy, channels=CHANNELS, **more)


async def test_it_lists_and_switches(tmp_path: Path) -> None:
    desk = home(tmp_path)
    async with desk.running() as app:
        said = await desk.call(app, "channel", mode="list")
        assert said.splitlines() == ["telegram (telegram): on", "family (telegram): off"]
        assert await desk.call(app, "channel", mode="disable", name="telegram") == (
            "telegram (telegram): off"
        )
        assert await desk.call(app, "channel", mode="enable", name="family") == (
            "family (telegram): on"
        )
        written = desk.settings.file.read_text()
        assert "enabled: false" in written and "enabled: true" in written
        said = await desk.call(app, "channel", mode="status", name="telegram")
        assert said.startswith("telegram (telegram): ")
        said = await desk.call(app, "channel", mode="status", name="nope")
        assert "there is no channel 'nope'; there are: telegram, family" in said


async def test_only_who_names_it_has_it(tmp_path: Path) -> None:
    async with TemporaryHome(tmp_path).running() as app:
        assert "channel" not in app.current.agent("default").tools
