"""When people want to be told what nobody waits for: quiet hours, and times for all of it at
once. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, time, timedelta, tzinfo

import msgspec

MAX_DIGEST_TIMES = 12
_TIME = r"(\d{1,2})(?::(\d\d))?"
_HOURS = re.compile(rf"{_TIME}\s{{0,3}}(?:-|–|to)\s{{0,3}}{_TIME}")  # noqa: RUF001 -- as people write it
_ONE_TIME = re.compile(_TIME)


class NotificationTimes(msgspec.Struct, frozen=True):
    """What one person wants. `quiet` are the hours in which nothing is told, from the first time of
    the day to the second; None for none. `digest` are the times at which everything is told; () for
    at once."""

    quiet: tuple[time, time] | None = None
    digest: tuple[time, ...] = ()

    def is_quiet(self, at: datetime) -> bool:
        """Whether this is within the quiet hours."""
        if self.quiet is None:
            return False
        begin, end = self.quiet
        now = at.time()
        if begin <= end:
            return begin <= now < end
        return now >= begin or now < end

    def must_wait(self, since: float, now: float, zone: tzinfo) -> bool:
        """Whether what has come at `since` is not to be told yet; both in seconds since the epoch,
        and the times of the day those of `zone`."""
        moment = datetime.fromtimestamp(now, zone)
        if self.is_quiet(moment):
            return True
        if not self.digest:
            return False
        return now < find_next(datetime.fromtimestamp(since, zone), self.digest).timestamp()


def find_next(after: datetime, times: Sequence[time]) -> datetime:
    """The first of these times of a day that is later than this."""
    days = (after.date() + timedelta(days=n) for n in (0, 1))
    found = [datetime.combine(day, each, after.tzinfo) for day in days for each in times]
    return min(each for each in found if each.timestamp() > after.timestamp())


def parse_hours(text: str) -> tuple[time, time] | None:
    """The hours of `22:00-07:00` or `22 to 7`; None for what is none."""
    found = _HOURS.fullmatch(text.strip())
    if found is None:
        return None
    begin, end = _make_time(found[1], found[2]), _make_time(found[3], found[4])
    if begin is None or end is None or begin == end:
        return None
    return begin, end


def parse_times(text: str) -> tuple[time, ...]:
    """The times of `08:00 18:00`, in the order of the day; () for what is none."""
    words = re.split(r"[\s,]+", text.strip())[: MAX_DIGEST_TIMES + 1]
    found: list[time] = []
    for word in words:
        match = _ONE_TIME.fullmatch(word)
        each = _make_time(match[1], match[2]) if match is not None else None
        if each is None:
            return ()
        found.append(each)
    return tuple(sorted(set(found))) if len(words) <= MAX_DIGEST_TIMES else ()


def format_hours(hours: tuple[time, time]) -> str:
    """As `parse_hours` reads it."""
    return f"{hours[0]:%H:%M}-{hours[1]:%H:%M}"


def format_times(times: Sequence[time]) -> str:
    """As `parse_times` reads it."""
    return " ".join(f"{each:%H:%M}" for each in times)


def _make_time(hour: str, minute: str | None) -> time | None:
    if int(hour) > 23 or int(minute or 0) > 59:
        return None
    return time(int(hour), int(minute or 0))
