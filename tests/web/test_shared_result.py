"""One result for many who ask at once."""

from __future__ import annotations

import anyio
import pytest
from anyio.lowlevel import checkpoint

from deskhand.web.shared_result import SharedResult


async def test_many_who_ask_at_once_get_what_was_begun_after_they_asked() -> None:
    shared: SharedResult[int] = SharedResult()
    begun = 0
    got: list[tuple[int, int]] = []

    async def work() -> int:
        nonlocal begun
        begun += 1
        number = begun
        for _ in range(5):
            await checkpoint()
        return number

    async def ask() -> None:
        before = begun
        got.append((before, await shared.get("key", work)))

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(ask)
            await checkpoint()
    assert len(got) == 20 and all(number > before for before, number in got)
    assert begun < 10
    assert await shared.get("key", work) == begun, "nothing is kept"


async def test_the_others_go_on_when_one_fails_or_is_cancelled() -> None:
    shared: SharedResult[str] = SharedResult()
    tries = 0

    async def work() -> str:
        nonlocal tries
        tries += 1
        await anyio.sleep(0.01)
        if tries == 1:
            raise ValueError("the first")
        return "found"

    got: list[str] = []

    async def ask() -> None:
        got.append(await shared.get("key", work))

    async def fail() -> None:
        with pytest.raises(ValueError, match="the first"):
            await shared.get("key", work)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fail)
        await anyio.sleep(0.001)
        with anyio.move_on_after(0.005):
            tasks.start_soon(ask)
            await shared.get("key", work)
        tasks.start_soon(ask)
    assert got == ["found", "found"]


async def test_other_keys_are_other_work() -> None:
    shared: SharedResult[str] = SharedResult()

    async def say(word: str) -> str:
        return word

    assert await shared.get("a", lambda: say("a")) == "a"
    assert await shared.get("b", lambda: say("b")) == "b"
