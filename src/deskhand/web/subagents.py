"""Sub-agents of conversations: to look at, and to stop."""

from __future__ import annotations

import msgspec

from ..policy.information_flow import may_see
from ..store.queries import last_event_number, stop_subagent, visible_subagents
from ..types.marked_texts import mark_text
from ..types.subagents import SubagentTask, TaskState, describe_steps
from .errors import not_found
from .names import format_session_name, parse_session_name
from .routing import Call, Endpoint

MAX_TASKS = 500
LOOKED_AT = 8
"""So many of the latest events are looked at for what it does."""
READ_CHARS = 4_000
OUTCOME_CHARS = 200
WITHHELD = "Its answer is only for some of those who read this conversation."


class SubagentQuery(msgspec.Struct, frozen=True):
    """`session`: of the conversation of this name alone. `all`: also those that have ended."""

    session: str = ""
    all: bool = False


class SubagentView(msgspec.Struct, frozen=True):
    """A task of a sub-agent. `name` and `session` are its conversation, `parent` the one that gave
    the task in the call `call_id`. `stop` says who stopped it, `doing` what it does. `outcome` is
    how its answer begins once it has ended, or why there is none. Times are seconds since the
    epoch."""

    id: str
    name: str
    session: str
    parent: str
    call_id: str
    title: str
    state: TaskState
    stop: str
    doing: str
    outcome: str
    at: float
    ended_at: float | None


async def list_subagents(call: Call) -> list[SubagentView]:
    wanted: SubagentQuery = call.query
    session = ""
    if wanted.session:
        agent = call.web.admin.agents[0]
        session = parse_session_name(wanted.session, call.principal, agent)
    found = await visible_subagents(
        call.web.store, call.principal, session, ended=wanted.all, limit=MAX_TASKS
    )
    return [await _make_view(call, task) for task in found]


async def stop(call: Call) -> SubagentView:
    id_ = call.path("id")
    live = await visible_subagents(call.web.store, call.principal, "", ended=False, limit=MAX_TASKS)
    found = next((task for task in live if task.id == id_), None)
    if found is None:
        raise not_found(mark_text("such sub-agent at work"))
    await call.web.store.change((stop_subagent(id_, f"stopped by {call.principal.id}"),))
    return await _make_view(call, found)


async def find_step(call: Call, task: SubagentTask) -> str:
    """What it does now, or asks; '' once it has ended."""
    store = call.web.store
    if not task.is_live:
        return ""
    last = await last_event_number(store, task.session)
    latest = await store.events(task.session, max(0, last - LOOKED_AT))
    for recorded in reversed(latest):
        if steps := describe_steps(recorded.event):
            return call.web.redact(steps[0])
    return ""


def describe_outcome(call: Call, task: SubagentTask) -> str:
    """How its answer begins, or why there is none, on one line; '' until it has ended. It is
    withheld from those from whom it was withheld in the conversation."""
    if task.is_live:
        return ""
    if not may_see(task.label, task.request.audience):
        return WITHHELD
    line = " ".join(call.web.redact(task.said[:READ_CHARS]).split())
    if len(line) <= OUTCOME_CHARS:
        return line
    return f"{line[:OUTCOME_CHARS]}\N{HORIZONTAL ELLIPSIS}"


async def _make_view(call: Call, task: SubagentTask) -> SubagentView:
    redact = call.web.redact
    return SubagentView(
        task.id,
        format_session_name(task.session, call.principal, call.web.admin.agents[0]),
        task.session,
        task.parent,
        task.request.call_id,
        redact(task.title),
        task.state,
        redact(task.stop),
        await find_step(call, task),
        describe_outcome(call, task),
        task.at,
        task.ended_at,
    )


_T = "conversations"
ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/subagents",
        "read",
        list_subagents,
        "List tasks of sub-agents",
        query=SubagentQuery,
        returns=list[SubagentView],
        tag=_T,
    ),
    Endpoint(
        "DELETE",
        "/api/subagents/{id}",
        "chat",
        stop,
        "Stop a sub-agent",
        returns=SubagentView,
        tag=_T,
    ),
)
