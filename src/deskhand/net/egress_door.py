"""The socket that connects a sandboxed command to the egress proxy: one for each command."""

from __future__ import annotations

import shutil
import socket
import struct
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.abc import SocketStream, TaskGroup

from ..types.errors import DeskhandError
from .egress_http import CONNECTION_ERRORS
from .egress_proxy import EgressPolicy, serve_connection

MAX_CONNECTIONS = 48
"""Connections of one command at once; more wait. A browser opens 32 to a proxy."""
MAX_RELAYS = 8
_HAND_OVER_S = 5.0


class Slots:
    """Limits the connections of all commands together: each takes up to two file descriptors."""

    def __init__(self, connections: int = 192) -> None:
        self.free = anyio.Semaphore(connections)


@asynccontextmanager
async def open_egress_socket(
    policy: EgressPolicy, slots: Slots, authorities: Path | None = None
) -> AsyncIterator[str]:
    """The path of a socket through which one command reaches the proxy, until the block ends.

    The client connects and hands over a listening socket by SCM_RIGHTS, with the byte `L`. What
    connects to that is served until the client's connection ends. `authorities` is linked next to
    the socket as `ca.pem`.
    """
    failed: DeskhandError | None = None
    folder = Path(await anyio.to_thread.run_sync(tempfile.mkdtemp, "", "deskhand-way-"))
    path = folder / "socket"
    try:
        if authorities is not None:
            (folder / "ca.pem").symlink_to(authorities)
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(str(path))
            path.chmod(0o600)
            door.listen()
            door.setblocking(False)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_accept_relays, door, policy, slots, tasks)
                try:
                    yield str(path)
                except DeskhandError as error:
                    failed = error  # raised in here, it would come out as a group
                finally:
                    tasks.cancel_scope.cancel()
            if failed is not None:
                raise failed
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _accept_relays(
    door: socket.socket, policy: EgressPolicy, slots: Slots, tasks: TaskGroup
) -> None:
    relays = anyio.Semaphore(MAX_RELAYS)
    while True:
        await relays.acquire()
        await anyio.wait_readable(door)
        try:
            connection, _ = door.accept()
        except OSError:
            relays.release()
            continue
        connection.setblocking(False)
        tasks.start_soon(_serve_relay, connection, policy, slots, relays)


async def _serve_relay(
    connection: socket.socket, policy: EgressPolicy, slots: Slots, relays: anyio.Semaphore
) -> None:
    """Serve what connects to the listening socket that `connection` hands over, while it is
    open."""
    try:
        with connection, suppress(*CONNECTION_ERRORS):
            with anyio.fail_after(_HAND_OVER_S):
                await anyio.wait_readable(connection)
            listener = _receive_listener(connection)
            if listener is None:
                return
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_accept_connections, listener, policy, slots)
                await anyio.wait_readable(connection)  # nothing more is said: its end
                tasks.cancel_scope.cancel()
    finally:
        relays.release()


def _receive_listener(connection: socket.socket) -> socket.socket | None:
    """The listening socket that came, if it is one; anything else is closed."""
    said, descriptors, _, _ = socket.recv_fds(connection, 1, 4)
    sockets = [socket.socket(fileno=each) for each in descriptors]
    listening = [each for each in sockets if said == b"L" and _is_listening(each)]
    listener = listening[0] if len(listening) == 1 else None
    for each in sockets:
        if each is not listener:
            each.close()
    if listener is not None:
        listener.setblocking(False)
    return listener


def _is_listening(given: socket.socket) -> bool:
    accepts = struct.unpack("i", given.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN, 4))[0]
    return bool(accepts) and given.family == socket.AF_INET


async def _accept_connections(listener: socket.socket, policy: EgressPolicy, slots: Slots) -> None:
    own = anyio.Semaphore(MAX_CONNECTIONS)
    with listener:
        async with anyio.create_task_group() as tasks:
            while True:
                await anyio.wait_readable(listener)
                await own.acquire()
                await slots.free.acquire()
                try:
                    stream = await SocketStream.from_socket(listener.accept()[0])
                except OSError:
                    _release_slots(own, slots)
                    continue
                tasks.start_soon(_serve_one, stream, policy, partial(_release_slots, own, slots))


def _release_slots(own: anyio.Semaphore, slots: Slots) -> None:
    own.release()
    slots.free.release()


async def _serve_one(stream: SocketStream, policy: EgressPolicy, leave: partial[None]) -> None:
    try:
        await serve_connection(stream, policy)
    finally:
        leave()
