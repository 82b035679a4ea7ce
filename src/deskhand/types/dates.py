"""When something was said, in the words that the model reads."""

from __future__ import annotations

from datetime import datetime, tzinfo
from functools import lru_cache

QUARTER_S = 900
"""Every zone's offset is a whole number of quarters of an hour: within one, only the minute moves.
"""


def format_timestamp(at: float, zone: tzinfo) -> str:
    """`[Saturday, 2026-11-21 22:40] ` for seconds since the epoch."""
    hour, minute = _format_quarter(int(at // QUARTER_S), zone)
    return f"{hour}{minute + int(at % QUARTER_S) // 60:02d}] "


@lru_cache(maxsize=64)
def _format_quarter(quarter: int, zone: tzinfo) -> tuple[str, int]:
    """The beginning of its timestamps, and the minute with which it begins."""
    start = datetime.fromtimestamp(quarter * QUARTER_S, zone)
    return start.strftime("[%A, %Y-%m-%d %H:"), start.minute
