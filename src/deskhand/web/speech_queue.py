"""How many answers are made into sound at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import msgspec

from ..speech.base import Sound
from ..types.marked_texts import mark_text
from .errors import HttpProblem

MAX_AT_ONCE = 2
MAX_ASKED = 2
"""One is made for a person, and one more may wait."""


class _PersonQueue(msgspec.Struct):
    """What one person has asked for."""

    lock: anyio.Lock
    asked: int = 0


class SpeechQueue:
    """Runs one work at a time for each person, and MAX_AT_ONCE for all of them."""

    def __init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(MAX_AT_ONCE)
        self._queues: dict[str, _PersonQueue] = {}

    async def run(self, person: str, work: Callable[[], Awaitable[Sound]]) -> Sound:
        """What `work` returns, or raises. Raises HttpProblem 429 for a person who asks for more
        than MAX_ASKED."""
        queue = self._queues.setdefault(person, _PersonQueue(anyio.Lock()))
        if queue.asked >= MAX_ASKED:
            raise HttpProblem(
                429,
                "busy",
                mark_text(
                    "Other answers are being prepared for you. Wait until one of them is spoken."
                ),
                {"retry-after": "2"},
            )
        queue.asked += 1
        try:
            async with queue.lock, self._limiter:
                return await work()
        finally:
            queue.asked -= 1
            if not queue.asked:
                self._queues.pop(person, None)
