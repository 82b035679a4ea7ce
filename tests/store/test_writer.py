"""The writer against other processes and a failing disk: nothing acknowledged is lost, nothing is
built on sand."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import anyio
import anyio.to_thread
import apsw
import pytest

from deskhand.store.connection import StatementRunner
from deskhand.store.schema import BUSY_MS
from deskhand.store.sqlite import SqliteStore, SqliteWriteConnection
from deskhand.store.writer import Writer
from deskhand.testing.store_suite import ANN, S, commit, inbound, received
from deskhand.types.errors import StaleSession, StoreUnavailable

CHILD = [sys.executable, str(Path(__file__).parent / "children.py")]


def start(*arguments: str) -> subprocess.Popen[str]:
    """The other process, once it is ready."""
    child = subprocess.Popen(
        [*CHILD, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None and child.stdout.readline()
    return child


async def held(path: Path, seconds: float) -> None:
    """Write while the lock is held for so long."""
    store = SqliteStore(path)
    await store.accept(inbound("before"), ANN, S)
    child = await anyio.to_thread.run_sync(start, "hold", str(path), str(seconds))
    worst = 0.0
    began = time.monotonic()
    done = anyio.Event()

    async def write() -> None:
        await store.accept(inbound("during"), ANN, S)
        done.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        while not done.is_set():
            tick = time.monotonic()
            assert len(await store.list_waiting(S)) in (1, 2)
            await anyio.sleep(0.02)
            worst = max(worst, time.monotonic() - tick)
    waited = time.monotonic() - began
    child.communicate()
    assert seconds - 0.5 < waited and worst < seconds * 0.8
    assert [row.inbound.external_id for row in await store.list_waiting(S)] == ["before", "during"]
    await store.close()


async def test_locked_by_another_process(tmp_path: Path) -> None:
    """For a moment, and for longer than SQLite itself waits: the write is late and not lost;
    reading goes on, and the event loop is never blocked."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(held, tmp_path / "short.db", 1.0)
        tasks.start_soon(held, tmp_path / "long.db", BUSY_MS / 1000 + 0.5)


def test_two_processes_take_each_message_in_once(tmp_path: Path) -> None:
    path = tmp_path / "deskhand.db"
    count = 150
    rivals = [start("rival", str(path), str(count)) for _ in range(2)]
    for child in rivals:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    taken = [int(child.communicate()[0]) for child in rivals]
    assert sum(taken) == count

    async def look() -> None:
        store = SqliteStore(path)
        assert [event.n for event in await store.events(S)] == list(range(1, count + 1))
        assert (
            not await store.list_waiting(S)
            and not (await store.audit())[1]
            and not store.check_integrity()
        )
        await store.close()

    anyio.run(look)


async def test_a_disk_that_does_not_confirm_stops_the_process(tmp_path: Path) -> None:
    """Going on would build on what may not be there: no second fsync may call it safe."""
    path = tmp_path / "deskhand.db"
    child = subprocess.run(
        [*CHILD, "lose_syncs", str(path)], capture_output=True, text=True, check=False
    )
    assert child.returncode == os.EX_IOERR, child.stderr
    assert child.stdout.split() == ["1", "2", "3", "4", "5"] and "did not confirm" in child.stderr
    store = SqliteStore(path)
    assert (
        len(await store.events(S)) >= 5
        and not store.check_integrity()
        and not (await store.audit())[1]
    )
    await store.close()


def test_full_and_read_only_disk(tmp_path: Path) -> None:
    """In a mount namespace of its own, so that nothing stays behind."""
    space = (
        ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    )
    child = subprocess.run(
        [*space, *CHILD, "full_disk", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert child.returncode == 0, child.stderr
    assert int(child.stdout) > 40


async def test_one_failing_job_leaves_its_batch_alone(tmp_path: Path) -> None:
    """Many at once, every third stale: each is told its own outcome, and the good ones are on
    disk."""
    store = SqliteStore(tmp_path / "deskhand.db")
    outcomes: dict[int, str] = {}

    async def write(i: int) -> None:
        try:
            await store.commit(commit(2 if i % 3 == 0 else 1, received(i), session=f"s{i}"))
            outcomes[i] = "ok"
        except StaleSession:
            outcomes[i] = "stale"

    async with anyio.create_task_group() as tasks:
        for i in range(60):
            tasks.start_soon(write, i)
    assert outcomes == {i: "stale" if i % 3 == 0 else "ok" for i in range(60)}
    assert (await store.audit())[0] == 40
    await store.close()


async def test_a_caller_that_goes_away_does_not_stop_the_writer(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "deskhand.db")
    for i in range(20):
        with anyio.move_on_after(0):
            await store.accept(inbound(f"gone {i}"), ANN, S)
    await store.accept(inbound("stays"), ANN, S)
    assert "stays" in [row.inbound.external_id for row in await store.list_waiting(S)]
    await store.close()


async def test_closing_writes_what_is_queued(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "deskhand.db")
    async with anyio.create_task_group() as tasks:
        for i in range(10):
            tasks.start_soon(store.accept, inbound(str(i)), ANN, S)
        await anyio.lowlevel.checkpoint()
        await store.close()
    store = SqliteStore(tmp_path / "deskhand.db")
    assert len(await store.list_waiting(S)) == 10
    await store.close()
    with pytest.raises(Exception, match="closed"):
        await store.list_waiting(S)


async def test_what_comes_after_closing_is_refused_at_once(tmp_path: Path) -> None:
    """A turn shields its commit from being cancelled, so nobody could end a wait for a thread that
    is gone."""
    store = SqliteStore(tmp_path / "deskhand.db")
    await store.close()
    with anyio.fail_after(10), pytest.raises(StoreUnavailable, match="closed"):
        await store.commit(commit(1, received(1)))


def test_everybody_who_writes_while_it_is_closed_gets_an_answer(tmp_path: Path) -> None:
    """Each write that was promised is on disk, and each other one is refused: nobody waits for
    ever."""
    path = tmp_path / "deskhand.db"
    store = SqliteStore(path)
    written = [0] * 4
    busy = threading.Barrier(len(written) + 1)

    async def write(writer: int) -> None:
        with pytest.raises(StoreUnavailable, match="closed"):
            while True:
                await store.accept(inbound(f"{writer}-{written[writer]}"), ANN, S)
                written[writer] += 1
                if written[writer] == 5:
                    busy.wait()

    threads = [
        threading.Thread(target=anyio.run, args=(write, i), daemon=True)
        for i in range(len(written))
    ]
    for thread in threads:
        thread.start()
    busy.wait()
    anyio.run(store.close)
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)

    async def look() -> None:
        store = SqliteStore(path)
        assert len(await store.list_waiting(S)) == sum(written)
        await store.close()

    anyio.run(look)


async def test_who_waits_for_a_thread_that_broke_is_told(tmp_path: Path) -> None:
    class Broken(BaseException):
        """No error of a job or of the disk."""

    def work(db: StatementRunner) -> None:
        raise Broken

    path = tmp_path / "x.db"
    fatal: list[BaseException] = []
    db = SqliteWriteConnection(apsw.Connection(str(path)), path)
    writer = Writer(db, fatal.append)
    for _ in range(2):
        with anyio.fail_after(10), pytest.raises(StoreUnavailable, match="closed"):
            await writer.run(work)
    assert [type(error) for error in fatal] == [Broken]
    writer.close()
