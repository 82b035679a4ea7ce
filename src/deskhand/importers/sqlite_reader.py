"""Reads a database of another system without a trace: neither the file nor what lies beside it is
written.

SQLite may write to a database that it only reads: it makes or changes the files `-wal` and `-shm`.
So one that nobody has open is opened as immutable; one with a log beside it, or with the journal of
a change that was cut off, which may be in use, is copied first, with that.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw

from .safe_files import Tree, Unread

MAX_BYTES = 4_000_000_000
MAX_ROWS = 2_000_000
VALUE_BYTES = 50_000_000
STEPS_PER_CALL = 1_000_000
MAX_CALLS = 3_000
"""A query that takes more steps of SQLite's machine than these make is a trap (a view that never
ends)."""
_BLOCK = 1 << 20
_OWN_TABLES = """SELECT name FROM sqlite_master AS own WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
AND sql NOT LIKE 'CREATE VIRTUAL%' AND NOT EXISTS (SELECT 1 FROM sqlite_master AS search
WHERE search.sql LIKE 'CREATE VIRTUAL%' AND substr(own.name, 1, length(search.name) + 1) = search.name || '_')
ORDER BY name"""  # noqa: E501
_TRIES = 5


class SqliteRows:
    """The tables of one database. Raises Unread wherever it cannot be read."""

    def __init__(self, tree: Tree, inner: str) -> None:
        self.inner = inner
        self._used: dict[str, set[str]] = {}
        self._folder = tempfile.TemporaryDirectory(
            prefix="deskhand-moving-", ignore_cleanup_errors=True
        )
        try:
            self._db = _open(tree, inner, Path(self._folder.name))
        except BaseException:
            self._folder.cleanup()
            raise

    def close(self) -> None:
        self._db.close()
        self._folder.cleanup()

    def columns(self, table: str) -> set[str]:
        """The columns of a table; none where there is no such table. Views do not count."""
        if not self._rows(
            "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)
        ):
            return set()
        return {
            str(row[0]) for row in self._rows("SELECT name FROM pragma_table_info(?)", (table,))
        }

    def read(
        self, table: str, columns: Sequence[str], order: str = ""
    ) -> Iterator[tuple[Any, ...]]:
        """These columns of all rows; one that the table does not have is None. Raises Unread."""
        there = self.columns(table)
        self._used.setdefault(table, set()).update(columns)
        if not there:
            return
        if missing := [each for each in columns[:2] if each not in there]:
            raise Unread(
                f"{self.inner}: the table {table} has no column {missing[0]!r}: this version is "
                "not supported"
            )
        wanted = ", ".join(f'"{each}"' if each in there else "NULL" for each in columns)
        by = f' ORDER BY "{order}"' if order in there else ""
        try:
            for number, row in enumerate(self._db.execute(f'SELECT {wanted} FROM "{table}"{by}')):
                if number >= MAX_ROWS:
                    raise Unread(f"{self.inner}: the table {table} has more than {MAX_ROWS:,} rows")
                yield row
        except (apsw.Error, UnicodeDecodeError) as error:
            raise Unread(f"{self.inner}, table {table}: {error}") from error

    def find_unused(self) -> Iterator[tuple[str, str, int]]:
        """(table, column, number of rows) of what holds something and was not read; the column is
        '' for a whole table. Tables of SQLite's own and of its search indexes are passed over, and
        the numbers of rows."""
        tables = [str(name) for (name,) in self._rows(_OWN_TABLES, ())]
        for table in tables:
            used = self._used.get(table)
            if used is None:
                if number := self._count(table):
                    yield table, "", number
                continue
            for column in sorted(self.columns(table) - used - {"id"}):
                if number := self._count(table, column):
                    yield table, column, number

    def _count(self, table: str, column: str = "") -> int:
        says_something = (
            f" WHERE \"{column}\" IS NOT NULL AND \"{column}\" NOT IN ('', '{{}}', '[]')"
            if column
            else ""
        )
        try:
            return int(self._rows(f'SELECT count(*) FROM "{table}"{says_something}', ())[0][0])
        except Unread:  # a virtual table whose module is not here
            return 0

    def _rows(self, statement: str, given: tuple[str, ...]) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(statement, given).fetchall()
        except apsw.Error as error:
            raise Unread(f"{self.inner} is not a readable database: {error}") from error


def _open(tree: Tree, inner: str, folder: Path) -> apsw.Connection:
    descriptor = tree.open_descriptor(inner)
    for suffix in ("-wal", "-shm", "-journal"):
        tree.mark_mentioned(f"{inner}{suffix}")
    try:
        if os.fstat(descriptor).st_size > MAX_BYTES:
            raise Unread(f"{inner}: it is larger than {MAX_BYTES // 10**9} GB")
        if beside := _companion_suffixes(tree, inner):
            path = _copy_consistently(tree, inner, ("", *beside), folder)
            uri = f"file:{path}"
        else:  # by its descriptor: a name could mean another file by now
            path = Path(f"/proc/self/fd/{descriptor}")
            uri = f"file:{path}?mode=ro&immutable=1"
        try:
            flags = apsw.SQLITE_OPEN_URI | (
                apsw.SQLITE_OPEN_READWRITE if path.parent == folder else apsw.SQLITE_OPEN_READONLY
            )
            db = apsw.Connection(uri, flags=flags)
            db.execute(
                "PRAGMA trusted_schema = OFF; PRAGMA query_only = ON; PRAGMA cell_size_check = ON"
            )
            db.execute("SELECT count(*) FROM sqlite_master").fetchall()
            _check(db, inner)
        except apsw.Error as error:
            raise Unread(f"{inner} is not a readable database: {error}") from error
    finally:
        os.close(descriptor)
    db.limit(apsw.SQLITE_LIMIT_LENGTH, VALUE_BYTES)
    calls = iter(range(MAX_CALLS))
    db.set_progress_handler(lambda: next(calls, None) is None, STEPS_PER_CALL)
    return db


def _check(db: apsw.Connection, inner: str) -> None:
    """Raises Unread where its pages do not fit together: half of it would be taken, and nobody
    would know."""
    try:
        found = [str(row[0]) for row in db.execute("PRAGMA quick_check(20)")]
    except apsw.SQLError:  # a search index whose module is not here cannot be checked
        return
    # An index for searching is not read, and one over texts with a NUL in them is never whole.
    wrong = [each for each in found if each != "ok" and "inverted index" not in each]
    if wrong:
        raise Unread(f"{inner}: the database is damaged: {wrong[0]}")


def _companion_suffixes(tree: Tree, inner: str) -> tuple[str, ...]:
    """What lies beside it that belongs to what it holds: a log with rows, a journal of a change
    that was cut off."""
    folder, _, name = inner.rpartition("/")
    there = {each.name for each in tree.entries(folder or ".") if each.size_bytes}
    return tuple(suffix for suffix in ("-wal", "-journal") if f"{name}{suffix}" in there)


def _copy_consistently(tree: Tree, inner: str, suffixes: Sequence[str], folder: Path) -> Path:
    """The database and what belongs to it, as they were at one moment, for SQLite to put together.
    Raises Unread."""
    for _ in range(_TRIES):
        before = _fingerprint(tree, inner, suffixes)
        for suffix in suffixes:
            _copy(tree, f"{inner}{suffix}", folder / f"copy.db{suffix}")
        if _fingerprint(tree, inner, suffixes) == before:
            return folder / "copy.db"
    raise Unread(
        f"{inner} is being changed all the time: stop the system that it belongs to, and try again"
    )


def _fingerprint(tree: Tree, inner: str, suffixes: Sequence[str]) -> tuple[tuple[int, int], ...]:
    found = []
    for suffix in suffixes:
        descriptor = tree.open_descriptor(f"{inner}{suffix}")
        try:
            status = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        found.append((status.st_size, status.st_mtime_ns))
    return tuple(found)


def _copy(tree: Tree, inner: str, to: Path) -> None:
    descriptor = tree.open_descriptor(inner)
    try:
        left = MAX_BYTES
        with to.open("wb") as file:
            while piece := os.read(descriptor, _BLOCK):
                file.write(piece)
                left -= len(piece)
                if left < 0:
                    raise Unread(f"{inner}: it is larger than {MAX_BYTES // 10**9} GB")
    finally:
        os.close(descriptor)
