"""The team of a conversation and its task list: to look at, and to change by hand."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec.structs import replace

from ..store.queries import shut_down_teammate, stop_subagent, subagents_of, teammates_of
from ..tools import task_graph as graphs
from ..tools.queries import change_task, tasks_of
from ..tools.task_graph import MAX_COMMENT_CHARS, list_prerequisites
from ..tools.task_words import list_tasks
from ..types.errors import StaleSession
from ..types.identity import principal_label
from ..types.marked_texts import mark_text
from ..types.subagents import SubagentTask
from ..types.tasks import Task, TaskComment, TaskGraph, TaskStatus
from ..types.teams import Teammate, TeammateStatus
from .errors import HttpProblem, not_found
from .names import format_session_name
from .routing import Call, Endpoint
from .subagents import describe_outcome, find_step
from .visible_sessions import require_session

MAX_TASKS = 500


class TeammateView(msgspec.Struct, frozen=True):
    """A teammate. `session` is the name of its conversation, `doing` what it works on, `step` what
    it does of that now, `id` the sub-agent. `outcome` is how its last answer begins while it does
    nothing, or why there is none."""

    name: str
    role: str
    status: TeammateStatus
    doing: str
    step: str
    outcome: str
    id: str
    session: str


class CommentView(msgspec.Struct, frozen=True):
    """`at` is seconds since the epoch."""

    by: str
    text: str
    at: float


class BoardTask(msgspec.Struct, frozen=True):
    """A task of the list. `waits_for` are those that must be done before it. `held`: a teammate
    works on it now."""

    id: int
    title: str
    description: str
    status: TaskStatus
    owner: str
    result: str
    waits_for: tuple[int, ...]
    comments: tuple[CommentView, ...]
    held: bool


class TeamView(msgspec.Struct, frozen=True):
    """The team of a conversation, and the task list that it shares."""

    teammates: list[TeammateView]
    tasks: list[BoardTask]


class TaskChange(msgspec.Struct, frozen=True):
    """What is to change of a task; what is left out stays. `comment` is added."""

    status: TaskStatus | None = None
    owner: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    comment: Annotated[str, msgspec.Meta(max_length=MAX_COMMENT_CHARS)] = ""


async def get_team(call: Call) -> TeamView:
    session = await require_session(call)
    graph = tasks_of(call.web.store, session)
    team = teammates_of(call.web.store, session)
    works = _find_work(call, session)
    return TeamView(
        [await _make_teammate(call, mate, works.get(mate.id)) for mate in team],
        [_make_task(call, graph, task) for task in list_tasks(graph)],
    )


async def change_board_task(call: Call) -> BoardTask:
    """Assign a task, set its status, or say something of it."""
    session = await require_session(call)
    wanted: TaskChange = call.body
    graph = tasks_of(call.web.store, session)
    try:
        id_ = int(call.path("id"))
    except ValueError:
        raise not_found(mark_text("such task")) from None
    if id_ not in graph or graph[id_].status == "deleted":
        raise not_found(mark_text("such task"))
    after = _apply(call, graph, graph[id_], wanted)
    if after != graph[id_]:
        row = change_task(session, graph[id_], after, call.web.clock.now())
        try:
            await call.web.store.change((row,))
        except StaleSession:
            raise HttpProblem(
                409,
                "changed",
                mark_text("Somebody has changed this task meanwhile. Look at it again."),
            ) from None
    return _make_task(call, {**graph, id_: after}, after)


def _apply(call: Call, graph: TaskGraph, task: Task, wanted: TaskChange) -> Task:
    label = principal_label(call.principal)
    if wanted.comment.strip():
        said = TaskComment(call.principal.id, wanted.comment, call.web.clock.now())
        comments = graphs.with_comment(task, said)
        task = _updated(graph, task, graphs.update(graph, task.id, label, comments=comments))
    given: dict[str, object] = {}
    if wanted.owner is not None and wanted.owner.strip() != task.owner:
        given["owner"] = wanted.owner.strip()
    status = wanted.status
    if status is None and "owner" in given and task.status == "in_progress":
        status = "pending"  # whoever has it now is to begin
    if status is not None and status != task.status:
        given["status"] = status
    if not given:
        return task
    changed = graphs.update({**graph, task.id: task}, task.id, label, **given)
    # Whoever works on it goes on, and finds that it is somebody else's.
    return replace(_updated(graph, task, changed), lease="")


def _updated(graph: TaskGraph, task: Task, changed: tuple[Task, ...]) -> Task:
    return changed[0] if changed else task


async def shut_down(call: Call) -> TeammateView:
    """Have a teammate end what it does and leave the team, without asking it."""
    session = await require_session(call)
    name = call.path("teammate")
    team = teammates_of(call.web.store, session)
    mate = next((each for each in team if each.name == name and each.state == "active"), None)
    if mate is None:
        raise not_found(mark_text("such teammate"))
    rows = (shut_down_teammate(mate), stop_subagent(mate.id, f"stopped by {call.principal.id}"))
    try:
        await call.web.store.change(rows)
    except StaleSession:
        raise not_found(mark_text("such teammate")) from None
    last = _find_work(call, session).get(mate.id)
    return await _make_teammate(call, replace(mate, state="leaving"), last)


def _find_work(call: Call, team: str) -> dict[str, SubagentTask]:
    """What each of its sub-agents was told last."""
    found: dict[str, SubagentTask] = {}
    for task in subagents_of(call.web.store, team, MAX_TASKS):
        found.setdefault(task.id, task)
    return found


async def _make_teammate(call: Call, mate: Teammate, last: SubagentTask | None) -> TeammateView:
    """`last` is its latest task."""
    hide = call.web.redact
    view = TeammateView(
        name=mate.name,
        role=hide(mate.role),
        status=mate.status,
        doing="",
        step="",
        outcome="",
        id=mate.id,
        session="",
    )
    if last is None:
        return view
    return replace(
        view,
        doing=hide(last.title.partition(": ")[2]) if last.is_live else "",
        step=await find_step(call, last),
        outcome=describe_outcome(call, last),
        session=format_session_name(last.session, call.principal, call.web.admin.agents[0]),
    )


def _make_task(call: Call, graph: TaskGraph, task: Task) -> BoardTask:
    hide = call.web.redact
    comments = tuple(CommentView(each.by, hide(each.text), each.at) for each in task.comments)
    return BoardTask(
        id=task.id,
        title=hide(task.title),
        description=hide(task.description),
        status=task.status,
        owner=task.owner,
        result=hide(task.result),
        waits_for=list_prerequisites(graph, task) if not task.is_closed else (),
        comments=comments,
        held=bool(task.lease),
    )


_T = "conversations"
ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/sessions/{name}/team",
        "read",
        get_team,
        "Get the team of a conversation and its task list",
        returns=TeamView,
        tag=_T,
    ),
    Endpoint(
        "PATCH",
        "/api/sessions/{name}/tasks/{id}",
        "chat",
        change_board_task,
        "Assign a task, set its status, or comment on it",
        body=TaskChange,
        returns=BoardTask,
        tag=_T,
    ),
    Endpoint(
        "DELETE",
        "/api/sessions/{name}/team/{teammate}",
        "chat",
        shut_down,
        "Shut a teammate down",
        returns=TeammateView,
        tag=_T,
    ),
)
