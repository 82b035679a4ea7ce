"""A short torture of the real process with a clock that is set; `make torture-clock` is the long
one."""

from __future__ import annotations

import pytest

from deskhand.testing.torture_clock import torture


@pytest.mark.timeout(300)
async def test_nobody_waits_for_the_clock_and_nothing_comes_twice() -> None:
    report = await torture(kills=6, seed=5)
    assert report.good, report.show()
    assert report.sets > 15 and report.put_off > 5 and report.run > 30 and report.messages > 40


@pytest.mark.timeout(300)
async def test_one_clock_for_everything_is_caught() -> None:
    """Whether the clock is set just where a wait is worked out is chance; four short runs are
    enough for it to happen."""
    for seed in range(4, 8):
        report = await torture(kills=3, seed=seed, mode="one-clock")
        if not report.good:
            return
    pytest.fail(report.show())
