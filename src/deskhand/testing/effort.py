"""What work costs, measured so that a busy machine does not decide."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

_TICK_S = 0.005


def least_cpu_s(work: Callable[[], object], enough_s: float = 0.25, tries: int = 4) -> float:
    """The processor's seconds that `work` takes in this thread: the least of some tries, the first
    that is enough.

    Neighbours, caches and the collector of garbage only ever add to it. What `work` raises is
    passed on.
    """
    least = float("inf")
    for _ in range(tries):
        gc.collect()
        gc.disable()
        try:
            began = time.thread_time()
            work()
            least = min(least, time.thread_time() - began)
        finally:
            gc.enable()
        if least <= enough_s:
            break
    return least


def resident_bytes() -> int:
    """The memory that this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


class LoopWatch:
    """Looks at the event loop every 5 ms: how long it was kept busy in one go, and how much memory
    there was.

    What is counted is the processor's time of the loop's thread, so that waiting for a busy machine
    is not.
    """

    def __init__(self) -> None:
        self.busy_s: list[float] = []
        self._before = self._peak = resident_bytes()

    def start(self, tasks: TaskGroup) -> None:
        tasks.start_soon(self._watch)

    async def _watch(self) -> None:
        while True:
            began = time.thread_time()
            await anyio.sleep(_TICK_S)
            self.busy_s.append(time.thread_time() - began)
            self._peak = max(self._peak, resident_bytes())

    @property
    def grown_bytes(self) -> int:
        """How much more memory there was at most than before."""
        return self._peak - self._before

    @property
    def worst_percent_s(self) -> float:
        """One look in a hundred found the loop busy for longer."""
        return sorted(self.busy_s)[int(len(self.busy_s) * 0.99)]
