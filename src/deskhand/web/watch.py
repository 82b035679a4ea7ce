"""Everything that happens in the conversations of one person: as a stream, and the calls of tools
as a list."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Annotated

import msgspec

from ..store.base import LAST_SEQ, Store
from ..store.queries import CallStart, find_call
from ..types.events import CallClosed, ModelReplied, Recorded, ToolFinished
from ..types.messages import ResultStatus
from .dialect_computer import result_of
from .names import format_session_name
from .routing import Call, Endpoint
from .stream import EventStream, as_sse_by_seq, encode_batches, make_standing, resume_point

KINDS = ("call_closed", "model_replied", "tool_finished")
PREVIEW_CHARS = 500
MAX_ACTIVITY = 200
LOOK_BACK = 400


class Since(msgspec.Struct, frozen=True):
    """`after_seq` is the `seq` of the last event that the client has; without it, what happens from
    now on. The header `Last-Event-ID` says the same, and wins."""

    after_seq: Annotated[int, msgspec.Meta(le=2**53)] | None = None


class Activity(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call of a tool (`tool_call`, with its `input`), or what came of it (`tool_result`)."""

    type: str
    session_id: str
    tool: str
    tool_call_id: str
    timestamp: float
    input: msgspec.Raw | None = None
    result_preview: str | None = None
    duration_ms: int | None = None
    success: bool | None = None


class ActivityView(msgspec.Struct, frozen=True, omit_defaults=True):
    """The latest last. `more`: ask again with `before` for what was earlier; left out where nothing
    was."""

    events: list[Activity]
    more: int | None = None


class Latest(msgspec.Struct, frozen=True):
    """`before` is the `more` of the page before."""

    limit: int = 50
    before: Annotated[int, msgspec.Meta(ge=0, le=LAST_SEQ)] = LAST_SEQ


async def watch_events(call: Call) -> EventStream:
    """`GET /api/watch`: resumes by `seq`, which counts the events of all conversations."""
    store = call.web.store
    after = resume_point(
        call, store.last_seq() if call.query.after_seq is None else call.query.after_seq
    )
    events = to_batches(call.web.door.watch(call.principal, after))
    return EventStream(call.web, encode_batches(events, as_sse_by_seq), make_standing(call.request))


async def to_batches(events: AsyncGenerator[Recorded]) -> AsyncGenerator[Sequence[Recorded]]:
    async with aclosing(events):
        async for recorded in events:
            yield [recorded]


async def list_activity(call: Call) -> ActivityView:
    store = call.web.store
    limit = min(max(call.query.limit, 0), MAX_ACTIVITY)
    agent = call.web.admin.agents[0]
    found = list[Activity]()
    before = call.query.before
    while len(found) < limit and (
        page := await store.latest_events(call.principal, KINDS, LOOK_BACK, before)
    ):
        calls = ActivityLines(call.web.redact, store)
        lines = [
            list(calls.add(each, format_session_name(each.session, call.principal, agent)))
            for each in page
        ]
        for recorded, made in zip(reversed(page), reversed(lines), strict=True):
            if found and len(found) + len(made) > limit:
                return ActivityView(found, before)
            found = [*made[-limit:], *found]
            before = recorded.seq
    return ActivityView(found, before if len(found) >= limit > 0 else None)


class ActivityLines:
    """Makes lines of activity from events, fed in order."""

    def __init__(self, redact: Callable[[str], str], store: Store) -> None:
        self._redact = redact
        self._store = store
        self._open: dict[tuple[str, str], CallStart] = {}

    def add(self, recorded: Recorded, name: str) -> Iterator[Activity]:
        event = recorded.event
        at = recorded.at
        if isinstance(event, ModelReplied):
            for each in event.message.calls:
                self._open[recorded.session, each.id] = CallStart(each.name, at)
                yield Activity(
                    "tool_call",
                    name,
                    each.name,
                    each.id,
                    at,
                    input=self._redact_raw(each.arguments),
                )
        elif isinstance(event, ToolFinished):
            yield self._result_line(
                recorded, name, event.result.call_id, event.result.text, event.result.status
            )
        elif isinstance(event, CallClosed):
            yield self._result_line(recorded, name, event.call_id, event.reason, event.status)

    def _result_line(
        self, recorded: Recorded, name: str, call_id: str, text: str, status: ResultStatus
    ) -> Activity:
        call = self._open.pop((recorded.session, call_id), None)
        if call is None:  # it lies further back than this page
            call = find_call(self._store, recorded.session, recorded.n, call_id)
        tool = call.tool if call else ""
        took = max(0, round((recorded.at - call.at) * 1000)) if call else 0
        preview = result_of(tool, self._redact(text), status)[:PREVIEW_CHARS]
        return Activity(
            "tool_result", name, tool, call_id, recorded.at, None, preview, took, status == "ok"
        )

    def _redact_raw(self, raw: msgspec.Raw) -> msgspec.Raw:
        return msgspec.Raw(self._redact(bytes(raw).decode(errors="replace")).encode())


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/watch",
        "read",
        watch_events,
        "Follow all of your conversations as server-sent events",
        query=Since,
        media="text/event-stream",
        tag="conversations",
    ),
    Endpoint(
        "GET",
        "/api/activity",
        "read",
        list_activity,
        "List the latest tool calls and their results",
        query=Latest,
        returns=ActivityView,
        invalid=422,
        tag="conversations",
    ),
)
