"""A short torture of several workers; `make torture-workers` is the long one."""

from __future__ import annotations

import pytest

from deskhand.testing.torture_workers import MESSAGES_A_BLOW, TortureOptions, torture_workers


@pytest.mark.timeout(400)
async def test_several_workers_lose_nothing_and_repeat_nothing() -> None:
    report = await torture_workers(TortureOptions(8, workers=3, seed=5, refused=0.2, jobs=10))
    assert report.is_clean, report.show()
    assert report.messages >= 8 * MESSAGES_A_BLOW and report.web_messages > 8
