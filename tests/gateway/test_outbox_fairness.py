"""A chat in which much is owed holds up no other chat."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import anyio
import pytest

from deskhand.config.clock import SystemClock
from deskhand.config.statements import load_statements
from deskhand.gateway.outbox import BATCH, Outbox
from deskhand.gateway.streamed_replies import Drafts
from deskhand.store.base import Store
from deskhand.store.postgres import PostgresStore
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.postgres import open_schema, running_server
from deskhand.types.commit import Commit, Outgoing
from deskhand.types.events import Hinted
from deskhand.types.identity import Address
from deskhand.types.messages import Text

FULL = "full"
SEND_S = 0.02
LATEST_S = 1.0
"""That is far less than the full chat needs for the first batch."""


class SlowChannel(MemoryChannel):
    """Takes its time in the chat FULL."""

    async def send(self, outgoing: Outgoing, mark: str) -> str:
        if outgoing.address.chat == FULL:
            await anyio.sleep(SEND_S)
        return await super().send(outgoing, mark)

    def said(self, chat: str) -> list[str]:
        return [outgoing.key for outgoing, _ in self.sent if outgoing.address.chat == chat]


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "sqlite":
        yield SqliteStore(tmp_path / "deskhand.db", load_statements())
        return
    with running_server() as server, open_schema(server) as url:
        yield PostgresStore(url, load_statements("postgresql"))


async def owe(store: Store, chat: str, number: int) -> str:
    key = f"{chat}#{number}.0"
    outgoing = Outgoing(key, Address("memory", chat=chat), (Text("hello"),))
    await store.commit(Commit(chat, number, 1.0, (Hinted("loop", ""),), outbox=(outgoing,)))
    return key


async def test_more_than_a_batch_in_one_chat_delays_no_other(store: Store) -> None:
    """A platform answered 429 there for so long that more is owed than is looked at in one go."""
    channel = SlowChannel()
    owed = [await owe(store, FULL, number) for number in range(1, 2 * BATCH)]
    clock = SystemClock()
    drafts = Drafts(store, {}, clock, lambda session: None)
    outbox = Outbox(store, {"memory": channel}, clock, drafts)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(outbox.run)
        while not channel.sent:
            await anyio.sleep(0.01)
        for chat in ("other", "third"):
            began = monotonic()
            await owe(store, chat, 1)
            outbox.wake()
            with anyio.move_on_after(20):
                while not channel.said(chat):
                    await anyio.sleep(0.005)
            took_s = monotonic() - began
            assert took_s < LATEST_S, f"{chat} waited for {took_s:.2f} s"
        with anyio.fail_after(60):
            while len(channel.said(FULL)) < len(owed):
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    await store.close()
    assert channel.said(FULL) == owed, "and its own order stays"
