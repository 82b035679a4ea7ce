"""What comes in from agent_computer: its skills are offered, and what it asked about is asked
about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apsw
import pytest

from deskhand.assembly.judge import make_judge
from deskhand.config.config import Settings, read_settings
from deskhand.importers.plan import make_plan
from deskhand.policy.profiles import is_offered
from deskhand.policy.rules import Case
from deskhand.types.identity import Principal
from deskhand.types.labels import Label
from tests.importers.moving import home_of, move, read, settings_in, with_store

ME = Principal("owner", ("owner",))
JOB = Principal("job:daily-check", ("owner",), "clock", "owner")


def with_tools(home: Path, **tools: Any) -> Path:
    """This home, with these keys about tools in its configuration; None takes one out."""
    config = json.loads((home / "config.json").read_text())
    merged = config["agent"]["tools"] | tools
    config["agent"]["tools"] = {name: value for name, value in merged.items() if value is not None}
    (home / "config.json").write_text(json.dumps(config))
    return home


async def moved(home: Path, settings: Settings) -> Settings:
    await move(home, settings)
    return read_settings(settings.file, settings.started_with)


def verdict(settings: Settings, tool: str, command: str = "", who: Principal = ME) -> str:
    arguments = json.dumps({"command": command}).encode() if command else b"{}"
    case = Case(
        "main",
        tool,
        "local_write",
        who,
        Label("owner", source="owner"),
        arguments,
        channel="terminal",
    )
    return make_judge(settings, "main").judge(case).verdict


async def test_its_python_skills_are_offered(tmp_path: Path) -> None:
    """Whatever its list of tools says, as there; what is not on that list is still not offered."""
    now = await moved(home_of("agent-computer", tmp_path), settings_in(tmp_path))
    offered = now.offered_tools("main")
    assert (
        is_offered(offered, "count_words")
        and is_offered(offered, "shell")
        and not is_offered(offered, "send_file")
    )


async def test_a_skill_for_an_agent_that_is_here_is_named(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, "agents: {main: {tools: [shell]}}\n")
    home = home_of("agent-computer", tmp_path)
    planned = await with_store(settings, lambda store: make_plan(read(home), settings, store))
    (left,) = (each for each in planned.left_out if each.what == "that main is offered count_words")
    assert left.todo == "add count_words to agents.main.also_allow"


async def test_what_it_asked_about_is_asked_about(tmp_path: Path) -> None:
    home = with_tools(
        home_of("agent-computer", tmp_path), require_approval=["shell", "write_file", "web_fetch"]
    )
    now = await moved(home, settings_in(tmp_path))
    asked = [
        tool
        for tool in ("shell", "write_file", "web_fetch", "read_file")
        if verdict(now, tool, "true") == "ask"
    ]
    assert asked == ["shell", "write_file", "web_fetch"]
    assert verdict(now, "write_file", who=JOB) == "deny", "there nobody could be asked"
    assert all(rule.agent == "main" and rule.verdict != "allow" for rule in now.config.policy)


@pytest.mark.parametrize(("given", "asks"), [(None, "ask"), ([], "allow")])
async def test_it_asks_about_commands_unless_told_otherwise(
    given: object, asks: str, tmp_path: Path
) -> None:
    home = with_tools(home_of("agent-computer", tmp_path), require_approval=given)
    now = await moved(home, settings_in(tmp_path))
    assert verdict(now, "shell", "true") == asks


async def test_nothing_approves_by_itself(tmp_path: Path) -> None:
    home = home_of("agent-computer", tmp_path)
    with_tools(home, require_approval=["shell"], non_interactive_approval_policy="auto_approve")
    now = await moved(home, settings_in(tmp_path))
    assert verdict(now, "shell", "true", who=JOB) == "ask"
    (left,) = (
        each
        for each in read(home).left_out
        if each.what.endswith("non_interactive_approval_policy")
    )
    assert "rule" in left.todo


async def test_commands_that_it_refused_are_refused(tmp_path: Path) -> None:
    home = home_of("agent-computer", tmp_path)
    with_tools(
        home,
        shell_blocked_commands=["mkfs", "shutdown", "git push --force"],
        shell_allow_absolute_paths=True,
    )
    now = await moved(home, settings_in(tmp_path))
    assert (
        verdict(now, "shell", "mkfs.ext4 /dev/sda")
        == verdict(now, "shell", "shutdown now")
        == "deny"
    )
    assert verdict(now, "shell", "echo hello") == "allow"
    left = {each.what: each.todo for each in read(home).left_out}
    assert "agent.tools.shell_blocked_commands: git push --force" in left
    assert left["agent.tools.shell_allow_absolute_paths"].endswith("agents.main.sandbox false")
    assert now.agent("main").sandbox is not False


async def test_rules_that_are_here_are_not_weakened(tmp_path: Path) -> None:
    """What the owner refuses stays refused; what they allow before that counts, and it is said."""
    settings = settings_in(
        tmp_path,
        "policy:\n- {verdict: deny, tool: write_file}\n- {verdict: allow, tool: web_fetch}\n",
    )
    home = with_tools(
        home_of("agent-computer", tmp_path), require_approval=["write_file", "web_fetch", "shell"]
    )
    planned = await with_store(settings, lambda store: make_plan(read(home), settings, store))
    (left,) = (
        each for each in planned.left_out if each.what == "that main has the rule: ask write_file"
    )
    assert "existing rules come first" in left.why
    now = await moved(home, settings)
    assert verdict(now, "write_file") == "deny" and verdict(now, "shell", "true") == "ask"
    assert verdict(now, "web_fetch") == "ask", "for this agent alone"
    assert [rule.agent for rule in now.config.policy if rule.verdict == "allow"] == ["*"]


async def test_where_models_are_and_their_keys(tmp_path: Path) -> None:
    home = home_of("agent-computer", tmp_path)
    config = json.loads((home / "config.json").read_text())
    config |= {"lmstudio": {"base_url": "http://127.0.0.1:1234/v1", "api_key": "a-key"}}
    config |= {
        "openrouter_api_key": "ADD_KEY_HERE",
        "pinchtab": {"enabled": True, "token": "secret-token"},
    }
    (home / "config.json").write_text(json.dumps(config))
    now = await moved(home, settings_in(tmp_path))
    assert now.config.providers["lmstudio"].base_url == "http://127.0.0.1:1234/v1"
    assert (
        now.environment["LMSTUDIO_API_KEY"] == "a-key"
        and "OPENROUTER_API_KEY" not in now.environment
    )
    assert any(each.what == "pinchtab.enabled" for each in read(home).left_out)


def test_what_only_its_search_index_knows_is_a_memory(tmp_path: Path) -> None:
    home = home_of("agent-computer", tmp_path)
    before = [memory.text for memory in read(home).memories]
    with apsw.Connection(str(home / "workspace/memory/memory.db")) as db:
        db.execute(
            "INSERT INTO memories(source_type, source_id, title, content, created_at)"
            " VALUES('knowledge', 'x', 'The printer', 'It jams.', 1.0)"
        )
    assert [memory.text for memory in read(home).memories] == [*before, "The printer: It jams."]
