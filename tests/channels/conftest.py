"""A Telegram on loopback and channels on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from deskhand.channels.base import Closing, Kit
from deskhand.channels.settings import ChannelConfig
from deskhand.channels.telegram import TelegramChannel, open_telegram
from deskhand.config.clock import SystemClock
from deskhand.store.blobs import Blobs
from deskhand.testing.telegram import TelegramServer

Open = Callable[..., TelegramChannel]


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as started:
        yield started


@pytest.fixture
async def open_channel(server: TelegramServer, tmp_path: Path) -> AsyncIterator[Open]:
    """Opens a channel on the server's bot, with these settings."""
    opened: list[Closing] = []
    blobs = Blobs(tmp_path / "blobs")

    def open_(**config: object) -> TelegramChannel:
        settings = ChannelConfig(base_url=server.base_url.removesuffix("/bot"), **config)  # type: ignore[arg-type]
        kit = Kit(
            "telegram",
            settings,
            lambda name: server.token,
            blobs.put,
            blobs.get,
            tmp_path / "state",
            SystemClock().now,
        )
        channel = open_telegram(kit)
        opened.append(channel)
        return channel

    yield open_
    for channel in opened:
        await channel.close()
