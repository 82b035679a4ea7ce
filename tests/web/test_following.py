"""Who follows has the log: whole, in order, once; however slowly they read, and whatever happens to
the database."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import apsw
import msgspec
import pytest

from deskhand.models.base import Item, Request
from deskhand.runtime.app import App
from deskhand.runtime.worker import run_worker
from deskhand.store.schema import BUSY_MS
from deskhand.testing.scripted import ScriptedModel
from deskhand.types.events import MessageReceived, TurnEnded

from .flood import EVENTS, SESSION
from .served import Client, Served, serving, until

NAME = "talk"
ROOT = Path(__file__).parents[2]


async def followed(client: Client, name: str, after: int = 0) -> AsyncGenerator[bytes]:
    """The data of each event as it comes."""
    headers = {**client.headers, "last-event-id": str(after)}
    async with client.http.get(
        f"{client.url}/api/sessions/{name}/events", headers=headers
    ) as stream:
        assert stream.status == 200, await stream.text()
        event = b""
        async for line in stream.content:
            if line.startswith(b"event: "):
                event = line[7:].strip()
            elif line.startswith(b"data: ") and event == b"recorded":
                yield line[6:].rstrip(b"\n")


async def log_of(served: Served, session: str = SESSION) -> list[bytes]:
    return [msgspec.json.encode(recorded) for recorded in await served.app.store.events(session)]


async def tell(served: Served, text: str, name: str = NAME, **more: str) -> tuple[int, Any]:
    status, answer = await served.owner.ask(
        "POST", f"/api/sessions/{name}/messages", {"text": text, **more}
    )
    return status, answer


async def until_ended(served: Served, turns: int, name: str = NAME) -> list[bytes]:
    """What one who follows has got when so many turns have ended."""
    found: list[bytes] = []
    async with aclosing(followed(served.owner, name)) as events:
        async for data in events:
            found.append(data)
            turns -= b'"turn_ended"' in data
            if not turns:
                break
    return found


async def test_what_comes_live_is_what_the_log_says(served: Served) -> None:
    await tell(served, "one")
    await until_ended(served, 1)
    live: list[bytes] = []

    async def listen() -> None:
        async for data in followed(served.owner, NAME):
            live.append(data)  # noqa: PERF401 -- looked at while it grows

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        await until(lambda: bool(live))
        for text in ("two", "three"):
            await tell(served, text)
        await until(lambda: sum(b'"turn_ended"' in data for data in live) == 3)
        tasks.cancel_scope.cancel()
    assert live == await log_of(served)


@pytest.mark.parametrize("after", [0, 1, 2, 5])
async def test_resuming_leaves_nothing_out(served: Served, after: int) -> None:
    for text in ("one", "two"):
        await tell(served, text)
    await until_ended(served, 2)
    log = await log_of(served)
    found: list[bytes] = []
    async with aclosing(followed(served.owner, NAME, after)) as events:
        async for data in events:
            found.append(data)
            if len(found) == len(log) - after:
                break
    assert found == log[after:]


async def slow_reader(client: Client) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """One whose machine takes in next to nothing by itself."""
    host, _, port = client.url.removeprefix("http://").partition(":")
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, (host, int(port)))
    reader, writer = await asyncio.open_connection(sock=sock, limit=4096)
    head = f"GET /api/sessions/{NAME}/events HTTP/1.1\r\nHost: {host}:{port}\r\n"
    writer.write(f"{head}Authorization: {client.headers['authorization']}\r\n\r\n".encode())
    return reader, writer


@pytest.mark.timeout(120)
async def test_a_slow_reader_costs_nobody_anything(tmp_path: Path) -> None:
    """It reads a kilobyte at a time while fifty megabytes are produced: the server's memory stays,
    who reads well has all of it, and the slow one comes back later to the same log."""
    command = [sys.executable, "-m", "tests.web.flood", str(tmp_path)]
    child = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, cwd=ROOT)
    assert child.stdin is not None and child.stdout is not None
    url, token = (await child.stdout.readline()).decode().split()
    try:
        async with aiohttp.ClientSession(read_bufsize=2**22) as http:
            client = Client(http, url, {"authorization": f"Bearer {token}"})
            assert (await client.ask("POST", f"/api/sessions/{NAME}/messages", {"text": "begin"}))[
                0
            ] == 202
            (reader, writer), slow, well = await slow_reader(client), 0, list[str]()
            async with anyio.create_task_group() as tasks:

                async def read_slowly() -> None:
                    nonlocal slow
                    while chunk := await reader.read(1024):
                        slow += len(chunk)
                        await anyio.sleep(0.5)

                async def read_well() -> None:
                    async for digest in digests(client):
                        well.append(digest)

                tasks.start_soon(read_slowly)
                tasks.start_soon(read_well)
                await until(lambda: slow > 0 and len(well) >= 3)
                begun = len(well)
                child.stdin.write(b"go\n")
                await until(lambda: len(well) == begun + EVENTS + 1, 60)
                child.stdin.write(b"enough\n")
                grown = int(await child.stdout.readline())
                tasks.cancel_scope.cancel()
            writer.close()
            assert slow < 1_000_000
            assert grown <= 20_000_000, grown
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def digests(client: Client) -> AsyncIterator[str]:
    """The number of each event and a digest of it."""
    n = 0
    async with client.http.get(
        f"{client.url}/api/sessions/{NAME}/events", headers=client.headers
    ) as stream:
        rest = bytearray()
        async for chunk in stream.content.iter_any():
            rest += chunk
            while (end := rest.find(b"\n\n")) >= 0:
                frame = bytes(rest[:end])
                del rest[: end + 2]
                if b"event: recorded" in frame:
                    n += 1
                    assert frame.startswith(b"id: %d\n" % n), frame[:40]
                    yield sha256(frame).hexdigest()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another process holds the database, as far as SQLite can tell."""
    other = apsw.Connection(str(path))
    other.set_busy_timeout(20_000)  # the service may be writing just now
    other.execute("BEGIN IMMEDIATE").fetchall()
    try:
        yield
    finally:
        other.execute("ROLLBACK").fetchall()
        other.close()


