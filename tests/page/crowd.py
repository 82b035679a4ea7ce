"""Very many conversations, and a very long one, as if they had been held: `crowd.py HOME` writes
them, before a Deskhand runs there."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import anyio
import msgspec

from deskhand.store.sqlite import SqliteStore
from deskhand.testing.scripted import say
from deskhand.types.commit import Change, Commit
from deskhand.types.events import (
    AnyEvent,
    ApprovalAsked,
    Compacted,
    Ledger,
    MessageReceived,
    ModelReplied,
    TurnEnded,
    Undone,
)
from deskhand.types.identity import Address, Principal
from deskhand.types.labels import OWNER
from deskhand.types.messages import Message, Text, ToolCall, Usage

OWNED = Principal("owner", ("owner",))
MANY = 5_000
MESSAGES = 10_000
HOUR_S = 3600.0
OLD = "Post the letter to Ada"


def heard(chat: str, text: str, n: int) -> MessageReceived:
    said = Message("user", (Text(text, OWNER),))
    return MessageReceived(0, OWNED, Address("web", "owner", chat), said, f"{chat}:{n}")


async def crowd(store: SqliteStore, now: float) -> None:
    """`MANY` conversations, one for each hour, a still older one that waits for an answer, one of
    `MESSAGES`, and one in which all was undone behind its first hundred turns."""
    changes = list[Change]()
    for n in range(MANY):
        session = f"default/web:owner:many{n}"
        at = now - 9000.0 - HOUR_S * n
        seen = (session, "default", "web", f"many{n}", f"Talk {n} about the tent", at, at, 0)
        changes += [Change("session_seen", seen), Change("session_join", (session, "owner"))]
    await store.change(changes)
    call = ToolCall("call_old", "post_letter", msgspec.Raw(b'{"to":"Ada"}'))
    asked = ApprovalAsked(
        "ask_old", "call_old", "h", 'post_letter {"to":"Ada"}', "it cannot be taken back", now + 9e6
    )
    waits: tuple[AnyEvent, ...] = (
        heard("old", OLD, 0),
        ModelReplied(say("I would post this.", call), "scripted/desk", "calls", Usage(900, 30)),
        asked,
    )
    await store.commit(
        Commit("default/web:owner:old", 1, now - HOUR_S * (MANY + 9), waits, close=True)
    )
    await store.commit(
        Commit("default/web:owner:deep", 1, now - 8000, held("deep", MESSAGES // 2), close=True)
    )
    back = (
        *held("back", 400, "Matter"),
        Undone(0, OWNED, 3 * 100),
        Compacted((), "", 0, Ledger()),
        *held("back", 60, "Later"),
    )
    await store.commit(Commit("default/web:owner:back", 1, now - 8500, back, close=True))


def held(chat: str, turns: int, word: str = "Question") -> tuple[AnyEvent, ...]:
    """So many turns, one after the other."""
    found: list[AnyEvent] = []
    for n in range(turns):
        reply = say(f"Answer {n}: milk, bread, a **new tent**.\n\n- one\n- two")
        found += [
            heard(chat, f"{word} {n}: what is in the notes?", n),
            ModelReplied(reply, "scripted/desk", "stop", Usage(950, 20)),
            TurnEnded("done"),
        ]
    return tuple(found)


async def main(home: Path) -> None:
    (home / "state").mkdir(parents=True, exist_ok=True)
    store = SqliteStore(home / "state" / "deskhand.db")
    await crowd(store, time.time())
    await store.close()


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
