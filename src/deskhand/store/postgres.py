"""The Store in a PostgreSQL database, which several processes may use.

As in SQLite one transaction writes at a time: it holds an advisory lock, so all that is true of the
log there is true here. A worker puts what many sessions write into one transaction.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from time import monotonic, sleep  # noqa: TID251 -- while the server is away nothing goes on
from typing import Any

import anyio
import anyio.to_thread
import msgspec
import psycopg
from psycopg import RawCursor
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from ..types.errors import (
    NotLeading,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreUnavailable,
)
from .base import Args, Row, SyncStatementReader
from .connection import StatementRunner, TransactionLost
from .postgres_schema import migrate
from .postgres_types import adapt_types
from .sql import load_sql
from .sql_store import SqlStore
from .writer import Writer

log = logging.getLogger(__name__)

SETTINGS = {
    "application_name": "deskhand",
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}
SESSION = """
SET synchronous_commit = on;
SET idle_in_transaction_session_timeout = '5s';
SET statement_timeout = '30s';
SET default_transaction_isolation = 'read committed';
"""
"""A process that stops in the middle of a transaction loses it, and with it the lock."""
LOCK = "hashtext('deskhand'), hashtext(current_schema())"
BEGIN = (
    f"BEGIN; SELECT pg_advisory_xact_lock({LOCK}); "
    "INSERT INTO writer(id, n) VALUES('{id}', {n}) "
    "ON CONFLICT(id) DO UPDATE SET n = excluded.n, at = now(); SELECT fence FROM driver"
)
FORGET_WRITERS = "DELETE FROM writer WHERE at < now() - interval '30 days'"
RECONNECT_S = 30.0
"""For so long a connection that was lost is made anew."""
READ_AGAIN_S = 10.0
LEASE_S = 8.0
"""A process that drives and says nothing for so long, by the clock of the server, is replaced."""
BEAT_S = 2.0
TRY_LEASE_S = 1.0
RELEASE_S = 5.0
"""Whoever ends waits so long for the server to take note. It is replaced in any case."""
PAUSES_S = (0.05, 0.1, 0.2, 0.5, 1.0)
LOST = (
    psycopg.errors.AdminShutdown,
    psycopg.errors.CrashShutdown,
    psycopg.errors.CannotConnectNow,
    psycopg.errors.ConnectionException,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.IdleInTransactionSessionTimeout,
    psycopg.errors.SerializationFailure,
)
"""Through no fault of the statement: the transaction may be run again."""


def connect(url: str) -> psycopg.Connection[Row]:
    """A connection with our settings, which commits each statement that stands alone.

    Raises StoreUnavailable with what to check.
    """
    try:
        db: psycopg.Connection[Row] = psycopg.connect(
            url, autocommit=True, cursor_factory=RawCursor, prepare_threshold=0, **_settings(url)
        )
    except psycopg.Error as error:
        raise StoreUnavailable(
            f"cannot connect to {describe(url)}: {_first_line(error)}. Check that the server runs "
            "and `store` in the configuration"
        ) from error
    adapt_types(db)
    with translate_errors(url):
        db.execute(SESSION, prepare=False)
    return db


def _settings(url: str) -> dict[str, Any]:
    """Ours, but for what the address sets itself."""
    given = conninfo_to_dict(url)
    return {name: value for name, value in SETTINGS.items() if name not in given}


def describe(url: str) -> str:
    """The database without the password, for messages."""
    given = conninfo_to_dict(url)
    place = given.get("host") or given.get("hostaddr") or "this machine"
    return f"PostgreSQL database {str(given.get('dbname') or 'postgres')!r} on {place}"


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


@contextmanager
def translate_errors(url: str) -> Iterator[None]:
    """Turn what the database raises into our tree, with the next step."""
    try:
        yield
    except LOST as error:
        raise TransactionLost(_first_line(error)) from error
    except (psycopg.errors.DiskFull, psycopg.errors.OutOfMemory) as error:
        raise StoreFull(f"{describe(url)} has no space left: {_first_line(error)}") from error
    except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled) as error:
        raise StoreBusy(f"{describe(url)} is busy: {_first_line(error)}") from error
    except (psycopg.errors.DataCorrupted, psycopg.errors.IndexCorrupted) as error:
        raise StoreCorrupt(f"{describe(url)} is damaged: {_first_line(error)}") from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        if isinstance(error, psycopg.InterfaceError) or error.sqlstate is None:
            raise TransactionLost(_first_line(error)) from error  # the connection broke
        raise StoreError(f"{describe(url)}: {_first_line(error)}") from error
    except psycopg.Error as error:
        raise StoreError(f"{describe(url)}: {_first_line(error)}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StoreCorrupt(f"{describe(url)} is damaged ({error}): restore a backup") from error


class _Executor:
    """Implements `StatementRunner` on one of psycopg."""

    def __init__(self, db: psycopg.Connection[Row]) -> None:
        self.db = db
        self._cursor = db.cursor(binary=True)
        self._total = 0

    def execute(self, statement: str, args: Args = ()) -> psycopg.Cursor[Row]:
        self._cursor = cursor = self.db.cursor(binary=True)
        cursor.execute(statement, args)
        if cursor.description is None:
            self._total += max(cursor.rowcount, 0)
            # It cannot be asked for rows, where SQLite gives none.
            return _NO_ROWS  # type: ignore[return-value]  # all that is asked of it
        if not statement.startswith("SELECT"):
            self._total += max(cursor.rowcount, 0)
        return cursor

    def changes(self) -> int:
        return max(self._cursor.rowcount, 0)

    def total_changes(self) -> int:
        return self._total

    def last_insert_rowid(self) -> int:
        row = self._cursor.fetchone()
        if row is None:
            raise StoreCorrupt("the number of a new row is missing")
        return int(row[0])


class _NoRows:
    def fetchone(self) -> None:
        return None

    def fetchall(self) -> list[Row]:
        return []


_NO_ROWS = _NoRows()


class PostgresWriteConnection:
    """Implements `WriteConnection`. It connects anew where the connection is lost, and finds out
    what became of a transaction whose COMMIT was not answered."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._executor = _Executor(connect(url))
        self._id = secrets.token_hex(8)
        self._n = 0
        self.fence: int | None = None
        """While this process drives: what is written under another number is refused."""
        with self.errors():
            self._db.execute(FORGET_WRITERS)

    @property
    def connection(self) -> StatementRunner:
        return self._executor

    @property
    def _db(self) -> psycopg.Connection[Row]:
        return self._executor.db

    def begin(self) -> None:
        if self._db.broken or self._db.closed:
            self._reconnect()
        self._n += 1
        cursor = self._db.execute(BEGIN.format(n=self._n, id=self._id), prepare=False)
        while cursor.nextset():
            pass
        row = cursor.fetchone()
        if self.fence is not None and (row is None or row[0] != self.fence):
            self.rollback()
            raise NotLeading("another process drives now, so this one writes nothing any more")

    def commit(self) -> None:
        try:
            self._db.execute("COMMIT", prepare=False)
        except psycopg.OperationalError as error:
            if not self._was_committed():
                raise TransactionLost(_first_line(error)) from error

    def _was_committed(self) -> bool:
        """What became of the last transaction. Nobody said it, so the server is asked, when that
        transaction has let go of the lock."""
        give_up = monotonic() + RECONNECT_S
        while True:
            try:
                self._reconnect()
                self._db.execute(f"SELECT pg_advisory_xact_lock({LOCK})")
                row = self._db.execute("SELECT n FROM writer WHERE id = $1", (self._id,)).fetchone()
                return row is not None and row[0] == self._n
            except psycopg.OperationalError:
                pass
            if monotonic() > give_up:
                raise StoreUnavailable(
                    f"{describe(self._url)} did not say whether it stored the last changes"
                )
            sleep(PAUSES_S[0])

    def _reconnect(self) -> None:
        self._db.close()
        give_up = monotonic() + RECONNECT_S
        failures = 0
        while True:
            try:
                self._executor = _Executor(connect(self._url))
                return
            except StoreUnavailable:
                if monotonic() > give_up:
                    raise
                sleep(PAUSES_S[min(failures, len(PAUSES_S) - 1)])
                failures += 1

    def rollback(self) -> None:
        status = self._db.info.transaction_status
        if status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            self._db.execute("ROLLBACK", prepare=False)

    def savepoint(self) -> None:
        self._db.execute("SAVEPOINT job", prepare=False)

    def roll_back_to_savepoint(self) -> None:
        self._db.execute("ROLLBACK TO job", prepare=False)

    def release_savepoint(self) -> None:
        self._db.execute("RELEASE job", prepare=False)

    def is_job_error(self, error: Exception) -> bool:
        at_fault = (psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError)
        return isinstance(error, at_fault) or type(error) is psycopg.NotSupportedError

    def is_database_error(self, error: Exception) -> bool:
        return isinstance(error, psycopg.Error)

    def errors(self) -> AbstractContextManager[None]:
        return translate_errors(self._url)

    def close(self) -> None:
        with suppress(psycopg.Error):
            self._db.execute("DELETE FROM writer WHERE id = $1", (self._id,))
        self._db.close()


