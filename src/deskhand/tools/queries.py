"""Typed queries on the tables of the tools: labels of files, approvals, key-values, tasks, and
hosts that commands may reach.

The undo journal stands in `journal`, files to review in `review`.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..store.base import Args, Row, StatementReader, Store, SyncStatementReader
from ..types.commit import Change
from ..types.labels import Label
from ..types.tasks import Task

USE_SECRET = "secret of a skill"
"""As what it stands among the standing answers that a skill may use a secret. No tool can be called
so: what is answered to a call of a tool allows no secret."""
_encode = msgspec.json.encode
_decode_label = msgspec.json.Decoder(Label).decode
_decode_task = msgspec.json.Decoder(Task).decode


class FileMarks(msgspec.Struct, frozen=True):
    """What is known of files, by real path: their `labels` as JSON, and the SHA-256 of those that a
    person `approved`."""

    labels: dict[str, bytes]
    approved: dict[str, bytes]


class Approval(msgspec.Struct, frozen=True):
    """What a person approved at a real path: `digest` is the SHA-256 of what was there at `at`
    (seconds since the epoch)."""

    path: str
    digest: bytes
    by: str
    at: float


class StoredValue(msgspec.Struct, frozen=True):
    """A key with its value, until `expires_at` (seconds since the epoch) or for good. `label` is
    None for what this machine itself has set."""

    key: str
    value: str
    expires_at: float | None = None
    label: Label | None = None


# Labels of files, blobs and effects


async def list_file_labels(reader: StatementReader) -> dict[str, Label]:
    """The labels of all files that have one, by real path."""
    rows = await reader.query("file_labels", ())
    return {path: _decode_label(label) for path, label in rows}


async def find_label(reader: StatementReader, name: str) -> Label | None:
    """The label of a real path, of `blob:DIGEST` or of `effect:KEY`. None when it has none."""
    for (label,) in await reader.query("file_label_get", (name,)):
        return _decode_label(label)
    return None


def set_label(name: str, label: Label, session: str, at: float) -> Change:
    """Give this name a label. `session` and `at` say in which conversation that was, and when."""
    return Change("file_label_set", (name, _encode(label), session, at))


def drop_label(path: str) -> Change:
    """Take away the label of this real path."""
    return Change("file_label_drop", (path,))


def drop_labels_beneath(path: str) -> Change:
    """Take away the labels of this real path and, where it is a folder, of all that lies in it."""
    return Change("file_label_drop_beneath", (path,))


def keep_label_of_bytes(path: str, blob: str, key: str, place: bytes) -> Change:
    """What is stored as this blob has the label of this real path, where it lay. Does nothing when
    the journal's entry with this `key` has the place already."""
    return Change("file_label_keep", (path, blob, key, place))


def restore_label(path: str, blob: str, at: float) -> Change:
    """This real path has the label of this blob, whose bytes lie there again."""
    return Change("file_label_restore", (path, blob, at))


# Approved files


def read_file_marks(store: Store) -> FileMarks:
    """The labels of all files and all approvals. Asked before every call of a model, so the labels
    are not decoded here."""
    labels: dict[str, bytes] = {}
    approved: dict[str, bytes] = {}
    for path, label, digest in store.query_sync("held_back"):
        if label is not None:
            labels[path] = label
        if digest is not None:
            approved[path] = digest
    return FileMarks(labels, approved)


async def list_approvals(reader: StatementReader) -> list[Approval]:
    """All approvals, by path."""
    return [Approval(*row) for row in await reader.query("approved_files", ())]


async def approved_digests(reader: StatementReader) -> dict[str, bytes]:
    """The SHA-256 of what was approved, by real path."""
    return {each.path: each.digest for each in await list_approvals(reader)}


def drop_approval(path: str) -> Change:
    """Take back the approval of this real path."""
    return Change("approved_file_drop", (path,))


def approve(path: str, digest: bytes, by: str, at: float) -> Change:
    """A person approves the content of this real path, whose SHA-256 this is."""
    return Change("approved_file_set", (path, digest, by, at))


# Key-values of an agent. What has expired is not there.