@pytest.mark.timeout(120)
async def test_a_database_that_is_locked_loses_nothing(tmp_path: Path) -> None:
    """For longer than SQLite itself waits. What was said meanwhile is held, or answered with when
    to come back."""
    async with serving(tmp_path) as served:
        await tell(served, "before")
        await until_ended(served, 1)
        taken: list[str] = []

        async def insist(number: int) -> None:
            while True:
                status, answer = await tell(served, f"message {number}", id=f"m{number}")
                if status == 202:
                    taken.append(f"owner:m{number}")
                    return
                assert status == 503 and answer["error"]["code"] == "store_unavailable", answer
                await anyio.sleep(0.05)

        with locked(tmp_path / "state" / "deskhand.db"):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(anyio.sleep, BUSY_MS / 1000 + 1)
                await anyio.sleep(0)
                held = [asyncio.create_task(insist(number)) for number in range(20)]
                status, _ = await served.owner.ask("GET", f"/api/sessions/{NAME}/log")
                assert status == 200  # reading goes on
            assert taken == []
        await asyncio.gather(*held)
        await until_answered(served, set(taken))
        log = await served.app.store.events(SESSION)
        received = [r.event.external_id for r in log if isinstance(r.event, MessageReceived)]
        assert sorted(received[1:]) == sorted(taken) and len(taken) == 20
        assert (await served.owner.ask("GET", "/health"))[0] == 200


async def until_answered(served: Served, external_ids: set[str], session: str = SESSION) -> None:
    with anyio.fail_after(60):
        while True:
            log = await served.app.store.events(session)
            ids = {
                r.event.external_id: r.event.inbox_id
                for r in log
                if isinstance(r.event, MessageReceived)
            }
            answered = {
                inbox_id
                for r in log
                if isinstance(r.event, TurnEnded)
                for inbox_id in r.event.answers
            }
            if external_ids <= set(ids) and {ids[each] for each in external_ids} <= answered:
                return
            await anyio.sleep(0.02)