class _PostgresReader:
    """Reads on a connection of its own. A read that finds it lost waits for another one: without
    the database nothing else goes on either."""

    def __init__(self, url: str, statements: Mapping[str, str]) -> None:
        self._url = url
        self._statements = statements
        self._db = connect(url)

    def fetch_all(self, statement: str, args: Args = ()) -> list[Row]:
        give_up = monotonic() + READ_AGAIN_S
        failures = 0
        while True:
            try:
                with translate_errors(self._url):
                    if failures:
                        self._db.close()
                        self._db = connect(self._url)
                    return self._fetch_all(statement, args)
            except StoreUnavailable as error:
                if monotonic() > give_up:
                    raise StoreUnavailable(
                        f"{describe(self._url)} does not answer: {error}"
                    ) from error
            sleep(PAUSES_S[min(failures, len(PAUSES_S) - 1)])
            failures += 1

    def _fetch_all(self, statement: str, args: Args) -> list[Row]:
        cursor = self._db.cursor(binary=True)
        cursor.execute(statement, args)
        return cursor.fetchall()

    def query_sync(self, statement: str, args: Args = ()) -> list[Row]:
        return self.fetch_all(self._statements[statement], args)

    def close(self) -> None:
        self._db.close()


def _abort(error: BaseException) -> None:
    """End the process at once: the thread that writes has failed."""
    os.write(2, f"deskhand: {type(error).__name__}: {error}. Stopping.\n".encode())
    os._exit(74)  # EX_IOERR


