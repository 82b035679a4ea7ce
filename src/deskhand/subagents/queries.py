"""Typed queries on the tasks of sub-agents."""

from __future__ import annotations

import msgspec

from ..store.base import Store
from ..types.commit import Change
from ..types.labels import Label
from ..types.messages import Usage
from ..types.subagents import SubagentTask, TaskRequest, TaskState, parse_task_row

_encode = msgspec.json.encode


class TaskName(msgspec.Struct, frozen=True):
    """A task of a sub-agent, the first being 1."""

    id: str
    round: int = 1


class LiveTasks(msgspec.Struct, frozen=True):
    """How many tasks are being worked on: those that a session gave, and all."""

    session: int
    all: int


class TaskPlace(msgspec.Struct, frozen=True):
    """The conversation that gives a task, and that of the sub-agent."""

    parent: str
    session: str


def add_task(
    name: TaskName, place: TaskPlace, request: TaskRequest, at: float, *, told: bool = False
) -> Change:
    """A task is given. `told`: nobody is to hear of its end. Does nothing where that was done
    before."""
    row = (place.parent, place.session, request.path[-1], at, _encode(request), int(told))
    return Change("subagent_add", (name.id, name.round, *row))


async def open_tasks(store: Store) -> list[SubagentTask]:
    """The tasks for which something is still to be done, the oldest first: those that have not
    ended, and those whose end is still to be told."""
    return [parse_task_row(row) for row in await store.query("subagent_open", ())]


async def count_live(store: Store, session: str) -> LiveTasks:
    (row,) = await store.query("subagent_live", (session,))
    return LiveTasks(*row)


def mark_given(task: SubagentTask) -> Change:
    """Its message is in the inbox of the sub-agent."""
    return Change("subagent_given", (task.id, task.round))


class TaskEnd(msgspec.Struct, frozen=True):
    """How a task ended: what the parent is to be told under this label, and what its model used."""

    state: TaskState
    said: str
    label: Label
    usage: Usage = Usage()


def mark_ended(task: SubagentTask, end: TaskEnd, at: float) -> Change:
    """It is over. Does nothing where it has gone on since it was read."""
    used = (end.usage.input_tokens, end.usage.output_tokens)
    outcome = (end.state, at, *used, end.said, _encode(end.label))
    return Change("subagent_ended", (*outcome, task.id, task.round, task.state))


def mark_told(task: SubagentTask) -> Change:
    """The parent was told of its end."""
    return Change("subagent_told", (task.id, task.round))


def forget_tasks(before: float) -> Change:
    """Forget the tasks from before this time (seconds since the epoch) whose end was told."""
    return Change("subagent_forget", (before,))
