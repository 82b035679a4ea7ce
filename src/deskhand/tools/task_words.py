"""How tasks are told: as a list with marks, as a sentence of how far it is, and as what the
surfaces send. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ..types.labels import LOCAL, Label, join_labels
from ..types.marked_texts import mark_text
from ..types.tasks import STATUS_MARKS, Task, TaskGraph
from .task_graph import list_blockers

MAX_LINES = 200
SHORT_LIST_LINES = 30
"""So many lines of the list stand in what the model is told with each message of a long work."""


def list_tasks(graph: TaskGraph) -> list[Task]:
    """All but those that were deleted."""
    return [task for task in graph.values() if task.status != "deleted"]


def list_open(graph: TaskGraph) -> list[Task]:
    """All that are not done yet."""
    return [task for task in graph.values() if not task.is_closed]


def percent_done(graph: TaskGraph) -> int:
    """How much of it is done; 0 without tasks."""
    tasks = list_tasks(graph)
    return 100 * (len(tasks) - len(list_open(graph))) // len(tasks) if tasks else 0


def render_progress(graph: TaskGraph) -> str:
    """In a line; '' without tasks."""
    tasks = list_tasks(graph)
    open_ = list_open(graph)
    if not tasks:
        return ""
    doing = [task.active or task.title for task in open_ if task.status == "in_progress"]
    now = f"; now: {doing[0]}" if doing else ""
    return f"{len(tasks) - len(open_)} of {len(tasks)} tasks done ({percent_done(graph)} %){now}"


def render_tasks(graph: TaskGraph, limit: int = MAX_LINES) -> str:
    """All tasks, subtasks beneath their parents; of many, those that are open come first and the
    others are counted."""
    tasks = list_tasks(graph)
    if len(tasks) <= limit:
        return "\n".join(
            "  " * depth + render_task_line(graph, task) for depth, task in _iter_tree(graph)
        )
    open_ = sorted(
        list_open(graph),
        key=lambda task: (task.status != "in_progress", task.status != "blocked", task.id),
    )
    shown = open_[:limit]
    lines = [render_task_line(graph, task) for task in shown]
    if len(open_) > len(shown):
        more = mark_text("… and {tasks_number} more open")
        lines.append(more.format(tasks_number=len(open_) - len(shown)))
    if len(tasks) > len(open_):
        done = mark_text("… and {tasks_number} done")
        lines.append(done.format(tasks_number=len(tasks) - len(open_)))
    return "\n".join(lines)


def render_task_line(graph: TaskGraph, task: Task) -> str:
    """One task in one line."""
    told = []
    if task.owner:
        told.append(task.owner)
    if task.status == "blocked":
        told.append(f"blocked: {' '.join(task.result.split())[:120]}" if task.result else "blocked")
    if not task.is_closed and (waits := list_blockers(graph, task)):
        told.append(f"waits for {', '.join(f'#{n}' for n in waits[:8])}")
    beside = f" ({'; '.join(told)})" if told else ""
    return f"{STATUS_MARKS.get(task.status, '[-]')} #{task.id} {task.title}{beside}"


def graph_label(graph: TaskGraph) -> Label:
    """Whose words stand in the list."""
    return join_labels((LOCAL, *(task.label for task in graph.values() if task.label != LOCAL)))


def _iter_tree(graph: TaskGraph) -> Iterator[tuple[int, Task]]:
    """(depth, task), each parent before its children."""
    tasks = list_tasks(graph)
    ids = {task.id for task in tasks}
    beneath: dict[int, list[Task]] = {}
    for task in tasks:
        beneath.setdefault(task.parent if task.parent in ids else 0, []).append(task)
    waiting = [(0, task) for task in reversed(beneath.get(0, []))]
    while waiting:
        depth, task = waiting.pop()
        yield depth, task
        waiting += [(depth + 1, child) for child in reversed(beneath.get(task.id, []))]


# As the source systems send them


def to_computer(graph: TaskGraph) -> list[dict[str, Any]]:
    """As agent_computer has them. When a task was made, and where it stands in a drawing, is not
    kept here."""
    return [
        {
            "id": task.id,
            "title": task.title,
            "description": task.description,
            "status": task.status,
            "parent_id": task.parent or None,
            "result": task.result,
            "node_type": task.node,
            "depends_on": list(task.depends_on),
            "config": task.config,
            "inputs": task.config.get("arguments", {}),
            "output_schema": task.config.get("output_schema", {}),
            "output": _decode_output(task.result),
            "position": None,
        }
        for task in list_tasks(graph)
    ]


def _decode_output(result: str) -> dict[str, Any]:
    """A result that is a JSON object, as its fields."""
    try:
        return msgspec.json.decode(result, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return {}


def to_openagent(graph: TaskGraph) -> list[dict[str, Any]]:
    """As openagent-core has them: who is completed blocks nobody any more."""
    blocks: dict[int, list[str]] = {}
    for task in list_open(graph):
        for id_ in list_blockers(graph, task):
            blocks.setdefault(id_, []).append(str(task.id))
    return [
        {
            "id": str(task.id),
            "subject": task.title,
            "description": task.description,
            "status": task.status,
            "blockedBy": [str(n) for n in list_blockers(graph, task)],
            "blocks": blocks.get(task.id, []),
            "owner": task.owner,
            "activeForm": task.active,
            "metadata": task.metadata,
        }
        for task in list_tasks(graph)
    ]


def to_todos(graph: TaskGraph) -> list[dict[str, Any]]:
    """The flat list, in its order."""
    todos = sorted((task for task in list_tasks(graph) if task.todo), key=lambda task: task.todo)
    return [
        {"content": task.title, "status": task.status, "activeForm": task.active} for task in todos
    ]
