"""Typed queries on background processes."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from ..store.base import Store
from ..tools.base import CommandRequest
from ..types.commit import Change
from ..types.identity import Address, Principal
from ..types.labels import Label
from ..types.process import ProcessKind, ProcessState

_encode = msgspec.json.encode
_decode_label = msgspec.json.Decoder(Label).decode


class ProcessRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The call that asked for a process: who made it, where, and what they had read. Stored as JSON
    in the row of the process."""

    principal: Principal
    address: Address
    key: str
    label: Label
    audience: tuple[str, ...]
    wanted: CommandRequest


class OwedProcess(msgspec.Struct, frozen=True):
    """A process that is to be started, was cut off, or whose end is to be reported. `stop` says who
    stopped it, or is ''."""

    id: str
    session: str
    state: ProcessState
    request: ProcessRequest
    stop: str


class ProcessReport(msgspec.Struct, frozen=True):
    """What a session is told when its process has ended, under this label."""

    text: str
    label: Label


class EndedProcess(msgspec.Struct, frozen=True, kw_only=True):
    """How a process ended: its exit `code` if it has one, the `detail` for people and models, and
    the `text` that its session is told under this label."""

    id: str
    state: ProcessState
    at: float
    code: int | None
    detail: str
    text: str
    label: Label


class ProcessCounts(msgspec.Struct, frozen=True):
    """How many processes of a session run, and of its agent in all sessions."""

    session: int
    agent: int


_decode_request = msgspec.json.Decoder(ProcessRequest).decode


async def owed_processes(store: Store) -> list[OwedProcess]:
    """The processes for which something is still to be done, the oldest first."""
    owed = []
    for id_, session, state, request, stop in await store.query("process_owed", ()):
        owed.append(OwedProcess(id_, session, state, _decode_request(request), stop))
    return owed


async def stop_reasons(store: Store) -> dict[str, str]:
    """Why each process that is to run or runs is to be stopped ('' for no reason), by its id."""
    return dict(await store.query("process_alive", ()))


async def count_processes(store: Store, session: str, agent: str) -> ProcessCounts:
    """How many processes run, or are about to."""
    (row,) = await store.query("process_count", (session, agent))
    return ProcessCounts(*row)


async def find_report(store: Store, id_: str) -> ProcessReport | None:
    """What is to be said of the end of this process, or None when nobody is to be told: it was
    told, or its session was erased or stopped."""
    for text, label in await store.query("process_said", (id_,)):
        return ProcessReport(text, _decode_label(label))
    return None


async def running_commands(store: Store, session: str, limit: int) -> list[str]:
    """The id and the command of each process of this session that runs or is about to."""
    return [line for (line,) in await store.query("ledger_processes", (session, limit))]


def add_process(
    id_: str, kind: ProcessKind, request: ProcessRequest, session: str, agent: str, at: float
) -> Change:
    """Store a process. One in the background is to be started and reported; a terminal session runs
    at once, and nobody is told of its end."""
    wanted = request.wanted
    what = (kind, wanted.command, wanted.name, wanted.timeout_s, _encode(request))
    state: ProcessState = "running"
    started_at: float | None = at
    told = 1
    if kind == "background":
        state = "wanted"
        started_at = None
        told = 0
    return Change("process_add", (id_, session, agent, *what, state, at, started_at, told))


def mark_started(id_: str, at: float) -> Change:
    """The process runs from now on. Changes no row when it was stopped before."""
    return Change("process_started", (at, id_))


def mark_ended(ended: EndedProcess) -> Change:
    """The process is over."""
    outcome = (ended.state, ended.at, ended.code, ended.detail, ended.text, _encode(ended.label))
    return Change("process_ended", (*outcome, ended.id))


def mark_told(id_: str) -> Change:
    """The session of this process was told of its end."""
    return Change("process_told", (id_,))


def stop_processes_of(session: str, why: str, at: float) -> Change:
    """Stop all processes of this session, and tell it nothing of their end."""
    return Change("process_stop_all", (why, at, session))


def end_lost_processes(at: float, detail: str, agents: Collection[str] | None) -> Change:
    """End the terminal sessions that an earlier run of Deskhand left: of these agents, or all."""
    listed = None if agents is None else msgspec.json.encode(sorted(agents)).decode()
    return Change("process_lost", (at, detail, listed))


def forget_processes(before: float) -> Change:
    """Forget the processes from before this time (seconds since the epoch) whose end was told."""
    return Change("process_forget", (before,))
