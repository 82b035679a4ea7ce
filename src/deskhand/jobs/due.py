"""What is due now, and what becomes of times that passed while nobody looked. Pure."""

from __future__ import annotations

import msgspec

from ..types.jobs import MAX_CATCH_UP_RUNS, Misfire
from ..types.schedules import Schedule, count_due, last_due_times, next_due_after

ON_TIME_S = 60.0
"""What comes so late counts as on time: a restart takes a moment."""
MAX_CLOCK_SKEW_S = 25 * 3600.0
"""Where the clock was further ahead than this, it was wrong then; where it went back by less,
nothing comes again."""
MAX_COUNTED = 1_000
"""So far is counted what was not run."""
FIRST_LOOKBACK_S = 3600.0
"""What a job may have missed before it was first seen here: its file may be older than that."""


class Due(msgspec.Struct, frozen=True):
    """`fire` are the times to be run now, the oldest first, `missed` is the latest that is not, and
    `lost` how many were not (COUNTED: that many or more). All up to `seen_at` is decided. `next_at`
    is when to ask again."""

    fire: tuple[float, ...] = ()
    missed: float | None = None
    lost: int = 0
    seen_at: float = 0.0
    next_at: float | None = None


def find_due(
    schedule: Schedule, seen_at: float, now: float, misfire: Misfire, grace_s: float
) -> Due:
    """What is to be done about all times after `seen_at`."""
    if now < seen_at:
        # The clock went back. All that it shows again is decided, unless it was far ahead by
        # mistake.
        seen_at = seen_at if seen_at - now <= MAX_CLOCK_SKEW_S else now
        return Due((), None, 0, seen_at, next_due_after(schedule, max(seen_at, now)))
    came = last_due_times(schedule, seen_at, now, MAX_CATCH_UP_RUNS + 1)
    following = next_due_after(schedule, now)
    if not came:
        return Due((), None, 0, seen_at, following)
    fire = _apply_misfire(came, now, misfire, grace_s)
    left = [at for at in came if at not in fire]
    if not left:
        return Due(tuple(fire), None, 0, came[-1], following)
    lost = min(
        MAX_COUNTED, count_due(schedule, seen_at, came[-1], MAX_COUNTED + len(fire)) - len(fire)
    )
    return Due(tuple(fire), left[-1], lost, came[-1], following)


def _apply_misfire(came: list[float], now: float, misfire: Misfire, grace_s: float) -> list[float]:
    """The last one, where it is on time; else what the policy says of times that were missed."""
    last = came[-1]
    match misfire:
        case "run_all":
            return came[-MAX_CATCH_UP_RUNS:]
        case "run_once":
            return [last] if now - last <= max(grace_s, ON_TIME_S) else []
        case "skip":
            return [last] if now - last <= ON_TIME_S else []


def initial_seen_at(written_at: float, now: float) -> float:
    """From when on a job counts that was not known before, or whose plan was changed: from when its
    file was written, as far as that can be believed."""
    return min(max(written_at, now - FIRST_LOOKBACK_S), now)
