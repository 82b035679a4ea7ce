"""What all tests share."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """We run on asyncio alone: aiohttp and prompt_toolkit do too."""
    return "asyncio"
