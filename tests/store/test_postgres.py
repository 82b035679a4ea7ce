"""The PostgreSQL store passes the suite of stores; and what only a database server must do."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import anyio.to_thread
import psycopg
import pytest

from deskhand.config.statements import load_statements
from deskhand.store import postgres
from deskhand.store.postgres import LEASE_S, PostgresStore
from deskhand.store.postgres_connection import connect
from deskhand.store.postgres_schema import load_migrations, migrate
from deskhand.store.queries import last_event_number
from deskhand.testing.postgres import PostgresServer, running_server
from deskhand.testing.postgres_cuts import cutting
from deskhand.testing.store_suite import ANN, CASES, Case, S, commit, inbound, received
from deskhand.types.errors import NotLeading, StoreNewer, StoreUnavailable
from deskhand.types.events import Hinted

CHILD = [sys.executable, str(Path(__file__).parent / "children.py")]
MESSAGES = 200
SENDERS = 10


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
async def test_conformance(case: Case, url: str) -> None:
    await case(lambda: PostgresStore(url))
    store = PostgresStore(url)
    assert not (await store.audit())[1]
    await store.close()


async def test_every_statement_is_one_of_postgresql(url: str) -> None:
    """The server reads each, and finds its tables, columns and types."""
    store = PostgresStore(url, load_statements("postgresql"))
    refused = dict[str, str]()
    with psycopg.connect(url, autocommit=True) as db:
        for name, statement in store._statements.items():
            try:
                db.execute(f"PREPARE {name} AS {statement}")
            except psycopg.Error as error:
                refused[name] = str(error)
    await store.close()
    assert refused == {} and len(store._statements) > 350


async def send_all(store: PostgresStore) -> None:
    """MESSAGES of ten senders, each in its own session, with its first commit."""

    async def send(sender: int) -> None:
        session = f"agent/s{sender}"
        for number in range(1, MESSAGES // SENDERS + 1):
            row = await store.accept(inbound(f"{sender}-{number}"), ANN, session)
            assert not row.duplicate
            await store.commit(commit(number, received(row.inbox_id), session=session))

    async with anyio.create_task_group() as tasks:
        for sender in range(SENDERS):
            tasks.start_soon(send, sender)


async def check_all(url: str) -> None:
    """Each of them is there once, in its order."""
    store = PostgresStore(url)
    each = MESSAGES // SENDERS
    for sender in range(SENDERS):
        events = await store.events(f"agent/s{sender}")
        assert [recorded.n for recorded in events] == list(range(1, each + 1))
    count, breaks = await store.audit()
    assert (count, breaks) == (MESSAGES, [])
    assert store.last_inbox_id() >= MESSAGES
    ((rows,),) = store._fetch_all("SELECT count(*) FROM inbox")
    assert rows == MESSAGES
    await store.close()


async def test_a_commit_whose_answer_is_lost_happened_once(
    server: PostgresServer, url: str
) -> None:
    with (
        TemporaryDirectory(prefix="deskhand-cut-", dir="/tmp") as folder,
        cutting(Path(folder), server.socket) as proxy,
    ):
        store = PostgresStore(url.replace(str(server.socket.parent).replace("/", "%2F"), folder))
        proxy.cuts = 100
        await send_all(store)
        await store.close()
        assert proxy.cut >= 20, "many sessions share a commit"
    await check_all(url)


async def test_ended_connections_lose_nothing(url: str) -> None:
    store = PostgresStore(url)
    over = anyio.Event()

    def end_all() -> int:
        with psycopg.connect(url, autocommit=True) as db:
            rows = db.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'deskhand'"
            ).fetchall()
        return len(rows)

    async def disturb() -> None:
        ended = 0
        while not over.is_set() or ended == 0:
            ended += await anyio.to_thread.run_sync(end_all)
            await anyio.sleep(0.02)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(disturb)
        await send_all(store)
        over.set()
    await store.close()
    await check_all(url)


async def test_a_server_that_crashes_loses_nothing() -> None:
    """It is stopped as if the machine had been, and started again."""
    with running_server(durable=True) as server:
        store = PostgresStore(server.url)
        over = anyio.Event()

        async def crash() -> None:
            for _ in range(3):
                await anyio.sleep(0.1)
                await anyio.to_thread.run_sync(server.stop, "immediate")
                await anyio.to_thread.run_sync(server.start)
            over.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(crash)
            await send_all(store)
        assert over.is_set()
        await store.close()
        await check_all(server.url)


async def test_two_stores_write_beside_each_other(url: str) -> None:
    """Each number of a session is given once, whoever asks."""
    stores = [PostgresStore(url) for _ in range(2)]
    taken = []

    async def take(store: PostgresStore) -> None:
        for number in range(100):
            row = await store.accept(inbound(f"m{number}"), ANN, "agent/x")
            if not row.duplicate:
                taken.append(number)

    async with anyio.create_task_group() as tasks:
        for store in stores:
            tasks.start_soon(take, store)
    assert sorted(taken) == list(range(100))
    for store in stores:
        await store.close()


async def test_one_process_drives_and_the_next_waits(url: str) -> None:
    first, second = PostgresStore(url), PostgresStore(url)
    looked = 0

    def count() -> None:
        nonlocal looked
        looked += 1

    async def wait() -> None:
        async with second.lead(count):
            order.append("second")

    order = []
    async with anyio.create_task_group() as tasks, first.lead():
        tasks.start_soon(wait)
        await until(lambda: looked > 1)
        await second.accept(inbound("for the one that drives"), ANN, "agent/x")
        order.append("first")
    assert order == ["first", "second"]
    for store in (first, second):
        await store.close()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("end", ["killed", "stopped"])
async def test_a_driver_that_says_nothing_is_replaced(url: str, end: str) -> None:
    """Within ten seconds; one that comes back writes nothing any more."""
    child = subprocess.Popen([*CHILD, "drive", url], stdout=subprocess.PIPE, text=True)
    said = lines_of(child)
    await until(lambda: len(said) > 5)
    child.send_signal(signal.SIGKILL if end == "killed" else signal.SIGSTOP)
    began = time.monotonic()
    store = PostgresStore(url)
    async with store.lead():
        assert time.monotonic() - began < 10
        n = await last_event_number(store, S)
        child.send_signal(signal.SIGCONT)
        if end == "stopped":
            await until(lambda: said[-1] == "replaced")
        await anyio.to_thread.run_sync(child.wait)
        assert await last_event_number(store, S) == n
        await store.commit(commit(n + 1, Hinted("wrap_up", "x")))
    stored = [recorded.n for recorded in await store.events(S)]
    assert stored == list(range(1, n + 2))
    assert int([line for line in said if line != "replaced"][-1]) <= n
    await store.close()


def lines_of(child: subprocess.Popen[str]) -> list[str]:
    """What it says, as it comes."""
    said = list[str]()

    def read() -> None:
        assert child.stdout is not None
        with child.stdout as lines:
            for line in lines:
                said.append(line.strip())

    threading.Thread(target=read, daemon=True).start()
    return said


async def until(there: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not there():
            await anyio.sleep(0.01)


def test_a_newer_database_is_left_alone(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("CREATE TABLE schema_version(version BIGINT PRIMARY KEY)")
        db.execute("INSERT INTO schema_version VALUES(9999)")
    with pytest.raises(StoreNewer, match="schema 9999"):
        PostgresStore(url)


async def test_who_works_with_the_tables_as_they_were_writes_nothing_more(url: str) -> None:
    """A newer version migrates while an older one works: nothing of the older one is stored after
    that, and it starts anew."""
    old = PostgresStore(url)
    standby = PostgresStore(url)
    number = load_migrations()[-1][0] + 1
    known = [*load_migrations(), (number, "CREATE TABLE next(x INTEGER)")]
    async with old.work():
        await old.commit(commit(1, Hinted("wrap_up", "before")))
        with connect(url) as db:
            await anyio.to_thread.run_sync(migrate, db, url, known)
        with pytest.raises(NotLeading):
            await old.commit(commit(2, Hinted("wrap_up", "after")))
    with pytest.raises(NotLeading):
        async with standby.lead():
            pass
    with pytest.raises(NotLeading):
        await standby.commit(commit(2, Hinted("wrap_up", "after")))
    await standby.close()
    assert [recorded.n for recorded in await old.events(S)] == [1]
    await old.close()
    with pytest.raises(StoreNewer, match=f"schema {number}"):
        PostgresStore(url)


def test_where_nobody_listens_the_message_says_what_to_check(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"cannot connect to PostgreSQL .*Check that"):
        PostgresStore(f"postgresql://x:secret@/db?host={tmp_path}")
    with pytest.raises(StoreUnavailable) as raised:
        PostgresStore(f"postgresql://x:secret@/db?host={tmp_path}")
    assert "secret" not in str(raised.value)


async def test_an_agent_is_driven_by_one_worker(url: str) -> None:
    first, second = PostgresStore(url), PostgresStore(url)
    async with first.lead():
        async with second.work():
            assert await first.take(["ann", "ben"])
            assert not await second.take(["ben", "cal"]), "all of them or none"
            assert await second.take(["cal"])
            rows = [(row.agents, row.leads, row.is_self) for row in await second.workers()]
            assert sorted(rows) == [(("ann", "ben"), True, False), (("cal",), False, True)]
            await first.give_back(["ben"])
            assert await second.take(["ben"])
        assert await first.take(["ben", "cal"]), "who ends gives everything back"
    assert await second.workers() == []
    for store in (first, second):
        await store.close()


async def server_is_settled(url: str) -> None:
    """Nobody is taken for gone in the first seconds of a server."""
    query = "SELECT now() - pg_postmaster_start_time() > make_interval(secs => %s)"
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as db:
        while (row := await (await db.execute(query, (LEASE_S,))).fetchone()) is None or not row[0]:
            await anyio.sleep(0.1)


async def test_a_crash_counts_for_what_that_worker_drove(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a worker that says nothing any more; what rests until later is not to blame."""
    monkeypatch.setattr(postgres, "BEAT_S", 60.0)
    await server_is_settled(url)
    first, second, third = (PostgresStore(url) for _ in range(3))
    async with first.lead():
        async with second.work():
            assert await first.take(["ann"]) and await second.take(["ben"])
            for session in ("ann/x", "ben/x"):
                await first.accept(inbound(session), ANN, session)
            rest = commit(1, Hinted("loop", ""), session="ben/rests", wake_at=time.time() + 60)
            await first.commit(rest)
            with psycopg.connect(url, autocommit=True) as db:
                db.execute(
                    "UPDATE worker SET beat = now() - interval '9 s' FROM lease "
                    "WHERE worker.id = lease.worker AND duty = 'agent/ben'"
                )
            assert not await third._join(("lead",)), "whoever wants to lead looks who is gone"
            with pytest.raises(NotLeading):
                await second.change(())
        attempts = {row.session: row.attempts for row in await first.open_sessions()}
        assert attempts == {"ann/x": 0, "ben/x": 1, "ben/rests": 0}
        assert await first.take(["ben"])
    for store in (first, second, third):
        await store.close()


