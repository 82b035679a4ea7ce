"""A Telegram on loopback and channels on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from deskhand.channels.base import Closing
from deskhand.channels.settings import ChannelConfig
from deskhand.channels.telegram.channel import TelegramChannel, open_telegram
from deskhand.testing.channel import MemoryContext
from deskhand.testing.telegram.server import TelegramServer

Open = Callable[..., TelegramChannel]


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as started:
        yield started


@pytest.fixture
async def open_channel(server: TelegramServer, tmp_path: Path) -> AsyncIterator[Open]:
    """Opens a channel on the server's bot, with these settings."""
    opened: list[Closing] = []

    def open_(**config: object) -> TelegramChannel:
        settings = ChannelConfig(base_url=server.base_url.removesuffix("/bot"), **config)  # type: ignore[arg-type]
        context = MemoryContext("telegram", settings, tmp_path / "state", server.token)
        channel = open_telegram(context)
        opened.append(channel)
        return channel

    yield open_
    for channel in opened:
        await channel.close()
