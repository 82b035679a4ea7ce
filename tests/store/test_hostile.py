"""What somebody planted in the database is never run."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from deskhand.store.schema import connect
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.store_suite import commit, received
from deskhand.types.errors import StoreCorrupt


class Planted:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[type[Path], tuple[str]] | tuple[object, tuple[Path]]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("protocol", [0, pickle.HIGHEST_PROTOCOL])
async def test_a_pickle_in_the_log_is_damage(tmp_path: Path, protocol: int) -> None:
    planted = pickle.dumps(Planted(tmp_path / "ran"), protocol)
    path = tmp_path / "deskhand.db"
    store = SqliteStore(path)
    await store.commit(commit(1, received(1), session="a"))
    await store.close()
    database = connect(path, write=True)
    database.execute("UPDATE event SET body = ?", (planted,)).fetchall()
    database.close()
    store = SqliteStore(path)
    with pytest.raises(StoreCorrupt):
        await store.history("a")
    assert [found.n for found in (await store.audit())[1]] == [1]
    await store.close()
    assert not (tmp_path / "ran").exists()
    pickle.loads(planted)
    assert (tmp_path / "ran").exists(), "it would have"
