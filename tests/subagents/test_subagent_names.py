"""Sub-agents by the names and arguments of other systems, and how much one task may take."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from deskhand.models.base import Request
from deskhand.testing.scripted import say
from deskhand.testing.temporary_home import heard, results, wait_for
from deskhand.types.events import ModelReplied
from deskhand.types.messages import Message, ToolCall

from .working import PARENT, answering, calls, desk_of, is_asked_by_subagent, tasks_of, turn_ends

AGENTS: dict[str, Any] = {"default": {}, "researcher": {}}


@pytest.mark.parametrize(
    ("tool", "arguments", "title"),
    [
        ("spawn_agent", {"task": "count", "context": "of 3", "agent": ""}, "default: count of 3"),
        ("spawn_agent", {"task": "look", "agent": "researcher"}, "researcher: look"),
        (
            "task",
            {"description": "Find it", "prompt": "Where is it?", "agent_type": "explore"},
            "explore: Find it",
        ),
        ("task", {"description": "d", "prompt": "p", "subagent_type": "plan"}, "plan: d"),
        ("localagents", {"action": "run", "name": "researcher", "task": "x"}, "researcher: x"),
        (
            "localagents",
            {"action": "spawn", "name": "researcher", "task": "x", "detached": False},
            "researcher: x",
        ),
        ("subagents", {"action": "run", "task": "x", "label": "my label"}, "default: my label"),
    ],
)
async def test_who_waits_gets_the_answer(
    tmp_path: Path, tool: str, arguments: dict[str, Any], title: str
) -> None:
    desk = desk_of(tmp_path, agents=AGENTS)
    async with desk.running() as app:
        said = await desk.call(app, tool, **arguments)
        assert said.startswith("Answer to ")
        assert [task.title for task in tasks_of(app)] == [title]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("subagents", {"action": "create", "task": "x", "label": "my label"}),
        ("localagents", {"action": "spawn", "name": "researcher", "task": "x", "detached": True}),
        ("localagents", {"action": "spawn", "name": "researcher", "task": "x"}),
    ],
)
async def test_who_does_not_wait_is_told(
    tmp_path: Path, tool: str, arguments: dict[str, Any]
) -> None:
    desk = desk_of(tmp_path, agents=AGENTS)
    async with desk.running() as app:
        assert "works in the background" in await desk.call(app, tool, **arguments)
        (told,) = await wait_for(partial(heard, app, PARENT))
        assert "is done]\nAnswer to 'x'" in told


async def test_they_are_looked_after(tmp_path: Path) -> None:
    """All actions, with the ids as they are called elsewhere."""
    desk = desk_of(tmp_path, agents=AGENTS)
    async with desk.running() as app:
        agents = await desk.call(app, "localagents", action="agents")
        assert "explore: finds out how something is, in files" in agents
        assert "researcher: another agent" in agents
        assert "There are none" in await desk.call(app, "localagents", action="sessions")
        await desk.call(app, "localagents", action="run", name="researcher", task="x")
        (task,) = tasks_of(app)
        assert task.id in await desk.call(app, "subagents", action="list")
        status = await desk.call(app, "subagents", action="status", task_id=task.id)
        assert "is done]\nAnswer to 'x'" in status
        more: dict[str, Any] = {"session_id": task.id, "task": "y"}
        assert "works in" in await desk.call(app, "localagents", action="send", **more)
        (told,) = await wait_for(partial(heard, app, PARENT))
        assert "Answer to 'y'" in told
        over = await desk.call(app, "subagents", action="cancel", task_id=task.id)
        assert f"{task.id}" in over and "is done" in over
        assert "needs the id" in await desk.call(app, "subagents", action="cancel")


async def test_one_at_work_is_cancelled_and_told_so(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    desk.model.script = endless
    async with desk.running() as app:
        await desk.call(app, "subagents", action="create", task="for ever")
        (task,) = tasks_of(app)
        assert "is being stopped" in await desk.call(app, "subagents", action="cancel", id=task.id)
        (told,) = await wait_for(partial(heard, app, PARENT))
        assert told.startswith(f"[sub-agent {task.id} “default: for ever” was stopped]")


def endless(request: Request) -> Message:
    """A sub-agent that never comes to an end by itself."""
    if not is_asked_by_subagent(request):
        return answering(request)
    path = msgspec.json.encode({"path": f"{len(request.messages)}.txt"})
    return say("", ToolCall(f"c{len(request.messages)}", "read_file", msgspec.Raw(path)))


async def test_a_task_takes_so_many_steps_at_most(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, subagents={"steps": 6, "kinds": {"explore": {"steps": 3}}})
    desk.model.script = endless
    async with desk.running() as app:
        for turn, (kind, most) in enumerate((("general", 6), ("explore", 3)), 1):
            await desk.say(app, calls(("spawn_agent", {"task": "for ever", "agent": kind})))
            await wait_for(partial(turn_ends, app, turn))
            task = tasks_of(app)[0]
            events = [each.event for each in await app.store.events(task.session)]
            assert sum(isinstance(each, ModelReplied) for each in events) == most + 1
            assert f"I stopped after {most} steps" in task.said
        assert all("failed]" in said for said in await results(app, PARENT))
