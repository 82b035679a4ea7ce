"""What a turn used is a fold of the log, whatever else has happened since."""

from __future__ import annotations

from pathlib import Path

import pytest

from deskhand.gateway.usage_footer import UsageFooter, render_usage
from deskhand.store.base import Page
from deskhand.store.sqlite import SqliteStore
from deskhand.types.commit import Commit, OutboxRow, Outgoing
from deskhand.types.errors import StoreCorrupt
from deskhand.types.events import AnyEvent, MessageReceived, ModelReplied, TurnEnded
from deskhand.types.identity import Address, Principal
from deskhand.types.messages import Message, Text, Usage

HERE = Address("memory", chat="1")
HEARD = MessageReceived(1, Principal("ann"), HERE, Message("user", (Text("go"),)))
ENDED = TurnEnded("done", (1,))


def replied(tokens: int) -> ModelReplied:
    return ModelReplied(Message("assistant", (Text("word"),)), "m/x", "stop", Usage(tokens, 1))


EVENTS: tuple[AnyEvent, ...] = (
    HEARD,
    replied(5),
    ENDED,
    HEARD,
    replied(10),
    replied(20),
    ENDED,
    HEARD,
    replied(40),
)


def row(key: str) -> OutboxRow:
    return OutboxRow(1, "s#1", Outgoing(key, HERE, (Text("word"),)), "pending", 0, 0.0, "", "")


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("s#1#3.0", "Usage: In 5 / Out 1 / Cached 0 / Written 0"),
        ("s#1#7.0", "Usage: In 30 / Out 2 / Cached 0 / Written 0"),
        ("s#1#6.0", ""),
        ("s#1#9.0", ""),
        ("s#2#7.0", ""),
        ("s#1#7x.0", ""),
        ("elsewhere", ""),
    ],
)
async def test_beneath_which_answer_it_stands(tmp_path: Path, key: str, line: str) -> None:
    store = SqliteStore(tmp_path / "db")
    await store.commit(Commit("s#1", 1, 1.0, EVENTS, close=True))
    outgoing = await UsageFooter(store)(row(key))
    await store.close()
    parts = tuple(part.text for part in outgoing.parts if isinstance(part, Text))
    assert parts == (("word", f"\n\n{line}") if line else ("word",))


async def test_a_log_that_cannot_be_read_holds_back_no_answer(tmp_path: Path) -> None:
    class Damaged(SqliteStore):
        async def events(self, session: str, after: int = 0, limit: int | None = None) -> Page:
            raise StoreCorrupt("it is damaged")

    store = Damaged(tmp_path / "db")
    assert await UsageFooter(store)(row("s#1#7.0")) == row("s#1#7.0").outgoing
    await store.close()


def test_how_many_are_said() -> None:
    assert (
        render_usage(Usage(999, 1000, 999_949, 999_950))
        == "Usage: In 999 / Out 1.0k / Cached 999.9k / Written 1.0M"
    )
