from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from deskhand.testing.llm import FakeLLM

from .desk import Desk


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with FakeLLM() as model:
        yield Desk(tmp_path, model)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "main.py").write_text("print('one')\n")
    return folder
