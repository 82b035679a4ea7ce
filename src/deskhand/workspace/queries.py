"""Typed queries on the undo journal, files to review, and background processes."""

from __future__ import annotations

import os

import msgspec

from ..store.base import Store
from ..tools.base import CommandRequest
from ..tools.undo import UndoItem
from ..tools.watched_folder import allowed_folder_key_range
from ..types.commit import Change
from ..types.identity import Address, Principal
from ..types.labels import Label
from ..types.process import ProcessKind, ProcessState

_encode = msgspec.json.encode
_decode_label = msgspec.json.Decoder(Label).decode


class JournalEntry(msgspec.Struct, frozen=True):
    """One line of the undo journal: what a call changed, or what an undo of the entry `undoes` put
    back. `count` is the number of files, keys or tasks. Times are seconds since the epoch."""

    n: int
    key: str
    agent: str
    session: str
    person: str
    tool: str
    folder: str
    what: str
    at: float
    undoes: int | None
    undone_at: float | None
    count: int

    @property
    def description(self) -> str:
        """For people, in a line."""
        return f"{self.tool}: {self.what}" if self.tool else self.what


class LaterChange(msgspec.Struct, frozen=True):
    """The last entry that changed a place after another one did. `after` is the state it left, or
    ''."""

    n: int
    tool: str
    what: str
    after: str


class KeptBlob(msgspec.Struct, frozen=True):
    """A blob that entry `n` needs to be undone."""

    n: int
    digest: str


class WrittenFile(msgspec.Struct, frozen=True, kw_only=True):
    """A path in a folder of the owner that an agent changed. `before` is its state at the last
    review, `after` what the agent left there. `outside`: words from outside may be in it."""

    place: bytes
    folder: str
    before: str | None
    after: str | None
    blob: str | None
    agent: str
    session: str
    at: float
    outside: bool


class UnreviewedFolder(msgspec.Struct, frozen=True):
    """A folder with so many files to review."""

    folder: str
    count: int


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


# The undo journal


async def list_entries(
    store: Store, who: Principal, session: str, before: int, limit: int
) -> list[JournalEntry]:
    """The entries before number `before`, the latest first: all for an owner, others see their own.
    With a `session` only those of that session. Entries of tasks are left out."""
    args = (*_scope(who), session, before, limit)
    return [JournalEntry(*row) for row in await store.query("effect_list", args)]


async def find_entry(store: Store, n: int) -> JournalEntry | None:
    """The entry with this number."""
    for row in await store.query("effect_get", (n,)):
        return JournalEntry(*row)
    return None


async def find_entry_number(store: Store, key: str) -> int | None:
    """The number of the entry that was written under this key."""
    for (n,) in await store.query("effect_known", (key,)):
        return int(n)
    return None


async def entries_of_call(store: Store, key: str) -> list[JournalEntry]:
    """The entries of the call with this key: one for each folder that it changed."""
    found = []
    for (n,) in await store.query("effect_of_call", (key, *allowed_folder_key_range(key))):
        entry = await find_entry(store, n)
        if entry is not None:
            found.append(entry)
    return found


async def undoable_entries(
    store: Store, who: Principal, session: str, limit: int
) -> list[JournalEntry]:
    """The entries that can be undone, the latest first, of those that `who` may undo."""
    rows = await store.query("effect_live", (*_scope(who), session, limit))
    return [JournalEntry(*row) for row in rows]


async def redoable_entries(
    store: Store, who: Principal, session: str, limit: int
) -> list[JournalEntry]:
    """The undos that can be taken back, the latest first, of those that `who` may take back."""
    rows = await store.query("effect_again", (*_scope(who), session, limit))
    return [JournalEntry(*row) for row in rows]


async def entries_of_session(store: Store, session: str, limit: int) -> list[JournalEntry]:
    """What was done in this session and not undone, the latest first."""
    return [JournalEntry(*row) for row in await store.query("effect_turns", (session, limit))]


async def items_of_entry(store: Store, n: int, limit: int, offset: int = 0) -> list[UndoItem]:
    """What the entry with this number changed, by place."""
    return [UndoItem(*row) for row in await store.query("effect_items", (n, limit, offset))]


async def find_later_change(store: Store, entry: JournalEntry, place: bytes) -> LaterChange | None:
    """The last change of this place after `entry`, or None when no call made one."""
    args = (place, entry.folder, entry.n, entry.agent, entry.session)
    for row in await store.query("effect_since", args):
        return LaterChange(*row)
    return None


async def value_state(store: Store, agent: str, namespace: str, key: str) -> str | None:
    """The state of a key-value as the journal writes it, or None when it is not set."""
    for (state,) in await store.query("effect_kv_now", (agent, namespace, key)):
        return str(state)
    return None


async def task_state(store: Store, session: str, task: int) -> str | None:
    """The state of a task as the journal writes it, or None when there is no such task."""
    for (state,) in await store.query("effect_task_now", (session, task)):
        return str(state)
    return None


async def kept_blobs(store: Store) -> list[KeptBlob]:
    """The blobs that are kept for undo, those of the latest entry first."""
    return [KeptBlob(*row) for row in await store.query("effect_blobs", ())]


def expire_entries(before: float, last: int) -> tuple[Change, ...]:
    """Forget the entries from before this time (seconds since the epoch), and those up to number
    `last`."""
    return (
        Change("effect_expire", (before, last)),
        Change("effect_item_expire", ()),
        Change("effect_label_expire", ()),
    )


async def changed_files(store: Store, session: str, limit: int) -> list[str]:
    """The paths that this session changed and nobody has undone, the latest first."""
    rows = await store.query("ledger_files", (session, limit))
    return [bytes(place).decode(errors="replace") for (place,) in rows]


# Files to review


async def list_written(store: Store, path: str) -> list[WrittenFile]:
    """What is to be reviewed of the paths that begin with `path`, by path."""
    rows = await store.query("written_list", (os.fsencode(path),))
    return [
        WrittenFile(
            place=place,
            folder=folder,
            before=before,
            after=after,
            blob=blob,
            agent=agent,
            session=session,
            at=at,
            outside=bool(outside),
        )
        for place, folder, before, after, blob, agent, session, at, outside in rows
    ]


def accept_written(place: bytes, after: str | None) -> Change:
    """A person has reviewed this path. Changes nothing when an agent has written there since."""
    return Change("written_seen", (place, after))


async def sessions_with_unreported_files(store: Store) -> list[str]:
    """The sessions that changed files to review and have not told anybody yet."""
    return [session for (session,) in await store.query("written_sessions", ())]


async def unreported_folders(store: Store, session: str) -> list[UnreviewedFolder]:
    """The folders in which this session changed files that it has not reported, with the number of
    all files to review there."""
    return [UnreviewedFolder(*row) for row in await store.query("written_folders", (session,))]


def mark_reported(session: str) -> Change:
    """This session has told a person what there is to review."""
    return Change("written_told", (session,))


# Background processes


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


def end_lost_processes(at: float, detail: str) -> Change:
    """End the terminal sessions that an earlier run of Deskhand left."""
    return Change("process_lost", (at, detail))


def forget_processes(before: float) -> Change:
    """Forget the processes from before this time (seconds since the epoch) whose end was told."""
    return Change("process_forget", (before,))


def _scope(who: Principal) -> tuple[int, str]:
    """Whether they see everything, and whose entries they see otherwise."""
    return int("owner" in who.roles), who.on_behalf_of or who.id
