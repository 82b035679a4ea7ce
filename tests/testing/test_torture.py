"""A short torture of the real process; `make torture` is the long one."""

from __future__ import annotations

import pytest

from deskhand.testing.torture import torture


@pytest.mark.timeout(180)
async def test_nothing_is_lost_or_repeated() -> None:
    report = await torture(kills=15, seed=7)
    assert report.good, report.show()
    assert report.messages > 40
    assert report.web_messages > 20 and report.web_sent_twice and report.web_breaks


@pytest.mark.timeout(180)
async def test_a_channel_that_confirms_too_early_is_caught() -> None:
    report = await torture(kills=5, seed=3, mode="ack-first")
    assert report.lost > 0, report.show()


@pytest.mark.timeout(180)
async def test_what_is_shown_before_it_is_on_disk_is_caught() -> None:
    report = await torture(kills=3, seed=3, mode="publish-first")
    assert report.web_astray > 0, report.show()
