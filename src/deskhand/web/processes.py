"""What runs beside conversations: to look at, and to end."""

from __future__ import annotations

import msgspec

from ..store.queries import stop_process, visible_processes
from ..types.marked_texts import mark_text
from ..types.process import Process, ProcessKind, ProcessState
from .errors import not_found
from .routing import Call, Endpoint

MAX_PROCESSES = 200


class ProcessQuery(msgspec.Struct, frozen=True):
    """`session`: of this conversation alone. `all`: also those that have ended."""

    session: str = ""
    all: bool = False


class ProcessView(msgspec.Struct, frozen=True):
    """A command in the background, or a session at a terminal. `detail` says how it ended. Times
    are seconds since the epoch."""

    id: str
    session: str
    kind: ProcessKind
    command: str
    name: str
    state: ProcessState
    at: float
    started_at: float | None
    ended_at: float | None
    code: int | None
    detail: str


async def list_processes(call: Call) -> list[ProcessView]:
    wanted: ProcessQuery = call.query
    return [
        _make_view(call, each)
        for each in await _visible_processes(call)
        if (wanted.all or each.is_live) and wanted.session in ("", each.session)
    ]


async def kill(call: Call) -> ProcessView:
    id_ = call.path("id")
    found = next((each for each in await _visible_processes(call) if each.id == id_), None)
    if found is None:
        raise not_found(mark_text("such process"))
    await call.web.store.change((stop_process(id_, by=call.principal.id),))
    return _make_view(call, found)


async def _visible_processes(call: Call) -> list[Process]:
    """Of the conversations that they may see."""
    return await visible_processes(call.web.store, call.principal, MAX_PROCESSES)


def _make_view(call: Call, process: Process) -> ProcessView:
    redact = call.web.redact
    return ProcessView(
        process.id,
        process.session,
        process.kind,
        redact(process.command),
        redact(process.name),
        process.state,
        process.at,
        process.started_at,
        process.ended_at,
        process.code,
        redact(process.detail),
    )


_T = "conversations"
ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/processes",
        "read",
        list_processes,
        "List background processes",
        query=ProcessQuery,
        returns=list[ProcessView],
        tag=_T,
    ),
    Endpoint(
        "DELETE",
        "/api/processes/{id}",
        "chat",
        kill,
        "End a background process",
        returns=ProcessView,
        tag=_T,
    ),
)
