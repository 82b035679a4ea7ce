"""What other workers write is published once each, whatever the database does meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from deskhand.gateway.log_tail import LogTail
from deskhand.store.base import Page
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.store_suite import commit
from deskhand.types.errors import StoreBusy
from deskhand.types.events import Hinted, Recorded
from deskhand.types.identity import Principal


class Unreliable(SqliteStore):
    """A database that is away where a test says so."""

    away = False

    async def events_since(self, principal: Principal, seq: int, limit: int) -> Page:
        if self.away:
            raise StoreBusy("away")
        return await super().events_since(principal, seq, limit)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Unreliable]:
    opened = Unreliable(tmp_path / "x.db")
    yield opened
    await opened.close()


class Heard:
    def __init__(self) -> None:
        self.all: list[tuple[str, int]] = []

    def publish(self, session: str, recorded: Recorded) -> None:
        self.all.append((session, recorded.n))


async def write(store: Unreliable, session: str, n: int) -> None:
    await store.commit(commit(n, Hinted("loop", ""), session=session))


async def test_nothing_is_missed_while_the_database_is_away(store: Unreliable) -> None:
    heard = Heard()
    tail = LogTail(store, heard.publish, lambda session: session.startswith("own/"), lambda: False)
    await write(store, "theirs/x", 1)
    await tail.catch_up()
    async with anyio.create_task_group() as tasks:
        store.away = True
        tasks.start_soon(tail.run)
        await write(store, "theirs/x", 2)
        await write(store, "own/x", 1)
        await anyio.sleep(0.2)
        assert heard.all == []
        store.away = False
        with anyio.fail_after(10):
            while not heard.all:
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    assert heard.all == [("theirs/x", 2)]


async def test_what_was_before_the_first_look_is_left_out(store: Unreliable) -> None:
    heard = Heard()
    tail = LogTail(store, heard.publish, lambda session: False, lambda: False)
    await write(store, "theirs/x", 1)
    await tail.catch_up()
    await write(store, "theirs/x", 2)
    await tail.catch_up()
    assert heard.all == [("theirs/x", 2)]
