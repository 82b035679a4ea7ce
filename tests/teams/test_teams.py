"""Teams: members are told what is written to them once, take tasks of the list by lease, and shut
down when they agree."""

from __future__ import annotations

import json
from pathlib import Path

from deskhand.models.base import Request
from deskhand.store.queries import subagents_of
from deskhand.testing.temporary_home import OWNER
from deskhand.tools.queries import change_task
from deskhand.types.errors import ModelKeyRefused
from deskhand.types.messages import Message
from deskhand.types.tasks import Task
from deskhand.workspace.erase import erase_session

from .working import (
    LEAD_SESSION,
    answering,
    begin,
    board,
    call,
    desk_of,
    hears,
    results_of,
    session_of,
    status_is,
    task_is,
    told,
    who_asks,
)


async def test_a_teammate_begins_and_tells_the_lead(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    async with desk.running() as app:
        await begin(desk, app)
        said = await call(desk, app, "spawn_teammate", name="ann", role="reader", prompt="read it")
        assert said == "[teammate ann has begun; its answers and messages come by themselves]"
        assert await told(app, 1) == ["[teammate ann “ann: read it” is done]\nann did read it"]
        await status_is(app, ann="idle")
        assert await call(desk, app, "list_teammates") == "ann (reader) is idle"


async def test_what_is_written_to_a_teammate_is_its_next_task(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    async with desk.running() as app:
        await begin(desk, app)
        await call(desk, app, "spawn_teammate", name="ann", role="", prompt="begin")
        await told(app, 1)
        said = await call(desk, app, "send_message", to="ann", content="now this")
        assert said == "[on its way to ann]"
        assert (await told(app, 2))[1].endswith("is done]\nann did now this")


async def test_teammates_write_to_each_other_and_to_the_lead(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    async with desk.running() as app:
        await begin(desk, app)
        await call(desk, app, "spawn_teammate", name="bo", role="", prompt="begin")
        await told(app, 1)
        calls = json.dumps(
            [
                ["message_teammate", {"to": "bo", "content": "hello bo"}],
                ["send_message", {"to": "lead", "content": "hello lead", "msg_type": "message"}],
            ]
        )
        await call(desk, app, "spawn_teammate", name="ann", role="", prompt=calls)
        heard = await told(app, 3)
        assert "[message from ann]\nhello lead" in heard
        await status_is(app, ann="idle", bo="idle")
        assert "bo did hello bo" not in str(await told(app, 3)), "nobody asked for it but ann"
        inbox = json.dumps([["read_inbox", {}]])
        await call(desk, app, "message_teammate", to="bo", content=inbox)
        await told(app, 4)
        assert (await results_of(app, "bo"))[-1].startswith("[message from ann]\nhello bo")


async def test_all_are_written_to(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    async with desk.running() as app:
        await begin(desk, app)
        for name in ("ann", "bo"):
            await call(desk, app, "spawn_teammate", name=name, role="", prompt="begin")
        await told(app, 2)
        assert await call(desk, app, "broadcast", content="stop by") == "[on its way to ann, bo]"
        said = [each.splitlines()[-1] for each in (await told(app, 4))[2:]]
        assert sorted(said) == ["ann did stop by", "bo did stop by"]


async def test_tasks_of_the_list_are_taken_and_completed(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    async with desk.running() as app:
        await begin(desk, app)
        await call(desk, app, "manage_tasks", action="create", title="first")
        await call(desk, app, "manage_tasks", action="create", title="second", depends_on=[1])
        await call(desk, app, "spawn_teammate", name="ann", role="", prompt="begin")
        first = await task_is(app, 1, "completed")
        second = await task_is(app, 2, "completed")
        assert (first.owner, first.lease, first.result) == ("ann", "", "ann did first")
        assert (second.owner, second.result) == ("ann", "ann did second")
        heard = await told(app, 3)
        assert [each.splitlines()[-1] for each in heard] == [
            "ann did begin",
            "ann did first",
            "ann did second",
        ]


async def test_each_task_is_taken_by_one(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    async with desk.running() as app:
        await begin(desk, app)
        for name in ("ann", "bo", "cy"):
            await call(desk, app, "spawn_teammate", name=name, role="", prompt="begin")
        await told(app, 3)
        for n in range(6):
            await call(desk, app, "manage_tasks", action="create", title=f"task {n}")
        for n in range(1, 7):
            await task_is(app, n, "completed")
        heard = await told(app, 9)
        assert sorted(each.splitlines()[-1][-6:] for each in heard[3:]) == [
            f"task {n}" for n in range(6)
        ]
        owners = {task.owner for task in (await board(app)).values()}
        assert owners <= {"ann", "bo", "cy"}


async def test_a_task_that_is_assigned_is_taken_by_whom_it_is_for(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    async with desk.running() as app:
        await begin(desk, app)
        await call(desk, app, "manage_tasks", action="create", title="for bo", owner="bo")
        await call(desk, app, "spawn_teammate", name="ann", role="", prompt="begin")
        await told(app, 1)
        await status_is(app, ann="idle")
        assert (await board(app))[1].status == "pending"
        await call(desk, app, "spawn_teammate", name="bo", role="", prompt="begin")
        assert (await task_is(app, 1, "completed")).owner == "bo"


async def test_it_shuts_down_when_it_agrees(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    async with desk.running() as app:
        await begin(desk, app)
        await call(desk, app, "spawn_teammate", name="ann", role="", prompt="begin")
        await told(app, 1)
        asked = await call(desk, app, "shutdown_request", teammate="ann", reason="no work is left")
        request_id = asked.split()[1].rstrip(":")
        await status_is(app, ann="idle")
        status = await call(desk, app, "check_protocol", request_id=request_id)
        assert status == f"shutdown request {request_id} from lead to ann is pending"
        for approve, state in ((False, "rejected"), (True, "approved")):
            if approve:
                asked = await call(desk, app, "shutdown_request", teammate="ann")
                request_id = asked.split()[1].rstrip(":")
            answer = {
                "to": "lead",
                "content": "as you like",
                "msg_type": "shutdown_response",
                "request_id": request_id,
                "approve": approve,
            }
            words = json.dumps([["message_teammate", answer]])
            await call(desk, app, "message_teammate", to="ann", content=words)
            text = f"[ann answers to the request {request_id} to shut down]\n{state}: as you like"
            await hears(app, text)
            status = await call(desk, app, "check_protocol", request_id=request_id)
            assert status.endswith(f"is {state}: {state}: as you like")
        await status_is(app, ann="shutdown")
        refused = await call(desk, app, "message_teammate", to="ann", content="still there?")
        assert "ann has shut down: call it back with spawn_teammate" in refused
        said = await call(desk, app, "spawn_teammate", name="ann", role="", prompt="again")
        assert said.startswith("[teammate ann is back, and knows what it knew")
        await status_is(app, ann="idle")
        await hears(app, "ann: again” is done]")


async def test_a_plan_is_shown_and_nothing_is_changed_before_a_yes(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    async with desk.running() as app:
        await begin(desk, app)
        plan = {"to": "lead", "content": "1. write a", "msg_type": "plan_approval_request"}
        words = json.dumps(
            [["write_file", {"path": "a", "content": "x"}], ["message_teammate", plan]]
        )
        await call(desk, app, "spawn_teammate", name="ann", role="", prompt=words, plan_first=True)
        shown = (await told(app, 1))[0]
        assert "[ann shows a plan: answer with plan_review, request_id " in shown
        assert "1. write a" in shown
        request_id = shown.split("request_id ")[1].split("]")[0]
        await status_is(app, ann="waiting")
        assert not (app.settings.home.workspace("default") / "a").exists()
        await call(desk, app, "manage_tasks", action="create", title="not now")
        said = await call(desk, app, "plan_review", request_id=request_id, approve=True)
        assert said == "[the plan of ann is approved]"
        again = await call(desk, app, "plan_review", request_id=request_id, approve=False)
        assert "was answered before: approved" in again
        await task_is(app, 1, "completed")
        write = json.dumps([["write_file", {"path": "a", "content": "x"}]])
        await call(desk, app, "message_teammate", to="ann", content=write)
        await hears(app, "ann saw: ")
        assert (app.settings.home.workspace("default") / "a").exists()


async def test_a_stop_ends_the_team(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    async with desk.running() as app:
        await begin(desk, app)
        await call(desk, app, "spawn_teammate", name="ann", role="", prompt="begin")
        await told(app, 1)
        await desk.say(app, "/stop")
        await status_is(app, ann="shutdown")
        await call(desk, app, "manage_tasks", action="create", title="left alone")
        assert (await board(app))[1].status == "pending"


async def test_it_shuts_down_when_it_has_had_nothing_to_do(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, subagents={"teammate_idle_s": 1})
    async with desk.running() as app:
        await begin(desk, app)
        await call(desk, app, "spawn_teammate", name="ann", role="", prompt="begin")
        await told(app, 1)
        await status_is(app, ann="shutdown")


async def test_a_task_that_fails_twice_is_blocked(tmp_path: Path) -> None:
    """A teammate whose turn fails gives the task back."""
    desk = desk_of(tmp_path)
    async with desk.running() as app:
        await begin(desk, app)
        desk.model.script = _failing
        await call(desk, app, "manage_tasks", action="create", title="too hard")
        await call(desk, app, "spawn_teammate", name="ann", role="", prompt="begin")
        task = await task_is(app, 1, "blocked")
        assert (task.owner, task.lease) == ("", "") and task.result.startswith(
            "given back 2 times: "
        )


def _failing(request: Request) -> Message:
    if who_asks(request) and "too hard" in request.messages[-1].message.text:
        raise ModelKeyRefused("the key is refused")
    return answering(request)


async def test_who_it_is_stands_in_each_of_its_requests(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    async with desk.running() as app:
        await begin(desk, app)
        await call(desk, app, "spawn_teammate", name="ann", role="keeps the books", prompt="begin")
        await told(app, 1)
        asked = [each for each in desk.model.requests if "teammate in a team" in str(each.system)]
        assert asked and all("You are ann (keeps the books)," in str(e.system) for e in asked)
        names = {tool.name for tool in asked[0].tools}
        assert {"message_teammate", "idle", "manage_tasks"} <= names
        assert not {"spawn_teammate", "plan_review", "spawn_agent", "ask_user"} & names


async def test_refusals(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, subagents={"teammates": 1})
    async with desk.running() as app:
        off = await call(desk, app, "spawn_teammate", name="ann", role="", prompt="begin")
        assert "teams" in off
        await begin(desk, app)
        bad = await call(desk, app, "spawn_teammate", name="lead", role="", prompt="begin")
        assert "is no name for a teammate" in bad
        await call(desk, app, "spawn_teammate", name="ann", role="", prompt="begin")
        full = await call(desk, app, "spawn_teammate", name="bo", role="", prompt="begin")
        assert "a team has at most 1 teammates, and there are: ann" in full
        unknown = await call(desk, app, "message_teammate", to="zoe", content="x")
        assert "there is no teammate 'zoe'; there are: ann" in unknown
        mine = await call(desk, app, "plan_review", request_id="none", approve=True)
        assert "there is no request 'none' in this team" in mine


WRITE = json.dumps([["write_file", {"path": "a", "content": "x"}]])


async def test_plan_mode_of_the_lead_holds_for_what_comes_later(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    async with desk.running() as app:
        await begin(desk, app)
        await call(desk, app, "spawn_teammate", name="ann", role="", prompt="begin")
        await told(app, 1)
        await desk.say(app, "/plan on")
        await call(desk, app, "message_teammate", to="ann", content=WRITE)
        await hears(app, "ann saw: ")
        row = change_task(LEAD_SESSION, None, Task(1, "write", description=WRITE), 1.0)
        await app.store.change((row,))
        await task_is(app, 1, "completed")
        assert not (app.settings.home.workspace("default") / "a").exists()


async def test_what_a_stopped_teammate_held_is_free(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    async with desk.running() as app:
        await begin(desk, app)
        await call(desk, app, "spawn_teammate", name="ann", role="", prompt="begin")
        await told(app, 1)
        desk.model.latency_s = 30.0
        row = change_task(LEAD_SESSION, None, Task(1, "long"), 1.0)
        await app.store.change((row,))
        await task_is(app, 1, "in_progress")
        await desk.say(app, "/stop")
        task = await task_is(app, 1, "pending")
        desk.model.latency_s = 0.0
        assert (task.owner, task.lease) == ("", "")
        await call(desk, app, "spawn_teammate", name="bo", role="", prompt="begin")
        assert (await task_is(app, 1, "completed")).owner == "bo"


async def test_a_plan_shown_on_a_task_does_not_complete_it(tmp_path: Path) -> None:
    """After a yes it goes on with what it had; and what else was written to it takes nothing of
    the yes away."""
    desk = desk_of(tmp_path)
    async with desk.running() as app:
        await begin(desk, app)
        plan = {"to": "lead", "content": "1. write a", "msg_type": "plan_approval_request"}
        words = json.dumps([["message_teammate", plan]])
        await call(desk, app, "manage_tasks", action="create", title="do", description=words)
        await call(
            desk, app, "spawn_teammate", name="ann", role="", prompt="begin", plan_first=True
        )
        await status_is(app, ann="waiting")
        assert (await board(app))[1].status == "in_progress"
        shown = next(each for each in await told(app, 2) if "shows a plan" in each)
        request_id = shown.split("request_id ")[1].split("]")[0]
        answered = [
            ["plan_review", {"request_id": request_id, "approve": True}],
            ["message_teammate", {"to": "ann", "content": WRITE}],
        ]
        await desk.say(app, json.dumps(answered))
        await task_is(app, 1, "completed")
        await hears(app, "ann saw: ")
        assert (app.settings.home.workspace("default") / "a").exists()


async def test_a_task_that_is_given_back_again_and_again_is_blocked(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    async with desk.running() as app:
        await begin(desk, app)
        back = json.dumps(
            [["manage_tasks", {"action": "update", "task_id": 1, "status": "pending"}]]
        )
        await call(desk, app, "manage_tasks", action="create", title="t", description=back)
        await call(desk, app, "spawn_teammate", name="ann", role="", prompt="begin")
        assert (await task_is(app, 1, "blocked")).result.startswith("given back 2 times: ")


async def test_no_more_work_at_once_than_may(tmp_path: Path) -> None:
    desk = desk_of(tmp_path, subagents={"per_session": 1})
    async with desk.running() as app:
        await begin(desk, app)
        for name in ("ann", "bo", "cy"):
            await call(desk, app, "spawn_teammate", name=name, role="", prompt="begin")
            await status_is(app, **{name: "idle"})
        await call(desk, app, "broadcast", content="look")
        await told(app, 6)
        works = subagents_of(app.store, LEAD_SESSION, 100)
        changes = [(each.at, 1) for each in works] + [(each.ended_at or 0, -1) for each in works]
        now = 0
        for _, change in sorted(changes):
            now += change
            assert now <= 1


async def test_a_teammate_whose_conversation_is_erased_is_gone(tmp_path: Path) -> None:
    desk = desk_of(tmp_path)
    async with desk.running() as app:
        await begin(desk, app)
        await call(desk, app, "spawn_teammate", name="ann", role="", prompt="begin")
        await told(app, 1)
        await erase_session(app.store, OWNER, session_of(app, "ann"), 1.0)
        assert await call(desk, app, "list_teammates") == "There are no teammates."