async def find_value(
    reader: StatementReader, agent: str, namespace: str, key: str, now: float
) -> StoredValue | None:
    """The value under this key."""
    rows = await reader.query("value_get", (agent, namespace, key, now))
    for value, expires_at, label in rows:
        return StoredValue(key, value, expires_at, _parse_label(label))
    return None


async def list_values(
    reader: StatementReader, agent: str, namespace: str, prefix: str, now: float
) -> list[StoredValue]:
    """The values whose keys begin with this prefix, by key."""
    return [
        StoredValue(key, value, expires_at, _parse_label(label))
        for key, value, expires_at, label in await reader.query(
            "value_list", (agent, namespace, prefix, now)
        )
    ]


def set_value(agent: str, namespace: str, value: StoredValue) -> Change:
    """Set a key. What was there before is replaced."""
    label = None if value.label is None else _encode(value.label)
    row = (agent, namespace, value.key, value.value, value.expires_at, label)
    return Change("value_set", row)


def restore_value(agent: str, namespace: str, key: str, state: str) -> Change:
    """Set a key to a state that the undo journal has written."""
    value, expires_at, label = msgspec.json.decode(
        state.removeprefix("k "), type=tuple[str, float | None, str]
    )
    row = (agent, namespace, key, value, expires_at, bytes.fromhex(label) or None)
    return Change("value_set", row)


def drop_value(agent: str, namespace: str, key: str) -> Change:
    """Delete a key."""
    return Change("value_delete", (agent, namespace, key))


def expire_values(now: float) -> Change:
    """Delete all values that have expired."""
    return Change("value_expire", (now,))


def _parse_label(stored: bytes | None) -> Label | None:
    return None if stored is None else _decode_label(stored)


# Tasks


def tasks_of(reader: SyncStatementReader, session: str) -> dict[int, Task]:
    """All tasks of this session by their id, deleted ones included. Does not wait."""
    return _index_tasks(reader.query_sync("task_of", (session,)))


async def load_tasks(reader: StatementReader, session: str) -> dict[int, Task]:
    """As `tasks_of`."""
    return _index_tasks(await reader.query("task_of", (session,)))


def _index_tasks(rows: Iterable[Row]) -> dict[int, Task]:
    tasks = (_decode_task(body) for (body,) in rows)
    return {task.id: task for task in tasks}


async def open_task_lines(store: Store, session: str, limit: int) -> list[str]:
    """A line for each open task of this session, with its status. The one in progress comes
    first."""
    return [text for (text,) in await store.query("ledger_tasks", (session, limit))]


def put_task(session: str, task: Task, at: float) -> Change:
    """Write a task. What was there under its id is replaced."""
    return Change("task_put", _task_row(session, task, at))


def change_task(session: str, before: Task | None, task: Task, at: float) -> Change:
    """Write a task over what was read of it (None: it was not there). Nothing of the commit is
    written where somebody has changed it since."""
    if before is None:
        return Change("task_import", _task_row(session, task, at), must=True)
    fields = (task.status, task.title, _encode(task), at)
    return Change("task_change", (*fields, session, task.id, _encode(before)), must=True)


def import_tasks(session: str, tasks: Iterable[Task], at: float) -> tuple[Change, ...]:
    """Write these tasks. Those that are there already stay as they are."""
    return tuple(Change("task_import", _task_row(session, task, at)) for task in tasks)


def _task_row(session: str, task: Task, at: float) -> Args:
    return (session, task.id, task.status, task.title, _encode(task), at)


# Hosts that commands may reach


def grant_host(host: str, *, agent: str, session: str, knowing: int, at: float, by: str) -> Change:
    """Let commands of this agent ('' for all) reach a host, in one session or in all ('').
    `knowing` is what had been read by then: see `network.READ_OUTSIDE` and `READ_PRIVATE`; 0 for
    nothing of that."""
    return Change("egress_grant_set", (agent, session, host, knowing, at, by))


async def secret_use_answers(reader: StatementReader, agent: str) -> list[tuple[str, str]]:
    """What was said for good, `always` or `never`, to skills of this agent, or of all, that want a
    secret; each with which one, as JSON."""
    rows = await reader.query("secret_uses_said", (agent,))
    return [(verdict, shown) for verdict, shown in rows]
