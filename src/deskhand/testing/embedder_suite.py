"""What every Embedder keeps, as checks that need no test framework.

@pytest.mark.parametrize("check", embedder_suite.CHECKS)
async def test_conformance(check): await check(mine)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
import numpy as np

from ..models.embeddings import Embedder, TextKind

Check = Callable[[Embedder], Awaitable[None]]
KINDS: tuple[TextKind, ...] = ("query", "passage")
TEXTS = (
    "My cat eats fish every day",
    "Rent is due on the first of the month",
    "The printer needs paper",
)


async def rows_of_length_one(embedder: Embedder) -> None:
    for kind in KINDS:
        rows = await embedder.embed(TEXTS, kind)
        assert rows.dtype == np.float32 and rows.shape[0] == len(TEXTS) and rows.shape[1] >= 8
        assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-3)


async def none_of_none(embedder: Embedder) -> None:
    assert (await embedder.embed((), "passage")).shape[0] == 0


async def the_same_for_the_same(embedder: Embedder) -> None:
    together = await embedder.embed(TEXTS, "passage")
    again = await embedder.embed(TEXTS[::-1], "passage")
    alone = await embedder.embed(TEXTS[1:2], "passage")
    assert np.allclose(together, again[::-1], atol=1e-3), "the order is that of the texts"
    assert np.allclose(together[1], alone[0], atol=1e-3), "a text does not depend on its neighbours"


async def what_is_related_is_nearer(embedder: Embedder) -> None:
    asked = (await embedder.embed(["what does my cat eat?"], "query"))[0]
    near = (await embedder.embed(TEXTS, "passage")) @ asked
    assert near[0] == near.max() and near[0] > near[1] + 0.02
    assert 0 <= embedder.floor < 1 and min(near) < embedder.floor + 0.15 < near[0] + 0.15
    assert embedder.name


async def any_text_is_taken(embedder: Embedder) -> None:
    odd = (
        "",
        " \n",
        "\0",
        "\ud800 half",
        "🎉" * 50,
        "word " * 4_000,
        "x" * 5_000,
        "日本語",
        "a\0b",
    )
    rows = await embedder.embed(odd, "passage")
    assert rows.shape[0] == len(odd) and bool(np.isfinite(rows).all())
    lengths = np.linalg.norm(rows, axis=1)
    assert bool(((np.abs(lengths - 1) < 1e-3) | (lengths == 0)).all())


async def others_go_on_meanwhile(embedder: Embedder) -> None:
    order = list[str]()

    async def ask() -> None:
        await embedder.embed(TEXTS, "passage")
        order.append("embedded")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.lowlevel.checkpoint()
        order.append("went on")
    assert order == ["went on", "embedded"]


async def asked_by_many_at_once(embedder: Embedder) -> None:
    alone = await embedder.embed(TEXTS, "passage")
    found = list[tuple[int, float]]()

    async def ask(number: int) -> None:
        row = await embedder.embed([TEXTS[number % 3]], "passage")
        found.append((number, float(row[0] @ alone[number % 3])))

    async with anyio.create_task_group() as tasks:
        for number in range(9):
            tasks.start_soon(ask, number)
    assert len(found) == 9 and all(near > 0.99 for _, near in found)


CHECKS: tuple[Check, ...] = (
    rows_of_length_one,
    none_of_none,
    the_same_for_the_same,
    what_is_related_is_nearer,
    any_text_is_taken,
    others_go_on_meanwhile,
    asked_by_many_at_once,
)
