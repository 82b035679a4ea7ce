"""Live events for terminals in other processes, over a Unix socket that only the same user can
reach.

The client sends one line of JSON (`SocketRequest`) and gets lines of JSON (`SocketFrame`).
Followers read the log as well, so nothing is lost or shown twice when the socket is away, slow, or
closed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
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
from ..types.unix_sockets import short_socket_path
from .feed import FeedReader, Tap
from .unix_stream import UnixStream, connect_unix, serve_unix

log = logging.getLogger(__name__)

ASK_BYTES = 65_536
ASK_S = 5.0
LINE_BYTES = 16_000_000
"""A follower that gets a longer line reads the log instead."""
RETRY_S = 1.0


class SocketRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request for the events of `session` after number `after`, as `principal` may see them, or
    without a session for the health. A user who can open the socket can read the whole log, so the
    principal is believed."""

    session: str = ""
    principal: Principal | None = None
    after: int = 0


class SocketFrame(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the answer. Nothing follows an `error`."""

    recorded: Recorded | None = None
    progress: Progress | None = None
    health: Health | None = None
    error: str = ""


_TEXTS = ("text", "thinking", "snapshot")
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(SocketFrame).decode
Follow = Callable[[str, Principal, int], AsyncGenerator[Recorded | Progress]]


async def serve_socket(
    path: Path, follow: Follow, health: Callable[[], Awaitable[Health]], uid: int | None = None
) -> None:
    """Serve the socket until cancelled, to processes of this user (ours, if none is given). Only
    the holder of the driver lock may call this. Raises OSError."""
    user = os.getuid() if uid is None else uid

    async def answer(stream: UnixStream) -> None:
        async with stream:
            if not is_peer_user(user, stream):
                log.warning(
                    "Refused another user of this machine who tried to follow conversations."
                )
                return
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await _answer(stream, follow, health)

    with short_socket_path(path) as short:
        await serve_unix(short, answer)


def is_peer_user(user: int, stream: UnixStream) -> bool:
    """Whether the peer is this user. When the kernel does not say, the permissions of the file
    decide."""
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
    """Send what happens in the session until the peer is gone."""
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
    """Gives a follower what comes in, without a task in between."""

    def __init__(self, follower: FeedReader) -> None:
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
            log.info("Could not read the live events of the process that drives: %s", error)
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
    """The live events of one session, for a follower in a process that does not drive. They only
    make it faster: the log has everything."""

    def __init__(
        self, path: Path, session: str, principal: Principal, follower: FeedReader
    ) -> None:
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
        """Connect for the events after number n, if the driving process serves them. Tried once in
        AGAIN_S."""
        if self.is_connected or monotonic() - self._tried_at < RETRY_S:
            return
        self._tried_at = monotonic()
        lines = _Lines(self._follower)
        try:
            with short_socket_path(self._path) as short:
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
    """The health of the driving process, or None when it does not answer within ASK_S."""
    try:
        with anyio.fail_after(ASK_S), short_socket_path(path) as short:
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
