"""One Deskhand for each test of the web room."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from deskhand.sandbox.choose import Proven, open_sandbox

from .served import Served, serving


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path) as found:
        yield found


@pytest.fixture(scope="session")
def proven() -> Proven:
    """One proof of the sandbox is enough for all."""
    return anyio.run(open_sandbox)
