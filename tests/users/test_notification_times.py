"""Quiet hours and digests, as times of a day in a zone."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.users.notification_times import (
    NotificationTimes,
    find_next,
    format_hours,
    format_times,
    parse_hours,
    parse_times,
)

from ..examples import examples

BERLIN = ZoneInfo("Europe/Berlin")
TIMES = st.times().map(lambda each: each.replace(second=0, microsecond=0))
DAY_S = 86_400.0


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("22:00-07:00", (time(22), time(7))),
        ("22-7", (time(22), time(7))),
        ("22:30 to 6:15", (time(22, 30), time(6, 15))),
        ("13:00 – 14:00", (time(13), time(14))),  # noqa: RUF001 -- as people write it
        ("7:00-7:00", None),
        ("25-7", None),
        ("22:60-7", None),
        ("22", None),
        ("tomorrow", None),
        ("", None),
    ],
)
def test_hours_are_read(text: str, hours: tuple[time, time] | None) -> None:
    assert parse_hours(text) == hours


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("08:00 18:00", (time(8), time(18))),
        ("18, 8:30", (time(8, 30), time(18))),
        ("8 8 8", (time(8),)),
        ("8 soon", ()),
        ("24:00", ()),
        ("", ()),
        (" ".join(["8:00"] * 13), ()),
    ],
)
def test_times_are_read(text: str, times: tuple[time, ...]) -> None:
    assert parse_times(text) == times


def at(hour: int, minute: int = 0, day: int = 10) -> float:
    return datetime(2026, 6, day, hour, minute, tzinfo=BERLIN).timestamp()


NIGHT = NotificationTimes((time(22), time(7)))
TWICE = NotificationTimes(digest=(time(8), time(18)))


@pytest.mark.parametrize(
    ("wanted", "since", "now", "waits"),
    [
        (NotificationTimes(), at(3), at(3), False),
        (NIGHT, at(21, 59), at(21, 59), False),
        (NIGHT, at(22), at(22), True),
        (NIGHT, at(22), at(6, 59, day=11), True),
        (NIGHT, at(22), at(7, day=11), False),
        (NIGHT, at(22), at(23, day=11), True),
        (TWICE, at(9), at(17, 59), True),
        (TWICE, at(9), at(18), False),
        (TWICE, at(19), at(7, day=11), True),
        (TWICE, at(19), at(8, day=11), False),
        (NotificationTimes((time(17), time(20)), (time(18),)), at(9), at(18), True),
        (NotificationTimes((time(17), time(20)), (time(18),)), at(9), at(20), False),
    ],
)
def test_what_waits(wanted: NotificationTimes, since: float, now: float, *, waits: bool) -> None:
    assert wanted.must_wait(since, now, BERLIN) is waits


@given(st.tuples(TIMES, TIMES), st.lists(TIMES, max_size=4), st.floats(1.7e9, 1.9e9))
@settings(max_examples=examples(200))
def test_everything_is_told_within_two_days_and_never_in_quiet_hours(
    hours: tuple[time, time], digest: list[time], since: float
) -> None:
    quiet = hours if hours[0] != hours[1] else None
    wanted = NotificationTimes(quiet, tuple(sorted(set(digest))))
    times = [*(digest or []), *([hours[1]] if quiet is not None else [])]
    moments = [datetime.fromtimestamp(since, BERLIN)]
    while times and moments[-1].timestamp() < since + 2.1 * DAY_S:
        moments.append(find_next(moments[-1], times))
    free = [each for each in moments if not wanted.must_wait(since, each.timestamp(), BERLIN)]
    assert free and not any(map(wanted.is_quiet, free))
    assert free[0].timestamp() <= since + 2.1 * DAY_S
    if quiet is not None:
        assert parse_hours(format_hours(quiet)) == quiet
    assert parse_times(format_times(wanted.digest)) == wanted.digest


@given(st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1)), st.lists(TIMES, min_size=1))
@settings(max_examples=examples(200))
def test_the_next_time_is_later_and_within_a_day(moment: datetime, times: list[time]) -> None:
    """Also on the days on which clocks are changed."""
    after = moment.replace(tzinfo=BERLIN)
    found = find_next(after, times)
    assert 0 < found.timestamp() - after.timestamp() <= DAY_S + 3600
    assert found - after <= timedelta(days=1, hours=1)
