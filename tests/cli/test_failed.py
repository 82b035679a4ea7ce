"""What was given up is listed, tried again and dropped."""

from __future__ import annotations

from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.config.statements import load_statements
from deskhand.store.sqlite import SqliteStore
from deskhand.types.commit import Change, Commit, Outgoing
from deskhand.types.events import MessageReceived, TurnEnded
from deskhand.types.identity import Address, Inbound, Principal, Said
from deskhand.types.messages import Message, Text

from .test_commands import Desk

SESSION = "default/terminal:talk"
PLACE = Address("terminal", chat="talk")
OWNER = Principal("owner", ("owner",))


async def give_up(home: Path) -> None:
    """A turn that was given up, and an answer that its platform refused."""
    (home / "state").mkdir(parents=True)
    store = SqliteStore(home / "state" / "deskhand.db", load_statements())
    message = Message("user", (Text("please do it"),))
    accepted = await store.accept(Inbound("1", PLACE, "owner", 1.0, Said(message)), OWNER, SESSION)
    ended = TurnEnded("dead", (accepted.inbox_id,), "Sorry, I gave this up.")
    events = (MessageReceived(accepted.inbox_id, OWNER, PLACE, message, "1"), ended)
    letter = Change("dead_insert", (SESSION, 2, 2.0, "it crashed\x1b[31m four times"))
    out = Outgoing("key", Address("telegram", chat="7"), (Text("an answer"),))
    commit = Commit(SESSION, 1, 1.0, events, (accepted.inbox_id,), (out,), (letter,), close=True)
    await store.commit(commit)
    await store.outbox_failed("key", "chat not found")
    await store.close()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path / "home")
    anyio.run(give_up, desk.home)
    return desk


def test_list(desk: Desk) -> None:
    lines = desk("failed", "list").splitlines()
    assert lines[0].startswith("d1\t1970-01-01 00:00\ttalk\tit crashed␛[31m four times")
    assert lines[1].endswith("\tnot sent on telegram: chat not found")
    assert desk("failed", "--limit", "1").splitlines() == lines[:1]
    status = desk("status", code=1).splitlines()
    assert (
        status[0].startswith("Deskhand is not running")
        and "2 permanent failures: deskhand failed" in status[-1]
    )


def test_a_conversation_is_tried_again(desk: Desk) -> None:
    said = desk("failed", "retry", "d1")
    assert said.startswith(
        "1 message queued again.\nDeskhand is not running. Continue with: deskhand --session talk"
    )
    assert [row["id"] for row in msgspec.json.decode(desk("failed", "list", "--json"))] == ["o1"]

    async def waiting() -> list[str]:
        store = SqliteStore(desk.home / "state" / "deskhand.db")
        rows = await store.list_waiting(SESSION)
        await store.close()
        return [row.inbound.body.message.text for row in rows if isinstance(row.inbound.body, Said)]

    assert anyio.run(waiting) == ["please do it"]


def test_an_answer_is_sent_again(desk: Desk) -> None:
    assert "marked as a possible duplicate" in desk("failed", "retry", "o1")

    async def due() -> list[str]:
        store = SqliteStore(desk.home / "state" / "deskhand.db")
        rows = await store.outbox_due(10.0, 10)
        await store.close()
        return [row.state for row in rows]

    assert anyio.run(due) == ["sending"]


def test_drop(desk: Desk) -> None:
    desk("failed", "drop", "d1")
    desk("failed", "drop", "o1")
    assert desk("failed", "list") == "No permanent failures.\n"
    assert "please do it" in desk("sessions", "export", "talk")
