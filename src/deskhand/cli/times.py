"""Times as people type them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

_AGO = re.compile(r"(\d{1,6})\s*([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2})?")


def moment(text: str, now: float, zone: ZoneInfo) -> float | None:
    """The moment in the past that is meant: so long ago (`90m`, `2h`, `3d`), a time of today, which was yesterday where
    it is still to come, or a date with or without a time; None for anything else, and for what is to come."""
    text, today = text.strip(), datetime.fromtimestamp(now, zone)
    if ago := _AGO.fullmatch(text):
        return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])}).total_seconds()
    try:
        if _CLOCK.fullmatch(text):
            hour, minute, *second = map(int, text.split(":"))
            at = today.replace(hour=hour, minute=minute, second=sum(second), microsecond=0)
            at -= timedelta(days=at > today)
        else:
            at = datetime.fromisoformat(text)
            at = at if at.tzinfo else at.replace(tzinfo=zone)
        found = at.timestamp()
    except (ValueError, OverflowError):
        return None
    return found if found <= now else None
