"""How people say when something comes again: `every Monday at 8`, `on the 1st of every month`,
`every other day`.

The hours and what is left out are read as for one moment (`spoken_times`). Beyond that:

- `every week` and `every month` are on today's weekday and day, at 9:00. From the 29th on, and for
  `the 31st`, that is the last day of the month, since not all months have such a day.
- `every other day` and `every 2 weeks` count 24 hours a day from the first time on, so that they
  come an hour earlier or later after the clocks were changed. `every other Monday` begins with the
  next one.
- A weekday's midnight is refused, since people mean one end of the day as often as the other.
"""

from __future__ import annotations

import re
from datetime import date, datetime

import msgspec

from .errors import JobInvalid
from .schedules import describe_schedule, parse_schedule
from .spoken_times import find_next_moment, format_date_time, interpret_time, is_recurring
from .spoken_words import (
    MONTHS,
    ORDINAL_PATTERN,
    UNIT_PATTERN,
    WEEKDAY_PATTERN,
    WEEKDAYS,
    Words,
    take_clock,
    take_date,
    take_day_part,
    weekday_index,
)

EXAMPLES = (
    "`every Monday at 8:00`, `every weekday at 7 am`, `every 2 hours` or `on the 1st of every "
    "month`"
)
_UNITS = {"s": "second", "m": "minute", "h": "hour", "d": "day", "w": "week"}


def parse_spoken_schedule(text: str, now: datetime) -> str:
    """The schedule that is meant, as `parse_schedule` reads it, in the zone of `now`. Raises
    TimeUnclear."""
    words = Words(text, EXAMPLES)
    if not is_recurring(text):
        raise words.make_error("is not said of a time that comes again")
    schedule = _parse_interval(words, now) or _parse_cron(words, now)
    try:
        parse_schedule(schedule)
    except JobInvalid as error:
        raise words.make_error("is no schedule that can be kept") from error
    return schedule


def format_spoken_schedule(schedule: str) -> str:
    """A schedule of `schedule_in` as people say it, which reads it again; others as `described`
    tells them.

    Raises JobInvalid for what is no schedule.
    """
    parsed = parse_schedule(schedule)
    if found := re.fullmatch(r"every ([\d.]+)([smhdw])(?: from (.+))?", schedule):
        unit = _UNITS[found[2]]
        often = f"every {unit}" if found[1] == "1" else f"every {found[1]} {unit}s"
        return (
            f"{often} from {format_date_time(datetime.fromisoformat(found[3]))}"
            if found[3]
            else often
        )
    if schedule == "hourly":
        return "every hour"
    if found := re.fullmatch(r"(\d+) (\d+) (\d+|L|\*) (\d+|\*) (\S+)", schedule):
        days = _describe_cron_days(found[3], found[4], found[5])
        if days:
            return f"{days} at {found[2]}:{int(found[1]):02}"
    return describe_schedule(parsed)


def _parse_interval(words: Words, now: datetime) -> str | None:
    """`every 2 hours`, `every other Monday at 8`; but not `every second Monday of the month`."""
    found = words.take(
        rf"every (other|\d+(?:\.\d+)?(?:st|nd|rd|th)?)(?: ?({UNIT_PATTERN})|(?= "
        rf"{WEEKDAY_PATTERN}(?!.*month)))"
    )
    if not found:
        return None
    number = "2" if found[1] == "other" else found[1].rstrip("stndrh")
    unit = found[2] or "week"
    if unit.startswith("mo"):
        raise words.make_error("counts months: name each of them, as in `every year on 3 May`")
    if number == "1" and unit[0] not in "mh":
        raise words.make_error("does not say first of what, as `on the 1st of every month` does")
    if unit[0] in "smh":
        words.finish()
        return "hourly" if (number, unit[0]) == ("1", "h") else f"every {number}{unit[0]}"
    first = find_next_moment(words, now, cycle_days=7 if unit[0] == "w" else 1)
    return f"every {number}{unit[0]} from {first:%Y-%m-%dT%H:%M}"


