"""A session to be driven."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest

from deskhand.models.base import Model
from deskhand.testing.bench import Bench
from deskhand.testing.tools import STATEMENTS
from deskhand.tools.base import Tool

MakeBench = Callable[[Model, Sequence[Tool]], Bench]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[MakeBench]:
    made: list[Bench] = []

    def make(model: Model, tools: Sequence[Tool] = ()) -> Bench:
        made.append(Bench(tmp_path / f"{len(made)}.db", model, tools, STATEMENTS))
        return made[-1]

    yield make
    for one in made:
        await one.close()
