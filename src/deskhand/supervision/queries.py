"""Typed queries on what is still to be done, and on what agents changed in files."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ..store.base import Store
from ..types.commit import Change


class OwedMessages(msgspec.Struct, frozen=True):
    """How many messages wait in the outbox, since when the oldest waits (seconds since the epoch,
    or None when none does), and why it was not sent."""

    count: int
    oldest_at: float | None
    error: str


class FileEdit(msgspec.Struct, frozen=True):
    """One file that change number `n` of the undo journal touched."""

    n: int
    session: str
    file: Path


async def owed_messages(store: Store) -> OwedMessages:
    """What still waits in the outbox."""
    ((count, oldest_at, error),) = await store.query("outbox_owed", ())
    return OwedMessages(int(count), oldest_at, str(error))


async def count_owed_sessions(store: Store) -> int:
    """In how many sessions something is to be done now."""
    ((count,),) = await store.query("open_owed", ())
    return int(count)


async def edits_since(store: Store, since: float) -> list[FileEdit]:
    """The files that agents changed since then and that are not undone, the latest change first."""
    found = []
    for n, session, folder, place in await store.query("effect_files", (since,)):
        name = bytes(place).decode(errors="surrogateescape")
        found.append(FileEdit(n, session, Path(folder) / name))
    return found


def add_restart_note(session: str, text: str) -> Change:
    """Append a text to what this session is told when it goes on after the restart. Does nothing if
    it is not told anything."""
    return Change("restart_note", (text, session))
