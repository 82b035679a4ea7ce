"""A short torture of three channels at once; `make torture-channels` is the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from deskhand.testing.torture_channels import ChannelsReport, ChannelsTorture, torture_channels
from deskhand.testing.torture_channels_child import CONFIRM_FIRST, TAKE_TWICE


async def torture_mutant(home: Path, mutant: str) -> ChannelsReport:
    torture = ChannelsTorture(home, kills=3, seed=3, mutant=mutant)
    torture.drain_s = 10.0  # what is lost never comes to rest
    return await torture.run()


@pytest.mark.timeout(300)
async def test_nothing_is_lost_repeated_or_told_to_others() -> None:
    report = await torture_channels(kills=6, seed=7)
    assert report.is_clean, report.show()
    assert report.chats >= 50
    assert report.messages > 2 * report.chats
    assert report.in_open_turn and len(report.upsets) > 10


@pytest.mark.timeout(180)
async def test_channels_that_confirm_too_early_are_caught(tmp_path: Path) -> None:
    report = await torture_mutant(tmp_path / "home", CONFIRM_FIRST)
    assert report.cursor_ahead and report.lost, report.show()
    for channel in ("telegram", "slack", "discord"):
        assert any(fault.startswith(channel) for fault in report.faults), report.show()


@pytest.mark.timeout(180)
async def test_a_store_that_forgets_what_it_took_in_is_caught(tmp_path: Path) -> None:
    report = await torture_mutant(tmp_path / "home", TAKE_TWICE)
    assert report.unmarked_duplicates, report.show()
