"""The near end of a pseudo-terminal: what is typed goes in here, and the size of the window."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import termios
from collections.abc import Callable
from contextlib import ExitStack

import anyio

_TYPED_WITHIN_S = 5.0
_PIECE_BYTES = 1 << 16
_PIECES_IN_A_ROW = 8


class Terminal:
    """A window that a command runs in, of so many columns and rows; it knows it as `name`. One for
    each command."""

    def __init__(self, columns: int = 100, rows: int = 30, name: str = "xterm-256color") -> None:
        self.columns = columns
        self.rows = rows
        self.name = name
        self.attached = anyio.Event()
        self._descriptor = -1

    def attach(self, descriptor: int) -> None:
        """The command has its end; ours is not to block. It stays whose it is, until `detach`."""
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self.attached.set()

    def detach(self) -> None:
        """It is over."""
        self._descriptor = -1
        self.attached.set()

    @property
    def is_open(self) -> bool:
        return self._descriptor >= 0

    async def write(self, typed: bytes) -> int:
        """Type this. Returns how many bytes were taken, fewer where the command does not read; 0
        when it is over."""
        taken = 0
        with anyio.move_on_after(_TYPED_WITHIN_S):
            while self.is_open and taken < len(typed):
                try:
                    taken += os.write(self._descriptor, typed[taken : taken + 1024])
                except BlockingIOError:
                    await anyio.wait_writable(self._descriptor)
                except OSError:  # the other end is closed
                    break
        return taken

    def resize(self, columns: int, rows: int) -> None:
        """The window has another size: the command is told."""
        self.columns = columns
        self.rows = rows
        if self.is_open:
            fcntl.ioctl(
                self._descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0)
            )


class TerminalHandover:
    """How the near end comes to us: the supervisor opens the terminal inside, and hands it out
    through a socket."""

    def __init__(self, stack: ExitStack, terminal: Terminal | None) -> None:
        self._terminal = terminal
        self.far_fds: tuple[int, ...] = ()
        self.offer: tuple[int, int, int] | None = (
            None  # where to hand it out, and its rows and columns
        )
        if terminal is not None:
            self._near, self._far = (stack.enter_context(end) for end in socket.socketpair())
            self._near.setblocking(False)
            self.far_fds = (self._far.fileno(),)
            self.offer = (self._far.fileno(), terminal.rows, terminal.columns)

    def close(self) -> None:
        """The end of the supervisor is its own."""
        if self._terminal is not None:
            self._far.close()

    async def forward_output(self, output: Callable[[bytes, bool], None]) -> None:
        """Hand on what the command prints, until nobody has its end any more."""
        if self._terminal is None:
            return
        await anyio.wait_readable(self._near)
        _, descriptors, _, _ = socket.recv_fds(self._near, 1, 1)
        for descriptor in descriptors:
            self._terminal.attach(descriptor)
            try:
                await _read(descriptor, output)
            finally:
                self._terminal.detach()
                os.close(descriptor)
        self._terminal.detach()


async def _read(descriptor: int, output: Callable[[bytes, bool], None]) -> None:
    while True:
        await anyio.wait_readable(descriptor)
        for _ in range(_PIECES_IN_A_ROW):
            try:
                piece = os.read(descriptor, _PIECE_BYTES)
            except BlockingIOError:
                break
            except OSError:  # EIO: the last process that had it is gone
                return
            if not piece:
                return
            output(piece, False)