class PostgresStore(SqlStore):
    """A Store in the database at `url`, whose tables are created or migrated first: in the schema
    that is first on its search path. `statements` are those of other rooms, for PostgreSQL.

    Raises a subclass of StoreError whose message says what to do.
    """

    def __init__(
        self,
        url: str,
        statements: Mapping[str, str] | None = None,
        on_fatal: Callable[[BaseException], None] = _abort,
    ) -> None:
        self.url = url
        self.name = describe(url)
        with connect(url) as db, translate_errors(url):
            self.schema = migrate(db, self.name)
        sql = load_sql(__package__, "queries.sql", "postgresql")
        self._writing = PostgresWriteConnection(url)
        writer = Writer(self._writing, on_fatal)
        super().__init__(sql, statements or {}, writer)
        self._holder = secrets.token_hex(8)
        self._read = _PostgresReader(url, self._statements)
        self._sweeper: _PostgresReader | None = None
        self._readers: list[_PostgresReader] = []

    @asynccontextmanager
    async def lead(self, waits: Callable[[], None] = lambda: None) -> AsyncIterator[None]:
        stands_by = False
        while (fence := await self._try_to_lead()) is None:
            if not stands_by:
                log.info("Another process drives the conversations of this database; standing by.")
            stands_by = True
            waits()
            await anyio.sleep(TRY_LEASE_S)
        self._writing.fence = fence
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._keep_leading, fence)
                yield
                tasks.cancel_scope.cancel()
        finally:
            with anyio.move_on_after(RELEASE_S, shield=True), suppress(StoreError):
                await self._execute("driver_release", (self._holder, fence))
            self._writing.fence = None

    async def _try_to_lead(self) -> int | None:
        """The number under which this process drives from now on; None while another one does."""

        def work(db: StatementRunner) -> int | None:
            row = db.execute(self._sql["driver_take"], (self._holder, LEASE_S)).fetchone()
            return int(row[0]) if row is not None else None

        return await self._writer.run(work)

    async def _keep_leading(self, fence: int) -> None:
        """Say again and again that this process is there. Raises NotLeading."""
        while True:
            await anyio.sleep(BEAT_S)
            try:
                await self._execute("driver_beat", (self._holder, fence))
            except NotLeading:
                raise
            except StoreUnavailable as error:
                log.warning("The database is away: %s", error)

    def open_reader(self) -> SyncStatementReader:
        reader = _PostgresReader(self.url, self._statements)
        self._readers.append(reader)
        return reader

    def is_blob_used(self, digest: str) -> bool:
        if self._sweeper is None:  # the thread that collects blobs has a connection of its own
            self._sweeper = _PostgresReader(self.url, self._statements)
        return bool(self._sweeper.query_sync("blob_is_used", (digest,))[0][0])

    def version(self) -> int:
        """Changes with the transactions that have begun or ended since."""
        return hash(self._fetch_all("SELECT pg_current_snapshot()::text")[0][0])

    async def close(self) -> None:
        for reader in (self._read, self._sweeper, *self._readers):
            if reader is not None:
                reader.close()
        await anyio.to_thread.run_sync(self._writer.close)

    def _fetch_all(self, statement: str, args: Args = ()) -> list[Row]:
        return self._read.fetch_all(statement, args)

    def _iter_rows(self, statement: str, args: Args) -> Iterator[Row]:
        return iter(self._read.fetch_all(statement, args))

    def _errors(self) -> AbstractContextManager[None]:
        return translate_errors(self.url)
