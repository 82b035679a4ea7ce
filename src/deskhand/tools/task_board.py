"""The same tasks under openagent-core's names: `task_*` for tasks that block each other, `todo_*`
for a flat list."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from ..types.errors import ToolError
from ..types.labels import Label
from ..types.tasks import Task, TaskGraph
from . import task_graph as graphs
from .base import Context, Done
from .define import tool
from .output import make_bounded_result
from .task_graph import merge_changes, parse_status, require_task, to_one_line
from .task_rows import load_graph
from .task_words import graph_label, render_progress, render_tasks, to_openagent, to_todos
from .tasks import add_comment, make_task_result, manage_tasks, task_label

MAX_TODOS = 20


class Todo(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"active_form": "activeForm"}
):
    """One line of the flat list."""

    content: str
    active_form: str
    status: str = "pending"


@tool(replay="commit")
async def task_create(
    subject: str, context: Context, description: str = "", active_form: str = ""
) -> Done:
    """Write down a task of this conversation, so that it is not forgotten.

    subject: what is to be done, in a few words
    active_form: what is shown while it is being done: Running the tests
    """
    graph = await load_graph(context)
    task = Task(0, subject, description, active=active_form, label=task_label(context))
    return make_task_result(graph, graphs.create(graph, task), context)


@tool
async def task_get(task_id: int, context: Context) -> Done:
    """All that is known of one task, as JSON."""
    graph = await load_graph(context)
    require_task(graph, task_id)
    found = next(each for each in to_openagent(graph) if each["id"] == str(task_id))
    return await make_bounded_result(
        msgspec.json.encode(found).decode(), context, graph_label({task_id: graph[task_id]})
    )


@tool(replay="commit")
async def task_update(  # noqa: PLR0913 -- one parameter for each argument
    task_id: int,
    context: Context,
    status: str = "",
    subject: str = "",
    description: str = "",
    active_form: str = "",
    owner: str | None = None,
    add_blocked_by: list[int] = [],  # noqa: B006 -- becomes a schema
    add_blocks: list[int] = [],  # noqa: B006 -- becomes a schema
    metadata: dict[str, Any] = {},  # noqa: B006 -- becomes a schema
    comment: str = "",
) -> Done:
    """Change a task: set it in_progress when you begin it, completed when it is done; then it
    blocks nothing more.

    status: pending, in_progress, completed, blocked or deleted
    add_blocked_by: tasks that must be completed before it
    add_blocks: tasks that must wait for it
    metadata: keys to set; null removes one
    """
    graph = await load_graph(context)
    label = task_label(context)
    task = require_task(graph, task_id)
    if status and parse_status(status) == "deleted":
        return make_task_result(graph, graphs.delete(graph, task_id), context)
    texts = {"title": subject, "description": description, "active": active_form}
    given: dict[str, Any] = {name: text for name, text in texts.items() if text}
    if owner is not None:
        given["owner"] = owner
    if comment:
        given["comments"] = add_comment(task, comment, context)
    if metadata:
        merged = task.metadata | metadata
        given["metadata"] = {key: value for key, value in merged.items() if value is not None}
    if add_blocked_by:
        given["depends_on"] = tuple(dict.fromkeys((*task.depends_on, *add_blocked_by)))
    if status:
        given["status"] = parse_status(status)
    changed: dict[int, Task] = {}
    if given:
        changed = {each.id: each for each in graphs.update(graph, task_id, label, **given)}
    for blocked in add_blocks:
        after = merge_changes(graph, changed.values())
        changed |= {each.id: each for each in graphs.connect(after, blocked, (task_id,), label)}
    if not given and not add_blocks:
        raise ToolError(
            f"name a change to #{task_id}: status, subject, description, owner, add_blocked_by"
        )
    return make_task_result(graph, tuple(changed.values()), context)


@tool
async def task_list(context: Context) -> Done:
    """All tasks of this conversation: [ ] to be done, [>] being done, [x] done, [!] blocked."""
    graph = await load_graph(context)
    text = "\n".join(filter(None, (render_tasks(graph), render_progress(graph)))) or "no tasks"
    return await make_bounded_result(text, context, graph_label(graph))


# The flat list


@tool(replay="commit")
async def todo_write(items: list[Todo], context: Context) -> Done:
    """Write the whole to-do list anew: at most 20 items, one of them in_progress.

    items: each with content, activeForm (what is shown while it is being done) and status
    """
    graph = await load_graph(context)
    return make_task_result(
        graph, replace_todos(graph, items, task_label(context)), context, todos=True
    )


@tool(replay="commit")
async def todo_add(content: str, active_form: str, context: Context) -> Done:
    """Add an item at the end of the to-do list.

    active_form: what is shown while it is being done: Running the tests
    """
    graph = await load_graph(context)
    items = [*_make_items(graph), Todo(content, active_form)]
    return make_task_result(
        graph, replace_todos(graph, items, task_label(context)), context, todos=True
    )


@tool(replay="commit")
async def todo_complete(content: str, context: Context) -> Done:
    """Mark an item of the to-do list as done.

    content: its words
    """
    graph = await load_graph(context)
    wanted = to_one_line(content)
    todos = [task for task in graph.values() if task.todo and task.status != "deleted"]
    found = [task for task in todos if task.title == wanted]
    if not found:
        there = ", ".join(repr(each["content"]) for each in to_todos(graph)) or "none"
        whose = graph_label({task.id: task for task in _list_todos(graph)})
        raise ToolError(f"there is no item {wanted!r} on the to-do list; there are: {there}", whose)
    task = next((each for each in found if not each.is_closed), found[0])
    return make_task_result(
        graph,
        graphs.update(graph, task.id, task_label(context), status="completed"),
        context,
        todos=True,
    )


@tool
async def todo_list(context: Context) -> Done:
    """The to-do list: [ ] to be done, [>] being done, [x] done."""
    graph = await load_graph(context)
    todos = {task.id: task for task in _list_todos(graph)}
    text = "\n".join(filter(None, (render_tasks(todos), render_progress(todos))))
    return await make_bounded_result(text or "the to-do list is empty", context, graph_label(todos))


def replace_todos(graph: TaskGraph, items: list[Todo], label: Label) -> tuple[Task, ...]:
    """What changes when the flat list becomes this. Who is on it already keeps its id; who is not
    any more is gone. Raises ToolError."""
    if len(items) > MAX_TODOS:
        raise ToolError(
            f"a to-do list has at most {MAX_TODOS} items, and you gave {len(items)}: use "
            "task_create"
        )
    if any(not to_one_line(item.active_form) for item in items):
        raise ToolError(
            "each item needs an activeForm: what is shown while it is being done, as in "
            "Running the tests"
        )
    wanted = [
        replace(item, status=parse_status(item.status), content=to_one_line(item.content))
        for item in items
    ]
    if sum(item.status == "in_progress" for item in wanted) > 1:
        raise ToolError("only one item may be in_progress")
    before = _list_todos(graph)
    after = dict(graph)
    spare = {task.id: task for task in before}
    changed: dict[int, Task] = {}
    for place, item in enumerate(wanted, 1):
        same = next((task for task in spare.values() if task.title == item.content), None)
        fields: dict[str, Any] = {"active": item.active_form, "status": item.status, "todo": place}
        if same is None:
            more = graphs.create(after, Task(0, item.content, **fields, label=label))
        else:
            del spare[same.id]
            more = graphs.update(after, same.id, label, **fields)
        after = merge_changes(after, more)
        changed |= {task.id: task for task in more}
    for id_ in spare:
        changed |= {task.id: task for task in graphs.delete(after, id_)}
        after = merge_changes(after, changed.values())
    return tuple(changed[id_] for id_ in sorted(changed))


def _list_todos(graph: TaskGraph) -> list[Task]:
    found = (task for task in graph.values() if task.todo and task.status != "deleted")
    return sorted(found, key=lambda task: task.todo)


def _make_items(graph: TaskGraph) -> list[Todo]:
    return [Todo(task.title, task.active or task.title, task.status) for task in _list_todos(graph)]


TOOLS = (
    task_create,
    task_get,
    task_update,
    task_list,
    todo_write,
    todo_add,
    todo_complete,
    todo_list,
)
TASK_TOOLS = frozenset(tool.spec.name for tool in (manage_tasks, *TOOLS))
"""All that changes or shows the tasks of a conversation."""
