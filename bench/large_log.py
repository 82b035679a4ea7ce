"""Whether a store with a long log is as quick as one with a short one: `python bench/large_log.py`
fills both kinds of database with few and with many conversations, each of which waits for
something, and measures what a turn does with them. Takes some minutes; the size can be given."""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio

from deskhand.config.statements import load_statements
from deskhand.store.base import Store
from deskhand.store.postgres import PostgresStore
from deskhand.store.sql_store import SqlStore
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.postgres import open_schema, running_server
from deskhand.types.commit import Commit
from deskhand.types.events import AnyEvent, MessageReceived, ModelReplied, TurnEnded
from deskhand.types.identity import Address, Inbound, Principal, Said
from deskhand.types.messages import Message, Text

OWNER = Principal("owner", ("owner",))
EVENTS = 100
"""Of each conversation."""
FEW = 100
MEASURED = 200
WORDS = ("the", "quick", "brown", "fox", "jumps", "over", "lazy", "dog", "nobody", "town", "seen")


def make_events(name: str, random_: random.Random) -> tuple[AnyEvent, ...]:
    """Some turns of one conversation. Its name is a word in each."""
    events: list[AnyEvent] = []
    for number in range(EVENTS // 3 + 1):
        words = " ".join((name, *random_.choices(WORDS, k=30)))
        here = Address("web", chat="x")
        asked = Message("user", (Text(words),))
        events += [
            MessageReceived(number + 1, OWNER, here, asked, f"{number}"),
            ModelReplied(Message("assistant", (Text(words),)), "bench/m"),
            TurnEnded("done", ()),
        ]
    return tuple(events[:EVENTS])


async def fill(store: Store, sessions: int) -> None:
    random_ = random.Random(1)
    for number in range(sessions):
        session = f"default/web:owner:{number}"
        await store.commit(
            Commit(session, 1, float(number), make_events(f"ticket{number}", random_))
        )
        await store.accept(make_inbound(session, "open"), OWNER, session)


def make_inbound(session: str, key: str) -> Inbound:
    said = Said(Message("user", (Text("go on"),)))
    return Inbound(f"{session}:{key}", Address("web", chat=session), "owner", 1.0, said, session)


async def measure(store: SqlStore, sessions: int) -> dict[str, float]:
    """What a turn does with the store, in milliseconds: medians."""
    random_ = random.Random(2)

    def any_session() -> str:
        return f"default/web:owner:{random_.randrange(sessions)}"

    async def accept(number: int) -> None:
        session = any_session()
        await store.accept(make_inbound(session, f"more {number}"), OWNER, session)

    async def commit(number: int) -> None:
        session = f"default/web:owner:{number % sessions}"
        n = EVENTS + 1 + number // sessions
        await store.commit(Commit(session, n, 1.0, (TurnEnded("done", ()),)))

    async def load(number: int) -> None:
        await store.events(any_session())

    async def wait(number: int) -> None:
        await store.list_waiting(any_session())

    async def page(number: int) -> None:
        await store.sessions(OWNER, 50)

    async def find(number: int) -> None:
        await store.search(OWNER, f"ticket{random_.randrange(sessions)} fox", 20)

    works: dict[str, Callable[[int], Awaitable[None]]] = {
        "accept a message": accept,
        "commit an event": commit,
        "load a conversation": load,
        "what waits in it": wait,
        "a page of conversations": page,
        "find words": find,
    }
    found = {}
    for name, work in works.items():
        took = []
        for number in range(MEASURED):
            began = time.perf_counter()
            await work(number)
            took.append((time.perf_counter() - began) * 1e3)
        found[name] = statistics.median(took)
    began = time.perf_counter()
    await store.open_sessions()
    found["all that are open, at a start"] = (time.perf_counter() - began) * 1e3
    return found


@contextmanager
def stores(folder: Path, kind: str) -> Iterator[Callable[[str], SqlStore]]:
    """Opens empty stores of a kind by a name."""
    if kind == "sqlite":
        yield lambda name: SqliteStore(folder / f"{name}.db", load_statements())
        return
    with (
        running_server(durable=True) as server,
        open_schema(server) as few,
        open_schema(server) as many,
    ):
        addresses = {"few": few, "many": many}
        statements = load_statements("postgres")
        yield lambda name: PostgresStore(addresses[name], statements)


async def main(kind: str, sessions: int) -> None:
    with tempfile.TemporaryDirectory() as folder, stores(Path(folder), kind) as open_:
        found = {}
        for name, size in (("few", FEW), ("many", sessions)):
            store = open_(name)
            try:
                began = time.perf_counter()
                await fill(store, size)
                sys.stdout.write(
                    f"{kind}: {size:,} conversations, {size * EVENTS:,} events, written in "
                    f"{time.perf_counter() - began:.0f} s\n"
                )
                found[name] = await measure(store, size)
            finally:
                await store.close()
    for work, took in found["many"].items():
        before = found["few"][work]
        sys.stdout.write(f"  {work:<32} {before:8.2f} ms {took:8.2f} ms  x {took / before:.2f}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--stores", default="sqlite,postgres")
    options = parser.parse_args()
    for each in options.stores.split(","):
        anyio.run(main, each, options.sessions)
