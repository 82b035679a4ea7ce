"""What `/undo` does about sub-agents and scripts that the undone turns began."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from ..store.base import Store
from ..store.queries import subagents_of, take_back_task, tasks_of_subagent
from ..tools import journal
from ..tools.journal import JournalEntry
from ..types.events import ModelReplied
from ..types.marked_texts import mark_text
from ..types.subagents import SubagentTask

MAX_TASKS = 10_000
MAX_ENTRIES = 10_000
STOP_S = 10.0
STOP_POLL_S = 0.05
WHY = "the turn that began it was undone"


async def find_tasks_of_turns(store: Store, session: str, after: int) -> list[SubagentTask]:
    """The tasks that calls of this session gave after its event `after`, and those below them."""
    tail = await store.events(session, after)
    replies = [each.event for each in tail if isinstance(each.event, ModelReplied)]
    calls = {call.id for reply in replies for call in reply.message.calls}
    todo = [
        task
        for task in subagents_of(store, session, MAX_TASKS)
        if task.request.call_id in calls and tail and task.at >= tail[0].at
    ]
    found = list[SubagentTask]()
    while todo:
        task = todo.pop()
        found.append(task)
        below = subagents_of(store, task.session, MAX_TASKS)
        todo += [each for each in below if each.at >= task.at]
    return found


async def stop_tasks(store: Store, tasks: Sequence[SubagentTask]) -> str:
    """Stop those that still work, and wait for that, so that they change nothing after it was put
    back; nobody is told what came of any. Returns what people are told."""
    rows = [take_back_task(task, WHY) for task in tasks]
    if rows:
        await store.change(rows)
    live = [task for task in tasks if task.is_live]
    working = live
    with anyio.move_on_after(STOP_S):
        while working:
            await anyio.sleep(STOP_POLL_S)
            working = [task for task in working if await _is_live(store, task)]
    if working:
        names = ", ".join(task.title for task in working)
        return mark_text(
            "This is still being stopped, so look at what it changes: {titles}."
        ).format(titles=names)
    if len(live) == 1:
        return mark_text("Stopped a sub-agent.")
    stopped = mark_text("Stopped {agents_number} sub-agents.")
    return stopped.format(agents_number=len(live)) if live else ""


async def _is_live(store: Store, task: SubagentTask) -> bool:
    now = await tasks_of_subagent(store, task.id)
    return any(each.round == task.round and each.is_live for each in now)


async def list_entries_of_tasks(
    store: Store, tasks: Sequence[SubagentTask], own: Sequence[JournalEntry]
) -> list[JournalEntry]:
    """What was changed for these tasks. `own` are the entries of the conversation: what they
    changed in its task list stands there."""
    found = dict[int, JournalEntry]()
    for task in tasks:
        entries = await journal.entries_of_session(store, task.session, MAX_ENTRIES)
        entries += [each for each in own if each.key.startswith(f"{task.session}#")]
        found |= {each.n: each for each in entries if each.at >= task.at}
    return list(found.values())
