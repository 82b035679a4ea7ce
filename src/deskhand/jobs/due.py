"""Which times of a schedule are due now, and which were missed. Pure functions."""

from __future__ import annotations

import msgspec

from ..types.jobs import MAX_CATCH_UP_RUNS, Misfire
from ..types.schedules import Schedule, count_due, last_due_times, next_due_after

ON_TIME_S = 60.0
"""A run that begins this late counts as on time: a restart takes a moment."""
MAX_CLOCK_SKEW_S = 25 * 3600.0
"""When the clock was set back by less, no time is due twice. When by more, the clock was wrong
before."""
MAX_COUNTED = 1_000
"""Missed times are counted up to this number."""
FIRST_LOOKBACK_S = 3600.0
"""How far back a new job may have missed times: its file may be older."""


class Due(msgspec.Struct, frozen=True):
    """What to do about the times of a job.

    `fire` are the times to run now, the oldest first. `missed` is the latest time that is not run,
    and `lost` counts them (MAX_COUNTED: that many or more). All times up to `seen_at` are decided;
    `next_at` is the next one. Times are seconds since the epoch.
    """

    fire: tuple[float, ...] = ()
    missed: float | None = None
    lost: int = 0
    seen_at: float = 0.0
    next_at: float | None = None


def find_due(
    schedule: Schedule, seen_at: float, now: float, misfire: Misfire, grace_s: float
) -> Due:
    """Decide all times after `seen_at`."""
    if now < seen_at:
        # The clock was set back. Times that come again are decided, unless it was wrong before.
        if seen_at - now > MAX_CLOCK_SKEW_S:
            seen_at = now
        return Due(seen_at=seen_at, next_at=next_due_after(schedule, max(seen_at, now)))

    came = last_due_times(schedule, seen_at, now, MAX_CATCH_UP_RUNS + 1)
    following = next_due_after(schedule, now)
    if not came:
        return Due(seen_at=seen_at, next_at=following)

    fire = _apply_misfire(came, now, misfire, grace_s)
    missed = [at for at in came if at not in fire]
    if not missed:
        return Due(tuple(fire), seen_at=came[-1], next_at=following)
    counted = count_due(schedule, seen_at, came[-1], MAX_COUNTED + len(fire))
    lost = min(MAX_COUNTED, counted - len(fire))
    return Due(tuple(fire), missed[-1], lost, seen_at=came[-1], next_at=following)


def _apply_misfire(came: list[float], now: float, misfire: Misfire, grace_s: float) -> list[float]:
    """Which of the times that have come are run."""
    last = came[-1]
    match misfire:
        case "run_all":
            return came[-MAX_CATCH_UP_RUNS:]
        case "run_once":
            return [last] if now - last <= max(grace_s, ON_TIME_S) else []
        case "skip":
            return [last] if now - last <= ON_TIME_S else []


def initial_seen_at(written_at: float, now: float) -> float:
    """From when on the times of a new or changed schedule are due: from when the file was written,
    at most FIRST_LOOKBACK_S ago and not in the future."""
    return min(max(written_at, now - FIRST_LOOKBACK_S), now)
