from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from deskhand.sandbox.choose import Proven, open_sandbox

from .world import World


@pytest.fixture(scope="module")
def proven() -> Proven:
    return anyio.run(open_sandbox)


@pytest.fixture
def world(tmp_path: Path, proven: Proven) -> World:
    return World(tmp_path.resolve() / "home", proven)
