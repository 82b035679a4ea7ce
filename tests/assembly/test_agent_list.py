"""An agent is told which others there are, and what for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from deskhand.assembly.agent_list import render_agents
from deskhand.config.config import Config, Home, Settings
from deskhand.testing.temporary_home import TemporaryHome


def settings_at(home: Path, **more: Any) -> Settings:
    config: dict[str, Any] = {"agents": {"default": {}, "cook": {}, "smith": {}}, **more}
    return Settings(Home(home), msgspec.convert(config, Config, strict=False), (), {})


def test_each_with_its_description(tmp_path: Path) -> None:
    settings = settings_at(tmp_path)
    folder = settings.home.agent("cook")
    folder.mkdir(parents=True)
    (folder / "AGENT.md").write_text(
        "---\nname: Cook\ndescription: Knows what to eat.\n---\n\nCook."
    )
    assert render_agents(settings, "default") == (
        "# Agents\nspawn_agent gives a task to:\n- cook: Knows what to eat.\n- smith"
    )
    assert "- default\n- smith" in render_agents(settings, "cook")


def test_nothing_where_there_are_no_others(tmp_path: Path) -> None:
    assert render_agents(settings_at(tmp_path, agents={"default": {}}), "default") == ""
    assert render_agents(settings_at(tmp_path, subagents={"depth": 0}), "default") == ""


async def test_it_stands_in_the_prompt_and_the_front_matter_does_not(tmp_path: Path) -> None:
    desk = TemporaryHome(tmp_path, agents={"default": {}, "cook": {}})
    for name, about in (("default", "Talks."), ("cook", "Knows what to eat.")):
        folder = desk.settings.home.agent(name)
        folder.mkdir(parents=True)
        text = f"---\nname: {name}\ndescription: {about}\n---\n\nYou are {name}."
        (folder / "AGENT.md").write_text(text)
    async with desk.running() as app:
        await desk.call(app, "list_files")
        system = "\n".join(desk.model.requests[0].system)
        assert "- cook: Knows what to eat." in system and "You are default." in system
        assert "description:" not in system and "Talks." not in system
