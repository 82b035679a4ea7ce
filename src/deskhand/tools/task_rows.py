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
from .task_graph import ChangedTasks, find_violation, merge_changes
from .task_words import render_task_line
from .undo import (
    TASKS_FOLDER,
    LeftUndone,
    UndoItem,
    UndoneEffect,
    make_closing_rows,
    make_effect_row,
)
from .watched_folder import make_by, make_undone_rows

STATEMENTS = load_sql(__package__, "tasks.sql")
_decode_task = msgspec.json.Decoder(Task).decode


def parse_graph(rows: Iterable[Sequence[Any]]) -> dict[int, Task]:
    """The graph in the rows of `task_of`."""
    tasks = (_decode_task(row[0]) for row in rows)
    return {task.id: task for task in tasks}


def tasks_of(store: Store, session: str) -> dict[int, Task]:
    """All tasks of this session by their id, deleted ones included."""
    return parse_graph(store.query_sync("task_of", (session,)))


async def load_graph(context: Context) -> dict[int, Task]:
    """The tasks of the conversation in which a tool is called."""
    return parse_graph(await context.reach.rows("task_of", (context.session,)))


async def open_task_lines(store: Store, session: str, limit: int) -> list[str]:
    """A line for each open task of this session, with its status. The one in progress comes
    first."""
    return [text for (text,) in await store.query("ledger_tasks", (session, limit))]


def make_import_rows(session: str, tasks: Iterable[Task], at: float) -> tuple[Change, ...]:
    """What writes these tasks; those that are there already stay as they are."""
    return tuple(_make_row("task_import", session, task, at) for task in tasks)


def make_undoable_rows(
    graph: TaskGraph, changed: ChangedTasks, context: Context
) -> tuple[Change, ...]:
    """What writes what has changed of this graph, and notes what it was before: /undo of the turn
    brings it back."""
    if not changed:
        return ()
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    who = make_by(
        context, "tasks", render_task_line(merge_changes(graph, changed), changed[0]) + more
    )
    return (*_make_effect_rows(who, context.session, changed), *make_closing_rows(who.key))


def undo_tasks(
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
            (),
            tuple(
                LeftUndone(each.display_name, "changed", now[each.place] or "") for each in changed
            ),
        )
    wanted = [_previous_task(each, graph) for each in items if now[each.place] is not None]
    if why := find_violation(merge_changes(graph, wanted)):
        return UndoneEffect((), (LeftUndone("the tasks", "failed", why),))
    back = tuple(each.display_name for each in items)
    return UndoneEffect(
        back,
        (),
        (
            *_make_effect_rows(by, by.session, wanted),
            *make_closing_rows(by.key),
            *make_undone_rows(by),
        ),
    )


def parse_task_id(item: UndoItem) -> int:
    """Which task it was."""
    return int(msgspec.json.decode(item.place, type=tuple[str, str])[0].removeprefix("task #"))


def _previous_task(item: UndoItem, graph: TaskGraph) -> Task:
    if item.before is None:
        return replace(graph[parse_task_id(item)], status="deleted")
    return _decode_task(item.before.removeprefix("t "))


def _make_effect_rows(by: By, session: str, tasks: Iterable[Task]) -> tuple[Change, ...]:
    """The rows that write them, each between those with which it can be taken back."""
    rows = [make_effect_row(by, TASKS_FOLDER)]
    for task in tasks:
        place = (by.key, msgspec.json.encode((f"task #{task.id}", "")), task.id)
        rows += [Change("effect_task_before", place), _make_row("task_put", session, task, by.at)]
        rows.append(Change("effect_task_after", place))
    return tuple(rows)


def _make_row(statement: str, session: str, task: Task, at: float) -> Change:
    return Change(
        statement, (session, task.id, task.status, task.title, msgspec.json.encode(task), at)
    )
