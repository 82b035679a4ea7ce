"""A server that speaks as the providers do, and engines that ask it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from deskhand.testing.speech_server import SpeechServer


@pytest.fixture
async def server() -> AsyncIterator[SpeechServer]:
    async with SpeechServer() as running:
        yield running