def _parse_cron(words: Words, now: datetime) -> str:
    days = _RepeatedDays(
        month=words.take("(?:of |in )?(?:every|the|a) month") is not None,
        dated=take_date(words),
        nth=_take_ordinal(words),
        weekdays=_take_weekdays(words),
        units=_take_units(words),
    )
    part = take_day_part(words)
    clock = take_clock(words)
    words.finish()
    kinds = days.kinds()
    if kinds in {"hour", "minute"} and not (part or clock):
        return {"hour": "hourly", "minute": "every 1m"}[kinds]
    fields = days.cron_fields(now.date()) if kinds or part else None
    if fields is None:
        raise words.make_error("does not say on which days, or says it in two ways")
    minutes = interpret_time(clock, part)[0]
    if minutes >= 24 * 60 and fields != "* * *":
        raise words.make_error(
            "is the night after that day: say which day begins, and the hour as in `0:00`"
        )
    return f"{minutes % 60} {minutes // 60 % 24} {fields}"


class _RepeatedDays(msgspec.Struct, frozen=True, kw_only=True):
    """What was said of the days; `nth` is a day of the month or, beside a weekday, which one of the
    month."""

    month: bool
    dated: tuple[int | None, int, int] | None
    nth: str
    weekdays: set[int]
    units: set[str]

    def kinds(self) -> str:
        said = {"date": self.dated, "month": self.month, "nth": self.nth, "weekday": self.weekdays}
        return " ".join(sorted(self.units.union(kind for kind, there in said.items() if there)))

    def cron_fields(self, today: date) -> str | None:
        """Day, month and weekday of a cron line; None where the words do not fit together."""
        weekdays = ",".join(sorted(str((day + 1) % 7) for day in self.weekdays))
        match self.kinds():
            case "" | "day":
                return "* * *"
            case "weekday" | "week weekday":
                return f"* * {'1-5' if weekdays == '1,2,3,4,5' else weekdays}"
            case "week":
                return f"* * {today.isoweekday() % 7}"
            case "month":
                return f"{today.day if today.day <= 28 else 'L'} * *"
            case "nth" | "month nth":
                return f"{'L' if self.nth == '31' else self.nth} * *"
            case "month nth weekday" if len(self.weekdays) == 1:
                return f"* * {weekdays}L" if self.nth == "L" else f"* * {weekdays}#{self.nth}"
            case "date" | "date year" if self.dated and self.dated[0] is None:
                return f"{self.dated[2]} {self.dated[1]} *"
        return None


def _take_ordinal(words: Words) -> str:
    found = words.take(
        rf"(?:every )?(?:the )?(?:{ORDINAL_PATTERN}(?: day)?|last day|last(?= {WEEKDAY_PATTERN}))"
    )
    return found[1] or "L" if found else ""


def _take_weekdays(words: Words) -> set[int]:
    days: set[int] = set()
    while found := words.take(
        rf"(?:and )?(?:on )?(?:every )?(?:{WEEKDAY_PATTERN}|weekday|weekend)"
    ):
        if found[1]:
            days.add(weekday_index(found[1]))
        else:
            days.update((5, 6) if found[0].endswith("end") else range(5))
    return days


def _take_units(words: Words) -> set[str]:
    units: set[str] = set()
    while found := words.take("every (year|week|day|hour|minute)"):
        units.add(found[1])
    return units


def _describe_cron_days(day: str, month: str, weekday: str) -> str | None:
    """The days of such a cron line; None for what people would not say."""
    if (day, month, weekday) == ("*", "*", "*"):
        return "every day"
    if month != "*":
        return (
            f"every year on {day} {MONTHS[int(month) - 1]}"
            if weekday == "*" and day.isdigit()
            else None
        )
    if weekday == "*":
        return f"on the {'last day' if day == 'L' else _ordinal(int(day))} of every month"
    if day != "*":
        return None
    if weekday == "1-5":
        return "every weekday"
    if found := re.fullmatch(r"([0-6])(?:#([1-5])|L)", weekday):
        which = _ordinal(int(found[2])) if found[2] else "last"
        return f"on the {which} {_weekday_name(found[1])} of every month"
    if not re.fullmatch(r"[0-6](,[0-6])*", weekday):
        return None
    names = [
        _weekday_name(number)
        for number in sorted(weekday.split(","), key=lambda number: (int(number) - 1) % 7)
    ]
    return f"every {', '.join(names[:-1])} and {names[-1]}" if names[1:] else f"every {names[0]}"


def _weekday_name(number: str) -> str:
    return WEEKDAYS[(int(number) - 1) % 7]


def _ordinal(number: int) -> str:
    ending = "th" if number in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