async def test_what_another_process_wrote_is_heard_at_once(url: str) -> None:
    one, two = PostgresStore(url), PostgresStore(url)
    one.version()
    await until(lambda: one._hear_news().is_listening)
    heard = anyio.Event()
    seen = one._hear_news().others

    async def listen() -> None:
        await one.wait_for_writes(seen, 0)
        heard.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        await anyio.sleep(0.05)
        before = one.version()
        await one.accept(inbound("own"), ANN, S)
        await until(lambda: one.version() > before)
        assert not heard.is_set(), "what it writes itself wakes nobody"
        await two.accept(inbound("other"), ANN, S)
        with anyio.fail_after(0.5):
            await heard.wait()
    for store in (one, two):
        await store.close()


async def test_news_go_on_after_a_connection_was_lost(url: str) -> None:
    one, two = PostgresStore(url), PostgresStore(url)
    one.version()
    await until(lambda: one._hear_news().is_listening)
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
        )
    await until(lambda: not one._hear_news().is_listening)
    await two.accept(inbound("a"), ANN, S)
    await until(lambda: one._hear_news().is_listening)
    before = one.version()
    await two.accept(inbound("b"), ANN, S)
    await until(lambda: one.version() > before)
    for store in (one, two):
        await store.close()


async def test_a_database_of_the_version_before_is_brought_up_to_date(url: str) -> None:
    number, script = load_migrations()[0]
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("CREATE TABLE schema_version(version BIGINT PRIMARY KEY)")
        db.execute(script)
        db.execute("INSERT INTO schema_version VALUES(%s)", (number,))
    store = PostgresStore(url)
    async with store.lead():
        assert await store.take(["ann"])
    await store.close()


@pytest.mark.timeout(120)
async def test_nobody_is_replaced_where_the_server_was_away_from_all() -> None:
    """For longer than a lease, and no crash is counted."""
    with running_server(durable=True) as server:
        first, second = PostgresStore(server.url), PostgresStore(server.url)
        async with first.lead(), second.work():
            assert await second.take(["ben"])
            await first.accept(inbound("x"), ANN, "ben/x")
            await anyio.to_thread.run_sync(server.stop, "immediate")
            await anyio.sleep(9)
            await anyio.to_thread.run_sync(server.start)
            await anyio.sleep(10)
            assert sum(row.agents == ("ben",) for row in await first.workers()) == 1
            assert [row.attempts for row in await first.open_sessions()] == [0]
            await second.change(())
        for store in (first, second):
            await store.close()


async def test_it_may_be_closed_again(url: str) -> None:
    store = PostgresStore(url)
    store.version()
    await store.close()
    await store.close()
