"""Which task of the list of a team a teammate takes, and what becomes of it when its work has
ended. Pure: each gives the task that changes."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ..tools import task_graph as graphs
from ..types.errors import ToolError
from ..types.labels import LOCAL, join_labels
from ..types.subagents import SubagentTask
from ..types.tasks import Task, TaskGraph

MAX_FAILURES = 2
FAILURES = "failures"
"""In the metadata of a task: how often somebody has failed at it, or given it back."""
RESULT_CHARS = 4_000


def find_claimable(graph: TaskGraph, name: str) -> Task | None:
    """The task that this teammate takes next: one that it was given, or else the first one that
    nobody has. None where nothing can be begun."""
    free = [task for task in graph.values() if _is_free(graph, task)]
    given = (task for task in free if task.owner == name)
    return next(given, None) or next((task for task in free if not task.owner), None)


def _is_free(graph: TaskGraph, task: Task) -> bool:
    """Whether somebody may begin it now. The flat list is the lead's own."""
    if task.status != "pending" or task.todo or task.node != "agent" or task.lease:
        return False
    return not graphs.list_prerequisites(graph, task)


def claim(task: Task, name: str, lease: str) -> Task:
    """The task as this teammate has it while it works on it as its task `lease`."""
    return replace(task, status="in_progress", owner=name, lease=lease)


def move_lease(task: Task, lease: str) -> Task:
    """The task as whoever had it goes on with it as its task `lease`."""
    return replace(task, lease=lease)


def render_claimed(task: Task) -> str:
    """What the teammate is told to do. A comment is one line, so that none looks like another."""
    how = (
        f"Your last message becomes its result, and it counts as completed then. If you cannot do "
        f"it, set #{task.id} blocked with manage_tasks, and say in its result what is missing."
    )
    said = [f"\n[comment of {each.by}] {' '.join(each.text.split())}" for each in task.comments]
    more = f"\n{task.description}" if task.description else ""
    head = f"[Task #{task.id} of the team's list is yours. {how}]"
    return f"{head}{''.join(said)}\n{task.title}{more}"


def settle(graph: TaskGraph, task: Task, work: SubagentTask | None) -> Task:
    """The task when the work that had the lease is over: completed, unless it was set otherwise
    meanwhile; free again where the work was stopped, failed or is gone. Whoever fails at it or
    gives it back several times leaves it blocked."""
    label = join_labels((LOCAL, task.label, *((work.label,) if work is not None else ())))
    said = work.said.strip()[:RESULT_CHARS] if work is not None else ""
    if task.status not in ("in_progress", "pending"):
        return replace(task, lease="")
    if work is None or work.state == "stopped":
        return replace(task, status="pending", lease="", owner="")
    if work.state == "done" and task.status == "in_progress":
        completed = _complete(graph, task, work)
        if completed is not None:
            return completed
    failures = _count_failures(task) + 1
    if failures >= MAX_FAILURES:
        why = f"given back {failures} times: {said}"
        return replace(task, status="blocked", lease="", owner="", result=why, label=label)
    known: dict[str, Any] = task.metadata | {FAILURES: failures}
    return replace(task, status="pending", lease="", owner="", metadata=known)


def _count_failures(task: Task) -> int:
    found = task.metadata.get(FAILURES, 0)
    return found if isinstance(found, int) else 0


def _complete(graph: TaskGraph, task: Task, work: SubagentTask) -> Task | None:
    """None where it cannot be completed, as something that it needs is open."""
    free = replace(task, lease="", result=work.said.strip()[:RESULT_CHARS] or task.result)
    try:
        changed = graphs.update({**graph, task.id: free}, task.id, work.label, status="completed")
    except ToolError:
        return None
    return changed[0] if changed else free
