"""A short torture of jobs with the real process; `make torture-jobs` is the long one."""

from __future__ import annotations

import pytest

from deskhand.testing.torture_jobs import torture


@pytest.mark.timeout(180)
async def test_no_time_is_lost_or_doubled() -> None:
    report = await torture(kills=6, seed=5, times=12)
    assert report.good, report.show()
    assert report.times >= 12 and report.kills >= 6


@pytest.mark.timeout(180)
async def test_a_claim_apart_from_its_message_is_caught() -> None:
    report = await torture(kills=4, seed=3, mode="two-commits", times=8)
    assert not report.good, report.show()
