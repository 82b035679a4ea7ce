"""Tasks as rows: read for a conversation, and written in the commit of the call that changed them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ..store.sql import load_sql
from ..types.commit import Change
from ..types.tasks import Task
from .base import Context

STATEMENTS = load_sql(__package__, "tasks.sql")
_decode = msgspec.json.Decoder(Task).decode


def read(rows: Iterable[Sequence[Any]]) -> dict[int, Task]:
    """The graph in the rows of `task_of`."""
    tasks = (_decode(row[0]) for row in rows)
    return {task.id: task for task in tasks}


async def graph_of(context: Context) -> dict[int, Task]:
    """The tasks of the conversation in which a tool is called."""
    return read(await context.reach.rows("task_of", (context.session,)))


def rows_of(session: str, tasks: Iterable[Task], at: float, *, new: bool = False) -> tuple[Change, ...]:
    """What writes these tasks; `new`: those that are there already stay as they are."""
    statement = "task_import" if new else "task_put"
    return tuple(
        Change(statement, (session, task.id, task.status, task.title, msgspec.json.encode(task), at)) for task in tasks
    )
