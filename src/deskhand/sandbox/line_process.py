"""A program in the sandbox that one talks with: lines over its standard streams."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import anyio
from msgspec.structs import replace

from ..types.errors import SandboxError
from .base import Exit, Sandbox, SandboxCommand

MAX_LINE_BYTES = 16 << 20
"""The longest line of a program. One that says more at once is stopped."""
MAX_COMPLAINT_BYTES = 4_000
CLOSE_S = 2.0
"""So long a program has to end by itself once its input is closed."""
_PIECE_BYTES = 1 << 16


class LineProcess:
    """One run of such a program. `ended` says why it is over, or must be; '' while it runs."""

    def __init__(
        self,
        sandbox: Sandbox,
        command: SandboxCommand,
        end: bytes = b"\n",
        max_line_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        """Each line ends with the byte `end`, and is no longer than that."""
        self._sandbox = sandbox
        self._command = command
        self._end = end
        self._max_line_bytes = max_line_bytes
        self._pieces: deque[bytes] = deque()
        self._waiting = 0
        self._heard = anyio.Event()
        self._complaint = b""
        self._in_fd = -1
        self.ended = ""

    def describe_end(self) -> str:
        """Why it is over, and the last lines that it wrote to stderr; '' while it runs."""
        if not self.ended:
            return ""
        lines = self._complaint.decode(errors="replace").strip().splitlines()
        return "\n".join([self.ended, *lines[-3:]])

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Run it. It and all that it started are gone afterwards, whatever happens."""
        read_fd, self._in_fd = os.pipe()
        try:
            os.set_blocking(self._in_fd, False)
            async with anyio.create_task_group() as tasks:
                stopped = anyio.Event()
                tasks.start_soon(self._run, read_fd, stopped)
                try:
                    yield
                finally:
                    with anyio.CancelScope(shield=True):
                        self._close_input()
                        with anyio.move_on_after(CLOSE_S):
                            await stopped.wait()
                    tasks.cancel_scope.cancel()
        finally:
            self._close_input()
            os.close(read_fd)

    def _close_input(self) -> None:
        if self._in_fd >= 0:
            anyio.notify_closing(self._in_fd)
            os.close(self._in_fd)
            self._in_fd = -1

    async def _run(self, read_fd: int, stopped: anyio.Event) -> None:
        command = replace(self._command, stdin_fd=read_fd)
        try:
            ended = await self._sandbox.run(command, self._on_output)
            self.ended = self.ended or _describe_end(ended)
        except SandboxError as error:
            self.ended = str(error)
        finally:
            stopped.set()
            self._heard.set()

    def _on_output(self, piece: bytes, is_error: bool) -> None:
        if is_error:
            self._complaint = (self._complaint + piece)[-MAX_COMPLAINT_BYTES:]
            return
        self._waiting += len(piece)
        if self._waiting <= 4 * self._max_line_bytes:
            self._pieces.append(piece)
        elif not self.ended:
            self.ended = f"it sent more than {self._max_line_bytes >> 18} MB faster than it is read"
        self._heard.set()

    async def lines(self) -> AsyncGenerator[bytes]:
        """What it says, a line at a time, until it has ended or must. To be read by one task."""
        line = bytearray()
        while not self.ended:
            self._heard = anyio.Event()
            if not self._pieces:
                await self._heard.wait()
            while self._pieces and not self.ended:
                piece = self._pieces.popleft()
                self._waiting -= len(piece)
                *whole, rest = piece.split(self._end)
                for last in whole:
                    yield bytes(line) + last
                    line.clear()
                line += rest
                if len(line) > self._max_line_bytes:
                    most = self._max_line_bytes >> 20
                    self.ended = f"it sent a message of more than {most} MB"
        self._pieces.clear()

    async def send(self, line: bytes) -> None:
        """Tell it a line. One that reads no more is told nothing: `ended` says why."""
        view = memoryview(line + self._end)
        try:
            while view:
                await anyio.wait_writable(self._in_fd)
                view = view[os.write(self._in_fd, view[:_PIECE_BYTES]) :]
        except (OSError, ValueError, anyio.ClosedResourceError):
            return


def _describe_end(ended: Exit) -> str:
    if ended.limit:
        return f"it used too much of the {ended.limit}"
    if ended.code is not None:
        return f"it ended with code {ended.code}"
    return f"it was killed by signal {ended.signal}"
