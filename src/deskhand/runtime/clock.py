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


class RandomIds:
    """Names that cannot be guessed."""

    def new(self, kind: str) -> str:
        return f"{kind}_{uuid.uuid4().hex[:16]}"


_clock: type[Clock] = SystemClock
_ids: type[Ids] = RandomIds
