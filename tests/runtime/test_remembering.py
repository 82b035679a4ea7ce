"""Memory in a running App: saved in one conversation, known in the next, and told to whom it is for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deskhand.memory.facts import NewFact, added
from deskhand.runtime.app import App
from deskhand.testing.store_suite import OWNER as STORE_OWNER
from deskhand.types.events import MessageReceived, Recalled, TurnEnded
from deskhand.types.identity import Address, Inbound, Said
from deskhand.types.labels import OWNER
from deskhand.types.messages import Message, Text

from .test_hands import Agent, find


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return (tmp_path / "home").resolve()


async def ask(agent: Agent, app: App, text: str, **address: Any) -> tuple[str, str]:
    """Say this in a conversation of its own. Returns the last prompt, and all that the model was shown there."""
    agent._calls, agent._count = [("think", {"thought": "hm"})], agent._count + 1
    place = Address("terminal", chat=str(agent._count), **address)
    before = len(agent.model.requests)
    body = Said(Message("user", (Text(text),)))
    receipt = await app.door.submit(Inbound(f"m{agent._count}", place, "owner", app.parts.clock.now(), body))
    await find(app, receipt.session, TurnEnded)
    request = agent.model.requests[before]
    shown = "\n".join(part.text for each in request.messages for part in each.message.parts if isinstance(part, Text))
    return "\n".join(request.system), shown


async def test_what_is_saved_in_one_conversation_is_known_in_the_next(home: Path) -> None:
    agent = Agent(home)
    async with agent.running() as app:
        said = await agent.result(app, "save_memory", content="The garage door code is 7719", scope="user")
        assert said == "ok, remembered"
        prompt, shown = await ask(agent, app, "What is the code of my garage?")
        assert "7719" not in prompt
        assert '<context_snapshot source="memories">' in shown and "The garage door code is 7719" in shown
        assert shown.index("What is the code of my garage?") < shown.index("7719"), "at the end of the message"
        _, shown = await ask(agent, app, "What is the weather like?")
        assert "7719" not in shown and "context_snapshot" not in shown
        _, shown = await ask(agent, app, "What is the code of my garage?", group=True)
        assert "7719" not in shown, "a person's own is told where they are alone"


async def test_recalled_text_is_logged_once_and_labelled(home: Path) -> None:
    agent = Agent(home)
    async with agent.running() as app:
        await agent.result(app, "save_memory", content="The garage door code is 7719")
        before = len(agent.model.requests)
        await ask(agent, app, "the garage code?")
        assert len(agent.model.requests) == before + 2, "a tool was called in between"
        (session,) = [row.session for row in await app.store.sessions(STORE_OWNER) if row.session.endswith(":2")]
        events = [each.event for each in await app.store.events(session)]
        (recalled,) = [event for event in events if isinstance(event, Recalled)]
        assert recalled.facts == (1,) and recalled.part.label.integrity == "tool_local"
        assert not any("7719" in event.message.text for event in events if isinstance(event, MessageReceived))


async def test_a_pinned_fact_stands_in_the_prompt(home: Path) -> None:
    agent = Agent(home)
    async with agent.running() as app:
        await agent.result(app, "save_memory", content="Allergic to peanuts", pinned=True)
        prompt, _ = await ask(agent, app, "hello")
        assert "# Known\n- Allergic to peanuts" in prompt
        prompt, _ = await ask(agent, app, "hello", group=True)
        assert "peanuts" not in prompt
        assert "ok, forgotten" in await agent.result(app, "forget_memory", memory_id=1)
        prompt, _ = await ask(agent, app, "hello")
        assert "peanuts" not in prompt and "# Known" not in prompt


async def test_memory_that_is_switched_off(home: Path) -> None:
    agent = Agent(home, {"memory": {"enabled": False}})
    async with agent.running() as app:
        fact = NewFact("The garage code is 7719", "user", "owner", OWNER, "person", "k", pinned=True)
        await app.store.change(added(fact, 1.0))
        prompt, shown = await ask(agent, app, "the garage code?")
        assert "7719" not in prompt + shown
        assert not any(tool.name == "save_memory" for tool in agent.model.requests[-1].tools)
