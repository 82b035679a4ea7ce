"""Time that stands still until it is told to move, and ids that count."""

from __future__ import annotations

from collections import Counter

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


class CountingIds:
    """`ask_1`, `ask_2`, … for each kind."""

    def __init__(self) -> None:
        self._made: Counter[str] = Counter()

    def new(self, kind: str) -> str:
        self._made[kind] += 1
        return f"{kind}_{self._made[kind]}"


_clock: type[Clock] = SetClock
_ids: type[Ids] = CountingIds
