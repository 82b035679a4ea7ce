"""How many answers are made into sound at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import msgspec

from ..speech.base import Sound
from .errors import HttpProblem

MAX_AT_ONCE = 2
MAX_ASKED = 2
"""One is made for a person, and one more may wait."""


class _Line(msgspec.Struct):
    """What one person has asked for."""

    lock: anyio.Lock
    asked: int = 0


class Speakers:
    """Runs one work at a time for each person, and MAX_AT_ONCE for all of them."""

    def __init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(MAX_AT_ONCE)
        self._lines: dict[str, _Line] = {}

    async def run(self, person: str, work: Callable[[], Awaitable[Sound]]) -> Sound:
        """What `work` returns, or raises. Raises HttpProblem 429 for a person who asks for more
        than MAX_ASKED."""
        line = self._lines.setdefault(person, _Line(anyio.Lock()))
        if line.asked >= MAX_ASKED:
            raise HttpProblem(
                429,
                "busy",
                "Other answers are being prepared for you. Wait until one of them is spoken.",
                {"retry-after": "2"},
            )
        line.asked += 1
        try:
            async with line.lock, self._limiter:
                return await work()
        finally:
            line.asked -= 1
            if not line.asked:
                self._lines.pop(person, None)
