"""The real clock and the real ids."""

from __future__ import annotations

import time
import uuid

from ..types.clock import Clock, Ids


class SystemClock:
    """The machine's own time."""

    def now(self) -> float:
        return time.time()  # noqa: TID251 -- this is where time comes in

    def monotonic(self) -> float:
        return time.monotonic()


class SteadyClock:
    """Seconds since the epoch as a clock told them once, and counted from there on: nobody sets
    it."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._offset = clock, clock.now() - clock.monotonic()

    def now(self) -> float:
        return self._offset + self._clock.monotonic()

    def monotonic(self) -> float:
        return self._clock.monotonic()


class RandomIds:
    """Names that cannot be guessed."""

    def new(self, kind: str) -> str:
        return f"{kind}_{uuid.uuid4().hex[:16]}"


_clock: type[Clock] = SystemClock
_steady: type[Clock] = SteadyClock
_ids: type[Ids] = RandomIds
