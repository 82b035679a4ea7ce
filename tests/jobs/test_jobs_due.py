"""What becomes of times that passed while nobody looked. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.jobs.due import MAX_CLOCK_SKEW_S, MAX_COUNTED, find_due, initial_seen_at
from deskhand.types.jobs import Misfire
from deskhand.types.schedules import due_within, parse_schedule

from ..examples import examples

HOUR = 3600.0
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC).timestamp()
HOURLY = parse_schedule("hourly")


@pytest.mark.parametrize(
    ("misfire", "times"), [("skip", []), ("run_once", [-1]), ("run_all", [-3, -2, -1])]
)
def test_down_for_three_hours_over_three_times(misfire: Misfire, times: list[int]) -> None:
    back = NOON + 3.5 * HOUR
    found = find_due(HOURLY, NOON, back, misfire, HOUR)
    assert found.fire == tuple(NOON + (4 + n) * HOUR for n in times)
    assert (found.seen_at, found.next_at) == (NOON + 3 * HOUR, NOON + 4 * HOUR)
    assert found.lost == 3 - len(times)


def test_run_once_is_for_what_is_not_too_late() -> None:
    daily = parse_schedule("daily 12:00")
    assert find_due(daily, NOON - 60, NOON + HOUR, "run_once", HOUR).fire == (NOON,)
    late = find_due(daily, NOON - 60, NOON + HOUR + 1, "run_once", HOUR)
    assert (late.fire, late.missed, late.lost) == ((), NOON, 1)
    assert find_due(daily, NOON - 60, NOON + 20 * HOUR, "run_once", 24 * HOUR).fire == (NOON,)


def test_a_short_restart_is_no_misfire() -> None:
    assert find_due(HOURLY, NOON - HOUR, NOON + 59, "skip", HOUR).fire == (NOON,)
    assert find_due(HOURLY, NOON - HOUR, NOON + 61, "skip", HOUR).fire == ()


def test_run_all_makes_up_for_ten_at_most() -> None:
    found = find_due(parse_schedule("every 1s"), NOON, NOON + 365 * 24 * HOUR, "run_all", HOUR)
    assert len(found.fire) == 10 and found.fire[-1] == NOON + 365 * 24 * HOUR


@given(
    schedule=st.sampled_from(
        ("every 7m", "every 7m from 2026-06-01T12:03", "*/20 * * * *", "30 * * * *", "daily 12:00")
    ),
    after=st.floats(-3 * HOUR, 3 * HOUR),
    for_s=st.floats(0, 90 * 24 * HOUR),
    misfire=st.sampled_from(("skip", "run_once", "run_all")),
)
@settings(max_examples=examples(100), deadline=None)
def test_what_is_not_run_is_counted(
    schedule: str, after: float, for_s: float, misfire: Misfire
) -> None:
    """So that who counts what became of each time can tell a rule from a loss."""
    parsed = parse_schedule(schedule)
    since = NOON + after
    now = NOON + after + for_s
    found = find_due(parsed, since, now, misfire, HOUR)
    came = list(due_within(parsed, since, now))
    assert found.lost == min(MAX_COUNTED, len(came) - len(found.fire))
    assert (found.missed is None) == (found.lost == 0)
    assert not found.lost or found.missed == [at for at in came if at not in found.fire][-1]


def test_a_clock_that_goes_back_fires_nothing_again() -> None:
    back = find_due(HOURLY, NOON, NOON - 2 * HOUR, "run_all", HOUR)
    assert (back.fire, back.seen_at, back.next_at) == ((), NOON, NOON + HOUR)
    wrong = find_due(HOURLY, NOON + 10 * 365 * 24 * HOUR, NOON, "run_all", HOUR)
    assert (wrong.fire, wrong.seen_at, wrong.next_at) == ((), NOON, NOON + HOUR)


def test_a_new_job_counts_from_when_its_file_was_written_within_reason() -> None:
    assert initial_seen_at(NOON - 60, NOON) == NOON - 60
    assert initial_seen_at(0.0, NOON) == NOON - HOUR
    assert initial_seen_at(NOON + 60, NOON) == NOON


@given(
    schedule=st.sampled_from(("every 7m", "*/20 * * * *", "30 * * * *", "daily 12:00")),
    steps=st.lists(st.floats(-3 * HOUR, 5 * HOUR), max_size=40),
    misfire=st.sampled_from(("skip", "run_once", "run_all")),
)
@settings(max_examples=examples(150), deadline=None)
def test_whatever_the_clock_does_no_time_comes_twice(
    schedule: str, steps: list[float], misfire: Misfire
) -> None:
    parsed = parse_schedule(schedule)
    now = NOON
    seen_at = NOON
    fired = list[float]()
    for step in steps:
        now += step
        found = find_due(parsed, seen_at, now, misfire, HOUR)
        assert all(seen_at < at <= now for at in found.fire)
        if found.next_at is not None:
            assert found.next_at > now
        assert found.seen_at >= seen_at or seen_at - now > MAX_CLOCK_SKEW_S
        fired += found.fire
        seen_at = found.seen_at
    assert sorted(set(fired)) == fired
    known = set(due_within(parsed, min([NOON, *fired]) - 1, max([NOON, *fired])))
    assert set(fired) <= known
