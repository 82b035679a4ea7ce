"""When things are due: three languages, one meaning, and each wall time once however the clocks are
changed."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deskhand.types.errors import JobInvalid
from deskhand.types.schedules import (
    At,
    Cron,
    Every,
    Schedule,
    Startup,
    describe_schedule,
    due_within,
    last_due_times,
    next_due_after,
    parse_schedule,
)

from ..examples import examples

NEW_YORK = "America/New_York"
ZONES = (NEW_YORK, "Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca", "America/Santiago")
"""Clocks that change by an hour in the north and in the south, by half an hour, and around
Ramadan."""


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def due(schedule: Schedule, after: str, until: str) -> list[str]:
    return [
        f"{datetime.fromtimestamp(t, UTC):%m-%d %H:%M}"
        for t in due_within(schedule, at(after), at(until))
    ]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("0 9 * * *", Cron("0 9 * * *", NEW_YORK)),
        ("  */30  * * * * ", Cron("*/30 * * * *", NEW_YORK)),
        ("0 9 * JAN MON-FRI", Cron("0 9 * JAN MON-FRI", NEW_YORK)),
        ("@daily", Cron("0 0 * * *", NEW_YORK)),
        ("daily 09:05", Cron("5 9 * * *", NEW_YORK)),
        ("daily at 23:59", Cron("59 23 * * *", NEW_YORK)),
        ("hourly :15", Cron("15 * * * *", NEW_YORK)),
        ("hourly", Cron("0 * * * *", NEW_YORK)),
        ("every 90s", Every(90_000)),
        ("every 5m", Every(300_000)),
        ("Every 2 hours", Every(7_200_000)),
        ("every 1d", Every(86_400_000)),
        ("every 90000 ms", Every(90_000)),
        ("1800000ms", Every(1_800_000)),
        ("every 2 hrs", Every(7_200_000)),
        ("30 mins", Every(1_800_000)),
        ("every 2 weeks", Every(1_209_600_000)),
        ("every 2h from 2026-01-01T09:30", Every(7_200_000, 1767277800.0)),
        ("startup", Startup()),
        ("@reboot", Startup()),
        ("at 2026-12-24T18:00", At(1798153200.0)),
        ("at 2026-12-24 18:00:00+00:00", At(1798135200.0)),
        ("at 2026-12-24T18:00Z", At(1798135200.0)),
    ],
)
def test_three_languages_have_one_meaning(text: str, meant: Schedule) -> None:
    assert parse_schedule(text, NEW_YORK) == meant


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "the schedule is empty"),
        ("0 30 2 *", "has 4 fields; a cron line has five"),
        ("0 0 9 * * *", "has 6 fields"),
        ("sometimes", "'sometimes' is no schedule"),
        ("0 0 30 2 *", "no month that it names has such a day"),
        ("0 0 31 4,6 *", "no month that it names has such a day"),
        ("61 * * * *", "look at the minute"),
        ("0 25 * * *", "look at the hour"),
        ("daily 25:00", "look at the hour"),
        ("hourly :75", "look at the minute"),
        ("every 0s", "at most once a second"),
        ("every 5 lightyears", "has the unit 'lightyears'; there are ms, s, m, h, d and w"),
        ("every 5 months", "For months and years write a cron line, as in `0 9 1"),
        ("2 mo", "has the unit 'mo'"),
        ("every 99999999w", "never comes: it is more than a hundred years"),
        ("every \uff15m", "is no schedule"),
        ("at noon", "'noon' is no date and time"),
        ("at 9999-12-31 23:59", "too far away"),
        ("*/0 * * * *", "look at the minute"),
        ("1-/2 * * * *", "look at the minute"),
        ("\0 * * * *", "look at the minute"),
    ],
)
def test_what_cannot_be_is_told_with_the_next_step(text: str, told: str) -> None:
    with pytest.raises(JobInvalid, match=told):
        parse_schedule(text)


def test_an_unknown_zone_is_told() -> None:
    for zone in ("Mars/Olympus", "../etc/passwd", "", "Europe/\0"):
        with pytest.raises(JobInvalid, match="unknown timezone"):
            parse_schedule("0 9 * * *", zone)


@given(st.text(max_size=40) | st.text("0123456789*/,-LW#? every:atdily", max_size=30))
@settings(max_examples=examples(300), deadline=None)
def test_any_text_is_a_schedule_or_a_sentence(text: str) -> None:
    try:
        schedule = parse_schedule(text, "Europe/Berlin")
    except JobInvalid as error:
        assert len(str(error)) > 20
        return
    following = next_due_after(schedule, 1_800_000_000.0)
    assert following is None or following > 1_800_000_000.0
    assert describe_schedule(schedule)


def test_half_past_two_in_the_gap_comes_once_at_the_first_moment_that_exists() -> None:
    schedule = parse_schedule("30 2 * * *", NEW_YORK)
    assert due(schedule, "2026-03-07T00:00Z", "2026-03-10T00:00Z") == [
        "03-07 07:30",
        "03-08 07:00",
        "03-09 06:30",
    ]


def test_half_past_one_that_is_shown_twice_comes_once_the_first_time() -> None:
    schedule = parse_schedule("30 1 * * *", NEW_YORK)
    assert due(schedule, "2026-10-31T00:00Z", "2026-11-03T00:00Z") == [
        "10-31 05:30",
        "11-01 05:30",
        "11-02 06:30",
    ]
    assert next_due_after(schedule, at("2026-11-01T05:45Z")) == at(
        "2026-11-02T06:30Z"
    )  # asked between the two
    assert next_due_after(schedule, at("2026-11-01T06:15Z")) == at("2026-11-02T06:30Z")


def test_several_wall_times_in_the_gap_come_once_together() -> None:
    schedule = parse_schedule("*/15 2,3 * * *", NEW_YORK)
    assert due(schedule, "2026-03-08T05:00Z", "2026-03-08T12:00Z") == [
        f"03-08 07:{m}" for m in ("00", "15", "30", "45")
    ]


def test_wildcard_hours_follow_utc() -> None:
    half = parse_schedule("*/30 * * * *", NEW_YORK)
    for begin in ("2026-03-08T04:00Z", "2026-11-01T03:00Z"):
        times = list(due_within(half, at(begin), at(begin) + 6 * 3600))
        assert times == [at(begin) + 1800 * n for n in range(1, 13)]


def test_intervals_do_not_care_about_clocks_or_restarts() -> None:
    every = parse_schedule("every 90m", NEW_YORK)
    assert next_due_after(every, 0.0) == 5400.0 and next_due_after(every, 5399.999) == 5400.0
    assert next_due_after(every, 5400.0) == 10800.0
    anchored = parse_schedule("every 2h from 2026-01-01T09:30", "UTC")
    assert due(anchored, "2025-12-31T00:00Z", "2026-01-01T12:00Z") == ["01-01 09:30", "01-01 11:30"]
    assert next_due_after(parse_schedule("at 2026-01-01", "UTC"), at("2026-01-01T00:00Z")) is None


def test_the_last_times_are_found_from_years_away() -> None:
    schedule = parse_schedule("0 9 * * MON", "Europe/Berlin")
    found = last_due_times(schedule, 0.0, at("2026-11-22T00:00Z"), 3)
    assert [f"{datetime.fromtimestamp(t, UTC):%m-%d %H}" for t in found] == [
        "11-02 08",
        "11-09 08",
        "11-16 08",
    ]
    assert last_due_times(parse_schedule("every 1s"), 0.0, 1_800_000_000.0, 2) == [
        1_799_999_999.0,
        1_800_000_000.0,
    ]
    assert last_due_times(parse_schedule("0 0 29 2 *"), at("2026-01-01"), at("2026-11-22"), 5) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("every 90s", "every 90 seconds"),
        ("every 1h", "every hour"),
        ("startup", "at each start"),
        ("at 2026-12-24T18:00Z", "once, at 2026-12-24 18:00 UTC"),
        ("0 9 * * *", "at 09:00 every day (Europe/Berlin)"),
    ],
)
def test_in_words(text: str, words: str) -> None:
    assert describe_schedule(parse_schedule(text, "Europe/Berlin")) == words


# ---------------------------------------------------------------- an independent definition, minute
# by minute


class Fields:
    """A cron expression whose fields are known without reading it."""

    def __init__(
        self, minutes: set[int], hours: set[int] | None, days: set[int] | None = None
    ) -> None:
        self.times = {
            60 * h + m for h in (hours if hours is not None else range(24)) for m in minutes
        }
        self.wild = hours is None
        self._days = days
        listed = [
            ",".join(map(str, sorted(each))) if each is not None else "*"
            for each in (minutes, hours, days)
        ]
        self.expr = f"{listed[0]} {listed[1]} {listed[2]} * *"

    def fits(self, wall: int) -> bool:
        """Whether it names this wall time, in minutes since the epoch."""
        if wall % 1440 not in self.times:
            return False
        return (
            self._days is None
            or (date(1970, 1, 1) + timedelta(days=wall // 1440)).day in self._days
        )


def by_definition(
    all_fields: list[Fields], zone: str, begin: int, end: int
) -> dict[int, list[float]]:
    """For each: with wildcard hours every minute whose wall time fits; else for each wall time that
    fits the first minute in which the clock on the wall, which nobody turns back, shows it or is
    past it."""
    place = ZoneInfo(zone)
    found = defaultdict[int, list[float]](list)
    shown = -1
    by_time = defaultdict[int, list[int]](list)
    for number, fields in enumerate(all_fields):
        for time in fields.times:
            by_time[time].append(number)
    offset = 0
    for minute in range(begin // 60, end // 60 + 1):
        if minute % 30 == 0 or minute == begin // 60:
            there = datetime.fromtimestamp(60 * minute, place).utcoffset()
            offset = round(there.total_seconds() / 60) if there is not None else 0
        wall = minute + offset
        passed = range(max(shown, wall - 1) + 1 if shown < 0 else shown + 1, wall + 1)
        came = {
            n
            for w in passed
            for n in by_time.get(w % 1440, ())
            if not all_fields[n].wild and all_fields[n].fits(w)
        }
        came |= {
            n
            for n in by_time.get(wall % 1440, ())
            if all_fields[n].wild and all_fields[n].fits(wall)
        }
        for number in came:
            found[number].append(60.0 * minute)
        shown = max(shown, wall)
    return found


def compare(all_fields: list[Fields], zone: str, begin: int, end: int) -> None:
    defined = by_definition(all_fields, zone, begin, end)
    for number, fields in enumerate(all_fields):
        got = list(due_within(parse_schedule(fields.expr, zone), begin - 1.0, end))
        assert got == defined[number], (fields.expr, zone)


@pytest.mark.parametrize("zone", ZONES)
def test_two_years_in_five_zones_agree_with_the_definition(zone: str) -> None:
    all_fields = [
        Fields({30}, {2}),
        Fields({30}, {1}),
        Fields({0}, {0}),
        Fields({0, 20, 40}, {1, 2, 3}),
        Fields({59}, {23}, {1, 15, 31}),
        Fields({15}, None),
        Fields({0, 45}, None, {8, 25, 29}),
    ]
    compare(all_fields, zone, int(at("2026-01-01T00:00Z")), int(at("2028-01-01T00:00Z")))


@given(
    zone=st.sampled_from(
        (*ZONES, "Asia/Kolkata", "Pacific/Apia", "Europe/Dublin", "America/St_Johns", "UTC")
    ),
    minutes=st.sets(st.integers(0, 59), min_size=1, max_size=4),
    hours=st.none() | st.sets(st.integers(0, 23), min_size=1, max_size=5),
    around=st.sampled_from(
        ("2026-03-08", "2026-03-29", "2026-04-05", "2026-10-04", "2026-11-01", "2027-02-07")
    ),
)
@example(zone="America/Santiago", minutes={0, 30}, hours={0, 23}, around="2026-04-05")
@settings(max_examples=examples(60), deadline=None)
def test_any_cron_agrees_with_the_definition(
    zone: str, minutes: set[int], hours: set[int] | None, around: str
) -> None:
    middle = int(at(f"{around}T00:00Z"))
    compare([Fields(minutes, hours)], zone, middle - 2 * 86_400, middle + 3 * 86_400)
