"""How cronsim describes the schedules that people set most, for translation: it has a grammar of
its own, of which everything else stays in English."""

from __future__ import annotations

_ZONE = " ({zone})"
_TIMES = (
    "at {at_clocks}",
    "every minute",
    "every {nth_ordinal} minute of every hour",
    "at the start of every hour",
    "at minute {minute_number} of every hour",
    "at minutes {minutes_numbers} of every hour",
    "every minute from {from_clocks} through {to_clocks}",
    "every {nth_ordinal} minute from {from_clocks} through {to_clocks}",
    "at minute {minute_number} past every {nth_ordinal} hour",
    "at minute {minute_number} past every hour from {from_number} through {to_number}",
    "at minute {minute_number} past hours {hours_numbers}",
)
_DATES = (
    "every day in {month}",
    "on the last day of every month",
    "on the last weekday of every month",
    "on the {nth_ordinal} day of every month",
    "on {month} {day_number}",
)
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")

CRON_TEXTS = (
    *(time + _ZONE for time in _TIMES[1:]),
    *(f"{time} on {{days}}{_ZONE}" for time in _TIMES),
    f"{_TIMES[0]} every day{_ZONE}",
    *(f"{_TIMES[0]} {date}{_ZONE}" for date in _DATES),
    *_ORDINALS,
    "{nth_number}th",
    "{first_days} through {last_days}",
)
