"""One Deskhand for each test of the web room."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from .served import Served, serving


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path) as found:
        yield found
