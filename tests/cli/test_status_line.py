"""The line at the foot of the chat: model, effort, context, cost, permission mode, what runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from deskhand.agent.agent import with_options
from deskhand.cli.session_facts import SessionFacts
from deskhand.cli.status_line import format_duration, render_status
from deskhand.config.config import Settings, read_settings
from deskhand.runtime.app import Parts, open_app
from deskhand.testing.scripted import ScriptedModel
from deskhand.types.events import AnyEvent, AskedAside, ModelReplied, OptionsSet, Recorded
from deskhand.types.identity import Principal
from deskhand.types.messages import Message, Text, Usage
from deskhand.types.options import SessionOptions

from .test_chat import Open
from .test_chat import opened as opened

FACTS = {
    "model": "claude-sonnet-5",
    "effort": "high",
    "context": "context 12%",
    "cost": "$0.04",
    "mode": "workspace-free",
}
WORKING = "working 12 s  Ctrl+C stops"


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (120, f"{WORKING}  claude-sonnet-5 · high · context 12% · $0.04 · workspace-free"),
        (80, f"{WORKING}  claude-sonnet-5 · context 12% · workspace-free"),
        (50, f"{WORKING}  claude-sonnet-5"),
        (30, WORKING),
        (12, "working 12…"),
    ],
)
def test_as_much_as_fits(width: int, line: str) -> None:
    assert render_status(WORKING, FACTS, width) == line


def test_at_rest_all_of_it_fits_into_80_columns() -> None:
    line = "nov21-0930  claude-sonnet-5 · high · context 12% · $0.04 · workspace-free"
    assert render_status("nov21-0930", FACTS, 80) == line


def test_durations() -> None:
    assert [format_duration(s) for s in (0.4, 59.9, 61, 3600 + 240)] == [
        "0 s",
        "59 s",
        "1 min 1 s",
        "1 h 4 min",
    ]


def settings_of(home: Path) -> Settings:
    (home / "deskhand.yaml").write_text(
        "defaults: {models: [anthropic/claude-sonnet-5], thinking: high}\npermission_mode: ask-me\n"
    )
    return read_settings(None, {"DESKHAND_HOME": str(home), "ANTHROPIC_API_KEY": "x"})


async def test_the_facts_follow_the_events(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    facts = SessionFacts()
    owner = Principal("owner", ("owner",))
    numbers = iter(range(1, 100))

    def see(*events: AnyEvent) -> None:
        for event in events:
            n = next(numbers)
            facts.see(Recorded(n, "s", n, 0.0, event), settings)

    async with open_app(settings, Parts(lambda name: ScriptedModel())) as app:
        agent = app.current.agent_of("default/terminal:x")
        window = with_options(agent, SessionOptions()).limits.model_window
        assert facts.list_facts(agent, settings) == {
            "model": "claude-sonnet-5",
            "effort": "high",
            "context": "",
            "cost": "",
            "mode": "ask-me",
        }
        said = Message("assistant", (Text("x"),))
        usage = Usage(window // 4, 1_000)
        see(ModelReplied(said, "anthropic/claude-sonnet-5", usage=usage))
        now = facts.list_facts(agent, settings)
        assert now["context"] in ("context 25%", "context 26%")
        assert now["cost"].startswith("$")
        see(AskedAside("", "nobody/knows", Usage(10, 10)))
        assert facts.list_facts(agent, settings)["cost"] == now["cost"] + "+"
        see(ModelReplied(said, "ollama/other", usage=Usage(10, 10)))
        assert facts.list_facts(agent, settings)["model"] == "other", "a fallback answered"
        see(OptionsSet(1, owner, SessionOptions(model="openai/gpt-5.4", thinking="low")))
        now = facts.list_facts(agent, settings)
        assert (now["model"], now["effort"]) == ("gpt-5.4", "low")
        see(OptionsSet(2, owner, SessionOptions(approval=True)))
        assert facts.list_facts(agent, settings)["mode"] == "asks before each tool"
        see(OptionsSet(3, owner, SessionOptions(plan_mode=True)))
        assert facts.list_facts(agent, settings)["mode"] == "plan mode"


def test_in_the_chat(opened: Open) -> None:
    chat = opened()
    chat.wait_ready()
    chat.wait_for("test  desk · workspace-free")
    chat.say("slow")
    chat.wait_for("working 2 s  Ctrl+C stops  desk · ")
    chat.type("\x03")
    chat.wait_for("Stopped.")
    chat.say("/plan on")
    chat.wait_for("· plan mode")
    assert "context 1%" in chat.shown
