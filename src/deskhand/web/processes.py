"""What runs beside conversations: to look at, and to end."""

from __future__ import annotations

import msgspec

from ..types.commit import Change
from ..types.process import Kind, Process, State, process_of
from .errors import not_found
from .routing import Call, Endpoint

SHOWN = 200


class ProcessQuery(msgspec.Struct, frozen=True):
    """`session`: of this conversation alone. `all`: also those that have ended."""

    session: str = ""
    all: bool = False


class ProcessView(msgspec.Struct, frozen=True):
    """A command in the background, or a session at a terminal. `detail` says how it ended. Times
    are seconds since the epoch."""

    id: str
    session: str
    kind: Kind
    command: str
    name: str
    state: State
    at: float
    started_at: float | None
    ended_at: float | None
    code: int | None
    detail: str


async def processes(call: Call) -> list[ProcessView]:
    wanted: ProcessQuery = call.query
    return [
        _view(call, each)
        for each in await _theirs(call)
        if (wanted.all or each.live) and wanted.session in ("", each.session)
    ]


async def kill(call: Call) -> ProcessView:
    id_ = call.path("id")
    found = next((each for each in await _theirs(call) if each.id == id_), None)
    if found is None:
        raise not_found("such process")
    await call.web.store.change((Change("process_stop", (f"stopped by {call.principal.id}", id_)),))
    return _view(call, found)


async def _theirs(call: Call) -> list[Process]:
    """Of the conversations that they may see."""
    sees_all = "owner" in call.principal.roles
    rows = await call.web.store.rows("process_seen_by", (int(sees_all), call.principal.id, SHOWN))
    return [process_of(row) for row in rows]


def _view(call: Call, process: Process) -> ProcessView:
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
        processes,
        "What runs beside conversations",
        query=ProcessQuery,
        returns=list[ProcessView],
        tag=_T,
    ),
    Endpoint(
        "DELETE",
        "/api/processes/{id}",
        "chat",
        kill,
        "End one of them",
        returns=ProcessView,
        tag=_T,
    ),
)
