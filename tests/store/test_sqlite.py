"""The SQLite store passes the suite; and what only a store in one file must do."""

from __future__ import annotations

from pathlib import Path

import pytest

from deskhand.store.sqlite import SqliteStore
from deskhand.testing.store_suite import CASES, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
async def test_conformance(case: Case, tmp_path: Path) -> None:
    await case(lambda: SqliteStore(tmp_path / "deskhand.db"))
    store = SqliteStore(tmp_path / "deskhand.db")
    assert not (await store.audit())[1] and not store.check()
    await store.close()
