"""A short torture of jobs with the real process; `make torture-jobs` is the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from deskhand.jobs.ledger import list_runs
from deskhand.testing.jobs import JobDesk
from deskhand.testing.torture_jobs import beyond_ten, torture
from deskhand.types.schedules import due_within, parse_schedule


@pytest.mark.timeout(180)
async def test_no_time_is_lost_or_doubled() -> None:
    report = await torture(kills=6, seed=5, times=12)
    assert report.good, report.show()
    assert report.times >= 12 and report.kills >= 6


async def test_what_is_beyond_ten_is_told_from_what_is_lost(tmp_path: Path) -> None:
    """After half an hour of every minute: ten are made up for, and the row before them counts the
    others."""
    desk = JobDesk(tmp_path)
    desk.write("j", "every 1m", misfire="run_all", overlap="queue_one")
    async with desk.running() as app:
        await desk.pass_time(app, 60)
        await desk.ended(app, "j")
    desk.clock.advance(1800)
    async with desk.running() as app:
        await desk.look(app)
        await desk.ended(app, "j", 12)
        runs = {run.due_at: run for run in await list_runs(app.store, "j", 99)}
    expected = list(due_within(parse_schedule("every 1m"), min(runs) - 1, max(runs)))
    missed = {at: run.said for at, run in runs.items() if run.state == "missed"}
    assert [said.rpartition("; ")[2] for said in missed.values()] == ["19 earlier ones too"]
    told = beyond_ten(expected, missed)
    assert told == {*expected} - {*runs} and len(told) == 19
    assert len({*expected} - {*runs, *beyond_ten(expected, {})}) == 19, (
        "without that row they are lost"
    )
    assert beyond_ten(expected, {min(missed): "; 18 earlier ones too"}) < told


@pytest.mark.timeout(180)
async def test_a_claim_apart_from_its_message_is_caught() -> None:
    report = await torture(kills=4, seed=3, mode="two-commits", times=8)
    assert not report.good, report.show()
