"""A fake provider on loopback, and models of both wires that talk to it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from deskhand.models.transport import Transport, TransportLimits
from deskhand.testing.llm import FakeLLM

QUICK = TransportLimits(connect_s=5, first_s=1.5, idle_s=1, total_s=3)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def fake() -> AsyncIterator[FakeLLM]:
    async with FakeLLM() as server:
        yield server


@pytest.fixture
async def transport() -> AsyncIterator[Transport]:
    async with Transport(QUICK) as session:
        yield session
