"""Times as people type and read them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from ..types.marked_texts import mark_text

_AGO = re.compile(r"(\d{1,6})\s*([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2})?")


def parse_past_time(text: str, now: float, zone: ZoneInfo) -> float | None:
    """The moment in the past that is meant: so long ago (`90m`, `2h`, `3d`), a time of today, which
    was yesterday where it is still to come, or a date with or without a time; None for anything
    else, for what is to come, and for what was before 1970: nothing here is so old."""
    text = text.strip()
    today = datetime.fromtimestamp(now, zone)
    if ago := _AGO.fullmatch(text):
        found = now - timedelta(**{_UNITS[ago[2]]: int(ago[1])}).total_seconds()
        return found if found >= 0 else None
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
    return found if 0 <= found <= now else None


_AGES = (
    (mark_text("{count_number} d ago"), 86400),
    (mark_text("{count_number} h ago"), 3600),
    (mark_text("{count_number} min ago"), 60),
)


def format_age(seconds: float) -> str:
    """So long ago, in its largest unit."""
    for told, size in _AGES:
        if seconds >= size:
            return told.format(count_number=int(seconds // size))
    return mark_text("just now")
