"""Many sub-agents at once, beside the time that their model alone takes."""

from __future__ import annotations

import json
import time
from pathlib import Path

import anyio

from deskhand.models.base import Request
from deskhand.store.queries import subagents_of
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.temporary_home import TemporaryHome, script
from deskhand.types.messages import Message

MANY = 50
LATENCY_S = 1.0
SESSION = "default/terminal:1"
LIMIT = 1.5


def reply(request: Request) -> Message:
    first = request.messages[0].message.text
    return say("found it") if "You are a sub-agent" in first else script(request)


async def figure(home: Path) -> float:
    """How many times longer than three calls in a row it takes until 50 sub-agents have answered
    whose model takes a second, and their parent has."""
    desk = TemporaryHome(home, subagents={"per_session": MANY})
    desk.model = ScriptedModel(reply, latency_s=LATENCY_S, remember=False)
    calls = [["spawn_agent", {"task": f"part {n}", "agent": "explore"}] for n in range(MANY)]
    async with desk.running() as app:
        began = time.perf_counter()
        await desk.say(app, json.dumps(calls))
        while not await _is_over(app):  # type: ignore[no-untyped-call]
            await anyio.sleep(0.01)
        took_s = time.perf_counter() - began
        assert len(subagents_of(app.store, SESSION, 100)) == MANY
    return took_s / (3 * LATENCY_S)


async def _is_over(app) -> bool:  # type: ignore[no-untyped-def]
    return not await app.store.open_sessions()
