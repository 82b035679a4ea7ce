"""Streams over a Unix socket.

Those of anyio give `Future.set_result` to the selector, which may call it twice before the waiting
task has run: the loop then reports an InvalidStateError. `wait_readable` does not.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import anyio
from anyio.abc import ByteStream

BACKLOG = 128
"""So many connections may wait to be accepted."""


class UnixStream(ByteStream):
    """A connection over a non-blocking socket. Raises what streams of anyio raise."""

    def __init__(self, raw: socket.socket) -> None:
        raw.setblocking(False)
        self.raw = raw

    async def receive(self, max_bytes: int = 65_536) -> bytes:
        while True:
            try:
                data = self.raw.recv(max_bytes)
            except BlockingIOError:
                await anyio.wait_readable(self.raw)
            except OSError as error:
                raise _closed_error(self.raw) from error
            else:
                if not data:
                    raise anyio.EndOfStream
                return data

    async def send(self, item: bytes) -> None:
        left = memoryview(item)
        while left:
            try:
                left = left[self.raw.send(left) :]
            except BlockingIOError:
                await anyio.wait_writable(self.raw)
            except OSError as error:
                raise _closed_error(self.raw) from error

    async def send_eof(self) -> None:
        with suppress(OSError):
            self.raw.shutdown(socket.SHUT_WR)

    async def aclose(self) -> None:
        if self.raw.fileno() >= 0:
            anyio.notify_closing(self.raw)
            self.raw.close()


def _closed_error(raw: socket.socket) -> Exception:
    return anyio.ClosedResourceError() if raw.fileno() < 0 else anyio.BrokenResourceError()


def connect_unix(path: str) -> UnixStream:
    """Raises OSError."""
    raw = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        raw.connect(path)
    except BaseException:
        raw.close()
        raise
    return UnixStream(raw)


@contextmanager
def listen_unix(path: str) -> Iterator[socket.socket]:
    """Listen at `path`, in place of what is there; only this user may open it. At the end it is
    removed, unless another has taken its place. Raises OSError."""
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108 -- a path of ours, as a string
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as raw:
        raw.setblocking(False)
        raw.bind(path)
        own = os.stat(path)  # noqa: PTH116
        os.chmod(path, 0o600)  # noqa: PTH101
        raw.listen(BACKLOG)
        try:
            yield raw
        finally:
            with suppress(FileNotFoundError):
                if os.path.samestat(os.stat(path), own):  # noqa: PTH116
                    os.unlink(path)  # noqa: PTH108


async def accept_connections(
    raw: socket.socket, answer: Callable[[UnixStream], Coroutine[Any, Any, None]]
) -> None:
    """Serve each connection in a task of its own, until cancelled."""
    async with anyio.create_task_group() as tasks:
        while True:
            try:
                taken, _ = raw.accept()
            except BlockingIOError:
                await anyio.wait_readable(raw)
            else:
                tasks.start_soon(answer, UnixStream(taken))


async def serve_unix(path: str, answer: Callable[[UnixStream], Coroutine[Any, Any, None]]) -> None:
    """Serve each connection in a task of its own, until cancelled. Replaces what is at `path`; only
    this user may open it. Raises OSError."""
    with listen_unix(path) as raw:
        await accept_connections(raw, answer)
