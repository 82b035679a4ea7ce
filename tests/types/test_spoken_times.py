"""How people say one moment: a table of sentences, heard at four times, and what holds for all of
them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deskhand.types.errors import TimeUnclear
from deskhand.types.spoken_times import format_spoken_moment, parse_spoken_moment

from ..examples import examples

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")
MONDAY = datetime(2026, 11, 23, 14, 0, tzinfo=BERLIN)
SPRING = datetime(2027, 3, 27, 20, 0, tzinfo=BERLIN)
"""The evening before the clocks go forward: 2:00 to 3:00 is not there."""
AUTUMN = datetime(2026, 10, 31, 22, 30, tzinfo=NEW_YORK)
"""A Saturday; in the night the clocks go back, and 1:00 to 2:00 comes twice."""
NEW_YEAR = datetime(2026, 12, 30, 8, 15, tzinfo=UTC)
"""A Wednesday."""

ON_MONDAY = {
    # a day and a time
    "tomorrow at 9": "2026-11-24 09:00",
    "tomorrow 9am": "2026-11-24 09:00",
    "9 a.m. tomorrow": "2026-11-24 09:00",
    "tomorrow, 9:30 AM": "2026-11-24 09:30",
    "Tomorrow at 9 o'clock.": "2026-11-24 09:00",
    "tomorrow at 5": "2026-11-24 17:00",
    "tomorrow at 7": "2026-11-24 07:00",
    "tomorrow at 5:30": "2026-11-24 05:30",
    "tomorrow at noon": "2026-11-24 12:00",
    "tomorrow at 12": "2026-11-24 12:00",
    "tomorrow at 12am": "2026-11-24 00:00",
    "tomorrow at 12:30 pm": "2026-11-24 12:30",
    "tomorrow around 18.30": "2026-11-24 18:30",
    "today at 17:30": "2026-11-23 17:30",
    "today at 5": "2026-11-23 17:00",
    "today at 9": "2026-11-23 21:00",
    "the day after tomorrow at half past nine": "2026-11-25 09:30",
    "tomorrow at quarter past four": "2026-11-24 16:15",
    "tomorrow at ten to eight": "2026-11-24 07:50",
    "tomorrow at 20 past 8 pm": "2026-11-24 20:20",
    "tomorrow at five thirty": "2026-11-24 17:30",
    "tomorrow @ nine fifteen": "2026-11-24 09:15",
    "tomorrow": "2026-11-24 09:00",
    # parts of a day
    "tonight": "2026-11-23 21:00",
    "tonight at 8": "2026-11-23 20:00",
    "tonight at 12": "2026-11-24 00:00",
    "tonight at 1": "2026-11-24 01:00",
    "this evening": "2026-11-23 19:00",
    "this evening at half past six": "2026-11-23 18:30",
    "this afternoon": "2026-11-23 15:00",
    "tomorrow morning": "2026-11-24 09:00",
    "tomorrow morning at 6": "2026-11-24 06:00",
    "tomorrow afternoon at 3:30": "2026-11-24 15:30",
    "tomorrow evening": "2026-11-24 19:00",
    "tomorrow night": "2026-11-24 21:00",
    "tomorrow night at 1am": "2026-11-25 01:00",
    "at 8 in the evening": "2026-11-23 20:00",
    "at 8 in the morning": "2026-11-24 08:00",
    "in the morning": "2026-11-24 09:00",
    "in the afternoon": "2026-11-23 15:00",
    "at lunch": "2026-11-24 12:00",
    "tomorrow at lunchtime": "2026-11-24 12:00",
    "by the end of the day": "2026-11-23 18:00",
    "midnight": "2026-11-24 00:00",
    "today at midnight": "2026-11-24 00:00",
    "Friday at midnight": "2026-11-28 00:00",
    "noon": "2026-11-24 12:00",
    # a time without a day: the next that comes
    "at 5pm": "2026-11-23 17:00",
    "17:30": "2026-11-23 17:30",
    "at 5:30": "2026-11-23 17:30",
    "at 05:30": "2026-11-24 05:30",
    "at 9": "2026-11-23 21:00",
    "at 2": "2026-11-24 14:00",
    "at 1": "2026-11-24 13:00",
    "at 9 am": "2026-11-24 09:00",
    "at 14:00": "2026-11-24 14:00",
    "at 0:00": "2026-11-24 00:00",
    "quarter to 8": "2026-11-23 19:45",
    "half past three": "2026-11-23 15:30",
    # from now
    "in 20 minutes": "2026-11-23 14:20",
    "in twenty-five minutes": "2026-11-23 14:25",
    "in 90 min": "2026-11-23 15:30",
    "in an hour": "2026-11-23 15:00",
    "in half an hour": "2026-11-23 14:30",
    "in an hour and a half": "2026-11-23 15:30",
    "in two and a half hours": "2026-11-23 16:30",
    "in 1.5 hours": "2026-11-23 15:30",
    "in three quarters of an hour": "2026-11-23 14:45",
    "in 2 hours and 15 minutes": "2026-11-23 16:15",
    "in about an hour": "2026-11-23 15:00",
    "in 45 minutes' time": "2026-11-23 14:45",
    "10 minutes": "2026-11-23 14:10",
    "in 1h 30m": "2026-11-23 15:30",
    "in a couple of hours": "2026-11-23 16:00",
    "an hour from now": "2026-11-23 15:00",
    "in three days": "2026-11-26 14:00",
    "in 3 days at 10": "2026-11-26 10:00",
    "in three days in the evening": "2026-11-26 19:00",
    "in a week": "2026-11-30 14:00",
    "a week from now at 9": "2026-11-30 09:00",
    "in two weeks on Monday": "2026-12-07 09:00",
    "on Thursday in two weeks at 8": "2026-12-10 08:00",
    "in a fortnight": "2026-12-07 14:00",
    "in a month": "2026-12-23 14:00",
    "in 3 months at 10:00": "2027-02-23 10:00",
    # weekdays
    "on Friday": "2026-11-27 09:00",
    "friday 8 pm": "2026-11-27 20:00",
    "Fri 20:00": "2026-11-27 20:00",
    "Friday evening": "2026-11-27 19:00",
    "this Sunday at noon": "2026-11-29 12:00",
    "coming Sunday at 5": "2026-11-29 17:00",
    "Monday at 15:00": "2026-11-23 15:00",
    "on Monday at 9:00": "2026-11-30 09:00",
    "on Monday": "2026-11-30 09:00",
    "next Friday at 17:30": "2026-11-27 17:30",
    "next Thursday": "2026-11-26 09:00",
    "next Wednesday": "2026-12-02 09:00",
    "next Monday": "2026-11-30 09:00",
    "next week on Tuesday at 10": "2026-12-01 10:00",
    "Friday next week": "2026-12-04 09:00",
    "Tuesday the week after next": "2026-12-08 09:00",
    "next week": "2026-11-30 09:00",
    "this weekend": "2026-11-28 09:00",
    # dates
    "on 3 May at 10": "2027-05-03 10:00",
    "May 3rd": "2027-05-03 09:00",
    "on the 3rd of May at noon": "2027-05-03 12:00",
    "the first of December": "2026-12-01 09:00",
    "3 May 2027, 10:00": "2027-05-03 10:00",
    "May 3, 2027 at 5pm": "2027-05-03 17:00",
    "Dec 24th 6pm": "2026-12-24 18:00",
    "24. December 18:00": "2026-12-24 18:00",
    "24.12. at 18:00": "2026-12-24 18:00",
    "24.12.2026 18:00": "2026-12-24 18:00",
    "2026-12-24 18:00": "2026-12-24 18:00",
    "2026-12-24T18:00": "2026-12-24 18:00",
    "2026-12-24": "2026-12-24 09:00",
    "2026-12-24T18:00:00+00:00": "2026-12-24 19:00",
    "12/24 at 6pm": "2026-12-24 18:00",
    "24/12/2026 at 6pm": "2026-12-24 18:00",
    "on Thursday, December 24": "2026-12-24 09:00",
    "on the 15th at 10": "2026-12-15 10:00",
    "on the 30th": "2026-11-30 09:00",
    "on the 31st": "2026-12-31 09:00",
    "the 3rd of next month": "2026-12-03 09:00",
    "next month on the 30th at 8": "2026-12-30 08:00",
    "next month": "2026-12-01 09:00",
    "on 20 November": "2027-11-20 09:00",
    "on 29 February": "2028-02-29 09:00",
}
BEFORE_SPRING = {
    "tomorrow at 2:30": "2027-03-28 03:00",
    "tomorrow at 3:00": "2027-03-28 03:00",
    "tonight at 2": "2027-03-28 03:00",
    "in 8 hours": "2027-03-28 05:00",
    "in a day": "2027-03-28 20:00",
    "in 24 hours": "2027-03-28 21:00",
    "tonight": "2027-03-27 21:00",
    "this evening at 8:30": "2027-03-27 20:30",
    "this Saturday at 21:00": "2027-03-27 21:00",
    "next Sunday": "2027-04-04 09:00",
    "Sunday at 7": "2027-03-28 07:00",
    "this weekend": "2027-04-03 09:00",
    "at 9": "2027-03-27 21:00",
    "at 8": "2027-03-28 08:00",
    "at 3": "2027-03-28 15:00",
    "in a month": "2027-04-27 20:00",
}
BEFORE_AUTUMN = {
    "tomorrow at 1:30": "2026-11-01 01:30-04:00",
    "tonight at 1:30": "2026-11-01 01:30-04:00",
    "in 4 hours": "2026-11-01 01:30-05:00",
    "in one day": "2026-11-01 22:30-05:00",
    "tomorrow at noon": "2026-11-01 12:00-05:00",
    "midnight": "2026-11-01 00:00-04:00",
    "at 11": "2026-10-31 23:00-04:00",
    "at 9": "2026-11-01 09:00-05:00",
    "at 10": "2026-11-01 10:00-05:00",
    "in a month": "2026-11-30 22:30-05:00",
    "on the 31st": "2026-12-31 09:00-05:00",
    "next Tuesday at 9pm": "2026-11-03 21:00-05:00",
    "on Wednesday at 3": "2026-11-04 15:00-05:00",
}
BEFORE_NEW_YEAR = {
    "at 9": "2026-12-30 09:00",
    "at 8": "2026-12-30 20:00",
    "at 5": "2026-12-30 17:00",
    "today": "2026-12-30 09:00",
    "this morning": "2026-12-30 09:00",
    "this morning at 11": "2026-12-30 11:00",
    "the day after tomorrow": "2027-01-01 09:00",
    "1 January at 0:00": "2027-01-01 00:00",
    "on 31 December at midnight": "2027-01-01 00:00",
    "Friday": "2027-01-01 09:00",
    "next Friday": "2027-01-08 09:00",
    "next Saturday": "2027-01-02 09:00",
    "Wednesday at 8": "2027-01-06 08:00",
    "in 40 hours": "2027-01-01 00:15",
    "in two months": "2027-02-28 08:15",
    "the 1st": "2027-01-01 09:00",
    "30 December at 8:00": "2027-12-30 08:00",
}
HEARD = [
    *[(MONDAY, said, meant) for said, meant in ON_MONDAY.items()],
    *[(SPRING, said, meant) for said, meant in BEFORE_SPRING.items()],
    *[(AUTUMN, said, meant) for said, meant in BEFORE_AUTUMN.items()],
    *[(NEW_YEAR, said, meant) for said, meant in BEFORE_NEW_YEAR.items()],
]
PIECES = [
    *(
        "at",
        "on",
        "in",
        "the",
        "of",
        "next",
        "this",
        "and",
        "a",
        "an",
        "half",
        "past",
        "quarter",
        "to",
        "from",
        "now",
    ),
    *(
        "today",
        "tomorrow",
        "tonight",
        "the day after tomorrow",
        "week",
        "month",
        "days",
        "hours",
        "minutes",
        "weekend",
    ),
    *(
        "Monday",
        "fri",
        "May",
        "December",
        "29 February",
        "31 June",
        "24.12.",
        "5/13",
        "2027-05-03",
        "the 31st",
        "2099",
    ),
    *(
        "morning",
        "evening",
        "night",
        "noon",
        "midnight",
        "end of the day",
        "am",
        "pm",
        "9",
        "24:00",
        "2:30",
        "12",
        "99",
    ),
    *(
        "one",
        "twenty-five",
        "second",
        "99999",
        "1.5",
        "every",
        "months",
        ",",
        "-",
        "|",
        "0000-01-01",
        "9999-12-31",
    ),
]
"""What times are said with, and what cannot be said."""


@pytest.mark.parametrize(
    ("now", "said", "meant"), HEARD, ids=[f"{now:%d %b}: {said}" for now, said, _ in HEARD]
)
def test_what_people_say_is_understood(now: datetime, said: str, meant: str) -> None:
    moment = datetime.fromisoformat(meant)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=now.tzinfo)
    heard = parse_spoken_moment(said, now)
    assert heard.timestamp() == moment.timestamp()
    assert heard.tzinfo == now.tzinfo


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("", "says no time"),
        ("soon", "'soon' is not part of a time"),
        ("now", "'now' is not part of a time"),
        ("Thanksgiving", "'thanksgiving' is not part of a time"),
        ("tomorrow at 9 UTC", "'utc' is not part of a time"),
        ("tomorrow at 9 or 10", "'or 10' is not part of a time"),
        ("from 9 to 5", "'to 5' is not part of a time"),
        ("in 5", "'5' is not part of a time"),
        ("in ten", "'10' is not part of a time"),
        ("in 3 working days", "is not part of a time"),
        ("in a few minutes", "'a few minutes' is not part of a time"),
        ("May", "'may' is not part of a time"),
        ("in 2 hours at 9", "names two times of the day"),
        ("in 1.5 months", "counts parts of a month"),
        ("every Monday at 8", "comes again and again"),
        ("Mondays at 8", "comes again and again"),
        ("at 25:00", "names a time that no clock shows: '25:00'"),
        ("at 13pm", "names a time that no clock shows: '13pm'"),
        ("at 9:75", "names a time that no clock shows: '9:75'"),
        ("31 June", "names a day that does not exist"),
        ("next month on the 31st of next month", "is not part of a time"),
        ("2027-02-29", "names a day that does not exist"),
        ("2101-01-01", "names a day that does not exist"),
        ("5/6 at 10", "can be one of two days: name the month"),
        ("Friday 24 November", "names two days that are not the same"),
        ("tomorrow, 3 May", "names two days that are not the same"),
        ("today at 13:00", "has passed: it is Monday 23 November 2026, 14:00 now"),
        ("today at 9am", "has passed"),
        ("this morning", "has passed"),
        ("today", "has passed"),
        ("3 May 2026", "has passed"),
        ("2026-11-23 14:00", "has passed"),
        ("2026-11-23T12:59:00Z", "has passed"),
        ("in 0 minutes", "has passed"),
        ("in 9999 weeks", "is too far away"),
        ("in 99999 months", "is too far away"),
        ("tomorrow " * 30, "is too long for a time"),
    ],
)
def test_what_is_not_clear_is_refused_with_what_would_be(said: str, why: str) -> None:
    with pytest.raises(TimeUnclear) as refused:
        parse_spoken_moment(said, MONDAY)
    assert why in str(refused.value)
    assert "Write a time such as `tomorrow at 9:00`" in str(refused.value)


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        ("2026-11-23 17:30", "today, Monday 23 November, 17:30"),
        ("2026-11-24 09:00", "tomorrow, Tuesday 24 November, 9:00"),
        ("2026-11-25 00:00", "Wednesday 25 November, 0:00"),
        ("2027-05-03 10:05", "Monday 3 May 2027, 10:05"),
    ],
)
def test_a_moment_is_told_with_its_date(moment: str, words: str) -> None:
    told = datetime.fromisoformat(moment).replace(tzinfo=BERLIN)
    assert format_spoken_moment(told, MONDAY) == words
    assert format_spoken_moment(told.astimezone(NEW_YORK), MONDAY) == words


def test_an_hour_that_comes_twice_is_the_one_still_to_come() -> None:
    between = datetime(2026, 11, 1, 1, 45, tzinfo=NEW_YORK)
    assert parse_spoken_moment("today at 1:30", between) == datetime(
        2026, 11, 1, 1, 30, tzinfo=NEW_YORK, fold=1
    )
    assert (
        parse_spoken_moment("in half an hour", between.replace(fold=1)).isoformat()
        == "2026-11-01T02:15:00-05:00"
    )


nows = st.builds(
    lambda wall, zone: wall.replace(tzinfo=zone),
    st.datetimes(datetime(2020, 1, 1), datetime(2080, 1, 1)),
    st.sampled_from(
        [BERLIN, NEW_YORK, UTC, ZoneInfo("Australia/Lord_Howe"), ZoneInfo("Asia/Kathmandu")]
    ),
)


@given(nows, st.integers(1, 5 * 366 * 24 * 60) | st.integers(1, 3 * 24 * 60))
@example(SPRING, 6 * 60 + 1)
@example(AUTUMN, 3 * 60)
@example(datetime(2026, 11, 1, 1, 45, tzinfo=NEW_YORK), 45)
@settings(max_examples=examples(600), deadline=None)
def test_what_is_told_is_understood_again(now: datetime, minutes: int) -> None:
    at = (now.timestamp() // 60 + minutes) * 60
    moment = datetime.fromtimestamp(at, now.tzinfo)
    if moment.fold and moment.replace(fold=0).timestamp() > now.timestamp():
        return  # the words fit both, and the first is meant
    assert parse_spoken_moment(format_spoken_moment(moment, now), now).timestamp() == at


@given(st.lists(st.sampled_from(PIECES), max_size=7).map(" ".join) | st.text(max_size=30), nows)
@example("0000-01-01", MONDAY)
@example("9999-12-31 midnight", MONDAY)
@example("0001-01-01T00:00+23:59", MONDAY)
@settings(max_examples=examples(1500), deadline=None)
def test_any_text_is_a_moment_to_come_or_a_sentence(text: str, now: datetime) -> None:
    try:
        moment = parse_spoken_moment(text, now)
    except TimeUnclear as error:
        assert "Write a time such as" in str(error)
        return
    assert now.timestamp() < moment.timestamp() < (now + timedelta(days=100 * 366)).timestamp()
    assert moment.tzinfo == now.tzinfo
