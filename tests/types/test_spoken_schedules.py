"""How people say when something comes again: a table of sentences, and what holds for all of
them."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deskhand.types.errors import JobInvalid, TimeUnclear
from deskhand.types.schedules import next_due_after, parse_schedule
from deskhand.types.spoken_schedules import format_spoken_schedule, parse_spoken_schedule
from deskhand.types.spoken_times import is_recurring

from ..examples import examples

MONDAY = datetime(2026, 11, 23, 14, 0, tzinfo=ZoneInfo("Europe/Berlin"))

SAID = {
    "every Monday at 8": ("0 8 * * 1", "every Monday at 8:00"),
    "Mondays at 8": ("0 8 * * 1", "every Monday at 8:00"),
    "every monday and thursday at 18:30": ("30 18 * * 1,4", "every Monday and Thursday at 18:30"),
    "every Mon, Wed & Fri at 6:30": (
        "30 6 * * 1,3,5",
        "every Monday, Wednesday and Friday at 6:30",
    ),
    "on Saturdays and Sundays at 11": ("0 11 * * 0,6", "every Saturday and Sunday at 11:00"),
    "on weekends at 10": ("0 10 * * 0,6", "every Saturday and Sunday at 10:00"),
    "every weekend": ("0 9 * * 0,6", "every Saturday and Sunday at 9:00"),
    "every weekday at 7am": ("0 7 * * 1-5", "every weekday at 7:00"),
    "weekdays at half past five": ("30 17 * * 1-5", "every weekday at 17:30"),
    "Mon-Fri at 8:30": ("30 8 * * 1-5", "every weekday at 8:30"),
    "Monday to Friday at noon": ("0 12 * * 1-5", "every weekday at 12:00"),
    "every working day": ("0 9 * * 1-5", "every weekday at 9:00"),
    "every Friday evening": ("0 19 * * 5", "every Friday at 19:00"),
    "Monday mornings": ("0 9 * * 1", "every Monday at 9:00"),
    "every Tuesday night at 11": ("0 23 * * 2", "every Tuesday at 23:00"),
    "weekly on Friday": ("0 9 * * 5", "every Friday at 9:00"),
    "once a week on Friday at 5pm": ("0 17 * * 5", "every Friday at 17:00"),
    "every week": ("0 9 * * 1", "every Monday at 9:00"),
    "weekly": ("0 9 * * 1", "every Monday at 9:00"),
    "every day at noon": ("0 12 * * *", "every day at 12:00"),
    "daily at 9": ("0 9 * * *", "every day at 9:00"),
    "everyday at 5": ("0 17 * * *", "every day at 17:00"),
    "once a day at 8 p.m.": ("0 20 * * *", "every day at 20:00"),
    "every day": ("0 9 * * *", "every day at 9:00"),
    "every morning": ("0 9 * * *", "every day at 9:00"),
    "each evening at 8": ("0 20 * * *", "every day at 20:00"),
    "every night at 1": ("0 1 * * *", "every day at 1:00"),
    "nightly": ("0 21 * * *", "every day at 21:00"),
    "every day at midnight": ("0 0 * * *", "every day at 0:00"),
    "hourly": ("hourly", "every hour"),
    "every hour": ("hourly", "every hour"),
    "every minute": ("every 1m", "every minute"),
    "every 1h": ("hourly", "every hour"),
    "every 2 hours": ("every 2h", "every 2 hours"),
    "every two hours": ("every 2h", "every 2 hours"),
    "every half hour": ("every 30m", "every 30 minutes"),
    "every quarter of an hour": ("every 15m", "every 15 minutes"),
    "every 15 minutes": ("every 15m", "every 15 minutes"),
    "every one and a half hours": ("every 1.5h", "every 1.5 hours"),
    "every 30 seconds": ("every 30s", "every 30 seconds"),
    "every other day": (
        "every 2d from 2026-11-24T09:00",
        "every 2 days from Tuesday 24 November 2026, 9:00",
    ),
    "every 3 days at 10": (
        "every 3d from 2026-11-24T10:00",
        "every 3 days from Tuesday 24 November 2026, 10:00",
    ),
    "every other Monday at 8": (
        "every 2w from 2026-11-30T08:00",
        "every 2 weeks from Monday 30 November 2026, 8:00",
    ),
    "every second Friday": (
        "every 2w from 2026-11-27T09:00",
        "every 2 weeks from Friday 27 November 2026, 9:00",
    ),
    "every two weeks at 15:00": (
        "every 2w from 2026-11-23T15:00",
        "every 2 weeks from Monday 23 November 2026, 15:00",
    ),
    "every 2 weeks starting 1 December at 8": (
        "every 2w from 2026-12-01T08:00",
        "every 2 weeks from Tuesday 1 December 2026, 8:00",
    ),
    "on the first of every month": ("0 9 1 * *", "on the 1st of every month at 9:00"),
    "every month on the 15th at 10:00": ("0 10 15 * *", "on the 15th of every month at 10:00"),
    "every 22nd at 6pm": ("0 18 22 * *", "on the 22nd of every month at 18:00"),
    "on the 31st of every month": ("0 9 L * *", "on the last day of every month at 9:00"),
    "on the last day of each month at 5": ("0 17 L * *", "on the last day of every month at 17:00"),
    "monthly": ("0 9 23 * *", "on the 23rd of every month at 9:00"),
    "the second Monday of every month": ("0 9 * * 1#2", "on the 2nd Monday of every month at 9:00"),
    "every third Thursday of the month at 19:00": (
        "0 19 * * 4#3",
        "on the 3rd Thursday of every month at 19:00",
    ),
    "the last Sunday of every month": ("0 9 * * 0L", "on the last Sunday of every month at 9:00"),
    "every year on 3 May": ("0 9 3 5 *", "every year on 3 May at 9:00"),
    "every May 3rd at 10": ("0 10 3 5 *", "every year on 3 May at 10:00"),
    "annually on 29 February": ("0 9 29 2 *", "every year on 29 February at 9:00"),
}
PIECES = [
    *(
        "every",
        "each",
        "daily",
        "weekly",
        "monthly",
        "hourly",
        "yearly",
        "on",
        "the",
        "of",
        "month",
        "week",
        "day",
        "at",
    ),
    *(
        "other",
        "2",
        "30",
        "half",
        "an hour",
        "hours",
        "minutes",
        "days",
        "weeks",
        "seconds",
        "0",
        "99999",
        "months",
    ),
    *(
        "Monday",
        "Tuesdays",
        "and",
        "weekday",
        "weekends",
        "morning",
        "nights",
        "noon",
        "midnight",
        "8",
        "18:30",
        "7 am",
    ),
    *(
        "first",
        "last",
        "15th",
        "31st",
        "0th",
        "99th",
        "3 May",
        "29 February",
        "30 February",
        "2027-05-03",
        "from",
    ),
]


@pytest.mark.parametrize(
    ("said", "schedule", "words"), [(said, *meant) for said, meant in SAID.items()]
)
def test_what_people_say_becomes_a_schedule_and_is_told(
    said: str, schedule: str, words: str
) -> None:
    assert is_recurring(said)
    assert parse_spoken_schedule(said, MONDAY) == schedule
    assert format_spoken_schedule(schedule) == words
    assert parse_spoken_schedule(words, MONDAY) == schedule


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("tomorrow at 9", "is not said of a time that comes again"),
        ("next Friday", "is not said of a time that comes again"),
        ("", "is not said of a time that comes again"),
        ("every", "does not say on which days"),
        ("every at 9", "does not say on which days"),
        ("every year", "does not say on which days"),
        ("every month on Monday", "says it in two ways"),
        ("every hour on Monday", "says it in two ways"),
        ("every day on the 15th", "says it in two ways"),
        ("every 3 May 2027", "says it in two ways"),
        ("every 3 months", "counts months"),
        ("every first Monday", "does not say first of what"),
        ("every Friday at midnight", "is the night after that day"),
        ("every 2 hours on weekdays", "'weekday' is not part of a time"),
        ("every weekday from 9 to 5", "'to 5' is not part of a time"),
        ("every day at 8 and 20:00", "'and 20:00' is not part of a time"),
        ("every second", "'seconds' is not part of a time"),
        ("every full moon", "'full moon' is not part of a time"),
        ("every 0 minutes", "is no schedule that can be kept"),
        ("every 30 February", "is no schedule that can be kept"),
        ("every 32nd", "is no schedule that can be kept"),
    ],
)
def test_what_is_not_clear_is_refused_with_what_would_be(said: str, why: str) -> None:
    with pytest.raises(TimeUnclear) as refused:
        parse_spoken_schedule(said, MONDAY)
    assert why in str(refused.value)
    assert "Write a time such as `every Monday at 8:00`" in str(refused.value)


@pytest.mark.parametrize(
    "said", ["next Friday", "Monday at 8", "this weekend", "tomorrow morning", "in 2 weeks", ""]
)
def test_one_moment_does_not_come_again(said: str) -> None:
    assert not is_recurring(said)


@pytest.mark.parametrize(
    ("today", "monthly", "weekly"),
    [("2026-11-28", "0 9 28 * *", "0 9 * * 6"), ("2026-11-29", "0 9 L * *", "0 9 * * 0")],
)
def test_without_a_day_it_is_the_day_of_today(today: str, monthly: str, weekly: str) -> None:
    now = datetime.fromisoformat(f"{today} 23:00").replace(tzinfo=MONDAY.tzinfo)
    assert parse_spoken_schedule("every month", now) == monthly
    assert parse_spoken_schedule("every week", now) == weekly


def test_other_schedules_are_told_as_the_schedule_does() -> None:
    assert (
        format_spoken_schedule("*/5 8-18 * * *")
        == "every fifth minute from 08:00 through 18:59 (UTC)"
    )
    assert format_spoken_schedule("0 9 1 5 1").endswith("(UTC)")
    assert format_spoken_schedule("startup") == "at each start"
    with pytest.raises(JobInvalid):
        format_spoken_schedule("0 99 * * *")


@given(
    st.lists(st.sampled_from(PIECES), max_size=6).map(lambda pieces: " ".join(["every", *pieces]))
    | st.text()
)
@example("every 2 days from 9999-12-31")
@settings(max_examples=examples(1500), deadline=None)
def test_any_text_is_a_schedule_or_a_sentence(text: str) -> None:
    try:
        schedule = parse_spoken_schedule(text, MONDAY)
    except TimeUnclear as error:
        assert "Write a time such as" in str(error)
        return
    assert next_due_after(parse_schedule(schedule, "Europe/Berlin"), MONDAY.timestamp())
    assert parse_spoken_schedule(format_spoken_schedule(schedule), MONDAY) == schedule
