"""When something was said, in the words that the model reads."""

from __future__ import annotations

from datetime import datetime, tzinfo

QUARTER_S = 900


def format_timestamp(at: float, zone: tzinfo, known: dict[int, tuple[str, int]]) -> str:
    """`[Saturday, 2026-11-21 22:40] ` for seconds since the epoch. `known` remembers the last
    quarter of an hour: every zone's offset is a whole number of them, so within one only the minute
    moves."""
    quarter = int(at // QUARTER_S)
    if quarter not in known:
        known.clear()
        start = datetime.fromtimestamp(quarter * QUARTER_S, zone)
        known[quarter] = (start.strftime("[%A, %Y-%m-%d %H:"), start.minute)
    hour, minute = known[quarter]
    return f"{hour}{minute + int(at % QUARTER_S) // 60:02d}] "
