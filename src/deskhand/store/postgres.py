"""The Store in a PostgreSQL database, which several processes may use.

As in SQLite one transaction writes at a time: it holds an advisory lock, so all that is true of the
log there is true here. A worker puts what many sessions write into one transaction.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from socket import gethostname
from threading import Lock
from time import monotonic, sleep  # noqa: TID251 -- while the server is away nothing goes on

import anyio
import anyio.to_thread
import msgspec
import psycopg
from psycopg.pq import TransactionStatus

from ..types.errors import NotLeading, StoreCorrupt, StoreError, StoreUnavailable
from .base import Args, Row, SyncStatementReader, WorkerRow
from .connection import StatementRunner, TransactionLost
from .postgres_connection import WRITE_LOCK, connect, describe, first_line, translate_errors
from .postgres_news import TOLD, News, channel_name
from .postgres_schema import load_migrations, migrate
from .sql import load_sql
from .sql_store import SqlStore
from .writer import Writer

log = logging.getLogger(__name__)

BEGIN = (
    f"BEGIN; SELECT pg_advisory_xact_lock({WRITE_LOCK}); NOTIFY {{channel}}, '{{id}}'; "
    "INSERT INTO writer(id, n) VALUES('{id}', {n}) "
    "ON CONFLICT(id) DO UPDATE SET n = excluded.n, at = now(); "
    "SELECT EXISTS(SELECT 1 FROM worker WHERE id = '{worker}'), "
    "(SELECT max(version) FROM schema_version)"
)
"""The others hear of it when it is committed."""
FORGET_WRITERS = "DELETE FROM writer WHERE at < now() - interval '30 days'"
RECONNECT_S = 30.0
"""For so long a connection that was lost is made anew."""
READ_AGAIN_S = 10.0
LEASE_S = 8.0
"""A process that works and says nothing for so long, by the clock of the server, is replaced."""
BEAT_S = 2.0
TRY_LEASE_S = 1.0
RELEASE_S = 5.0
LOOK_S = 1.0
"""So often whoever waits for news looks for itself: something said may have been lost."""
LEAD = "lead"
DRIVE = "agent/"
"""Duties: to lead, and to drive the conversations of the agent whose name follows."""
"""Whoever ends waits so long for the server to take note. It is replaced in any case."""
PAUSES_S = (0.05, 0.1, 0.2, 0.5, 1.0)


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

    def __init__(self, url: str, schema: int) -> None:
        self._url = url
        self._schema = schema
        self._executor = _Executor(connect(url))
        self.id = secrets.token_hex(8)
        self._n = 0
        self.worker = ""
        """While this process works: its row, without which it may write nothing."""
        with self.errors():
            self._db.execute(FORGET_WRITERS)
            self.channel = channel_name(self._db)

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
        begin = BEGIN.format(n=self._n, id=self.id, channel=self.channel, worker=self.worker)
        cursor = self._db.execute(begin, prepare=False)
        while cursor.nextset():
            pass
        is_worker, schema = cursor.fetchone() or (False, None)
        if schema != self._schema:
            self.rollback()
            raise NotLeading("a newer version has changed the database, so this one writes nothing")
        if self.worker and not is_worker:
            self.rollback()
            raise NotLeading("another process drives now, so this one writes nothing any more")

    def commit(self) -> None:
        try:
            self._db.execute("COMMIT", prepare=False)
        except psycopg.OperationalError as error:
            if not self._was_committed():
                raise TransactionLost(first_line(error)) from error

    def _was_committed(self) -> bool:
        """What became of the last transaction. Nobody said it, so the server is asked, when that
        transaction has let go of the lock."""
        give_up = monotonic() + RECONNECT_S
        while True:
            try:
                self._reconnect()
                self._db.execute(f"SELECT pg_advisory_xact_lock({WRITE_LOCK})")
                row = self._db.execute("SELECT n FROM writer WHERE id = $1", (self.id,)).fetchone()
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
            self._db.execute("DELETE FROM writer WHERE id = $1", (self.id,))
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


class _Taken(Exception):
    """Another worker has one of these duties."""


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
            self.schema = migrate(db, self.name, load_migrations())
        sql = load_sql(__package__, "queries.sql", "postgresql")
        self._writing = PostgresWriteConnection(url, self.schema)
        writer = Writer(self._writing, on_fatal)
        super().__init__(sql, statements or {}, writer)
        self._read = _PostgresReader(url, self._statements)
        self._sweeper: _PostgresReader | None = None
        self._readers: list[_PostgresReader] = []
        self._news: News | None = None
        self._teller: psycopg.Connection[Row] | None = None
        self._telling = Lock()
        self._leads = False

    # Working beside other processes

    shares_work = True

    @asynccontextmanager
    async def lead(self, waits: Callable[[], None] = lambda: None) -> AsyncIterator[None]:
        stands_by = False
        while not await self._join((LEAD,)):
            if not stands_by:
                log.info("Another process drives the conversations of this database; standing by.")
            stands_by = True
            waits()
            await anyio.sleep(TRY_LEASE_S)
        self._leads = True
        try:
            async with self._staying():
                yield
        finally:
            self._leads = False

    @asynccontextmanager
    async def work(self) -> AsyncIterator[None]:
        await self._join(())
        async with self._staying():
            yield

    async def _join(self, duties: Sequence[str]) -> bool:
        """Be one of the workers from now on, with these duties; not where another has one."""
        await self._execute("worker_reap", (LEASE_S,))
        worker = secrets.token_hex(8)

        def join(db: StatementRunner) -> None:
            db.execute(self._sql["worker_join"], (worker, f"{gethostname()} {os.getpid()}"))
            self._take(db, worker, duties)

        try:
            await self._writer.run(join)
        except _Taken:
            return False
        self._writing.worker = worker
        return True

    def _take(self, db: StatementRunner, worker: str, duties: Sequence[str]) -> None:
        """Raises _Taken unless all of them are free."""
        if duties:
            db.execute(self._sql["lease_take"], (msgspec.json.encode(duties).decode(), worker))
            if db.changes() != len(duties):
                raise _Taken

    @asynccontextmanager
    async def _staying(self) -> AsyncIterator[None]:
        """Say again and again that this process is there, while the block runs; then leave. Raises
        NotLeading."""
        worker = self._writing.worker
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._beat, worker)
                yield
                tasks.cancel_scope.cancel()
        finally:
            with anyio.move_on_after(RELEASE_S, shield=True), suppress(StoreError):
                await self._execute("worker_leave", (worker,))
            self._writing.worker = ""

    async def _beat(self, worker: str) -> None:
        beat_at = monotonic()
        while True:
            await anyio.sleep(BEAT_S)
            try:
                await self._execute("worker_beat", (worker,))
                # After the database was away nobody has been heard of: the others get time, too.
                if monotonic() - beat_at < LEASE_S:
                    await self._execute("worker_reap", (LEASE_S,))
                beat_at = monotonic()
            except NotLeading:
                raise
            except StoreError as error:
                log.warning("The database is away: %s", error)

    async def take(self, agents: Collection[str]) -> bool:
        worker = self._writing.worker
        duties = [f"{DRIVE}{agent}" for agent in sorted(agents)]
        try:
            await self._writer.run(lambda db: self._take(db, worker, duties))
        except _Taken:
            return False
        return True

    async def give_back(self, agents: Collection[str]) -> None:
        duties = msgspec.json.encode([f"{DRIVE}{agent}" for agent in agents]).decode()
        await self._execute("lease_give_back", (duties, self._writing.worker))

    async def workers(self) -> list[WorkerRow]:
        found = []
        for id_, name, listed in self._fetch_all(self._sql["worker_list"], (LEASE_S,)):
            duties = msgspec.json.decode(listed, type=list[str])
            agents = tuple(duty.removeprefix(DRIVE) for duty in duties if duty.startswith(DRIVE))
            is_self = id_ == self._writing.worker
            found.append(WorkerRow(name, agents, leads=LEAD in duties, is_self=is_self))
        return found

    async def drive_alone(self, session: str) -> None:
        if self._is_helper:
            await self._execute("worker_alone", (self._writing.worker, session))
        else:
            await super().drive_alone(session)

    async def begin_run(self, now: float) -> str:
        return "" if self._is_helper else await super().begin_run(now)

    async def end_run(self) -> None:
        if not self._is_helper:
            await super().end_run()

    @property
    def _is_helper(self) -> bool:
        """Whether this process works and another one leads. Its crash is counted by who finds it
        dead."""
        return bool(self._writing.worker) and not self._leads

    # News

    async def tell(self, message: str) -> None:
        await anyio.to_thread.run_sync(self._tell, message)

    def _tell(self, message: str) -> None:
        """In a thread. What is told need not be on disk before it is on its way."""
        with self._telling, translate_errors(self.url):
            if self._teller is None or self._teller.closed or self._teller.broken:
                self._teller = connect(self.url)
                self._teller.execute("SET synchronous_commit = off")
            channel = self._writing.channel + TOLD
            self._teller.execute("SELECT pg_notify($1, $2)", (channel, message))

    @contextmanager
    def listening(self, listener: Callable[[str], None]) -> Iterator[None]:
        with self._hear_news().listening(listener):
            yield

    async def wait_for_writes(self, seen: int, poll_s: float) -> int:
        return await self._hear_news().wait(seen, LOOK_S)

    def version(self) -> int:
        """Changes with the transactions that were committed since, as soon as the server has told
        of them."""
        news = self._hear_news()
        if news.is_listening:
            return news.count
        return hash(self._fetch_all("SELECT pg_current_snapshot()::text")[0][0])

    def _hear_news(self) -> News:
        if self._news is None:
            self._news = News(self.url, self._writing.id)
        return self._news

    def open_reader(self) -> SyncStatementReader:
        reader = _PostgresReader(self.url, self._statements)
        self._readers.append(reader)
        return reader

    def is_blob_used(self, digest: str) -> bool:
        if self._sweeper is None:  # the thread that collects blobs has a connection of its own
            self._sweeper = _PostgresReader(self.url, self._statements)
        return bool(self._sweeper.query_sync("blob_is_used", (digest,))[0][0])

    async def close(self) -> None:
        if self._news is not None:
            news = self._news
            self._news = None
            await anyio.to_thread.run_sync(news.close)
        if self._teller is not None:
            self._teller.close()
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
