"""When something is due. One type for the three languages in which people write it; one pure
question, what comes next.

Cron counts in wall time. A time that the clocks skip in spring comes once, at the first moment that
exists; one that they show twice in autumn comes once, the first time. A schedule whose hours are a
wildcard counts moments instead, whatever the clocks show: `*/30 * * * *` is every half hour on each
day of the year. So do intervals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice, takewhile
from math import floor
from zoneinfo import ZoneInfo

import msgspec
from cronsim import CronSim, CronSimError

from .errors import JobInvalid
from .marked_texts import mark_text

EXAMPLES = (
    "`0 9 * * *`, `every 30m`, `daily 09:00`, `hourly :15`, `at 2030-12-24 18:00` or `startup`"
)
ZONE_CHARS = 64
MIN_INTERVAL_MS = 1000
MAX_INTERVAL_MS = 100 * 366 * 86_400_000
LATEST_TIME = 4_102_444_800.0
"""The year 2100: nothing is planned behind it."""
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_SPELLINGS = {
    "ms": "ms millisecond milliseconds",
    "s": "s sec secs second seconds",
    "m": "m min mins minute minutes",
    "h": "h hr hrs hour hours",
    "d": "d day days",
    "w": "w week weeks",
}
_SPELLED = {word: unit for unit, words in _SPELLINGS.items() for word in words.split()}
_EVERY = re.compile(
    r"(?:every\s+)?([0-9]{1,12}(?:\.[0-9]{1,3})?)\s*([a-z]+)(?:\s+from\s+(.+))?", re.IGNORECASE
)
_DAILY = re.compile(r"daily\s+(?:at\s+)?(\d{1,2}):(\d{2})", re.IGNORECASE)
_HOURLY = re.compile(r"hourly(?:\s+(?:at\s+)?:?(\d{1,2}))?", re.IGNORECASE)
_NAMED = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


class Cron(msgspec.Struct, frozen=True, tag="cron"):
    """Five fields, as Debian's cron reads them, in the wall time of an IANA zone."""

    expr: str
    zone: str = "UTC"


class Every(msgspec.Struct, frozen=True, tag="every", omit_defaults=True):
    """Every so many milliseconds, counted from `start` (seconds since the epoch): the same moments
    after a restart."""

    every_ms: int
    start: float = 0.0


class At(msgspec.Struct, frozen=True, tag="at"):
    """Once, at this moment (seconds since the epoch)."""

    at: float


class Startup(msgspec.Struct, frozen=True, tag="startup"):
    """At each start of Deskhand."""


Schedule = Cron | Every | At | Startup


def parse_schedule(text: str, zone: str = "UTC") -> Schedule:
    """What was meant, with wall times in this zone. Raises JobInvalid with a sentence and what
    would be right."""
    said = " ".join(text.split())
    place = load_zone(zone)
    if not said:
        raise JobInvalid(
            mark_text("the schedule is empty; write one such as {examples}").format(
                examples=EXAMPLES
            )
        )
    if said.lower() in ("startup", "@reboot"):
        return Startup()
    if found := _EVERY.fullmatch(said):
        return _parse_every(said, found, place)
    if found := _DAILY.fullmatch(said):
        return _parse_cron(f"{int(found[2])} {int(found[1])} * * *", zone, said)
    if found := _HOURLY.fullmatch(said):
        return _parse_cron(f"{int(found[1] or 0)} * * * *", zone, said)
    if said.lower().startswith("at "):
        return At(_parse_moment(said[3:], place))
    return _parse_cron(_NAMED.get(said.lower(), said), zone, said)


def load_zone(name: str) -> ZoneInfo:
    """The zone of this name. Raises JobInvalid."""
    try:
        if len(name) > ZONE_CHARS:
            raise ValueError("no name of a zone is so long")
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise JobInvalid(
            mark_text("unknown timezone {name}; use a name such as 'Europe/Berlin'").format(
                name=repr(name[:ZONE_CHARS])
            )
        ) from error


