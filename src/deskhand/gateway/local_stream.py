"""Live events for terminals beside the process that drives: a Unix socket that only the same user
can reach.

One line of JSON is asked (`SocketRequest`), and lines of JSON (`SocketFrame`) are answered. The log
stays the truth: whoever follows reads it too, so that nothing is lost or said twice when the socket
is away, slow, or dies.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path
from time import monotonic

import anyio
import msgspec
from anyio.streams.buffered import BufferedByteReceiveStream

from ..types.door import Progress
from ..types.errors import DeskhandError
from ..types.events import Recorded
from ..types.health import Health
from ..types.identity import Principal
from .feed import Follower, Tap
from .unix_stream import UnixStream, connect_unix, serve_unix

log = logging.getLogger(__name__)

ASK_BYTES = 65_536
ASK_S = 5.0
LINE_BYTES = 16_000_000
"""Whoever is sent a longer line reads the log instead."""
RETRY_S = 1.0
PATH_BYTES = 100
"""The kernel takes no longer path of a socket (108 on Linux, 104 on macOS)."""


class SocketRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is wanted: the events of `session` after number `after`, as `principal` may see them;
    without a session, the health. The user who can open the socket can read the whole log, so the
    principal is believed."""

    session: str = ""
    principal: Principal | None = None
    after: int = 0


class SocketFrame(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that is answered. After an `error` there is nothing more."""

    recorded: Recorded | None = None
    progress: Progress | None = None
    health: Health | None = None
    error: str = ""


_TEXTS = ("text", "thinking", "snapshot")
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(SocketFrame).decode
Follow = Callable[[str, Principal, int], AsyncGenerator[Recorded | Progress]]


@contextmanager
def _short_path(path: Path) -> Iterator[str]:
    """A path of this socket that the kernel takes, however deep its folder lies."""
    if len(os.fsencode(path)) <= PATH_BYTES or not Path("/proc/self/fd").is_dir():
        yield str(path)
        return
    fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{fd}/{path.name}"
    finally:
        os.close(fd)


async def serve_socket(
    path: Path, follow: Follow, health: Callable[[], Awaitable[Health]], uid: int | None = None
) -> None:
    """Answer on the socket for ever, to processes of this user (ours, if none is given). Only the
    holder of the driver lock may call this. Raises OSError."""
    user = os.getuid() if uid is None else uid

    async def answer(stream: UnixStream) -> None:
        async with stream:
            if not _is_peer_user(user, stream):
                log.warning("another user of this machine tried to follow conversations")
                return
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await _answer(stream, follow, health)

    with _short_path(path) as short:
        await serve_unix(short, answer)


def _is_peer_user(user: int, stream: UnixStream) -> bool:
    """Whether whoever is at the other end is this user. Where the kernel does not say, the modes of
    the file do."""
    peer = getattr(socket, "SO_PEERCRED", None)
    if peer is None:
        return True
    _, uid, _ = struct.unpack(
        "3i", stream.raw.getsockopt(socket.SOL_SOCKET, peer, struct.calcsize("3i"))
    )
    return bool(uid == user)


async def _answer(
    stream: UnixStream, follow: Follow, health: Callable[[], Awaitable[Health]]
) -> None:
    try:
        with anyio.fail_after(ASK_S):
            asked = await BufferedByteReceiveStream(stream).receive_until(b"\n", ASK_BYTES)
        ask = msgspec.json.decode(asked, type=SocketRequest)
    except (
        TimeoutError,
        anyio.EndOfStream,
        anyio.IncompleteRead,
        anyio.DelimiterNotFound,
        msgspec.MsgspecError,
        RecursionError,
    ):
        return
    if ask.principal is None:
        await _send(stream, SocketFrame(health=await health()))
        return
    async with anyio.create_task_group() as tasks:

        async def cancel_on_disconnect() -> None:
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                while True:
                    await stream.receive(1024)
            tasks.cancel_scope.cancel()

        tasks.start_soon(cancel_on_disconnect)
        with suppress(
            anyio.BrokenResourceError, anyio.ClosedResourceError
        ):  # inside, where no group wraps them
            await _stream_events(stream, ask, follow)
        tasks.cancel_scope.cancel()


async def _stream_events(stream: UnixStream, ask: SocketRequest, follow: Follow) -> None:
    """What happens in the session that was asked for, until the other end is gone."""
    assert ask.principal is not None
    try:
        async with aclosing(follow(ask.session, ask.principal, ask.after)) as items:
            async for item in items:
                await _send(
                    stream,
                    SocketFrame(item) if isinstance(item, Recorded) else SocketFrame(progress=item),
                )
    except DeskhandError as error:
        await _send(stream, SocketFrame(error=str(error)))


async def _send(stream: UnixStream, line: SocketFrame) -> None:
    await stream.send(_encode(line) + b"\n")


class _Lines(asyncio.Protocol):
    """Hands what comes in to a follower, as it comes: no task stands in between."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self._rest = b""
        self._partial = 0
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        try:
            for line in map(_decode, lines):
                if line.error:
                    self._follower.fail(DeskhandError(line.error))
                elif (item := line.recorded or line.progress) is not None:
                    self._partial = (
                        item.n if isinstance(item, Progress) and item.kind in _TEXTS else 0
                    )
                    self._follower.put(item)
        except msgspec.MsgspecError as error:  # another version of ours drives
            log.info("the live events of the other process cannot be read: %s", error)
            self.close()
        if len(self._rest) > LINE_BYTES:
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if (
            self._partial
        ):  # nobody will finish that sentence; if it is in the log by now, this is dropped
            self._follower.put(Progress("reset", self._partial))
        self._follower.mark_lost()

    def close(self) -> None:
        if self.transport is not None:
            self.transport.abort()


class SocketTap:
    """The live events of one session for one follower in a process that does not drive. Nothing
    depends on it."""

    def __init__(self, path: Path, session: str, principal: Principal, follower: Follower) -> None:
        self._path = path
        self._session = session
        self._principal = principal
        self._follower = follower
        self._lines: _Lines | None = None
        self._tried_at = -RETRY_S

    @property
    def is_connected(self) -> bool:
        return self._lines is not None and self._lines.transport is not None

    async def open(self, n: int) -> None:
        """Have the events after number n come in, where somebody gives them; tried once in
        AGAIN_S."""
        if self.is_connected or monotonic() - self._tried_at < RETRY_S:
            return
        self._tried_at = monotonic()
        lines = _Lines(self._follower)
        try:
            with _short_path(self._path) as short:
                await asyncio.get_running_loop().create_unix_connection(lambda: lines, short)
        except OSError:
            return
        if lines.transport is not None:
            lines.transport.write(_encode(SocketRequest(self._session, self._principal, n)) + b"\n")
            self._lines = lines

    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()


async def ask_health(path: Path) -> Health | None:
    """The health of the process that drives; None where nobody answers within ASK_S."""
    try:
        with anyio.fail_after(ASK_S), _short_path(path) as short:
            async with connect_unix(short) as stream:
                await stream.send(_encode(SocketRequest()) + b"\n")
                return _decode(
                    await BufferedByteReceiveStream(stream).receive_until(b"\n", LINE_BYTES)
                ).health
    except (
        OSError,
        TimeoutError,
        anyio.EndOfStream,
        anyio.BrokenResourceError,
        anyio.IncompleteRead,
    ):
        return None
    except msgspec.MsgspecError:
        return None


_: type[Tap] = SocketTap
