"""What may become of a graph of tasks. Pure: each function gives the tasks that have changed, or
raises ToolError.

What always holds: nothing waits for itself, through parents or dependencies; nothing is completed
before its children and what it depends on; an id is never given twice.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec
from msgspec.structs import replace

from ..types.errors import ToolError
from ..types.labels import LOCAL, Label, join_labels
from ..types.messages import clean_text
from ..types.tasks import Task, TaskComment, TaskGraph, TaskStatus

MAX_OPEN = 1_000
MAX_TASKS = 20_000
"""So many tasks may be open in one conversation, and so many there may have been."""
MAX_TITLE_CHARS = 200
MAX_TEXT_CHARS = 20_000
MAX_METADATA_BYTES = 20_000
MAX_COMMENTS = 50
MAX_COMMENT_CHARS = 2_000
ChangedTasks = tuple[Task, ...]


def create(graph: TaskGraph, task: Task) -> ChangedTasks:
    """The task under the next id; that in `task` counts for nothing."""
    if sum(not each.is_closed for each in graph.values()) >= MAX_OPEN:
        raise ToolError(
            f"this conversation has {MAX_OPEN:,} open tasks, which is the maximum: complete or "
            "delete some first"
        )
    if len(graph) >= MAX_TASKS:
        raise ToolError(
            f"this conversation has had {MAX_TASKS:,} tasks, which is the maximum: start another "
            "one with /start"
        )
    made = _clean_task(replace(task, id=max(graph, default=0) + 1))
    _check_links(graph, made)
    return (made,)


def update(graph: TaskGraph, id_: int, label: Label, **changes: Any) -> ChangedTasks:
    """The task with these fields changed. `label` is that of whoever changes it."""
    before = require_task(graph, id_)
    after = _clean_task(replace(before, **changes, label=join_labels((before.label, label))))
    if (after.parent, after.depends_on) != (before.parent, before.depends_on):
        _check_links(graph, after)
    if after.status != before.status:
        _check_status(graph, after)
    return (after,) if after != before else ()


def with_comment(task: Task | None, comment: TaskComment) -> tuple[TaskComment, ...]:
    """The comments of this task (None: a new one) with one more; of many, the latest stay."""
    cleaned = replace(comment, text=clean_text(comment.text).strip()[:MAX_COMMENT_CHARS])
    return (*(task.comments if task is not None else ()), cleaned)[-MAX_COMMENTS:]


def delete(graph: TaskGraph, id_: int) -> ChangedTasks:
    """The task and all beneath it are gone: what waited for them waits no more."""
    require_task(graph, id_)
    beneath = {id_}
    left = [id_]
    children = _map_children(graph)
    while left:
        for child in children.get(left.pop(), ()):
            if child not in beneath:
                beneath.add(child)
                left.append(child)
    return tuple(replace(graph[each], status="deleted") for each in sorted(beneath))


def connect(graph: TaskGraph, id_: int, on: Collection[int], label: Label) -> ChangedTasks:
    """The task waits for these as well."""
    task = require_task(graph, id_)
    return update(
        graph,
        id_,
        label,
        depends_on=(*task.depends_on, *(n for n in on if n not in task.depends_on)),
    )


def disconnect(graph: TaskGraph, id_: int, on: Collection[int], label: Label) -> ChangedTasks:
    """The task waits for these no more."""
    task = require_task(graph, id_)
    return update(graph, id_, label, depends_on=tuple(n for n in task.depends_on if n not in on))


def merge_changes(graph: TaskGraph, changed: Iterable[Task]) -> dict[int, Task]:
    """The graph with what has changed."""
    return {**graph, **{task.id: task for task in changed}}


def require_task(graph: TaskGraph, id_: int) -> Task:
    """The task of this id. Raises ToolError that says which there are."""
    task = graph.get(id_)
    if task is None or task.status == "deleted":
        there = ", ".join(f"#{task.id}" for task in _first_open(graph, 12)) or "none"
        gone = "was deleted" if task is not None else "does not exist"
        raise ToolError(f"task #{id_} {gone} in this conversation; open tasks: {there}")
    return task


def _first_open(graph: TaskGraph, limit: int) -> list[Task]:
    """The first of those that are open."""
    return list(islice((task for task in graph.values() if not task.is_closed), limit))


# What holds


def list_prerequisites(graph: TaskGraph, task: Task) -> tuple[int, ...]:
    """What must be completed before it: what it depends on, and then its children, as far as they
    are open."""
    children = (each.id for each in graph.values() if each.parent == task.id)
    return tuple(
        dict.fromkeys(
            n for n in (*task.depends_on, *children) if n in graph and not graph[n].is_closed
        )
    )


def list_blockers(graph: TaskGraph, task: Task) -> tuple[int, ...]:
    """Of what it depends on, what is open."""
    return tuple(n for n in task.depends_on if n in graph and not graph[n].is_closed)


def find_stuck(graph: TaskGraph) -> tuple[Task, ...]:
    """Where nothing can be done without a person: all that is blocked. () while anything can be
    done."""
    open_ = {task.id: task for task in graph.values() if not task.is_closed}
    held = {id_ for id_, task in open_.items() if task.status == "blocked"}
    order = _topological_order(graph)
    if order is None:
        return ()
    needs = _map_prerequisites(graph)
    for id_ in order:  # what is before something comes first
        if id_ in open_ and any(n in held for n in needs[id_]):
            held.add(id_)
    blocked = tuple(task for task in open_.values() if task.status == "blocked")
    return blocked if len(held) == len(open_) else ()


def find_cycle(graph: TaskGraph) -> tuple[int, ...]:
    """Tasks that wait for each other, () for none."""
    order = _topological_order(graph)
    return () if order is not None else _trace_cycle(graph)


def find_violation(graph: TaskGraph) -> str:
    """Which of what always holds does not, '' for none."""
    if circle := find_cycle(graph):
        return (
            f"tasks would wait for each other forever: {' -> '.join(f'#{id_}' for id_ in circle)}"
        )
    for id_, needed in _map_prerequisites(graph).items():
        if graph[id_].status == "completed" and (
            open_ := [n for n in needed if not graph[n].is_closed]
        ):
            return f"#{id_} would be completed before #{min(open_)}, which it needs"
    return ""


def _check_status(graph: TaskGraph, task: Task) -> None:
    if task.status == "deleted":
        raise ToolError("to delete a task, change nothing else of it")
    if task.status == "completed":
        children = {each.id for each in graph.values() if each.parent == task.id}
        if left := list_prerequisites(graph, task):
            what = "its subtasks" if left[0] in children else "what it depends on"
            named = ", ".join(f"#{n} {graph[n].title}" for n in left[:5])
            whose = join_labels((LOCAL, *(graph[n].label for n in left[:5])))
            raise ToolError(f"task #{task.id} cannot be completed before {what}: {named}", whose)
        return
    for id_ in _iter_dependents(graph, task.id):
        if graph[id_].status == "completed":
            raise ToolError(
                f"task #{id_} is completed, and it needs #{task.id}: reopen #{id_} first"
            )


def _check_links(graph: TaskGraph, task: Task) -> None:
    """Its parent and what it depends on are there, and it does not wait for itself."""
    for id_ in filter(None, (task.parent, *task.depends_on)):
        if id_ == task.id:
            raise ToolError(f"task #{id_} cannot wait for itself")
        require_task(graph, id_)
    after = merge_changes(graph, (task,))
    if task.parent and not task.is_closed and graph[task.parent].status == "completed":
        raise ToolError(
            f"task #{task.parent} is completed: reopen it before it gets another subtask"
        )
    if task.status == "completed" and (left := list_prerequisites(after, task)):
        raise ToolError(
            f"task #{task.id} is completed: it cannot wait for #{left[0]}; reopen it first"
        )
    if _topological_order(after) is None:
        circle = " -> ".join(f"#{id_}" for id_ in _trace_cycle(after))
        raise ToolError(f"that would make tasks wait for each other forever: {circle}")


def _map_prerequisites(graph: TaskGraph) -> dict[int, set[int]]:
    """For each task that is there, what comes before it."""
    there = {id_: task for id_, task in graph.items() if task.status != "deleted"}
    needs = {id_: {n for n in task.depends_on if n in there} for id_, task in there.items()}
    for id_, task in there.items():
        if task.parent in there:
            needs[task.parent].add(id_)
    return needs


def _topological_order(graph: TaskGraph) -> list[int] | None:
    """All that are there, each behind what it needs; None where that cannot be."""
    needs = _map_prerequisites(graph)
    behind: dict[int, list[int]] = {}
    for id_, before in needs.items():
        for n in before:
            behind.setdefault(n, []).append(id_)
    counts = {id_: len(before) for id_, before in needs.items()}
    ready = [id_ for id_, count in counts.items() if not count]
    for id_ in ready:  # it grows while we go
        for each in behind.get(id_, ()):
            counts[each] -= 1
            if not counts[each]:
                ready.append(each)
    return ready if len(ready) == len(needs) else None


def _trace_cycle(graph: TaskGraph) -> tuple[int, ...]:
    """One circle, as its ids with the first one again at the end."""
    needs = _map_prerequisites(graph)
    left = dict(needs)
    while ended := [id_ for id_, before in left.items() if not any(n in left for n in before)]:
        for id_ in ended:
            del left[id_]
    if not left:
        return ()
    path = [min(left)]
    while True:
        following = min(n for n in needs[path[-1]] if n in left)
        if following in path:
            return (*path[path.index(following) :], following)
        path.append(following)


def _iter_dependents(graph: TaskGraph, id_: int) -> Iterator[int]:
    task = graph.get(id_)
    if task is not None and task.parent in graph:
        yield task.parent
    yield from (each.id for each in graph.values() if id_ in each.depends_on)


def _map_children(graph: TaskGraph) -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for task in graph.values():
        children.setdefault(task.parent, []).append(task.id)
    return children


# Words


def _clean_task(task: Task) -> Task:
    """The task with words that can be shown. Raises ToolError."""
    title = to_one_line(task.title)
    if not title:
        raise ToolError("a task needs a title: say in a few words what is to be done")
    if len(title) > MAX_TITLE_CHARS:
        raise ToolError(
            f"a title has at most {MAX_TITLE_CHARS} characters: put the rest into the description"
        )
    for name in ("description", "result"):
        if len(getattr(task, name)) > MAX_TEXT_CHARS:
            raise ToolError(
                f"a {name} has at most {MAX_TEXT_CHARS:,} characters: write a file and name it here"
            )
    for name in ("metadata", "config"):
        if len(msgspec.json.encode(getattr(task, name))) > MAX_METADATA_BYTES:
            raise ToolError(f"the {name} of a task has at most {MAX_METADATA_BYTES:,} bytes")
    lines = {
        "owner": to_one_line(task.owner)[:MAX_TITLE_CHARS],
        "active": to_one_line(task.active)[:MAX_TITLE_CHARS],
    }
    return replace(
        task,
        title=title,
        description=clean_text(task.description),
        result=clean_text(task.result),
        **lines,
    )


def to_one_line(text: str) -> str:
    """The text in one line, without what a terminal or a page would act on instead of showing
    it."""
    kept = (
        char if char.isprintable() else " " for char in text if unicodedata.category(char) != "Cf"
    )
    return clean_text(" ".join("".join(kept).split()))


def parse_status(status: str) -> TaskStatus:
    """A status as a model writes it. Raises ToolError."""
    given = status.strip().lower().replace(" ", "_").replace("-", "_")
    names: dict[str, TaskStatus] = {
        **{name: name for name in ("pending", "in_progress", "completed", "blocked", "deleted")},
        **{"todo": "pending", "open": "pending", "done": "completed", "complete": "completed"},
        **{"active": "in_progress", "doing": "in_progress", "started": "in_progress"},
    }
    if given not in names:
        raise ToolError(
            f"there is no status {status!r}; there are: pending, in_progress, completed, blocked"
        )
    return names[given]
