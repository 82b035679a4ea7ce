"""Hears from PostgreSQL when any process has written something."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from select import POLLIN, poll

import psycopg
from psycopg import sql

from ..types.errors import StoreError
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
    writes, of this process (`own`) too, and `others` with those of the others alone.

    While the connection is lost nothing is heard: then `is_listening` is False, and whoever wants
    to know must look.
    """

    def __init__(self, url: str, own: str) -> None:
        self._url = url
        self._own = own
        self.count = 0
        self.others = 0
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

    async def wait(self, seen: int, timeout_s: float) -> int:
        """Return when another process has written something since `others` was `seen`, or after
        this time. Returns what `others` is then."""
        heard = asyncio.Event()
        with self._lock:
            self._waiters[heard] = asyncio.get_running_loop()
        try:
            if self.others == seen:
                with suppress(TimeoutError):
                    async with asyncio.timeout(timeout_s):
                        await heard.wait()
        finally:
            with self._lock:
                self._waiters.pop(heard, None)
        return self.others

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
            except (StoreError, psycopg.Error, OSError, ValueError) as error:
                log.info("No news from the database for now: %s", error)
            finally:
                self.is_listening = False
            if self._wait_readable(self._end, seconds=RETRY_S):
                return

    def _hear(self, db: psycopg.Connection[Row], written: str) -> None:
        """Pass on what is said, until the thread is to end. Raises psycopg.Error."""
        while True:
            if self._end in self._wait_readable(self._end, db.fileno()):
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

    def _wait_readable(self, *descriptors: int, seconds: float | None = None) -> set[int]:
        """Those of them that can be read, or are broken, by then."""
        ready = poll()
        for each in descriptors:
            ready.register(each, POLLIN)
        return {each for each, _ in ready.poll(None if seconds is None else seconds * 1000)}

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
        self.others += 1
        with self._lock:
            waiters = list(self._waiters.items())
        for heard, loop in waiters:
            with suppress(RuntimeError):  # that loop is closed
                loop.call_soon_threadsafe(heard.set)
