"""A Deskhand whose sub-agents do what their task says as JSON, and repeat what their tools gave."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio

from deskhand.models.base import Item, Request
from deskhand.runtime.app import App
from deskhand.sandbox.choose import Proven
from deskhand.store.queries import subagents_of
from deskhand.testing.scripted import Script, ScriptedModel, say
from deskhand.testing.temporary_home import TemporaryHome, script
from deskhand.types.events import TurnEnded
from deskhand.types.messages import Message, ToolResult
from deskhand.types.subagents import SubagentTask

PARENT = "default/terminal:1"


def answering(request: Request) -> Message:
    """As usual; a sub-agent says what its tools gave, or repeats what it was told."""
    last = request.messages[-1].message
    if not is_asked_by_subagent(request):
        return script(request)
    if last.role == "tool":
        given = (part.text for part in last.parts if isinstance(part, ToolResult))
        return say(f"It says: {' '.join(given)}")
    if "[[" in last.text:
        return script(request)
    return say(f"Answer to {last.text.split(']')[-1].strip()!r}")


def is_asked_by_subagent(request: Request) -> bool:
    first = next(each.message.text for each in request.messages if each.message.role == "user")
    return "You are a sub-agent" in first


class HoldingModel(ScriptedModel):
    """Sub-agents whose first words end with `task` are answered once `hold` is set."""

    def __init__(self, script: Script, hold: anyio.Event, task: str = "") -> None:
        super().__init__(script)
        self._hold = hold
        self._task = task

    async def reply(self, request: Request) -> AsyncIterator[Item]:
        if is_asked_by_subagent(request) and request.messages[0].message.text.endswith(self._task):
            await self._hold.wait()
        async for item in super().reply(request):
            yield item


def desk_of(home: Path, proven: Proven | None = None, **config: Any) -> TemporaryHome:
    desk = TemporaryHome(home, proven, **config)
    desk.model.script = answering
    return desk


def calls(*made: tuple[str, dict[str, Any]]) -> str:
    """A message that has these calls made."""
    return json.dumps([list(each) for each in made])


def tasks_of(app: App, session: str = PARENT) -> list[SubagentTask]:
    return subagents_of(app.store, session, 100)


async def turn_ends(app: App, number: int, session: str = PARENT) -> list[str]:
    """How the turns ended, once there are so many."""
    events = [each.event for each in await app.store.events(session)]
    ended: list[str] = [each.reason for each in events if isinstance(each, TurnEnded)]
    return ended if len(ended) >= number else []
