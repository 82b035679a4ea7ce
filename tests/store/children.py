"""What the other process does in test_writer.py and test_postgres.py: one function each, named on
the command line."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from deskhand.store.postgres import PostgresStore
from deskhand.store.queries import last_event_number
from deskhand.store.schema import connect
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.store_suite import ANN, OWNER, S, commit, inbound, received
from deskhand.types.commit import Commit
from deskhand.types.errors import NotLeading, StaleSession, StoreFull, StoreReadOnly
from deskhand.types.events import Hinted


def hold(path: str, seconds: str) -> None:
    """Keep the write lock for so long."""
    db = connect(Path(path), write=True)
    db.execute("BEGIN EXCLUSIVE").fetchall()
    print("held", flush=True)
    time.sleep(float(seconds))
    db.execute("COMMIT").fetchall()


async def rival(path: str, count: str) -> None:
    """Accept every message and take it in, as fast as another process that does the same allows."""
    store = SqliteStore(Path(path))
    print("ready", flush=True)
    sys.stdin.readline()
    taken = 0
    for i in range(int(count)):
        row = await store.accept(inbound(str(i)), ANN, S)
        while any(waiting.inbox_id == row.inbox_id for waiting in await store.list_waiting(S)):
            n = len(await store.events(S)) + 1
            try:
                await store.commit(Commit(S, n, 0.0, (received(row.inbox_id),), (row.inbox_id,)))
                taken += 1
            except StaleSession:
                continue
    print(taken, flush=True)
    await store.close()


async def drive(url: str) -> None:
    """Drive: write an event again and again, and say the number of each that is stored."""
    store = PostgresStore(url)
    n = await last_event_number(store, S)
    try:
        async with store.lead():
            while True:
                n += 1
                await store.commit(commit(n, Hinted("wrap_up", "x")))
                print(n, flush=True)
                await anyio.sleep(0.01)
    except (NotLeading, StaleSession, BaseExceptionGroup):
        print("replaced", flush=True)


def fail_syncs() -> None:
    """From here on the kernel answers EIO to every fsync and fdatasync of this process: a seccomp
    filter on all threads. See seccomp(2) and linux/seccomp.h."""
    fsync, fdatasync, seccomp = {"x86_64": (74, 75, 317), "aarch64": (82, 83, 277)}[
        platform.machine()
    ]
    load = 0x20
    equal = 0x15
    answer = 0x06
    allow = 0x7FFF0000
    error = 0x00050000 | 5
    lines = [
        (load, 0, 0, 0),
        (equal, 1, 0, fsync),
        (equal, 0, 1, fdatasync),
        (answer, 0, 0, error),
        (answer, 0, 0, allow),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    program = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(lines), ctypes.addressof(code))
    )
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert libc.syscall(seccomp, 1, 1, program) == 0, os.strerror(
        ctypes.get_errno()
    )  # SET_MODE_FILTER, TSYNC


async def lose_syncs(path: str) -> None:
    """Write five messages, then on a disk that confirms nothing. Prints what was acknowledged."""
    store = SqliteStore(Path(path))
    for i in range(1, 6):
        await store.commit(commit(i, received(i)))
        print(i, flush=True)
    fail_syncs()
    for i in range(6, 9):
        with anyio.move_on_after(5):
            await store.commit(commit(i, received(i)))
            print(i, flush=True)
    print("still alive", flush=True)


async def _write_until_full(store: SqliteStore, acknowledged: list[str]) -> None:
    try:
        while True:
            text = f"{len(acknowledged)} " + "x" * 3000
            await store.accept(inbound(str(len(acknowledged)), text), ANN, S)
            acknowledged.append(text)
    except StoreFull:
        return


async def full_disk(folder: str) -> None:
    """On a small disk of its own: fill it, go on reading, make room, go on writing by itself, open
    it anew."""
    disk = Path(folder) / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", disk], check=True)
    try:
        SqliteStore(disk / "deskhand.db")
        raise AssertionError("the schema does not fit")
    except StoreFull:
        pass
    subprocess.run(["mount", "-o", "remount,size=2200k", disk], check=True)
    (disk / "ballast").write_bytes(bytes(600_000))
    store = SqliteStore(disk / "deskhand.db")
    acknowledged = list[str]()
    await _write_until_full(store, acknowledged)
    assert len(acknowledged) > 20
    for _ in range(3):
        before = len(acknowledged)
        await _write_until_full(store, acknowledged)
        waiting = [row.inbound.body.message.text for row in await store.list_waiting(S)]  # type: ignore[union-attr]
        assert waiting == acknowledged and len(acknowledged) - before < 3
    (disk / "ballast").unlink()
    with anyio.fail_after(10):
        await store.commit(commit(1, received(1)))
    await _write_until_full(store, acknowledged)
    await store.close()
    store = SqliteStore(disk / "deskhand.db")
    assert (
        len(await store.list_waiting(S)) == len(acknowledged)
        and not store.check_integrity()
        and not (await store.audit())[1]
    )
    assert [row.session for row in await store.sessions(OWNER)] == [S]
    await store.close()
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    store = SqliteStore(disk / "deskhand.db")
    try:
        await store.accept(inbound("one more"), ANN, S)
        raise AssertionError("written on a disk that cannot be written")
    except StoreReadOnly:
        assert len(await store.list_waiting(S)) == len(acknowledged), "it can be read"
    print(len(acknowledged), flush=True)


if __name__ == "__main__":
    acts: dict[str, Callable[..., Awaitable[None]]] = {
        "rival": rival,
        "drive": drive,
        "lose_syncs": lose_syncs,
        "full_disk": full_disk,
    }
    if sys.argv[1] == "hold":
        hold(*sys.argv[2:])
    else:
        anyio.run(acts[sys.argv[1]], *sys.argv[2:])
