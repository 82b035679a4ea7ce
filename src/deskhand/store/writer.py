"""The one thread that writes: it takes whatever is queued into one transaction, and so many
sessions share an fsync."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Generic, TypeVar

from ..types.errors import StoreError, StoreUnavailable
from .connection import StatementRunner, TransactionLost, WriteConnection

T = TypeVar("T")
Work = Callable[[StatementRunner], T]
RETRY_S = 30.0
"""A transaction that is lost is run again for so long."""
CLOSED_TEXT = "the database is closed, so nothing can be written to it"


class _Job(Generic[T]):
    __slots__ = ("error", "future", "loop", "result", "work")

    def __init__(self, work: Work[T], loop: asyncio.AbstractEventLoop) -> None:
        self.work = work
        self.loop = loop
        self.future: asyncio.Future[T] = loop.create_future()
        self.result: T | None = None
        self.error: BaseException | None = None

    def settle(self) -> None:
        if self.future.cancelled():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)  # type: ignore[arg-type]  # set by the thread where there is no error


class Writer:
    """Runs functions on the write connection, each atomic: all that it wrote, or nothing if it
    raised.

    The queue is bounded by its callers, who each wait for their answer.
    """

    def __init__(self, db: WriteConnection, on_fatal: Callable[[BaseException], None]) -> None:
        self._db = db
        self._on_fatal = on_fatal
        self._queue: SimpleQueue[_Job[object] | None] = SimpleQueue()
        self._lock = threading.Lock()
        """Whoever puts a job into the queue holds it, so that none is put behind the end."""
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="deskhand-writer", daemon=True)
        self._thread.start()

    async def run(self, work: Work[T]) -> T:
        """Run `work` in a transaction and return its result once that is on disk. It may be run
        twice, where another in the same transaction failed: it does nothing but read and write
        rows.

        Raises what `work` raised, or StoreUnavailable when the transaction could not be committed
        or the writer is closed. Cancelling the caller does not undo the work: whoever must know its
        outcome shields the call.
        """
        job: _Job[T] = _Job(work, asyncio.get_running_loop())
        with self._lock:
            if self._closed:
                raise StoreUnavailable(CLOSED_TEXT)
            self._queue.put(job)  # type: ignore[arg-type]  # invariant T; the thread only passes it through
        return await job.future

    def close(self) -> None:
        """Finish what is queued, then end the thread and close its connection. May be called
        again."""
        with self._lock:
            self._closed = True
            self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        batch: list[_Job[object]] = []
        try:
            while (first := self._queue.get()) is not None:
                batch = [first]
                last = False
                try:
                    while (job := self._queue.get_nowait()) is not None:
                        batch.append(job)
                    last = True
                except Empty:
                    pass
                self._transact(batch)
                batch = []
                if last:
                    break
        except BaseException as error:  # noqa: BLE001 -- without this thread nobody would ever be answered again
            self._on_fatal(error)
        finally:
            self._refuse(batch)
            self._db.close()

    def _refuse(self, batch: list[_Job[object]]) -> None:
        """Answer whoever still waits when the thread ends: where it broke, and not because it was
        closed."""
        with self._lock:
            self._closed = True
        with suppress(Empty):
            while True:
                job = self._queue.get_nowait()
                if job is not None:
                    batch.append(job)
        for job in batch:
            job.error = StoreUnavailable(CLOSED_TEXT)
        self._answer(batch)

    def _transact(self, batch: list[_Job[object]]) -> None:
        give_up = monotonic() + RETRY_S
        while True:
            try:
                with self._db.errors():
                    self._attempt(batch)
                break
            except TransactionLost as error:
                if monotonic() > give_up:
                    _fail(batch, StoreUnavailable(f"the database does not answer: {error}"))
                    break
            except StoreError as error:
                _fail(batch, error)
                break
        self._answer(batch)

    def _attempt(self, batch: list[_Job[object]]) -> None:
        try:
            self._db.begin()
            if all(map(self._run_job, batch)):
                self._db.commit()
            else:
                self._db.rollback()
                if len(batch) > 1:
                    self._run_each(batch)
        except BaseException:
            self._db.rollback()
            raise

    def _answer(self, batch: list[_Job[object]]) -> None:
        """Tell each caller, in its own event loop, what became of its job."""
        callers: dict[asyncio.AbstractEventLoop, list[_Job[object]]] = {}
        for job in batch:
            callers.setdefault(job.loop, []).append(job)

        for loop, jobs in callers.items():
            try:
                loop.call_soon_threadsafe(_settle, jobs)
            except RuntimeError:  # the loop is closed: nobody waits there any more
                continue

    def _run_each(self, batch: list[_Job[object]]) -> None:
        """Run a batch in which one failed once more, so that a failure takes back only its own
        rows. It is rare, and two statements for each job are not."""
        self._db.begin()
        for job in batch:
            self._db.savepoint()
            if not self._run_job(job):
                self._db.roll_back_to_savepoint()
            self._db.release_savepoint()
        self._db.commit()

    def _run_job(self, job: _Job[object]) -> bool:
        """Run it; False when it failed by its own fault. Raises what is the database's fault, which
        ends the batch."""
        job.error = None
        try:
            job.result = job.work(self._db.connection)
        except Exception as error:
            if not self._db.is_database_error(error):
                job.error = error
                return False
            if not self._db.is_job_error(error):
                raise
            job.error = StoreError(f"the rows were refused: {error}")
            job.error.__cause__ = error
            return False
        return True


def _fail(batch: list[_Job[object]], error: StoreError) -> None:
    for job in batch:
        job.error = job.error or error


def _settle(jobs: list[_Job[object]]) -> None:
    for job in jobs:
        job.settle()
