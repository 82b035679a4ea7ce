"""A short torture of a deep work in a real process; `make torture-deep` is the long one."""

from __future__ import annotations

import pytest

from deskhand.testing.deep_torture import torture


@pytest.mark.timeout(180)
async def test_each_task_is_done_once_however_often_it_is_killed() -> None:
    report = await torture(steps=24, kills=3, seed=5)
    assert report.good and report.kills == 3 and report.in_open_turn and report.nudges, (
        report.show()
    )
