"""A fake provider on loopback, and models of both wires that talk to it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from deskhand.models.transport import Limits, Transport
from deskhand.testing.llm import FakeLLM

QUICK = Limits(connect_s=0.5, first_s=0.3, idle_s=0.2, total_s=0.8)


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
