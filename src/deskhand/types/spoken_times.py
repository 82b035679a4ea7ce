"""How people say one moment, in English: `tomorrow at 9`, `Friday evening`, `in 20 minutes`, `on 3
May at 10`.

People leave much out. These are the rules for it; an answer repeats the date, so that people see
what was understood.

- A day without a time is 9:00. Morning is 9:00, noon and lunch 12:00, afternoon 15:00, end of the
  day 18:00, evening 19:00, night 21:00. Midnight ends the day that it is said with: `Friday at
  midnight` is Saturday 0:00.
- A time without a day is the next that comes. Without am or pm both halves of the day count today:
  `at 9` is 21:00 when it is said at 14:00. `05:30`, with a zero, is in the morning.
- With a day and without am or pm, 1 to 6 o'clock are in the afternoon, 7 to 11 before noon:
  `tomorrow at 5` is 17:00. A time with minutes is read as it is written: `tomorrow at 5:30` is
  5:30.
- `Friday` is the next one, and today if its time is still to come. `next Friday` is that too,
  unless it is less than three days away: then it is the one a week later. `Friday next week` and
  `in two weeks on Friday` count Mondays.
- `in 3 hours` counts real time; `in 3 days` keeps the time of the clock, as does `in a month`.
- A date without a year is the next such date. A moment that has passed is refused.
- A time that the clocks skip is the first that exists; of one that they show twice, the first that
  is still to come.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date, datetime, time, timedelta

from .schedules import LATEST_TIME, resolve_wall_time
from .spoken_words import (
    AMOUNTS_PATTERN,
    DAY_PARTS,
    MONTHS,
    WEEKDAY_PATTERN,
    WEEKDAYS,
    SpokenTime,
    Words,
    normalize_words,
    take_clock,
    take_dates,
    take_day_part,
    weekday_index,
)

EXAMPLES = "`tomorrow at 9:00`, `Friday 8 pm`, `in 20 minutes` or `24 December at 18:00`"


def is_recurring(text: str) -> bool:
    """Whether this is said of a time that comes again and again, as in `every Monday` or `Mondays
    at 8`."""
    return "every" in normalize_words(text).split()


def parse_spoken_moment(text: str, now: datetime) -> datetime:
    """The moment that is meant, in the zone of `now`, and after it. Raises TimeUnclear with what
    would be right."""
    words = Words(text, EXAMPLES)
    if is_recurring(text):
        raise words.make_error("comes again and again, and this is about one moment")
    try:
        moment = (
            _parse_iso_moment(text, now) or _parse_delay(words, now) or find_next_moment(words, now)
        )
    except (OverflowError, ValueError) as error:
        raise words.make_error("is too far away") from error
    if moment.timestamp() <= now.timestamp():
        raise words.make_error(f"has passed: it is {format_date_time(now)} now")
    if moment.timestamp() >= LATEST_TIME:
        raise words.make_error("is too far away")
    return moment


def format_spoken_moment(moment: datetime, now: datetime) -> str:
    """The moment as people say it, to the minute, with its date, in the zone of `now`. `moment_in`
    reads it again."""
    local = moment.astimezone(now.tzinfo)
    near = {0: "today, ", 1: "tomorrow, "}.get((local.date() - now.date()).days, "")
    return near + format_date_time(local, with_year=local.year != now.year)


def _parse_iso_moment(text: str, now: datetime) -> datetime | None:
    """What programs write: a date and time with an offset."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return moment.astimezone(now.tzinfo) if moment.tzinfo else None


def _parse_delay(words: Words, now: datetime) -> datetime | None:
    found = words.take(
        rf"(?:in|after) {AMOUNTS_PATTERN}|{AMOUNTS_PATTERN} from (?:now|today)|^{AMOUNTS_PATTERN}$"
    )
    if not found:
        return None
    amounts = dict.fromkeys(("mo", "w", "d", "h", "m", "s"), 0.0)
    for number, unit in re.findall(r"([\d.]+) ?([a-z]+)", found[0]):
        amounts["mo" if unit.startswith("mo") else unit[0]] += float(number)
    if amounts["mo"] % 1:
        raise words.make_error("counts parts of a month: say how many days")
    seconds = amounts["h"] * 3600 + amounts["m"] * 60 + amounts["s"]

    wall = _add_months(now.replace(tzinfo=None), amounts["mo"]) + timedelta(
        days=amounts["d"], weeks=amounts["w"]
    )
    weekday = words.take(WEEKDAY_PATTERN) if amounts["w"] else None
    part = take_day_part(words)
    clock = take_clock(words)
    words.finish()
    if weekday:
        wall += timedelta(days=weekday_index(weekday[1]) - wall.weekday())
    if weekday or part or clock:
        if seconds:
            raise words.make_error("names two times of the day")
        wall = _make_wall_time(wall.date(), interpret_time(clock, part)[0])
    start = now if wall == now.replace(tzinfo=None) else _localize(wall, now)[0]
    return datetime.fromtimestamp(start.timestamp() + seconds, now.tzinfo)


