"""The team of a conversation and its tasks over HTTP."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from deskhand.store.queries import teammates_of
from deskhand.tools.queries import change_task, tasks_of
from deskhand.types.identity import Principal
from deskhand.types.tasks import Task
from deskhand.web.names import format_session_name

from .calling import ALLOW, Caller, member
from .served import Served, serving, until

HELD = Task(1, "read", status="in_progress", owner="ann", lease="none.1")


async def _begin(served: Served, caller: Caller, *tasks: Task) -> str:
    """A conversation with these tasks. Returns its session."""
    await caller.does(served.owner, "one")
    session = str((await served.owner.get("/api/sessions/one"))["session"]["key"])
    rows = tuple(change_task(session, None, task, 1.0) for task in tasks)
    await served.app.store.change(rows)
    return session


async def test_a_task_is_assigned_moved_and_commented_on(tmp_path: Path) -> None:
    caller = Caller()
    async with serving(tmp_path, caller.model, tools=None, policy=ALLOW) as served:
        session = await _begin(served, caller, HELD, Task(2, "count", depends_on=(1,)))
        ask = served.owner.ask
        status, task = await ask("PATCH", "/api/sessions/one/tasks/1", {"owner": "bo"})
        assert (status, task["owner"], task["status"]) == (200, "bo", "pending")
        assert tasks_of(served.app.store, session)[1].lease == "", "whoever had it has it no more"
        await ask("PATCH", "/api/sessions/one/tasks/1", {"comment": "as soon\nas you can"})
        team = await served.owner.get("/api/sessions/one/team")
        assert [each["text"] for each in team["tasks"][0]["comments"]] == ["as soon\nas you can"]
        assert [each["waits_for"] for each in team["tasks"]] == [[], [1]]

        status, told = await ask("PATCH", "/api/sessions/one/tasks/2", {"status": "completed"})
        assert status == 400 and "cannot be completed before what it depends on" in str(told)
        for path in ("9", "x"):
            assert (await ask("PATCH", f"/api/sessions/one/tasks/{path}", {}))[0] == 404
        assert (await ask("PATCH", "/api/sessions/one/tasks/1", {"status": "gone"}))[0] == 400
        assert (await ask("DELETE", "/api/sessions/one/team/ann"))[0] == 404


async def test_others_neither_see_nor_change_it(tmp_path: Path) -> None:
    caller = Caller()
    async with serving(tmp_path, caller.model, tools=None, policy=ALLOW) as served:
        session = await _begin(served, caller, HELD)
        bob = await member(served, "bob")
        name = format_session_name(session, Principal("bob", ("member",)), "default")
        path = f"/api/sessions/{quote(name)}"
        assert (await bob.ask("GET", f"{path}/team"))[0] == 404
        change = {"owner": "bob"}
        assert (await bob.ask("PATCH", f"{path}/tasks/1", change))[0] == 404
        assert tasks_of(served.app.store, session)[1] == HELD


async def test_a_teammate_is_shut_down_unasked(tmp_path: Path) -> None:
    caller = Caller()
    async with serving(tmp_path, caller.model, tools=None, policy=ALLOW) as served:
        session = await _begin(served, caller)
        await served.owner.ask("PATCH", "/api/sessions/one", {"teams": True})
        call = ("spawn_teammate", {"name": "ann", "role": "reader", "prompt": "begin"})
        await caller.does(served.owner, "one", call)
        team = await served.owner.get("/api/sessions/one/team")
        assert [(each["name"], each["role"]) for each in team["teammates"]] == [("ann", "reader")]
        status, mate = await served.owner.ask("DELETE", "/api/sessions/one/team/ann")
        assert (status, mate["status"]) == (200, "shutdown")
        store = served.app.store
        await until(lambda: [each.state for each in teammates_of(store, session)] == ["gone"])


async def test_scripts_run_in_every_process_that_drives_conversations(tmp_path: Path) -> None:
    caller = Caller()
    async with serving(tmp_path, caller.model, tools=None, policy=ALLOW) as served:
        parts = {child.name for child in served.app._worker_children(lambda: None)}
        assert "scripts" in parts
