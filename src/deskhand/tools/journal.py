"""Typed queries on the undo journal: what calls have changed, and what was there before."""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec

from ..policy.visible import escape_invisible
from ..store.base import StatementReader, Store
from ..types.commit import Change
from ..types.identity import Principal
from .notes import By

KV_FOLDER = "kv:"
TASKS_FOLDER = "task:"
"""The `folder` of entries on key-values, and of those on tasks."""


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


class UndoItem(msgspec.Struct, frozen=True, gc=False):
    """What an effect changed: a path in its folder, or a key-value or a task as JSON. `blob` holds
    the bytes of before."""

    place: bytes
    before: str | None
    after: str | None
    blob: str | None = None

    @property
    def path(self) -> str:
        return os.fsdecode(self.place)

    @property
    def display_name(self) -> str:
        """For people."""
        text = self.place.decode(errors="backslashreplace")
        if text.startswith("["):
            with suppress(ValueError, RecursionError):
                text = "/".join(
                    part for part in msgspec.json.decode(text, type=tuple[str, str]) if part
                )
        return escape_invisible(text)


class FileVersion(msgspec.Struct, frozen=True):
    """What one entry did to one file."""

    entry: JournalEntry
    item: UndoItem


class MadeFile(msgspec.Struct, frozen=True):
    """A file that a conversation made or changed, by its path in the workspace, and when it did so
    last (seconds since the epoch)."""

    path: str
    at: float


class FileEdit(msgspec.Struct, frozen=True):
    """One file that change number `n` of the undo journal touched."""

    n: int
    session: str
    file: Path


# Reading


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


async def find_entry_number(reader: StatementReader, key: str) -> int | None:
    """The number of the entry that was written under this key."""
    for (n,) in await reader.query("effect_known", (key,)):
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


async def versions_of_file(
    store: Store, who: Principal, agent: str, file: tuple[str, str], limit: int
) -> list[FileVersion]:
    """What changed a file, given as its folder and its path in it, the latest first: all for an
    owner, others see their own changes."""
    folder, path = file
    args = (*_scope(who), agent, folder, os.fsencode(path), limit)
    rows = await store.query("effect_of_file", args)
    return [FileVersion(JournalEntry(*row[:12]), UndoItem(*row[12:])) for row in rows]


async def files_of_session(store: Store, session: str, folder: str, limit: int) -> list[MadeFile]:
    """The files in this folder that a conversation made or changed and that are not undone, the
    latest change first."""
    rows = await store.query("effect_made", (session, folder, limit))
    return [MadeFile(os.fsdecode(place), at) for place, at in rows]


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


async def has_changed_files(store: Store, session: str, since: float) -> bool:
    """Whether something was done to files in this session since then, and not undone."""
    args = (session, since, KV_FOLDER, TASKS_FOLDER)
    return bool(await store.query("effect_files_since", args))


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


async def changed_files(store: Store, session: str, limit: int) -> list[str]:
    """The paths that this session changed and nobody has undone, the latest first."""
    rows = await store.query("ledger_files", (session, limit))
    return [bytes(place).decode(errors="replace") for (place,) in rows]


async def edits_since(store: Store, since: float) -> list[FileEdit]:
    """The files that agents changed since then and that are not undone, the latest change first."""
    found = []
    for n, session, folder, place in await store.query("effect_files", (since,)):
        name = bytes(place).decode(errors="surrogateescape")
        found.append(FileEdit(n, session, Path(folder) / name))
    return found


async def files_made_in(reader: StatementReader, session: str, folder: str) -> list[str]:
    """The paths in this folder that calls of this session made, without those that are undone."""
    rows = await reader.query("effect_made_here", (session, folder))
    return [os.fsdecode(path) for (path,) in rows]


# Writing


def add_entry(by: By, folder: str) -> Change:
    """An entry, once for its key. What it changed is added behind it."""
    return Change(
        "effect_add",
        (by.key, by.agent, by.session, by.person, by.tool, folder, by.what, by.at, by.undoes),
    )


def add_item(key: str, item: UndoItem) -> Change:
    """What the entry with this key changed. When the item is there already, only what it is now is
    replaced."""
    return Change("effect_item_add", (key, item.place, item.before, item.after, item.blob))


def note_value_change(key: str, namespace: str, name: str, change: Change) -> tuple[Change, ...]:
    """The change of a key-value, between the rows that note in the entry with this `key` what it
    was before and what it is then."""
    place = (key, msgspec.json.encode((namespace, name)), namespace, name)
    return Change("effect_kv_before", place), change, Change("effect_kv_after", place)


def note_task_change(key: str, task: int, change: Change) -> tuple[Change, ...]:
    """As `note_value_change`, of a task."""
    place = (key, msgspec.json.encode((f"task #{task}", "")), task)
    return Change("effect_task_before", place), change, Change("effect_task_after", place)


def drop_unchanged(key: str) -> tuple[Change, ...]:
    """Drop the items of an entry that changed nothing, and the entry itself when nothing is left
    of it."""
    return Change("effect_same", (key,)), Change("effect_none", (key,))


def mark_undone(n: int, at: float | None) -> Change:
    """The entry with this number was undone at this time (seconds since the epoch), or is in force
    again (None)."""
    return Change("effect_undone", (n, at))


def expire_entries(before: float, last: int) -> tuple[Change, ...]:
    """Forget the entries from before this time (seconds since the epoch), and those up to number
    `last`."""
    return (
        Change("effect_expire", (before, last)),
        Change("effect_item_expire", ()),
        Change("effect_label_expire", ()),
    )


def allowed_folder_key(key: str, folder: str) -> str:
    """The key of what a call changed in a folder beside the workspace."""
    return f"{key}+{sha256(folder.encode(errors='surrogateescape')).hexdigest()[:8]}"


def allowed_folder_key_range(key: str) -> tuple[str, str]:
    """All such keys of a call: from the first one on, and before the second one."""
    return f"{key}+", f"{key},"


def _scope(who: Principal) -> tuple[int, str]:
    """Whether they see everything, and whose entries they see otherwise."""
    return int("owner" in who.roles), who.on_behalf_of or who.id
