"""Carries a database over to another one: from SQLite to PostgreSQL, and back.

The old one is only read. Events that were carried are left out the next time, so a move that was
interrupted goes on where it stopped; all else is carried again, since it may have changed. Indexes
of words are made anew by the new database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Protocol

from ..types.errors import StoreError
from .base import Args, Row
from .connection import WriteConnection
from .sql_store import SqlStore

WHOLE = (
    "inbox",
    "outbox",
    "run",
    "people",
    "user",
    "user_role",
    "user_identity",
    "token",
    "login",
    "pairing",
    "pairing_guess",
    "people_audit",
    "named_session",
    "session",
    "session_member",
    "branch",
    "open_session",
    "dead_letter",
    "ask",
    "blob_use",
    "blob_sent",
    "kv",
    "path_grant",
    "call_grant",
    "file_label",
    "approved_file",
    "effect",
    "effect_item",
    "written",
    "egress_grant",
    "egress_use",
    "process",
    "subagent",
    "teammate",
    "mail",
    "mcp_tool",
    "notification_times",
    "person_language",
    "inbox_seen",
    "share",
    "push_device",
    "task",
    "long_work",
    "fact",
    "fact_vector",
    "fact_source",
    "fact_count",
    "fact_change",
    "gathered",
    "memory_file",
    "job_run",
    "job_state",
    "job_boot",
    "job_pause",
    "trigger_seen",
    "budget_used",
    "budget_hold",
    "budget_lift",
    "budget_warned",
    "restart_owed",
    "proposal",
    "skill_use",
    "moved",
    "alert",
    "machine_round",
)
"""All tables but `event`, in an order in which each row finds what it refers to. Each is carried in
one transaction."""
LEFT_OUT = {
    "usage",
    "looked_up",
    "said",
    "fact_words",
    "schema_version",
    "writer",
    "worker",
    "lease",
}
"""Made anew, or of no meaning elsewhere."""
OWN_ROWS = ("inbox", "kv", "token", "fact", "user_identity", "path_grant")
"""A database that holds any of these is in use."""
PAGE = 500
OnCarried = Callable[[str, int], None]
"""Told of each table, and how many rows of it have been carried so far."""


class MoveSide(Protocol):
    """A database that is read from, or written to."""

    @property
    def store(self) -> SqlStore: ...

    @property
    def writing(self) -> WriteConnection: ...

    def tables(self) -> set[str]:
        """The tables of ours."""
        ...

    def columns(self, table: str) -> list[str]:
        """The columns that can be written, in order."""
        ...

    def numbers(self) -> dict[str, int]:
        """The last number that was given in each table that numbers its rows."""
        ...

    def set_number(self, table: str, last: int) -> None:
        """Give higher numbers from now on."""
        ...

    def read(self, statement: str, args: Args = ()) -> Iterator[Row]:
        """The rows, without all of them in memory."""
        ...

    def write(self, statement: str, args: Args) -> None:
        """Run a statement with `?` for each argument."""
        ...

    def finish(self) -> None:
        """Put right what the triggers made of rows that were carried."""
        ...


def move(source: MoveSide, target: MoveSide, progress: OnCarried = lambda table, rows: None) -> int:
    """Carry everything that `target` does not have yet. Returns the number of events.

    Nothing else may use either of them. Raises StoreError: then the target is incomplete, and
    another `move` goes on.
    """
    _check_tables(source, target)
    _check_target(source, target)
    _carry_events(source, target, progress)
    for table in WHOLE:
        _carry_whole(source, target, table, progress)
    with _transaction(target):
        target.finish()
        for table, last in source.numbers().items():
            target.set_number(table, last)
    return _verify_counts(source, target)


async def verify(source: SqlStore, target: SqlStore) -> int:
    """Verify every hash chain of the target, and that each conversation ends as in the source.
    Returns the number of events. Raises StoreError."""
    events, breaks = await target.audit()
    if breaks:
        raise StoreError(f"{target.name}: {breaks[0].session}: {breaks[0].why}")
    if await source.heads() != await target.heads():
        raise StoreError(f"{target.name} does not hold the same conversations as {source.name}")
    return events


def _check_tables(source: MoveSide, target: MoveSide) -> None:
    known = {"event", *WHOLE}
    for side in (source, target):
        if unknown := (known ^ side.tables()) - LEFT_OUT:
            raise StoreError(f"{side.store.name} has other tables: {', '.join(sorted(unknown))}")


def _check_target(source: MoveSide, target: MoveSide) -> None:
    """What is there must be the beginning of this move: a target is emptied of all else."""
    last = "SELECT seq, hash FROM event ORDER BY seq DESC LIMIT 1"
    there = list(target.read(last))
    if there:
        ((seq, head),) = there
        if list(source.read("SELECT hash FROM event WHERE seq = ?", (seq,))) == [(head,)]:
            return
    elif not any(_count(target, table) for table in OWN_ROWS) or not _count(source, "event"):
        return
    raise StoreError(
        f"{target.store.name} already holds something else; use an empty database or schema"
    )


def _carry_events(source: MoveSide, target: MoveSide, progress: OnCarried) -> None:
    """Those behind the last one that is there. What was erased since is erased there too."""
    columns = source.columns("event")
    ((last,),) = target.read("SELECT coalesce(max(seq), 0) FROM event")
    _erase_events(source, target, last)
    rows = source.read(f"SELECT {_names(columns)} FROM event WHERE seq > ? ORDER BY seq", (last,))
    insert = _insert_into("event", columns)
    carried = 0
    while page := list(islice(rows, PAGE)):
        with _transaction(target):
            for row in page:
                target.write(insert, row)
        carried += len(page)
        progress("event", carried)


def _erase_events(source: MoveSide, target: MoveSide, last: int) -> None:
    erased = source.read("SELECT digest, seq FROM event WHERE body IS NULL AND seq <= ?", (last,))
    with _transaction(target):
        for row in erased:
            target.write("UPDATE event SET body = NULL, salt = NULL, digest = ? WHERE seq = ?", row)


def _carry_whole(source: MoveSide, target: MoveSide, table: str, progress: OnCarried) -> None:
    there = target.columns(table)
    columns = [name for name in source.columns(table) if name in there]
    rows = source.read(f"SELECT {_names(columns)} FROM {_quoted(table)}")
    insert = _insert_into(table, columns)
    carried = 0
    with _transaction(target):
        target.write(f"DELETE FROM {_quoted(table)}", ())
        for row in rows:
            target.write(insert, row)
            carried += 1
    progress(table, carried)


@contextmanager
def _transaction(target: MoveSide) -> Iterator[None]:
    with target.writing.errors():
        target.writing.begin()
        try:
            yield
            target.writing.commit()
        except BaseException:
            target.writing.rollback()
            raise


def _verify_counts(source: MoveSide, target: MoveSide) -> int:
    tables = ("event", *WHOLE)
    if wrong := [table for table in tables if _count(source, table) != _count(target, table)]:
        raise StoreError(f"{target.store.name} does not have all rows of: {', '.join(wrong)}")
    kept = "SELECT count(body) FROM event"
    if list(source.read(kept)) != list(target.read(kept)):
        raise StoreError(f"{target.store.name} has other erased events")
    return _count(target, "event")


def _count(side: MoveSide, table: str) -> int:
    ((count,),) = side.read(f"SELECT count(*) FROM {_quoted(table)}")
    return int(count)


def _insert_into(table: str, columns: Sequence[str]) -> str:
    places = ", ".join("?" * len(columns))
    return f"INSERT INTO {_quoted(table)}({_names(columns)}) VALUES({places})"


def _names(columns: Sequence[str]) -> str:
    return ", ".join(map(_quoted, columns))


def _quoted(name: str) -> str:
    return f'"{name}"'
