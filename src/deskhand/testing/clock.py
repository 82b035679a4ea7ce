"""Time that stands still until it is told to move, time that is set from another process, and ids
that count."""

from __future__ import annotations

import mmap
from collections import Counter
from pathlib import Path
from random import Random

from ..config.clock import SystemClock
from ..types.clock import Clock, Ids


class SetClock:
    """Shows `at` seconds since the epoch. Nothing moves it but `advance`."""

    def __init__(self, at: float = 1_700_000_000.0) -> None:
        self.at = at
        self.elapsed_s = 0.0

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.elapsed_s

    def advance(self, seconds: float) -> None:
        self.at += seconds
        self.elapsed_s += max(seconds, 0.0)


class Shift:
    """The seconds by which clocks are ahead of the machine's own, in a file that several processes
    map."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(8))
        with path.open("r+b") as file:
            self._seconds = memoryview(mmap.mmap(file.fileno(), 8)).cast("d")

    def get(self) -> float:
        return self._seconds[0]

    def set(self, seconds: float) -> None:
        self._seconds[0] = seconds


FARTHEST_S = 2 * 86_400.0


def somewhere(random: Random, shift_s: float) -> float:
    """Where somebody sets a clock to: a little or far from where it is, within two days of the
    truth."""
    by = random.choice([5.0, 600.0, 7200.0, FARTHEST_S / 2, 2 * FARTHEST_S])
    return min(max(shift_s + random.uniform(-by, by), -FARTHEST_S), FARTHEST_S)


class ShiftedClock(SystemClock):
    """The machine's own, of which another process sets the time of day."""

    def __init__(self, shift: Shift) -> None:
        self._shift = shift

    def now(self) -> float:
        return super().now() + self._shift.get()


class OneClock(ShiftedClock):
    """The mutant that must be caught: whoever sets the time of day sets all time."""

    def monotonic(self) -> float:
        return self.now()


class CountingIds:
    """`ask_1`, `ask_2`, … for each kind."""

    def __init__(self) -> None:
        self._made: Counter[str] = Counter()

    def new(self, kind: str) -> str:
        self._made[kind] += 1
        return f"{kind}_{self._made[kind]}"


_clock: type[Clock] = SetClock
_shifted: type[Clock] = ShiftedClock
_ids: type[Ids] = CountingIds
