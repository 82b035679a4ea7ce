"""Tasks as rows: read for a conversation, and written in the commit of the call that changed them,
with what they were before; and taken back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from ..store.base import Store
from ..store.sql import load_sql
from ..types.commit import Change
from ..types.tasks import Task, TaskGraph
from .base import Context
from .notes import By
from .task_graph import Changed, merged, unsound
from .task_words import line
from .undo import TASKS, LeftUndone, UndoItem, UndoneEffect, begun, closing
from .watched_folder import by, marked

STATEMENTS = load_sql(__package__, "tasks.sql")
_decode = msgspec.json.Decoder(Task).decode


def read(rows: Iterable[Sequence[Any]]) -> dict[int, Task]:
    """The graph in the rows of `task_of`."""
    tasks = (_decode(row[0]) for row in rows)
    return {task.id: task for task in tasks}


def tasks_of(store: Store, session: str) -> dict[int, Task]:
    """All tasks of this session by their id, deleted ones included."""
    return read(store.query_sync("task_of", (session,)))


async def graph_of(context: Context) -> dict[int, Task]:
    """The tasks of the conversation in which a tool is called."""
    return read(await context.reach.rows("task_of", (context.session,)))


def imported(session: str, tasks: Iterable[Task], at: float) -> tuple[Change, ...]:
    """What writes these tasks; those that are there already stay as they are."""
    return tuple(_written("task_import", session, task, at) for task in tasks)


def changing(graph: TaskGraph, changed: Changed, context: Context) -> tuple[Change, ...]:
    """What writes what has changed of this graph, and notes what it was before: /undo of the turn
    brings it back."""
    if not changed:
        return ()
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    who = by(context, "tasks", line(merged(graph, changed), changed[0]) + more)
    return (*_noted(who, context.session, changed), *closing(who.key))


def take_back_tasks(
    items: Sequence[UndoItem],
    now: Mapping[bytes, str | None],
    graph: TaskGraph,
    by: By,
    force: bool,
) -> UndoneEffect:
    """As `take_back_values`, of tasks. A task that there was not before is deleted: its number is
    not given again. Nothing is taken back where tasks would wait for themselves then, or be done
    before what they need."""
    changed = [each for each in items if now[each.place] not in (each.after, each.before)]
    if changed and not force:
        return UndoneEffect(
            (), tuple(LeftUndone(each.shown, "changed", now[each.place] or "") for each in changed)
        )
    wanted = [_before(each, graph) for each in items if now[each.place] is not None]
    if why := unsound(merged(graph, wanted)):
        return UndoneEffect((), (LeftUndone("the tasks", "failed", why),))
    back = tuple(each.shown for each in items)
    return UndoneEffect(back, (), (*_noted(by, by.session, wanted), *closing(by.key), *marked(by)))


def id_of(item: UndoItem) -> int:
    """Which task it was."""
    return int(msgspec.json.decode(item.place, type=tuple[str, str])[0].removeprefix("task #"))


def _before(item: UndoItem, graph: TaskGraph) -> Task:
    if item.before is None:
        return replace(graph[id_of(item)], status="deleted")
    return _decode(item.before.removeprefix("t "))


def _noted(by: By, session: str, tasks: Iterable[Task]) -> tuple[Change, ...]:
    """The rows that write them, each between those with which it can be taken back."""
    rows = [begun(by, TASKS)]
    for task in tasks:
        place = (by.key, msgspec.json.encode((f"task #{task.id}", "")), task.id)
        rows += [Change("effect_task_before", place), _written("task_put", session, task, by.at)]
        rows.append(Change("effect_task_after", place))
    return tuple(rows)


def _written(statement: str, session: str, task: Task, at: float) -> Change:
    return Change(
        statement, (session, task.id, task.status, task.title, msgspec.json.encode(task), at)
    )
