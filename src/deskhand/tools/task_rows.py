"""Tasks as rows: read for a conversation, and written in the commit of the call that changed them,
with what they were before; and taken back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from ..types.commit import Change
from ..types.tasks import Task, TaskGraph
from .base import Context
from .journal import TASKS_FOLDER, UndoItem, add_entry, drop_unchanged, note_task_change
from .notes import By
from .queries import change_task, load_tasks, put_task
from .task_graph import ChangedTasks, find_violation, merge_changes
from .task_words import render_task_line
from .undo import LeftUndone, UndoneEffect
from .watched_folder import make_by, make_undone_rows

_decode_task = msgspec.json.Decoder(Task).decode


async def load_graph(context: Context) -> dict[int, Task]:
    """The tasks of the conversation in which a tool is called; a teammate has those of its lead."""
    return await load_tasks(context.reach.reader, context.board)


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
    rows = [change_task(context.board, graph.get(task.id), task, who.at) for task in changed]
    effect = replace(who, session=context.board)
    return (*_make_effect_rows(effect, changed, rows), *drop_unchanged(who.key))


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
            *_make_effect_rows(by, wanted, [put_task(by.session, each, by.at) for each in wanted]),
            *drop_unchanged(by.key),
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


def _make_effect_rows(
    by: By, tasks: Sequence[Task], written: Sequence[Change]
) -> tuple[Change, ...]:
    """The rows that write these tasks, each between those with which it can be taken back."""
    rows = [add_entry(by, TASKS_FOLDER)]
    for task, row in zip(tasks, written, strict=True):
        rows += note_task_change(by.key, task.id, row)
    return tuple(rows)