@pytest.mark.timeout(120)
async def test_one_who_floods_holds_nobody_up(served: Served) -> None:
    """A thousand messages of one, all at once; the others are answered before those are, and none
    is lost."""
    taken: list[int] = []

    async def flood(first: int) -> None:
        for number in range(first, first + 100):
            status, answer = await tell(served, f"flood {number}", name="flood", id=f"f{number}")
            assert status == 202, answer
            taken.append(number)

    done: list[int] = []
    async with anyio.create_task_group() as tasks:
        for first in range(0, 1000, 100):
            tasks.start_soon(flood, first)
        for i in range(10):
            await tell(served, f"hello {i}", name=f"quiet{i}")
            await until_ended(served, 1, name=f"quiet{i}")
            done.append(len(taken))
    assert done[0] < 1000 and len(taken) == 1000
    session = "default/web:owner:flood"
    await until_answered(served, {f"owner:f{number}" for number in taken}, session)
    log = await served.app.store.events(session)
    received = [r.event.external_id for r in log if isinstance(r.event, MessageReceived)]
    assert len(received) == len(set(received)) == 1000
    for first in range(0, 1000, 100):  # each in the order in which it was sent
        mine = [
            each for each in received if first <= int(each.removeprefix("owner:f")) < first + 100
        ]
        assert mine == [f"owner:f{number}" for number in range(first, first + 100)]


class Slow(ScriptedModel):
    """Answers after a while, or not within the time that a test has."""

    slow = True

    async def reply(self, request: Request) -> AsyncIterator[Item]:
        quick = request.messages[-1].message.text.endswith("quick")
        await anyio.sleep(0.3 if quick or not self.slow else 60)
        async for item in super().reply(request):
            yield item


@pytest.mark.timeout(120)
async def test_an_end_in_the_midst_of_twenty_turns(tmp_path: Path) -> None:
    """Told to end, it takes in nothing more and closes the streams; after the next start all that
    was taken is answered, and each who follows goes on where they were."""
    model, names, ended = Slow(), [f"t{i}" for i in range(20)], anyio.Event()

    async def drive(app: App) -> None:
        await run_worker(app, lambda: None)
        ended.set()

    seen: dict[str, list[bytes]] = {name: [] for name in names}
    async with serving(tmp_path, model, drive=drive) as served, anyio.create_task_group() as tasks:
        for i, name in enumerate(names):
            assert (await tell(served, "slow" if i % 2 else "quick", name=name, id=name))[0] == 202
            tasks.start_soon(take_down, served.owner, name, seen[name])
        await until(lambda: all(seen.values()))
        os.kill(os.getpid(), signal.SIGTERM)
        await until(lambda: served.app.dispatch.is_draining, 1)
        status, answer = await tell(served, "too late", name="t0", id="late")
        assert (status, answer["error"]["code"]) == (503, "store_unavailable"), answer
        await until(
            lambda: all(any(b'"turn_ended"' in data for data in seen[name]) for name in names[::2])
        )
        os.kill(os.getpid(), signal.SIGTERM)  # the others would take too long
        with anyio.fail_after(10):
            await ended.wait()
    model.slow = False
    async with serving(tmp_path, model) as served, anyio.create_task_group() as tasks:
        for name in names:
            tasks.start_soon(take_down, served.owner, name, seen[name])
        await until(
            lambda: all(any(b'"turn_ended"' in data for data in log) for log in seen.values())
        )
        assert (await tell(served, "slow", name="t1", id="t1"))[1]["status"] == "duplicate"
        assert (await tell(served, "too late", name="t0", id="late"))[0] == 202
        await until(lambda: sum(b'"turn_ended"' in data for data in seen["t0"]) == 2)
        for name in names:
            assert seen[name] == await log_of(served, f"default/web:owner:{name}")
        tasks.cancel_scope.cancel()


async def take_down(client: Client, name: str, log: list[bytes]) -> None:
    """Follow from where the log ends, until the stream does."""
    async for data in followed(client, name, len(log)):
        log.append(data)  # noqa: PERF401 -- looked at while it grows