def _parse_every(said: str, found: re.Match[str], zone: ZoneInfo) -> Every:
    unit = _SPELLED.get(found[2].lower())
    if unit is None:
        raise JobInvalid(
            mark_text(
                "{said} has the unit {unit}; there are ms, s, m, h, d and w. For months "
                "and years write a cron line, as in `0 9 1 * *`"
            ).format(said=repr(said[:80]), unit=repr(found[2][:20]))
        )
    every_ms = round(float(found[1]) * _UNITS[unit])
    if every_ms > MAX_INTERVAL_MS:
        raise JobInvalid(
            mark_text("{said} never comes: it is more than a hundred years").format(
                said=repr(said[:80])
            )
        )
    if every_ms < MIN_INTERVAL_MS:
        raise JobInvalid(
            mark_text("{said} is too often: at most once a second").format(said=repr(said))
        )
    return Every(every_ms, _parse_moment(found[3], zone) if found[3] else 0.0)


def _parse_moment(text: str, zone: ZoneInfo) -> float:
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise JobInvalid(
            f"{text.strip()[:80]!r} is no date and time; write one as in `at 2030-12-24 18:00`"
        ) from error
    at = when.timestamp() if when.tzinfo is not None else resolve_wall_time(when, zone)
    if not 0 <= at < LATEST_TIME:
        raise JobInvalid(f"{text.strip()!r} is too far away; choose a time between 1970 and 2100")
    return at


def _parse_cron(expr: str, zone: str, said: str) -> Cron:
    fields = expr.split()
    if len(fields) != 5:
        like_cron = len(fields) > 1 and fields[0][:1] in "*0123456789"
        five = "; a cron line has five: minute, hour, day, month, weekday"
        what = f"has {len(fields)} fields{five}" if like_cron else "is no schedule"
        raise JobInvalid(f"{said[:80]!r} {what}. Write {EXAMPLES}")
    schedule = Cron(expr, zone)
    try:
        sim = CronSim(expr, datetime(2024, 1, 1))
    except (CronSimError, AssertionError, ValueError) as error:
        wrong = str(error).replace("Bad ", "the ") or "one of them"
        never = f"; {_NEVER}" if wrong == "the day-of-month" else ""
        raise JobInvalid(
            f"{said[:80]!r} cannot be read: look at {wrong}{never}. Write {EXAMPLES}"
        ) from error
    if next(sim, None) is None:
        raise JobInvalid(f"{said!r} never comes: {_NEVER}")
    return schedule


_NEVER = "no month that it names has such a day"


def next_due_after(schedule: Schedule, t: float) -> float | None:
    """The first time after `t` (seconds since the epoch) when it is due; None for never again.
    Strictly later."""
    match schedule:
        case At(at=at):
            return at if at > t else None
        case Startup():
            return None
        case Every(every_ms=every_ms, start=start):
            return _next_every(every_ms, start, t)
        case Cron(expr=expr, zone=zone):
            found = (
                _next_by_moment(expr, ZoneInfo(zone), t)
                if has_wildcard_hours(expr)
                else _next_by_wall_time(expr, ZoneInfo(zone), t)
            )
            return found if found is not None and found < LATEST_TIME else None


def has_wildcard_hours(expr: str) -> bool:
    """Whether its hours are a wildcard, so that it follows UTC on days when the clocks change."""
    return expr.split()[1].startswith("*")


def due_within(schedule: Schedule, after: float, until: float) -> Iterator[float]:
    """All times when it is due, after the one and up to the other."""

    def times() -> Iterator[float]:
        t: float | None = after
        while t is not None and (t := next_due_after(schedule, t)) is not None:
            yield t

    return takewhile(lambda t: t <= until, times())


