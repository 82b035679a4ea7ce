"""Who reads slowly costs little, slows nobody, and still reads everything."""

from __future__ import annotations

import gc
import os
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import msgspec

from deskhand.types.commit import Commit
from deskhand.types.door import Progress
from deskhand.types.events import CallClosed, Recorded
from deskhand.types.identity import Principal

from .served import Served

OWNER = Principal("owner", ("owner",))
SESSION = "default/web:owner:flood"
PIECE = 500_000
PIECES = 100


def resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def flood(served: Served, first: int, count: int) -> None:
    """Events of half a megabyte each, as a driver commits and tells them."""
    for n in range(first, first + count):
        event = CallClosed(f"c{n}", "error", f"{n} " + "x" * PIECE)
        seq = await served.app.store.commit(Commit(SESSION, n, 1.0, (event,), close=True))
        served.app.feed.publish(SESSION, Recorded(seq, SESSION, n, 1.0, event))


async def read(served: Served, until: int, seen: list[int]) -> None:
    path = f"{served.url}/api/sessions/flood/events?after=1"
    async with served.http.get(path, headers=served.owner.headers, read_bufsize=1 << 21) as stream:
        async for line in stream.content:
            if line.startswith(b"data: "):
                seen.append(msgspec.json.decode(line[6:])["n"])
                if seen[-1] == until:
                    return


async def test_fifty_megabytes_for_who_does_not_read(served: Served) -> None:
    status, _ = await served.owner.ask("PATCH", "/api/sessions/flood", {"title": "flood"})
    assert status == 202
    with anyio.fail_after(20):
        while await served.app.store.open_sessions():
            await anyio.sleep(0.01)  # its driver still writes
    log: list[Any] = (await served.owner.ask("GET", "/api/sessions/flood/log"))[1]
    first = len(log) + 1
    await flood(served, first, 10)  # what SQLite and Python keep is kept by now
    seen: list[int] = []
    await read(served, first + 9, seen)
    before = resident()
    first = first + 10
    last = first + PIECES - 1
    host, _, port = served.url.removeprefix("http://").partition(":")
    async with await anyio.connect_tcp(host, int(port)) as slow, anyio.create_task_group() as tasks:
        token = served.owner.headers["authorization"]
        asked = f"GET /api/sessions/flood/events?after={first - 1} HTTP/1.1\r\nHost: {host}:{port}"
        await slow.send(f"{asked}\r\nAuthorization: {token}\r\n\r\n".encode())
        quick: list[int] = []
        tasks.start_soon(read, served, last, quick)
        while not quick:
            await anyio.sleep(0.01)  # both are following
        most = 0
        for start in range(first, last + 1, 10):
            await flood(served, start, 10)
            most = max(most, resident() - before)
        with anyio.fail_after(30):
            while quick[-1] != last:
                await anyio.sleep(0.01)
        assert quick == list(range(2, last + 1)), "each once, in order, for who reads"
        assert most <= 20_000_000, f"{most:,} bytes more"
        found: list[int] = []
        buffer = b""
        with anyio.fail_after(40):
            while not found or found[-1] != last:
                buffer += await slow.receive(1 << 20)
                *lines, buffer = buffer.split(b"\n")
                found += [
                    msgspec.json.decode(line[6:])["n"]
                    for line in lines
                    if line.startswith(b"data: ")
                ]
        assert found == list(range(first, last + 1)), "and for who comes to it later"


async def test_a_log_is_read_in_pages(served: Served) -> None:
    await flood(served, 1, 12)
    page = await served.app.store.events(SESSION, 0, 100)
    assert 0 < len(page) < 5
    rest = await served.app.store.events_since(OWNER, page[-1].seq, 100)
    assert rest[0].seq == page[-1].seq + 1 and len(rest) < 5
    few = await served.app.store.latest_events(OWNER, ("call_closed",), 2)
    assert [each.n for each in few] == [11, 12]
    assert await served.app.store.events_since(Principal("eve", ("member",)), 0, 100) == []


async def test_pieces_that_were_not_read_yet_are_one(served: Served) -> None:
    """Whoever cannot keep up with an answer gets fewer pieces, and all of its text."""
    status, _ = await served.owner.ask("PATCH", "/api/sessions/flood", {"title": "flood"})
    assert status == 202
    log: list[Any] = (await served.owner.ask("GET", "/api/sessions/flood/log"))[1]
    n = len(log) + 1
    pieces = [
        Progress("thinking", n, text="Hm", model="m"),
        Progress("thinking", n, text=", well."),
        Progress("text", n, text="Good "),
        Progress("text", n, offset=5, text="day"),
        Progress("text", n, offset=10, text="a gap before it"),
        Progress("reset", n),
        Progress("text", n, attempt=1, text="Again"),
    ]
    following = served.app.door.follow_in_batches(SESSION, OWNER, len(log))
    async with aclosing(following) as batches, anyio.create_task_group() as tasks:
        tasks.start_soon(publish_soon, served, pieces)
        batch = list(await anext(batches))
    assert batch == [
        Progress("thinking", n, text="Hm, well.", model="m"),
        Progress("text", n, text="Good day"),
        *pieces[4:],
    ]


async def publish_soon(served: Served, pieces: list[Progress]) -> None:
    """When somebody follows."""
    await anyio.sleep(0.05)
    for piece in pieces:
        served.app.feed.publish(SESSION, piece)
