"""The tasks of a conversation, as each kind of client knows them."""

from __future__ import annotations

from typing import Any

import msgspec

from ..tools.queries import tasks_of
from ..tools.task_words import percent_done, render_progress, to_computer, to_openagent, to_todos
from ..types.goals import LongWork
from ..types.tasks import TaskGraph
from .dialect_computer import Long, mode_of
from .protocols import Web
from .routing import Call, Endpoint
from .session import load_state
from .visible_sessions import find_session


class Board:
    """What the tasks of one conversation are now, secrets taken out."""

    def __init__(self, web: Web, session: str) -> None:
        self._web = web
        self._session = session

    def __call__(self) -> TaskGraph:
        return tasks_of(self._web.store, self._session)

    def redact(self, told: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What is sent to a client."""
        text = self._web.redact(msgspec.json.encode(told).decode())
        found: list[dict[str, Any]] = msgspec.json.decode(text)
        return found

    def computer_update(self) -> dict[str, Any]:
        """agent_computer's `task_update`."""
        graph = self()
        return {
            "tasks": self.redact(to_computer(graph)),
            "summary": self._web.redact(render_progress(graph)),
        }

    def openagent_update(self, tool: str) -> dict[str, Any]:
        """openagent-core's `task_update`, or its `todo_update` after a tool of the flat list."""
        graph = self()
        if tool.startswith("todo_"):
            return {"type": "todo_update", "todos": self.redact(to_todos(graph))}
        return {
            "type": "task_update",
            "tasks": self.redact([_with_int_ids(task) for task in to_openagent(graph)]),
        }


def _with_int_ids(task: dict[str, Any]) -> dict[str, Any]:
    """With numbers for ids, as openagent-core's clients have them."""
    blocked_by = [int(id_) for id_ in task["blockedBy"]]
    blocks = [int(id_) for id_ in task["blocks"]]
    return {**task, "id": int(task["id"]), "blockedBy": blocked_by, "blocks": blocks}


def limits_of(web: Web, session: str) -> Long:
    """What deep work may use in this conversation, and its tasks, for agent_computer's clients."""
    agent = session.partition("/")[0]
    steps, tokens = web.admin.long_work_limits(
        agent if agent in web.admin.agents else web.admin.agents[0]
    )
    return Long(steps, tokens, Board(web, session).computer_update)


class Tasks(msgspec.Struct, frozen=True):
    """The tasks of a conversation; `percent` of them are done, which `summary` says in words.
    `mode` is `bounded` or `deep_work`; `work` is how far it is, where it goes on by itself."""

    session_id: str
    mode: str = "bounded"
    tasks: list[dict[str, Any]] = []
    summary: str = ""
    percent: int = 0
    work: LongWork | None = None


async def get_tasks(call: Call) -> Tasks:
    session = await find_session(call)
    if session is None:
        return Tasks(call.path("name"))
    mode = mode_of((await load_state(call, session)).options.mode)
    board = Board(call.web, session)
    work = await call.web.admin.find_long_work(session)
    if work is not None:
        hide = call.web.redact
        work = msgspec.structs.replace(
            work, session=call.path("name"), doing=hide(work.doing), goal=hide(work.goal)
        )
    return Tasks(
        call.path("name"), mode, **board.computer_update(), percent=percent_done(board()), work=work
    )


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/sessions/{name}/tasks",
        "read",
        get_tasks,
        "Get the task list of a conversation",
        returns=Tasks,
        tag="agent_computer",
    ),
)