def find_next_moment(words: Words, now: datetime, *, cycle_days: int = 0) -> datetime:
    """The first of the moments that can be meant which is still to come; else one that has passed.

    What comes again after so many days may leave out the day, and is not for the rest of today
    alone.
    """
    today = now.date()
    days, both = _take_days(words, today)
    part = take_day_part(words)
    clock = take_clock(words)
    words.finish()
    if not (days or part or clock or cycle_days):
        raise words.make_error("says no time")

    moments = [
        moment
        for day in days or [today, today + timedelta(days=cycle_days or 1)]
        for minutes in interpret_time(clock, part, both=both and day == today and not cycle_days)
        for moment in _localize(_make_wall_time(day, minutes), now)
    ]
    return next((moment for moment in moments if moment.timestamp() > now.timestamp()), moments[-1])


def _take_days(words: Words, today: date) -> tuple[list[date], bool]:
    """The days that can be meant, the nearest first, and whether today is meant as today, and no
    other day is named."""
    days = take_dates(words, today)
    near = words.take(r"(?:the )?day after tomorrow|tomorrow|today")
    week = words.take(r"(?:the )?(?:next week|week after next)")
    weekday = words.take(rf"(?:this )?(?:(next|this|coming) )?(?:{WEEKDAY_PATTERN}|weekend)")
    both = not (days or week or weekday) and (near is None or near[0] == "today")
    if weekday:
        days = days[
            :2
        ]  # a weekday that does not fit is a slip: nobody means that date in six years

    if near:
        day = today + timedelta(days=2 if "after" in near[0] else near[0] == "tomorrow")
        days = [day] if not days or day in days else []
    elif week and not days:
        monday = today + timedelta(days=(14 if "after" in week[0] else 7) - today.weekday())
        days = [monday + timedelta(days=n) for n in range(7 if weekday else 1)]
    elif weekday and not days:
        soonest = 3 if weekday[1] == "next" else 0
        days = [today + timedelta(days=n) for n in range(soonest, soonest + 14)]
    if weekday:
        days = [day for day in days if day.weekday() == weekday_index(weekday[2] or "sat")]
    if not days and (near or week or weekday):
        raise words.make_error("names two days that are not the same")
    return days, both


def interpret_time(clock: SpokenTime | None, part: str, *, both: bool = False) -> list[int]:
    """Minutes from midnight; with `both`, also the other half of the day or the night that has
    begun."""
    if clock is None:
        return [DAY_PARTS.get(part, 9) * 60]
    minutes = clock.resolve_minutes(part)
    if both and part == "night" and minutes > 24 * 60:
        return [minutes - 24 * 60, minutes]
    if both and not part and not clock.half_known:
        return [clock.minutes, clock.minutes + 12 * 60]
    return [minutes]


def _make_wall_time(day: date, minutes: int) -> datetime:
    return datetime.combine(day, time()) + timedelta(minutes=minutes)


def _localize(wall: datetime, now: datetime) -> list[datetime]:
    """When the clocks in the zone of `now` show this: the first time, and the second where there is
    one."""
    zone = now.tzinfo
    if zone is None:
        raise TypeError("a moment is told from one with a zone")
    shown = (resolve_wall_time(wall, zone), wall.replace(tzinfo=zone, fold=1).timestamp())
    return [datetime.fromtimestamp(at, zone) for at in shown]


def _add_months(wall: datetime, months: float) -> datetime:
    year, month = divmod(wall.year * 12 + wall.month - 1 + int(months), 12)
    return wall.replace(
        year=year, month=month + 1, day=min(wall.day, monthrange(year, month + 1)[1])
    )


def format_date_time(moment: datetime, *, with_year: bool = True) -> str:
    year = f" {moment.year}" if with_year else ""
    day = f"{WEEKDAYS[moment.weekday()]} {moment.day} {MONTHS[moment.month - 1]}{year}"
    return f"{day}, {moment.hour}:{moment.minute:02}"
