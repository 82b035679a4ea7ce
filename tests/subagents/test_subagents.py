"""Sub-agents: a task is given once, and what came of it told once."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec
from msgspec.structs import replace

from deskhand.models.base import Item, Request
from deskhand.runtime.app import App
from deskhand.supervision.logs import Redacting
from deskhand.testing.channel import MemoryEditor
from deskhand.testing.scripted import ScriptedModel
from deskhand.testing.temporary_home import OWNER, heard, results, wait_for
from deskhand.tools.base import Context, Delegated, Outcome, Spec, Tool
from deskhand.tools.define import tool
from deskhand.types.door import Progress
from deskhand.types.events import CallClosed, CallsHandedOver, CommandRun, Erased, TurnEnded
from deskhand.types.identity import Address, Inbound, Said
from deskhand.types.messages import Message, Text, ToolCall
from deskhand.types.subagents import SubagentTask
from deskhand.types.turn import GOES_ON
from deskhand.workspace.erase import erase_session

from .working import (
    PARENT,
    HoldingModel,
    answering,
    calls,
    desk_of,
    is_asked_by_subagent,
    tasks_of,
    turn_ends,
)


async def test_a_call_waits_for_its_answer(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    async with desk.running() as app:
        assert await desk.call(app, "spawn_agent", task="how many?") == "Answer to 'how many?'"
        (task,) = tasks_of(app)
        assert task.state == "done" and task.told and task.title == "default: how many?"
        events = [each.event for each in await app.store.events(PARENT)]
        assert sum(isinstance(each, CallsHandedOver) for each in events) == 1
        assert sum(isinstance(each, TurnEnded) for each in events) == 1
        assert await heard(app, PARENT) == []


async def test_several_work_side_by_side(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    desk.model.latency_s = 0.3
    async with desk.running() as app:
        asked = [("spawn_agent", {"task": f"number {n}", "agent": "explore"}) for n in range(5)]
        await desk.say(app, calls(*asked))
        await wait_for(partial(_has_results, app, 5))
        assert sorted(await results(app, PARENT)) == [f"Answer to 'number {n}'" for n in range(5)]
        given = [task.at for task in tasks_of(app)]
        ended = [task.ended_at for task in tasks_of(app)]
        assert max(given) < min(each for each in ended if each is not None)


async def test_a_chat_shows_what_it_does_in_one_line(tmp_path: Path) -> None:
    editor = MemoryEditor()
    desk = desk_of(tmp_path)
    look = calls(("list_files", {}))
    desk.model.latency_s = 0.4
    async with desk.running(channels=(editor,), authorize=lambda inbound: OWNER) as app:
        app.drafts.work_s = 0.01
        body = Said(Message("user", (Text(calls(("spawn_agent", {"task": look}))),)))
        place = Address("memory", chat="1")
        await app.door.submit(Inbound("m1", place, "owner", app.parts.clock.now(), body))
        await wait_for(partial(_shows, editor, "Working with a sub-agent"))
        await wait_for(partial(_shows, editor, "Looking through files"))
        shown = next(text for _, text in editor.edits if "Looking through files" in text)
        assert shown.splitlines()[0].startswith("Working with a sub-agent")
        assert "default: [[" in shown.splitlines()[1]


async def _shows(editor: MemoryEditor, text: str) -> bool:
    shown = [*editor.posts.values(), *(each for _, each in editor.edits)]
    return any(text in each for each in shown)


async def _has_results(app: App, number: int) -> bool:
    return len(await results(app, PARENT)) >= number


async def test_one_in_the_background_is_told_as_a_message(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    async with desk.running() as app:
        said = await desk.call(app, "spawn_agent", task="look", agent="research", wait=False)
        (task,) = tasks_of(app)
        assert said == (
            f"[sub-agent {task.id} works in the background; what comes of it will be told here]"
        )
        (told,) = await wait_for(partial(heard, app, PARENT))
        assert told == f"[sub-agent {task.id} “research: look” is done]\nAnswer to 'look'"


async def test_who_writes_meanwhile_is_answered_at_once(tmp_path: Path) -> None:
    """The call waits no more, the sub-agent goes on, and its answer comes as a message."""
    desk = desk_of(tmp_path)
    hold = anyio.Event()
    desk.model = HoldingModel(answering, hold)
    async with desk.running() as app:
        await desk.say(app, calls(("spawn_agent", {"task": "take your time"})))
        await wait_for(partial(_works, app))
        await desk.say(app, "are you there?")
        assert await wait_for(partial(_closed, app)) == [GOES_ON]
        assert await wait_for(partial(turn_ends, app, 1)) == ["done"]
        hold.set()
        (told,) = await wait_for(partial(heard, app, PARENT))
        (task,) = tasks_of(app)
        title = "default: take your time"
        assert told == f"[sub-agent {task.id} “{title}” is done]\nAnswer to 'take your time'"


async def _closed(app: App) -> list[str]:
    events = [each.event for each in await app.store.events(PARENT)]
    return [each.reason for each in events if isinstance(each, CallClosed)]


async def _works(app: App) -> list[SubagentTask]:
    return [task for task in tasks_of(app) if task.state == "running"]


async def test_a_stop_stops_all_below(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    inner = calls(("spawn_agent", {"task": "deep down"}))
    desk.model = HoldingModel(answering, anyio.Event(), task="deep down")
    async with desk.running() as app:
        await desk.say(app, calls(("spawn_agent", {"task": inner})))
        (outer,) = await wait_for(partial(_works, app))
        (below,) = await wait_for(partial(_works_for, app, outer.session))
        began = anyio.current_time()
        await desk.say(app, "/stop")
        assert await wait_for(partial(turn_ends, app, 1, below.session)) == ["stopped"]
        assert anyio.current_time() - began < 20
        await wait_for(partial(_all_ended, app, (PARENT, outer.session)))
        (task,) = tasks_of(app)
        assert (task.state, task.said) == ("stopped", "stopped by owner")
        assert await heard(app, PARENT) == []


class WaitsAfterCalls(ScriptedModel):
    """A sub-agent that has called a tool never goes on."""

    async def reply(self, request: Request) -> AsyncIterator[Item]:
        if is_asked_by_subagent(request) and request.messages[-1].message.role == "tool":
            await anyio.sleep_forever()
        async for item in super().reply(request):
            yield item


async def test_an_undo_stops_what_goes_on_and_takes_back_what_it_did(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    desk.model = WaitsAfterCalls(answering)
    async with desk.running() as app:
        task = calls(("write_file", {"path": "a.txt", "content": "x"}))
        await desk.say(app, calls(("subagents", {"action": "create", "task": task})))
        made = app.settings.home.workspace("default") / "a.txt"
        await wait_for(partial(_exists, made, True))
        await desk.say(app, "/undo")
        await wait_for(partial(_exists, made, False))
        (reply,) = await wait_for(partial(_replies, app))
        assert "Stopped a sub-agent." in reply and "a.txt" in reply
        (given,) = tasks_of(app)
        assert (given.state, given.told) == ("stopped", True)
        assert await heard(app, PARENT) == []


async def _replies(app: App) -> list[str]:
    events = [each.event for each in await app.store.events(PARENT)]
    return [each.reply for each in events if isinstance(each, CommandRun)]


async def _exists(path: Path, wanted: bool) -> bool:
    return path.exists() is wanted


async def _works_for(app: App, session: str) -> list[SubagentTask]:
    return [task for task in tasks_of(app, session) if task.state == "running"]


async def _all_ended(app: App, sessions: tuple[str, ...]) -> bool:
    return not any(task.is_live for each in sessions for task in tasks_of(app, each))


async def test_a_task_waits_for_those_that_it_needs(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    async with desk.running() as app:
        await desk.call(app, "subagents", action="create", task="first", agent="explore")
        (first,) = tasks_of(app)
        made: dict[str, Any] = {"action": "run", "task": "second", "depends_on": [first.id]}
        await desk.call(app, "subagents", **made)
        second = tasks_of(app)[0]
        asked = next(
            each.message.text
            for request in desk.model.requests
            for each in request.messages
            if "second" in each.message.text and "You are" in each.message.text
        )
        assert "[What came of “explore: first”]\nAnswer to 'first'" in asked
        assert second.state == "done"


async def test_a_further_task_for_the_same(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    async with desk.running() as app:
        await desk.call(app, "spawn_agent", task="one")
        (task,) = tasks_of(app)
        await desk.call(app, "subagents", action="send", id=task.id, task="and two")
        told = (await wait_for(partial(heard, app, PARENT)))[0]
        assert told == f"[sub-agent {task.id} “default: one” is done]\nAnswer to 'and two'"
        session = task.session
        assert len(await turn_ends(app, 2, session)) == 2
        status = await desk.call(app, "subagents", action="status", id=task.id)
        assert "Answer to 'one'" in status and "Answer to 'and two'" in status


async def test_what_is_refused(tmp_path: Path) -> None:
    desk = desk_of(
        tmp_path,
        agents={"default": {}, "other": {}, "free": {"sandbox": False}},
        subagents={"depth": 2, "per_session": 1},
    )
    round_about = calls(("spawn_agent", {"task": "back", "agent": "default"}))
    deep = calls(("spawn_agent", {"task": calls(("spawn_agent", {"task": "x"}))}))
    beside = calls(("spawn_agent", {"task": "x", "wait": False}))
    async with desk.running() as app:
        for arguments, why in (
            ({"task": " "}, "the task is empty"),
            ({"task": "x", "agent": "nobody"}, "there is no agent 'nobody'; there are: explore"),
            ({"task": "x", "agent": "free"}, "works outside the sandbox"),
            ({"task": round_about, "agent": "other"}, "round in circles: default -> other"),
            ({"task": deep}, "there is no tool 'spawn_agent'"),
            ({"task": beside}, "a sub-agent waits for those that it begins"),
        ):
            assert why in await desk.call(app, "spawn_agent", **arguments), arguments
        said = await desk.call(app, "subagents", action="status", id="0000")
        assert said == "there is no sub-agent '0000' of this conversation"


class Lost:
    """A call for which nothing ever comes back."""

    spec = Spec("lose", "Lose it.", {"type": "object", "properties": {}}, replay="commit")

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        return Delegated(context.call_id, wait_s=0.3)


async def test_nobody_waits_for_ever(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    async with desk.running(tools={"lose": Lost()}) as app:
        await desk.say(app, calls(("lose", {}), ("lose", {})))
        assert await wait_for(partial(turn_ends, app, 1)) == ["done"]
        assert await _closed(app) == [GOES_ON, GOES_ON]


async def test_call_ids_that_are_used_again(tmp_path: Path) -> None:
    """A message that interrupts ends what its own call has begun, and not what an earlier call of
    that name has."""
    desk = desk_of(tmp_path)
    hold = anyio.Event()
    desk.model = HoldingModel(same_ids, hold)
    async with desk.running() as app:
        await desk.say(app, calls(("spawn_agent", {"task": "first"})))
        await wait_for(partial(_works, app))
        await desk.say(app, "go on")
        await wait_for(partial(turn_ends, app, 1))
        await desk.say(app, calls(("spawn_agent", {"task": "second"})))
        await wait_for(partial(_work, app, 2))
        await desk.say(app, "instead", when="interrupt")
        await wait_for(partial(_work, app, 1))
        hold.set()
        (told,) = await wait_for(partial(heard, app, PARENT))
        assert "Answer to 'first'" in told
        assert {task.title: task.state for task in tasks_of(app)} == {
            "default: first": "done",
            "default: second": "stopped",
        }


def same_ids(request: Request) -> Message:
    said = answering(request)
    same = (replace(part, id="c") if isinstance(part, ToolCall) else part for part in said.parts)
    return Message("assistant", tuple(same))


async def _work(app: App, number: int) -> bool:
    return len(await _works(app)) == number


async def test_what_a_sub_agent_begins_ends_with_it(tmp_path: Path) -> None:
    """Somebody writes to a sub-agent that waits for another one: it answers, and is done."""
    desk = desk_of(tmp_path)
    desk.model = HoldingModel(answering, anyio.Event(), task="deep down")
    inner = calls(("spawn_agent", {"task": "deep down"}))
    async with desk.running() as app:
        await desk.say(app, calls(("spawn_agent", {"task": inner})))
        (outer,) = await wait_for(partial(_works, app))
        await wait_for(partial(_works_for, app, outer.session))
        await app.door.submit(
            Inbound(
                "p1",
                Address("terminal", chat="x"),
                "owner",
                1.0,
                Said(Message("user", (Text("never mind"),))),
                session=outer.session,
            )
        )
        await wait_for(partial(_has_results, app, 1))
        await wait_for(partial(_all_ended, app, (PARENT, outer.session)))
        assert tasks_of(app, outer.session)[0].state == "stopped"


async def test_erasing_ends_and_erases_it_all(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    desk.model = HoldingModel(answering, anyio.Event())
    async with desk.running() as app:
        await desk.say(app, calls(("spawn_agent", {"task": "x"})))
        (task,) = await wait_for(partial(_works, app))
        await erase_session(app.store, OWNER, PARENT, 5.0)
        assert tasks_of(app) == []
        await wait_for(partial(_is_erased, app, task.session))
    async with desk.running() as app:
        assert not await app.store.open_sessions()
        agent = app.features.agent_in_session(task.session, app.current.agent_of(task.session))
        assert agent.tools == {}


async def _is_erased(app: App, session: str) -> bool:
    events = [each.event for each in await app.store.events(session)]
    return all(isinstance(each, Erased) for each in events)


async def test_the_log_says_whose_line_it_is(tmp_path: Path) -> None:
    """`[agent:place:d0]` for a conversation of people, d1 for a sub-agent."""

    @tool
    async def grumble() -> str:
        logging.getLogger("deskhand.test").warning("it is late")
        return "done"

    lines: list[str] = []
    handler = logging.Handler()
    shown = Redacting(str)
    handler.emit = lambda record: lines.append(shown.format(record))  # type: ignore[method-assign]
    desk = desk_of(tmp_path)
    logging.getLogger("deskhand.test").addHandler(handler)
    tools: dict[str, Tool] = {"grumble": grumble}
    async with desk.running(tools=tools) as app:
        ours = {each.spec.name: each for each in app.features.tools("default")}
        tools["spawn_agent"] = ours["spawn_agent"]
        await desk.call(app, "grumble")
        await desk.call(app, "spawn_agent", task=calls(("grumble", {})))
        (task,) = tasks_of(app)
    logging.getLogger("deskhand.test").removeHandler(handler)
    own = task.session.replace("/", ":")
    assert [line.partition("deskhand.test: ")[2] for line in lines] == [
        "[default:terminal:1:d0] it is late",
        f"[{own}:d1] it is late",
    ]


async def test_who_follows_the_parent_sees_each_step(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    shown: list[str] = []

    async def follow(app: App) -> None:
        async with aclosing(app.door.follow(PARENT, OWNER)) as items:
            async for item in items:
                match item:
                    case Progress(kind="tool_output", text=text):
                        shown.append(text)
                    case _:
                        pass

    async with desk.running() as app, anyio.create_task_group() as tasks:
        await desk.call(app, "list_files", path=".")
        tasks.start_soon(follow, app)
        look = calls(("list_files", {"path": "."}))
        await desk.call(app, "spawn_agent", task=look, label="look")
        tasks.cancel_scope.cancel()
    assert shown == ['default: look \N{MIDDLE DOT} list_files {"path":"."}\n']


async def test_none_are_offered_where_none_are_allowed(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, subagents={"depth": 0})
    async with desk.running() as app:
        assert "there is no tool 'spawn_agent'" in await desk.call(app, "spawn_agent", task="x")
