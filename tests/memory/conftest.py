"""A store of its own for each test, with the statements of all rooms."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from deskhand.config.statements import load_statements
from deskhand.store.sqlite import SqliteStore


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "deskhand.db", load_statements())
    yield opened
    await opened.close()
