"""An editor by the official SDK's client, and a home whose agent it starts."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acp
import anyio
import yaml
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    PermissionOption,
    RequestPermissionResponse,
    ToolCallUpdate,
)

from deskhand.testing.llm import FakeLLM
from deskhand.testing.llm_script import Behaviour, FakeCall

ROOT = Path(__file__).parents[2]


class Editor:
    """What an editor does: it shows updates, and its person answers with `choices`."""

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.asked: list[tuple[str, list[str]]] = []
        self.choices: list[str] = []

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        self.asked.append((tool_call.title or "", [each.option_id for each in options]))
        if not self.choices:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        chosen = AllowedOutcome(outcome="selected", option_id=self.choices.pop(0))
        return RequestPermissionResponse(outcome=chosen)

    def said(self) -> str:
        return "".join(
            each.content.text
            for each in self.updates
            if each.session_update == "agent_message_chunk"
        )

    def calls(self) -> dict[str, Any]:
        """By their title, as they were told last."""
        found: dict[str, Any] = {}
        titles: dict[str, str] = {}
        for each in self.updates:
            if each.session_update == "tool_call":
                titles[each.tool_call_id] = each.title
            if each.session_update in ("tool_call", "tool_call_update"):
                found[titles[each.tool_call_id]] = each
        return found


class Desk:
    """A home, whose model does what `model` is told."""

    def __init__(self, home: Path, model: FakeLLM) -> None:
        self.home = home
        self.model = model
        config = {
            "defaults": {"models": ["fake/one"], "profile": "full"},
            "providers": {"fake": {"base_url": model.url, "key": "none"}},
            "policy": [{"tool": "shell", "verdict": "allow"}],
        }
        (home / "desk").mkdir()
        (home / "desk" / "deskhand.yaml").write_text(yaml.safe_dump(config))

    def will_call(self, word: str, name: str, **arguments: Any) -> None:
        """The model makes this call once, when it is told this word."""
        call = FakeCall(name, json.dumps(arguments))
        self.model.script(Behaviour(match=word, times=1, calls=(call,)), Behaviour(text="Done."))

    def was_told(self) -> str:
        """All that the model was told."""
        return "\n".join(json.dumps(each.json, ensure_ascii=False) for each in self.model.requests)

    @asynccontextmanager
    async def editor(self) -> AsyncIterator[tuple[Editor, Any]]:
        """An editor, and the agent that it has started."""
        editor = Editor()
        async with self.starting(editor) as agent:
            yield editor, agent

    @asynccontextmanager
    async def starting(
        self, editor: Editor, capabilities: ClientCapabilities | None = None
    ) -> AsyncIterator[Any]:
        """The agent that this editor has started, and told what it can do."""
        environment = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "DESKHAND_HOME": str(self.home / "desk"),
        }
        async with acp.spawn_agent_process(
            editor,  # type: ignore[arg-type]
            sys.executable,
            "-m",
            "deskhand",
            "acp",
            env=environment,
            cwd=ROOT,
        ) as (agent, _process):
            with anyio.fail_after(100):
                found = await agent.initialize(
                    protocol_version=acp.PROTOCOL_VERSION, client_capabilities=capabilities
                )
                assert found.agent_capabilities is not None
                assert found.agent_capabilities.load_session
                yield agent


def say(text: str) -> list[Any]:
    return [acp.text_block(text)]
