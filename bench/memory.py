"""What memory costs: searches by meaning without the embedding, what an insert does to the next
one, and inserts."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import anyio
import numpy as np

from deskhand.agent.state import State
from deskhand.config.clock import SystemClock
from deskhand.config.statements import load_statements
from deskhand.learning.recall import make_viewer
from deskhand.memory.facts import Keeping, NewFact, Viewer, add_fact
from deskhand.memory.meaning import Meanings
from deskhand.memory.queries import add_vector, facts_by_key, trim_changes
from deskhand.memory.recall import Memory
from deskhand.models.embeddings import TextKind, Vectors
from deskhand.store.sqlite import SqliteStore
from deskhand.types.labels import OWNER

ROUNDS = 30
MANY = 10_000
MILLION = 1_000_000
PAGE = 20_000
KEEP = Keeping(10 * MILLION)
ANN = [("user", "ann")]
WORDS = (
    "garage",
    "code",
    "dentist",
    "falcon",
    "printer",
    "paper",
    "rent",
    "coffee",
    "piano",
    "bank",
    "tax",
    "server",
)


class Ready:
    """An embedder that takes no time: it always has the same vector."""

    floor = 0.0

    def __init__(self, dimensions: int) -> None:
        self.name, self._row = f"bench/{dimensions}", vectors(1, dimensions, 1).astype(np.float32)

    async def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        return np.repeat(self._row, len(texts), axis=0)


def vectors(count: int, dimensions: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, dimensions), dtype=np.float32) + 1.0
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)


def fact(number: int) -> NewFact:
    text = (
        f"{WORDS[number % 12]} number {number} is known to {WORDS[number % 7]} since {number % 97}"
    )
    return NewFact(
        text=text, scope="user", owner="ann", label=OWNER, writer="import", key=f"bench {number}"
    )


async def measured(ask: object, rounds: int = ROUNDS) -> float:
    """Median milliseconds."""
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        await ask()  # type: ignore[operator]
        took.append((time.perf_counter() - began) * 1e3)
    return statistics.median(took)


async def many(folder: Path) -> dict[str, float]:
    """10,000 facts with vectors of 1,536 numbers, in a real database."""
    store = SqliteStore(folder / "many.db", load_statements())
    ready = Ready(1536)
    memory, viewer = Memory(store, SystemClock()), Viewer("ann", "a", private=True)
    began = time.perf_counter()
    assert memory.count(viewer) == 0
    empty = [
        time.perf_counter() for _ in range(1_000) if memory.count(make_viewer("a", State("s"))) == 0
    ]
    found = {"recall of nothing, microseconds": (empty[-1] - empty[0]) * 1e6 / len(empty)}
    began = time.perf_counter()
    for start in range(0, MANY, 100):  # as a harvester or an import writes them
        await store.change(
            [change for n in range(start, start + 100) for change in add_fact(fact(n), 1.0)]
        )
    found["10,000 inserts, s"] = time.perf_counter() - began
    rows = vectors(MANY, 1536, 2)
    await store.change([add_vector(n + 1, ready.name, row.tobytes()) for n, row in enumerate(rows)])
    memory.meaning = meaning = Meanings(store, [ready])

    async def near() -> None:
        assert len((await meaning.find_nearest("x", ANN, False, 50))[0]) == 50

    async def search() -> None:
        assert len(await memory.search("the dentist's code", viewer, 5)) == 5

    async def after_insert() -> None:
        number = await anyio.to_thread.run_sync(time.perf_counter_ns)
        await store.change(
            [
                *add_fact(
                    NewFact(
                        text=f"new {number}",
                        scope="user",
                        owner="ann",
                        label=OWNER,
                        writer="tool",
                        key=str(number),
                    ),
                    1.0,
                    KEEP,
                )
            ]
        )
        (made,) = await facts_by_key(store, [str(number)])
        await store.change([add_vector(made.id, ready.name, rows[0].tobytes())])
        began = time.perf_counter()
        await near()
        penalty.append((time.perf_counter() - began) * 1e3)

    penalty: list[float] = []
    await near()
    found["10,000 x 1,536 by meaning, ms"] = await measured(near)
    await measured(after_insert)
    found["the same after an insert, ms"] = statistics.median(penalty)
    found["10,000 x 1,536, words and meaning and the facts, ms"] = await measured(search)
    await store.close()
    return found


async def million(folder: Path) -> dict[str, float]:
    """1,000,000 vectors of 384 numbers: bits in memory, the rows themselves in the database."""
    store = SqliteStore(folder / "million.db", load_statements())
    ready = Ready(384)
    pool = vectors(PAGE, 384, 3)
    for start in range(0, MILLION, PAGE):
        rng = np.random.default_rng(start)
        rows = np.roll(pool, start // PAGE * 7, axis=1)[rng.permutation(PAGE)]
        changes = []
        for n, row in enumerate(rows, start):
            changes += [
                add_fact(fact(n), 1.0, keeping=KEEP)[0],
                add_vector(n + 1, ready.name, row.tobytes()),
            ]
        await store.change(changes)
    await store.change([trim_changes(0)])
    meaning = Meanings(store, [ready])
    while await meaning.embed_missing():
        pass

    async def near() -> None:
        assert len((await meaning.find_nearest("x", ANN, False, 50))[0]) == 50

    await near()
    found = {"1,000,000 x 384 by meaning, ms": await measured(near)}
    await store.close()
    return found


LIMITS = {
    "10,000 inserts, s": 2.0,
    "10,000 x 1,536 by meaning, ms": 3.0,
    "the same after an insert, ms": 3.0,
    "1,000,000 x 384 by meaning, ms": 40.0,
}


async def rows(case: str) -> list[tuple[str, float, str, None, float | None]]:
    """(name, figure, unit, nothing beside it, limit)."""
    with tempfile.TemporaryDirectory(prefix="deskhand-bench-") as place:
        found = await (many if case == "memory" else million)(Path(place))
    told = [(*name.rpartition(", "), value, LIMITS.get(name)) for name, value in found.items()]
    return [(name, value, unit, None, limit) for name, _, unit, value, limit in told]
