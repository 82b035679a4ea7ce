"""SQLite and PostgreSQL as the two sides of a move."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
from psycopg.types.numeric import IntDumper

from .base import Args, Row
from .dialect import to_postgres
from .move import LEFT_OUT
from .postgres import PostgresStore, PostgresWriteConnection
from .postgres_connection import connect as connect_postgres
from .schema import connect
from .sqlite import SqliteStore, SqliteWriteConnection

FETCH = 500


class SqliteSide:
    """Implements `MoveSide`, for the file `path`."""

    def __init__(self, path: Path) -> None:
        self.store = SqliteStore(path)
        self._db = connect(path, write=True)
        self.writing = SqliteWriteConnection(self._db, path)

    def tables(self) -> set[str]:
        rows = self.read("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {
            str(name) for (name,) in rows if not name.startswith(("sqlite_", "said", "fact_words"))
        }

    def columns(self, table: str) -> list[str]:
        return [
            str(name) for (name,) in self.read("SELECT name FROM pragma_table_info(?)", (table,))
        ]

    def numbers(self) -> dict[str, int]:
        rows = self.read("SELECT name, seq FROM sqlite_sequence")
        found = {str(name): int(seq) for name, seq in rows}
        for table, number in (("event", "seq"), ("inbox", "id")):
            ((found[table],),) = self.read(f"SELECT coalesce(max({number}), 0) FROM {table}")
        return {table: last for table, last in found.items() if table not in LEFT_OUT}

    def set_number(self, table: str, last: int) -> None:
        if table not in ("event", "inbox"):  # those give one more than their last row has
            self.write("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
            self.write("INSERT INTO sqlite_sequence(name, seq) VALUES(?, ?)", (table, last))

    def read(self, statement: str, args: Args = ()) -> Iterator[Row]:
        return iter(self._db.execute(statement, args))

    def write(self, statement: str, args: Args) -> None:
        self._db.execute(statement, args)

    def finish(self) -> None:
        self.write(
            "DELETE FROM fact_words "
            "WHERE rowid IN (SELECT id FROM fact WHERE valid_to IS NOT NULL)",
            (),
        )
        self.write("UPDATE looked_up SET seq = 0", ())

    async def close(self) -> None:
        self._db.close()
        await self.store.close()


class PostgresSide:
    """Implements `MoveSide`, for the database at `url`. `snapshot`: all is read as it was at one
    moment, so that others may write meanwhile."""

    def __init__(self, url: str, *, snapshot: bool = False) -> None:
        self.store = PostgresStore(url)
        self._read = connect_postgres(url)
        if snapshot:
            self._read.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            self._read.autocommit = False
            self._read.execute("SELECT 1")  # the moment
        # A cursor that the server keeps writes numbers of its own into its statements.
        self._read.adapters.register_dumper(int, IntDumper)
        self.writing = PostgresWriteConnection(url, self.store.schema)

    def tables(self) -> set[str]:
        rows = self.read(
            "SELECT table_name::text FROM information_schema.tables "
            "WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'"
        )
        return {str(name) for (name,) in rows}

    def columns(self, table: str) -> list[str]:
        rows = self.read(
            "SELECT column_name::text FROM information_schema.columns "
            "WHERE table_schema = current_schema() AND table_name = ? AND is_generated = 'NEVER' "
            "ORDER BY ordinal_position",
            (table,),
        )
        return [str(name) for (name,) in rows]

    def numbers(self) -> dict[str, int]:
        found = dict[str, int]()
        for table, column in self._numbered():
            ((last,),) = self.read(f"SELECT last_value FROM {self._sequence(table, column)}")
            ((most,),) = self.read(f'SELECT coalesce(max("{column}"), 0) FROM "{table}"')
            found[table] = int(last) if most else 0
        return {table: last for table, last in found.items() if table != "job_boot"}

    def set_number(self, table: str, last: int) -> None:
        for numbered, column in self._numbered():
            if numbered == table and last:
                self.write("SELECT setval(?, ?)", (self._sequence(table, column), last))

    def _numbered(self) -> list[tuple[str, str]]:
        rows = self.read(
            "SELECT table_name::text, column_name::text FROM information_schema.columns "
            "WHERE table_schema = current_schema() AND is_identity = 'YES'"
        )
        return [(str(table), str(column)) for table, column in rows]

    def _sequence(self, table: str, column: str) -> str:
        rows = self.read("SELECT pg_get_serial_sequence(?, ?)", (f'"{table}"', column))
        return str(next(iter(rows))[0])

    def read(self, statement: str, args: Args = ()) -> Iterator[Row]:
        """On a cursor that the server keeps, so that a large table is not fetched at once."""
        with (
            self._read.transaction(),
            psycopg.RawServerCursor(self._read, "move") as cursor,
        ):
            cursor.itersize = FETCH
            cursor.execute(to_postgres(statement), args, binary=True)
            yield from cursor

    def write(self, statement: str, args: Args) -> None:
        self.writing.connection.execute(to_postgres(statement), args)

    def finish(self) -> None:
        self.write(
            "DELETE FROM fact_words WHERE fact IN (SELECT id FROM fact WHERE valid_to IS NOT NULL)",
            (),
        )
        self.write("UPDATE looked_up SET seq = 0", ())

    async def close(self) -> None:
        self._read.close()
        self.writing.close()
        await self.store.close()
