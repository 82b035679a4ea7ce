"""The Store in one SQLite file: one thread writes, and readers never wait for it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from time import monotonic

import anyio.to_thread
import apsw

from ..types.commit import Change
from ..types.errors import NotLeading, StoreBusy
from ..types.identity import Principal
from .base import Args, Row, SyncStatementReader
from .connection import StatementRunner
from .schema import connect, load_migrations, migrate
from .sql import load_sql
from .sql_store import SqlStore
from .sqlite_errors import SqliteErrors
from .writer import Writer

BUSY_TIMEOUT_S = 30.0
JOB_ERRORS = (
    apsw.BindingsError,
    apsw.ConstraintError,
    apsw.MismatchError,
    apsw.SQLError,
    apsw.TooBigError,
)
"""What a statement or its arguments can be wrong in: it fails the one job that made them."""


def _abort(error: BaseException) -> None:
    """End the process at once, since it is not known what the file holds now."""
    os.write(2, f"deskhand: {error}. Stopping, since the data may be incomplete.\n".encode())
    os._exit(74)  # EX_IOERR


class _ConnectionReader:
    """Runs statements on one connection."""

    def __init__(
        self, path: Path, connection: apsw.Connection, statements: Mapping[str, str]
    ) -> None:
        self._errors = SqliteErrors(path)
        self._connection = connection
        self._statements = statements

    def query_sync(self, statement: str, args: Args = ()) -> list[Row]:
        with self._errors:
            return self._connection.execute(self._statements[statement], args).fetchall()


class SqliteWriteConnection:
    """Implements `WriteConnection`."""

    def __init__(self, db: apsw.Connection, path: Path) -> None:
        self._db = db
        self._errors = SqliteErrors(path)

    @property
    def connection(self) -> StatementRunner:
        return self._db

    def begin(self) -> None:
        """However long another process holds the lock, within reason. Nobody waits longer for
        less."""
        give_up = monotonic() + BUSY_TIMEOUT_S
        while True:
            try:
                with self._errors:
                    self._db.execute("BEGIN IMMEDIATE")
                return
            except StoreBusy:
                if monotonic() > give_up:
                    raise

    def commit(self) -> None:
        self._db.execute("COMMIT")

    def rollback(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def savepoint(self) -> None:
        self._db.execute("SAVEPOINT job")

    def roll_back_to_savepoint(self) -> None:
        self._db.execute("ROLLBACK TO job")

    def release_savepoint(self) -> None:
        self._db.execute("RELEASE job")

    def is_job_error(self, error: Exception) -> bool:
        return isinstance(error, JOB_ERRORS)

    def is_database_error(self, error: Exception) -> bool:
        return isinstance(error, apsw.Error)

    def errors(self) -> AbstractContextManager[None]:
        return self._errors

    def close(self) -> None:
        self._db.close()


def _identify(path: Path) -> tuple[int, int] | None:
    """What tells a file from another one of its name."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


class SqliteStore(SqlStore):
    """A Store in the file `path`, which is created or migrated first.

    `statements` are the named statements of other rooms. `on_fatal` is called from the writer
    thread after a failed fsync.

    Raises a subclass of StoreError whose message says what to do.
    """

    def __init__(
        self,
        path: Path,
        statements: Mapping[str, str] | None = None,
        on_fatal: Callable[[BaseException], None] = _abort,
    ) -> None:
        self.path = path
        self.name = str(path)
        self._sqlite_errors = SqliteErrors(path)
        db = connect(path, write=True)
        self.schema = migrate(db, path, load_migrations())
        self._file = _identify(path)
        self._read = connect(path, write=False)
        self._sweeper: apsw.Connection | None = None
        self._readers: list[apsw.Connection] = []
        writer = Writer(SqliteWriteConnection(db, path), on_fatal)
        super().__init__(load_sql(__package__, "queries.sql"), statements or {}, writer)

    @asynccontextmanager
    async def lead(self, waits: Callable[[], None] = lambda: None) -> AsyncIterator[None]:
        """Raises NotLeading where another file is in the place of this one, as after a backup was
        restored: what this process wrote would be lost."""
        if _identify(self.path) != self._file:
            raise NotLeading(f"{self.name} was replaced meanwhile; start again")
        async with super().lead(waits):
            yield

    async def erase(
        self, principal: Principal, session: str, at: float, changes: Sequence[Change] = ()
    ) -> int:
        erased = await super().erase(principal, session, at, changes)
        await self.truncate_wal()
        return erased

    async def truncate_wal(self) -> None:
        """Move the write-ahead log into the database and truncate it. After an erasure this removes
        the old pages in it."""
        await anyio.to_thread.run_sync(self._truncate_wal)

    def _truncate_wal(self) -> None:
        db = connect(self.path, write=True)
        try:
            with self._sqlite_errors:
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            db.close()

    def open_reader(self) -> SyncStatementReader:
        db = connect(self.path, write=False)
        self._readers.append(db)
        return _ConnectionReader(self.path, db, self._statements)

    def is_blob_used(self, digest: str) -> bool:
        if self._sweeper is None:  # the thread that collects blobs has a connection of its own
            self._sweeper = connect(self.path, write=False)
        with self._sqlite_errors:
            rows = self._sweeper.execute(self._sql["blob_is_used"], (digest,)).fetchall()
        return bool(rows[0][0])

    def version(self) -> int:
        return int(self._fetch_all("PRAGMA data_version")[0][0])

    def check_integrity(self) -> list[str]:
        found = [str(row[0]) for row in self._fetch_all("PRAGMA integrity_check")]
        return [] if found == ["ok"] else found

    async def close(self) -> None:
        for db in (self._read, *self._readers):
            db.close()
        if self._sweeper is not None:
            self._sweeper.close()
        self._writer.close()

    def _errors(self) -> AbstractContextManager[None]:
        return self._sqlite_errors

    def _iter_rows(self, statement: str, args: Args) -> Iterator[Row]:
        cursor = self._read.execute(statement, args)
        try:
            yield from cursor
        finally:
            cursor.close(True)

    def _fetch_all(self, statement: str, args: Args = ()) -> list[Row]:
        with self._sqlite_errors:
            return self._read.execute(statement, args).fetchall()