def count_due(schedule: Schedule, after: float, until: float, most: int) -> int:
    """How often it was due after the one and up to the other; it is counted to `most` and no
    further."""
    if isinstance(schedule, Every):
        first = next_due_after(schedule, after)
        if first is None or first > until:
            return 0
        return min(most, round((until - first) * 1000) // schedule.every_ms + 1)
    return sum(1 for _ in islice(due_within(schedule, after, until), most))


def last_due_times(schedule: Schedule, after: float, until: float, most: int) -> list[float]:
    """The last times, `most` of them at most, when it was due after the one and up to the other;
    the oldest first. What it costs does not grow with how long ago `after` is."""
    span_s = 60.0
    while True:
        since = max(after, until - span_s)
        found = list(due_within(schedule, since, until))
        if since <= after or len(found) >= most:
            return found[-most:]
        span_s *= 8 if found else 64


def _next_every(every_ms: int, start: float, t: float) -> float | None:
    first_ms = round(start * 1000)
    due_ms = first_ms + max(0, (floor(t * 1000) - first_ms) // every_ms + 1) * every_ms
    while due_ms / 1000 <= t:  # what a float cannot hold
        due_ms += every_ms
    return due_ms / 1000 if due_ms < LATEST_TIME * 1000 else None


def _next_by_wall_time(expr: str, zone: ZoneInfo, t: float) -> float | None:
    """Each wall time once, at the first moment when the clock shows it or is past it."""
    for wall in CronSim(expr, _to_wall_time(t, zone)):
        if (at := resolve_wall_time(wall, zone)) > t:
            return at
    return None


def resolve_wall_time(wall: datetime, zone: tzinfo) -> float:
    """When this wall time is first shown, or the first moment behind the gap in which it would have
    been."""
    early, late = (wall.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1))
    # PEP 495: in a gap the first is reckoned with the offset before it, and so lies behind the
    # change.
    return early if early <= late else _find_offset_change(zone, late, early)


def _next_by_moment(expr: str, zone: ZoneInfo, t: float) -> float | None:
    """Each moment whose wall time fits: from one change of the offset to the next."""
    at = floor(t / 60) * 60.0 + 60
    while at < LATEST_TIME:
        wall = next(CronSim(expr, _to_wall_time(at, zone) - timedelta(minutes=1)), None)
        if wall is None:
            return None
        ahead_s = (wall - _to_wall_time(at, zone)).total_seconds()
        if (
            ahead_s > 2 * 86_400
        ):  # far enough that no change on the way matters but for what it does to the offset
            at += floor(ahead_s / 60 - 24 * 60) * 60.0
            continue
        found = at + ahead_s
        if _offset_s(zone, found) == _offset_s(zone, at):
            return found
        at = -(-_find_offset_change(zone, at, found) // 60) * 60.0
    return None


def _find_offset_change(zone: tzinfo, before: float, behind: float) -> float:
    """The second in which the offset changes between these two."""
    old = _offset_s(zone, before)
    low = floor(before)
    high = floor(behind) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset_s(zone, middle) == old else (low, middle)
    return float(high)


def _offset_s(zone: tzinfo, t: float) -> float:
    offset = datetime.fromtimestamp(t, zone).utcoffset()
    return offset.total_seconds() if offset is not None else 0.0


def _to_wall_time(t: float, zone: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(floor(t), zone).replace(tzinfo=None, second=0)


def describe_schedule(schedule: Schedule) -> str:
    """In words, for people."""
    match schedule:
        case Cron(expr=expr, zone=zone):
            words = CronSim(expr, datetime(2024, 1, 1)).explain()
            return f"{words[:1].lower()}{words[1:]} ({zone})"
        case Every(every_ms=every_ms):
            name, size = next((n, s) for n, s in reversed(_UNITS.items()) if not every_ms % s)
            one, more = INTERVAL_TEXTS[name]
            return one if every_ms == size else more.format(count_number=every_ms // size)
        case At(at=at):
            return mark_text("once, at {at_time} UTC").format(
                at_time=f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}"
            )
        case Startup():
            return mark_text("at each start")


INTERVAL_TEXTS = {
    "ms": ("every millisecond", "every {count_number} milliseconds"),
    "s": ("every second", "every {count_number} seconds"),
    "m": ("every minute", "every {count_number} minutes"),
    "h": ("every hour", "every {count_number} hours"),
    "d": ("every day", "every {count_number} days"),
    "w": ("every week", "every {count_number} weeks"),
}
"""For one and for several of each unit."""
