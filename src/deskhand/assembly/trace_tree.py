"""The trace of a conversation together with those of its sub-agents and teammates."""

from __future__ import annotations

from collections.abc import Callable

from ..store.base import Store
from ..store.queries import subagents_of, tasks_of_subagent
from ..types.events import MessageReceived, Recorded
from ..types.subagents import CHANNEL, id_of_session, is_subagent_session
from ..types.trace_ids import SpanParent
from .trace import Trace, TraceSpan

MAX_TASKS = 1_000
"""So many tasks of one conversation are looked through, the latest first."""


async def read_parents(store: Store, session: str) -> dict[str, SpanParent]:
    """The calls that gave the tasks of this sub-agent, by the ids of their messages; none for any
    other conversation."""
    id_ = id_of_session(session)
    tasks = await tasks_of_subagent(store, id_) if id_ else []
    return {task.key: task.request.span for task in tasks if task.request.span is not None}


def is_given(recorded: Recorded) -> bool:
    """Whether a sub-agent was given a task by this."""
    event = recorded.event
    return isinstance(event, MessageReceived) and event.address.channel == CHANNEL


class TraceTree:
    """Reads the log of `session`, and of all that works for it at any depth, as far as it goes
    now."""

    def __init__(self, store: Store, session: str, redact: Callable[[str], str]) -> None:
        self._store = store
        self._redact = redact
        self._traces = {session: Trace(redact)}
        self._read = {session: 0}
        self._depths = {session: 0}

    async def read(self) -> list[TraceSpan]:
        """What has ended since it was read last, in that order."""
        found = list[TraceSpan]()
        todo = list(self._traces)
        while todo:
            session = todo.pop()
            found += await self._read_one(session)
            below = {task.session for task in subagents_of(self._store, session, MAX_TASKS)}
            for own in below - self._traces.keys():
                self._traces[own] = Trace(self._redact)
                self._read[own] = 0
                self._depths[own] = self._depths[session] + 1
                todo.append(own)
        return sorted(found, key=lambda span: span.seq)

    async def _read_one(self, session: str) -> list[TraceSpan]:
        trace = self._traces[session]
        events = await self._store.events(session, self._read[session])
        if events and is_subagent_session(session):
            trace.parents = await read_parents(self._store, session)
        spans = [span for recorded in events for span in trace.add(recorded)]
        if events:
            self._read[session] = events[-1].n
        return spans

    def open_spans(self) -> list[TraceSpan]:
        """What has not ended yet."""
        traces = self._traces.items()
        return [span for session, trace in traces for span in trace.open_spans(session)]

    def depth_of(self, session: str) -> int:
        """0 for the conversation itself, 1 for its sub-agents, and so on."""
        return self._depths[session]
