"""Carries a database over to another one: from SQLite to PostgreSQL, and back.

The old one is only read. What was carried is left out the next time, so a move that was interrupted
goes on where it stopped. Indexes of words are made anew by the new database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Protocol

from ..types.errors import StoreError
from .base import Args, Row
from .connection import WriteConnection
from .sql_store import SqlStore

BY_NUMBER = {"event": "seq", "inbox": "id", "outbox": "id"}
"""Tables that only grow, each with the number that grows with it. They are carried in pages."""
WHOLE = (
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
"""All others, in an order in which each row finds what it refers to. Each is carried at once."""
LEFT_OUT = {"usage", "looked_up", "said", "fact_words", "schema_version", "writer", "driver"}
"""Made anew, or of no meaning elsewhere."""
OWN_ROWS = ("inbox", "kv", "token", "fact", "user_identity", "path_grant")
"""A database that holds any of these is in use."""
PAGE = 500
Progress = Callable[[str, int], None]
"""Told of each table, and how many rows of it have been carried so far."""


class Side(Protocol):
    """A database that is read from, or written to. `names` of tables and columns are quoted where
    they have to be."""

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


def move(source: Side, target: Side, progress: Progress = lambda table, rows: None) -> int:
    """Carry everything that `target` does not have yet. Returns the number of events.

    Nothing else may use either of them. Raises StoreError: then the target is incomplete, and
    another `move` goes on.
    """
    _check_tables(source, target)
    _check_target(source, target)
    for table, number in BY_NUMBER.items():
        _carry_pages(source, target, table, number, progress)
    for table in WHOLE:
        _carry_whole(source, target, table, progress)
    with target.writing.errors():
        target.writing.begin()
        target.finish()
        for table, last in source.numbers().items():
            target.set_number(table, last)
        target.writing.commit()
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


def _check_tables(source: Side, target: Side) -> None:
    known = {*BY_NUMBER, *WHOLE}
    for side in (source, target):
        if unknown := (known ^ side.tables()) - LEFT_OUT:
            raise StoreError(f"{side.store.name} has other tables: {', '.join(sorted(unknown))}")


def _check_target(source: Side, target: Side) -> None:
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


def _carry_pages(source: Side, target: Side, table: str, number: str, progress: Progress) -> None:
    columns = source.columns(table)
    (last,) = next(iter(target.read(f"SELECT coalesce(max({number}), 0) FROM {table}")))
    rows = source.read(
        f"SELECT {_names(columns)} FROM {table} WHERE {number} > ? ORDER BY {number}", (last,)
    )
    carried = 0
    while page := list(islice(rows, PAGE)):
        _insert(target, table, columns, page)
        carried += len(page)
        progress(table, carried)


def _carry_whole(source: Side, target: Side, table: str, progress: Progress) -> None:
    columns = [name for name in source.columns(table) if name in target.columns(table)]
    rows = list(source.read(f"SELECT {_names(columns)} FROM {_quoted(table)}"))
    _insert(target, table, columns, rows, first=f"DELETE FROM {_quoted(table)}")
    progress(table, len(rows))


def _insert(
    target: Side, table: str, columns: Sequence[str], rows: Sequence[Row], first: str = ""
) -> None:
    places = ", ".join("?" * len(columns))
    statement = f"INSERT INTO {_quoted(table)}({_names(columns)}) VALUES({places})"
    with target.writing.errors():
        target.writing.begin()
        try:
            if first:
                target.write(first, ())
            for row in rows:
                target.write(statement, row)
            target.writing.commit()
        except BaseException:
            target.writing.rollback()
            raise


def _verify_counts(source: Side, target: Side) -> int:
    counts: Mapping[str, tuple[int, int]] = {
        table: (_count(source, table), _count(target, table)) for table in (*BY_NUMBER, *WHOLE)
    }
    if wrong := [table for table, (there, here) in counts.items() if there != here]:
        raise StoreError(f"{target.store.name} does not have all rows of: {', '.join(wrong)}")
    return counts["event"][1]


def _count(side: Side, table: str) -> int:
    ((count,),) = side.read(f"SELECT count(*) FROM {_quoted(table)}")
    return int(count)


def _names(columns: Sequence[str]) -> str:
    return ", ".join(map(_quoted, columns))


def _quoted(name: str) -> str:
    return f'"{name}"'
