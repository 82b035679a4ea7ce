"""A database on a server is backed up as it was at one moment, and restored as a file."""

from __future__ import annotations

import threading
from pathlib import Path

import anyio
import psycopg

from deskhand.config.config import read_settings
from deskhand.config.statements import load_statements
from deskhand.store.postgres import PostgresStore
from deskhand.store.sqlite import SqliteStore
from deskhand.supervision.backup import make_backup
from deskhand.supervision.backup_places import FolderPlace
from deskhand.supervision.restore import restore_backup
from deskhand.testing.store_suite import ANN, commit, inbound, received

NOW = 1_795_500_000.0


async def test_a_server_that_is_written_to_meanwhile(url: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "deskhand.yaml").write_text(f"store: {url}\n")
    settings = read_settings(environment={"DESKHAND_HOME": str(home), "HOME": str(tmp_path)})
    (home / "state").mkdir()
    store = PostgresStore(url, load_statements("postgresql"))
    accepted: list[str] = []
    ended = threading.Event()

    async def write() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            session = f"default/web:{number % 5}"
            name = f"m{number}"
            await store.accept(inbound(name), ANN, session)
            accepted.append(name)
            n = 1 + (number - 1) // 5
            await store.commit(commit(n, received(number), session=session))

    async def back_up() -> None:
        while len(accepted) < 50:
            await anyio.sleep(0.01)
        before = set(accepted)
        made, listed = await anyio.to_thread.run_sync(
            lambda: make_backup(settings, FolderPlace(tmp_path / "backups"), now=NOW)
        )
        ended.set()
        assert listed.database == "postgresql" and listed.events > 50
        done = await anyio.to_thread.run_sync(
            lambda: restore_backup(settings, made.path, now=NOW, replace=True)
        )
        assert done.listed.events == listed.events
        assert before <= await accepted_in(settings.home.database)

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            tasks.start_soon(back_up)
    finally:
        await store.close()
    assert (home / "deskhand.yaml").read_text() == ""
    with psycopg.connect(url) as db:  # nothing holds on to the server
        (left,) = db.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'"
        ).fetchone() or (1,)
    assert left == 0


async def accepted_in(path: Path) -> set[str]:
    store = SqliteStore(path, load_statements())
    try:
        assert (await store.audit())[1] == []
        return {row.inbound.external_id for _, row in await store.accepted_since(0)}
    finally:
        await store.close()
