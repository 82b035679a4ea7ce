"""Connections that say nothing, or say it slowly, cost nobody anything."""

from __future__ import annotations

import socket
from contextlib import suppress

import anyio
import msgspec

from deskhand.supervision.connection_limits import MAX_CROWD, MAX_STRANGERS

from .served import Served, until

MANY = 5000


def alive(sock: socket.socket) -> bool:
    """Whether the server still holds the other end."""
    with suppress(BlockingIOError):
        try:
            return sock.recv(65536, socket.MSG_PEEK) != b""
        except ConnectionError:
            return False
    return True


def open_still(sock: socket.socket) -> bool:
    """The same, for who has nothing more to read from it."""
    try:
        while sock.recv(65536):
            pass
    except BlockingIOError:
        return True
    except ConnectionError:
        return False
    return False


def connect(served: Served) -> socket.socket:
    host, _, port = served.url.removeprefix("http://").partition(":")
    sock = socket.create_connection((host, int(port)))
    sock.setblocking(False)
    return sock


async def test_five_thousand_idle_connections(served: Served) -> None:
    held: list[socket.socket] = []
    try:
        for start in range(0, MANY, 250):
            held += [connect(served) for _ in range(250)]
            assert (await served.client().ask("GET", "/health"))[0] == 200, start
            await served.owner.get("/api/status")
            await anyio.sleep(0.01)
            for sock in [each for each in held if not alive(each)]:
                held.remove(sock)
                sock.close()
            assert len(held) <= 250 + MAX_CROWD
        await until(lambda: sum(open_still(sock) for sock in held) <= MAX_STRANGERS)
    finally:
        for sock in held:
            sock.close()


async def test_who_was_let_in_is_not_pushed_out(served: Served) -> None:
    await served.owner.ask("POST", "/api/sessions/a/messages", {"text": "one"})
    async with served.http.get(
        f"{served.url}/api/sessions/a/events", headers=served.owner.headers
    ) as stream:
        held = [connect(served) for _ in range(3 * MAX_STRANGERS)]
        await served.owner.ask("POST", "/api/sessions/a/messages", {"text": "two"})
        ended = 0
        async for line in stream.content:
            ended += b"turn_ended" in line
            if ended == 2:
                break
        for sock in held:
            sock.close()


async def test_one_byte_at_a_time(served: Served) -> None:
    """Slow heads are hung up on, and others are answered meanwhile."""
    host = served.url.removeprefix("http://").encode()
    head = b"GET /health HTTP/1.1\r\nHost: " + host + b"\r\nX-Slow: "
    held = [connect(served) for _ in range(MAX_STRANGERS - 10)]
    answers: list[bytes] = []
    try:
        for sock in held:
            sock.send(head)
        for _ in range(200):
            for sock in list(held):
                if not alive(sock):
                    held.remove(sock)
                    sock.close()
                    continue
                with suppress(BlockingIOError):
                    answers.append(sock.recv(65536))
                with suppress(OSError):
                    sock.send(b"x")
            assert (await served.client().ask("GET", "/health"))[0] == 200
            if not held:
                break
            await anyio.sleep(0.1)
        assert held == []
        said = [answer for answer in answers if answer]
        assert said and all(answer.startswith(b"HTTP/1.1 408") for answer in said)
        body = msgspec.json.decode(said[0].partition(b"\r\n\r\n")[2])
        assert body["error"]["code"] == "too_slow" and body["error"]["request_id"]
    finally:
        for sock in held:
            sock.close()


async def test_all_clients_come_back_at_once(served: Served) -> None:
    """After a restart, say: they connect before any of them is heard."""
    held = [connect(served) for _ in range(5 * MAX_STRANGERS)]
    host = served.url.removeprefix("http://").encode()
    ask = b"GET /api/status HTTP/1.1\r\nHost: %b\r\nAuthorization: %b\r\n\r\n"
    try:
        for sock in held:
            sock.send(ask % (host, served.owner.headers["authorization"].encode()))
        for sock in held:
            await until(lambda sock=sock: readable(sock))  # type: ignore[misc]
            assert sock.recv(65536).startswith(b"HTTP/1.1 200")
    finally:
        for sock in held:
            sock.close()


def readable(sock: socket.socket) -> bool:
    try:
        return sock.recv(1, socket.MSG_PEEK) is not None
    except BlockingIOError:
        return False
