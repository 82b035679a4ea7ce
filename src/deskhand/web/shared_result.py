"""One result for many who ask for the same at the same time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

import anyio
import msgspec

T = TypeVar("T")


class _SharedWork(msgspec.Struct, Generic[T]):
    """What was asked under one key: how often it was begun, the last result, and which one it
    is."""

    lock: anyio.Lock
    begun: int = 0
    last: T | None = None
    last_number: int = 0
    asking: int = 0


class SharedResult(Generic[T]):
    """Runs the same work once for all who ask while it runs. Nobody gets a result that was begun
    before they asked."""

    def __init__(self) -> None:
        self._asked: dict[Hashable, _SharedWork[T]] = {}

    async def get(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """What `work` returns, or raises. Nothing is kept when nobody asks any more."""
        asked = self._asked.setdefault(key, _SharedWork(anyio.Lock()))
        before = asked.begun
        asked.asking += 1
        try:
            async with asked.lock:
                if asked.last is not None and asked.last_number > before:
                    return asked.last
                asked.begun += 1
                number = asked.begun
                found = await work()
                asked.last, asked.last_number = found, number
                return found
        finally:
            asked.asking -= 1
            if not asked.asking:
                self._asked.pop(key, None)
