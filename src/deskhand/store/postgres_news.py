"""Hears from PostgreSQL when any process has written something."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from select import select

import psycopg
from psycopg import sql

from ..types.errors import StoreUnavailable
from .base import Row
from .postgres_connection import connect

log = logging.getLogger(__name__)

RETRY_S = 1.0
CHANNEL = "deskhand_"
"""A channel is of the whole database, so its name ends with the number of the schema."""
TOLD = "_told"
CHANNEL_OF_SCHEMA = f"SELECT '{CHANNEL}' || oid FROM pg_namespace WHERE nspname = current_schema()"


def channel_name(db: psycopg.Connection[Row]) -> str:
    """Where those who write in this schema say so."""
    row = db.execute(CHANNEL_OF_SCHEMA).fetchone()
    return str(row[0]) if row is not None else CHANNEL


class News:
    """A thread that listens on a connection of its own. `count` goes up with each transaction that
    writes, of this process (`own`) too; waiters are woken by the others alone.

    While the connection is lost nothing is heard: then `is_listening` is False, and whoever wants
    to know must look.
    """

    def __init__(self, url: str, own: str) -> None:
        self._url = url
        self._own = own
        self.count = 0
        self.is_listening = False
        self._listeners: list[tuple[Callable[[str], None], asyncio.AbstractEventLoop]] = []
        self._waiters: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._lock = threading.Lock()
        self._end, self._tell_end = os.pipe()
        self._thread = threading.Thread(target=self._run, name="deskhand-news", daemon=True)
        self._thread.start()

    @contextmanager
    def listening(self, listener: Callable[[str], None]) -> Iterator[None]:
        """While it is open, `listener` is called with what others tell, in this event loop."""
        entry = (listener, asyncio.get_running_loop())
        with self._lock:
            self._listeners.append(entry)
        try:
            yield
        finally:
            with self._lock:
                self._listeners.remove(entry)

    async def wait(self, timeout_s: float) -> None:
        """Return when another process has written something from now on, or after this time."""
        heard = asyncio.Event()
        with self._lock:
            self._waiters[heard] = asyncio.get_running_loop()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await heard.wait()
        finally:
            with self._lock:
                self._waiters.pop(heard, None)

    def close(self) -> None:
        """End the thread and its connection."""
        os.write(self._tell_end, b"x")
        self._thread.join()
        os.close(self._tell_end)
        os.close(self._end)

    def _run(self) -> None:
        while True:
            try:
                with connect(self._url) as db:
                    written = channel_name(db)
                    for channel in (written, written + TOLD):
                        db.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
                    self.is_listening = True
                    self._wake(from_others=True)  # what came before nobody has said
                    self._hear(db, written)
                    return
            except (StoreUnavailable, psycopg.Error) as error:
                log.info("No news from the database for now: %s", error)
            finally:
                self.is_listening = False
            if select([self._end], [], [], RETRY_S)[0]:
                return

    def _hear(self, db: psycopg.Connection[Row], written: str) -> None:
        """Pass on what is said, until the thread is to end. Raises psycopg.Error."""
        while True:
            ready, _, _ = select([db.fileno(), self._end], [], [])
            if self._end in ready:
                return
            db.pgconn.consume_input()
            heard = False
            from_others = False
            while (note := db.pgconn.notifies()) is not None:
                if note.relname.decode() == written:
                    heard = True
                    from_others |= note.extra.decode() != self._own
                else:
                    self._pass_on(note.extra.decode())
            if heard:
                self._wake(from_others=from_others)

    def _pass_on(self, message: str) -> None:
        with self._lock:
            listeners = list(self._listeners)
        for listener, loop in listeners:
            with suppress(RuntimeError):  # that loop is closed
                loop.call_soon_threadsafe(listener, message)

    def _wake(self, *, from_others: bool) -> None:
        self.count += 1
        if not from_others:
            return
        with self._lock:
            waiters = list(self._waiters.items())
        for heard, loop in waiters:
            with suppress(RuntimeError):  # that loop is closed
                loop.call_soon_threadsafe(heard.set)
