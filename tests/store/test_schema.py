"""Opening a database: new, old, newer, damaged, out of reach, or cut off in the middle of a
migration."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from deskhand.agent.fold import fold
from deskhand.agent.state import State
from deskhand.store.schema import connect, load_migrations, migrate
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.store_suite import ANN, OWNER, T0, S, commit, inbound, received
from deskhand.types.errors import StoreCorrupt, StoreError, StoreNewer, StoreReadOnly
from deskhand.types.events import Erased

HERE = Path(__file__).parent
GOLDEN = sorted(
    (HERE / "golden").glob("schema_*.sql"), key=lambda path: int(path.stem.removeprefix("schema_"))
)


async def filled(path: Path) -> int:
    """A database with something in it; returns its size in bytes when it is closed."""
    store = SqliteStore(path)
    for i in range(1, 101):
        await store.accept(inbound(str(i)), ANN, S)
        await store.commit(commit(i, received(i, f"text {i} " * 20)))
    await store.close()
    return path.stat().st_size


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
async def test_every_released_schema_is_brought_up_to_date(golden: Path, tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    db = apsw.Connection(str(path))
    for _ in db.execute(golden.read_text()):
        pass
    db.close()
    store = SqliteStore(path)
    count, breaks = await store.audit()
    sessions = await store.sessions(OWNER)
    talk = await store.events("default/terminal:golden")
    gone = await store.events("default/terminal:erased")
    state = fold(State(""), await store.history("default/terminal:golden"))
    assert store.schema == load_migrations()[-1][0] and not breaks and not store.check_integrity()
    assert [row.session for row in sessions] == ["default/terminal:golden"] and sessions[
        0
    ].turns == 1
    assert count == len(talk) + len(gone) == 12
    assert [type(e.event) for e in gone] == [Erased] * 3
    assert (
        state.turn is not None and "call_2" in state.calls and state.calls["call_2"].ask is not None
    )
    assert [
        row.inbound.external_id for row in await store.list_waiting("default/terminal:golden")
    ] == ["m3"]
    assert [row.outgoing.key for row in await store.outbox_due(2e9, 9)] == ["k1"]
    assert [(row.session, row.wake_at) for row in await store.open_sessions()] == [
        ("default/terminal:golden", None)
    ]
    asks = await store.open_asks(OWNER)
    used = await store.usage(OWNER)
    assert [ask.ask_id for ask in asks] == ["ask_1"] and used[0].calls == 3
    hits = await store.search(OWNER, "picture")
    assert [(hit.session, hit.n) for hit in hits] == [("default/terminal:golden", 4)]
    await store.rebuild_projections()
    assert await store.sessions(OWNER) == sessions and await store.open_asks(OWNER) == asks
    assert await store.usage(OWNER) == used and await store.search(OWNER, "picture") == hits
    await store.close()


def test_there_is_a_golden_database_of_every_schema() -> None:
    assert [path.stem for path in GOLDEN] == [f"schema_{number}" for number, _ in load_migrations()]


async def test_newer_schema_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "deskhand.db"
    await filled(path)
    newer = load_migrations()[-1][0] + 1
    db = connect(path, write=True)
    db.execute("INSERT INTO schema_version VALUES(?)", (newer,))
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreNewer, match=f"schema {newer}"):
        SqliteStore(path)
    assert path.read_bytes() == before


NEXT = [
    *load_migrations(),
    (
        load_migrations()[-1][0] + 1,
        "CREATE TABLE next(x); INSERT INTO next VALUES(1); SELECT maybe_die();",
    ),
]


def migrating(path: Path, maybe_die: Callable[[], int]) -> apsw.Connection:
    db = connect(path, write=True)
    db.create_scalar_function("maybe_die", lambda *nothing: maybe_die(), 0)
    migrate(db, path, NEXT)
    return db


async def test_kill_in_the_middle_of_a_migration(tmp_path: Path) -> None:
    path = tmp_path / "deskhand.db"
    await filled(path)
    child = (
        "import os, runpy, sys; from pathlib import Path;"
        f"test = runpy.run_path({str(Path(__file__))!r});"
        "test['migrating'](Path(sys.argv[1]), lambda: os.kill(os.getpid(), 9) or 0)"
    )
    for _ in range(2):
        killed = subprocess.run([sys.executable, "-c", child, str(path)], check=False)
        assert killed.returncode == -signal.SIGKILL
    store = SqliteStore(path)  # the version before still opens it: nothing of the next one is there
    assert len(await store.events(S)) == 100 and not (await store.audit())[1]
    await store.close()
    db = migrating(path, lambda: 0)
    assert db.execute("SELECT max(version) FROM schema_version").fetchone() == (NEXT[-1][0],)
    assert db.execute("SELECT * FROM next").fetchall() == [(1,)]
    assert migrate(db, path, NEXT) == NEXT[-1][0], "and again is nothing"
    db.close()


def test_two_migrate_at_once(tmp_path: Path) -> None:
    """The second has read the old version, and waits for the lock that the first holds in the
    middle of its work."""
    path, versions, threads = tmp_path / "deskhand.db", list[int](), list[threading.Thread]()
    migrate(connect(path, write=True), path, load_migrations())

    def second() -> None:
        versions.append(
            migrate(
                connect(path, write=True),
                path,
                [*load_migrations(), (NEXT[-1][0], "CREATE TABLE next(x);")],
            )
        )

    def meanwhile() -> int:
        threads.append(threading.Thread(target=second))
        threads[0].start()
        time.sleep(0.3)
        return 0

    db = migrating(path, meanwhile)
    threads[0].join()
    assert versions == [NEXT[-1][0]] and db.execute("SELECT * FROM next").fetchall() == [(1,)]


def test_a_migration_that_fails_is_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "deskhand.db"
    with pytest.raises(StoreError):
        migrate(
            connect(path, write=True),
            path,
            [*load_migrations(), (NEXT[-1][0], "CREATE TABLE next(x); SELECT no_such();")],
        )
    db = connect(path, write=True)
    assert db.execute("SELECT max(version) FROM schema_version").fetchone() == (
        load_migrations()[-1][0],
    )
    assert db.execute("SELECT * FROM sqlite_schema WHERE name = 'next'").fetchall() == []


def test_many_processes_open_a_new_file_at_once(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from deskhand.store.sqlite import SqliteStore;"
        "sys.stdin.read(); print(SqliteStore(Path(sys.argv[1])).schema)"
    )
    argv = [sys.executable, "-c", code, str(tmp_path / "deskhand.db")]
    children = [
        subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(5)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.close()
        child.stdin = None
    assert [child.communicate()[0].strip() for child in children] == [
        b"%d" % load_migrations()[-1][0]
    ] * 5


async def test_damage_is_said_plainly(tmp_path: Path) -> None:
    path = tmp_path / "deskhand.db"
    size = await filled(path)
    whole = path.read_bytes()
    page = 4096
    damaged = {
        "another file": b"hello, I am a text file\n" * 100,
        "cut in the first page": whole[:1000],
        "cut in half": whole[: size // 2],
        "cut in a page": whole[: size - 100],
        "header": b"\xff" * 32 + whole[32:],
        "schema": whole[:100] + b"\xa5" * (page - 100) + whole[page:],
        "pages": whole[:page] + b"\xa5" * (size - page),
    }
    for what, data in damaged.items():
        path.write_bytes(data)
        with pytest.raises(StoreCorrupt, match=r"damaged.*backup"):
            store = SqliteStore(path)
            try:
                await store.events(S)
                await store.sessions(OWNER)
                await store.accept(inbound(f"more {what}"), ANN, S)
                if found := store.check_integrity():
                    raise StoreCorrupt(f"damaged ({found[0]}): restore a backup")
            finally:
                await store.close()


def test_out_of_reach_is_said_plainly(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.db").mkdir()
    for path in (tmp_path / "file" / "a.db", tmp_path / "none" / "a.db", tmp_path / "folder.db"):
        with pytest.raises(StoreReadOnly, match="check"):
            SqliteStore(path)


async def test_an_empty_file_is_a_new_database(tmp_path: Path) -> None:
    path = tmp_path / "deskhand.db"
    path.touch()
    assert await filled(path) > 0
    store = SqliteStore(path)
    assert (await store.events(S))[-1].at == T0 + 100
    await store.close()
