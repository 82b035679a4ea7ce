"""Typed queries on what is still to be done."""

from __future__ import annotations

import msgspec

from ..store.base import Store
from ..types.commit import Change


class OwedMessages(msgspec.Struct, frozen=True):
    """How many messages wait in the outbox, since when the oldest waits (seconds since the epoch,
    or None when none does), and why it was not sent."""

    count: int
    oldest_at: float | None
    error: str


async def owed_messages(store: Store) -> OwedMessages:
    """What still waits in the outbox."""
    ((count, oldest_at, error),) = await store.query("outbox_owed", ())
    return OwedMessages(int(count), oldest_at, str(error))


async def count_owed_sessions(store: Store) -> int:
    """In how many sessions something is to be done now."""
    ((count,),) = await store.query("open_owed", ())
    return int(count)


def add_restart_note(session: str, text: str) -> Change:
    """Append a text to what this session is told when it goes on after the restart. Does nothing if
    it is not told anything."""
    return Change("restart_note", (text, session))


def end_job_runs(why: str, at: float) -> Change:
    """End all runs of jobs that are going on or wait, as interrupted."""
    return Change("job_runs_end", (at, why))


def skip_due_times(at: float) -> Change:
    """Take all times of jobs up to this one for decided."""
    return Change("job_times_skip", (at,))


def forget_restart_notes() -> Change:
    """Tell nobody after the start what was to be told."""
    return Change("restart_forget_all", ())


def move_paths(old: str, new: str) -> tuple[Change, ...]:
    """What is known of the files beneath a folder is known by its new path."""
    names = ("paths_move_labels", "paths_move_approved", "paths_move_effects", "paths_move_written")
    return tuple(Change(name, (old, new)) for name in names)


class ErasedSession(msgspec.Struct, frozen=True):
    """A session that was erased, when, and the hash of its first event."""

    session: str
    at: float
    first_hash: bytes


async def erased_sessions(store: Store) -> list[ErasedSession]:
    """All sessions of which something was erased."""
    rows = await store.query("erased_sessions", ())
    return [ErasedSession(str(name), float(at), bytes(first)) for name, at, first in rows]


class FactIdentity(msgspec.Struct, frozen=True):
    """What tells a memory from all others, of this home and of any backup."""

    id: int
    key: str
    at: float
    text: str


async def fact_identities(store: Store) -> list[FactIdentity]:
    """Of all memories that are there, forgotten ones too."""
    rows = await store.query("fact_digests", ())
    return [FactIdentity(int(id_), str(key), float(at), str(text)) for id_, key, at, text in rows]


async def first_hashes(store: Store) -> dict[str, bytes]:
    """The hash of the first event of each session."""
    return {str(name): bytes(first) for name, first in await store.query("first_hashes", ())}
