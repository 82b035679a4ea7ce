"""What is done while something else is waited for."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from deskhand.types.interrupt import run_if_slow


async def test_a_quick_block_begins_nothing() -> None:
    begun = []

    async def work() -> None:
        begun.append(True)

    async with run_if_slow(0.05, work):
        pass
    await anyio.sleep(0.1)
    assert not begun


async def test_a_slow_block_has_company_and_both_end() -> None:
    order = []

    async def work() -> None:
        order.append("begun")
        await anyio.sleep(0.05)
        order.append("ended")

    async with run_if_slow(0.0, work):
        while not order:
            await anyio.sleep(0.001)
        order.append("block")
    assert order == ["begun", "block", "ended"]


async def test_the_error_of_either_comes_as_it_is() -> None:
    async def fails() -> None:
        raise KeyError("work")

    with pytest.raises(KeyError, match="work"):
        async with run_if_slow(0.0, fails):
            await anyio.sleep(0.05)
    with pytest.raises(ValueError, match="block"):
        async with run_if_slow(5.0, fails):
            raise ValueError("block")


async def test_who_is_cancelled_waits_for_what_was_begun() -> None:
    order = []

    async def work() -> None:
        order.append("begun")
        await anyio.sleep(0.05)
        order.append("ended")

    with anyio.move_on_after(0.02):
        async with run_if_slow(0.0, work):
            await anyio.sleep(60)
    assert order == ["begun", "ended"]


def test_a_program_that_only_knows_asyncio_may_use_it() -> None:
    begun = []

    async def work() -> None:
        with anyio.CancelScope(shield=True):
            begun.append(True)

    async def program() -> None:
        async with run_if_slow(0.0, work):
            await asyncio.sleep(0.02)

    asyncio.run(program())
    assert begun
