"""A program of the sandbox that is kept while it is used, and asked one thing at a time. Its memory
is given back when nobody has asked for a while."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TypeVar

import anyio

from ..sandbox.base import Sandbox, SandboxCommand
from ..sandbox.line_process import LineProcess
from ..types.errors import SandboxError, SpeechError

IDLE_S = 300.0
LIFE_S = 24 * 3600.0
START_S = 30.0
"""So long a program has to be there; what it loads then counts as its first answer."""

T = TypeVar("T")
OpenSandbox = Callable[[], Awaitable[Sandbox]]
MakeCommand = Callable[[], SandboxCommand]


class HeldProcess:
    """One such program. `run` keeps it; `ask` begins it where it is not there. `name` is what
    people read in errors."""

    def __init__(
        self, name: str, make_command: MakeCommand, sandbox: OpenSandbox, idle_s: float = IDLE_S
    ) -> None:
        self.name = name
        self._make_command = make_command
        self._open_sandbox = sandbox
        self._idle_s = idle_s
        self._lock = anyio.Lock()
        self._wanted = anyio.Event()
        self._changed = anyio.Event()
        self._scope: anyio.CancelScope | None = None
        self._used_at = 0.0
        self._problem = self._last_end = ""
        self._process: LineProcess | None = None
        self._lines: AsyncGenerator[bytes] | None = None
        self.starts = 0

    @property
    def is_running(self) -> bool:
        return self._process is not None

    async def run(self) -> None:
        """Hold the program whenever it is wanted, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted = anyio.Event()
            self._problem = ""
            try:
                with anyio.CancelScope() as scope:
                    self._scope = scope
                    await self._hold(LineProcess(await self._open_sandbox(), self._make_command()))
            except SandboxError as error:
                self._problem = str(error)
            finally:
                self._process = self._lines = None
                self._tell()

    async def _hold(self, process: LineProcess) -> None:
        async with process.open(), aclosing(process.lines()) as lines:
            self.starts += 1
            self._process = process
            self._lines = lines
            self._used_at = anyio.current_time()
            self._tell()
            while not process.ended:
                if self._lock.statistics().locked:
                    await anyio.sleep(min(1.0, self._idle_s))
                    continue
                left = self._used_at + self._idle_s - anyio.current_time()
                if left <= 0:
                    self._process = self._lines = None  # who asks from here on waits for the next
                    return
                await anyio.sleep(min(1.0, left))
            self._last_end = process.describe_end()

    def _end(self) -> None:
        """Nobody is to ask it any more, though it takes a moment to be gone."""
        self._process = self._lines = None
        if self._scope is not None:
            self._scope.cancel()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def ask(self, line: bytes, take: Callable[[bytes], T | None], silence_s: float) -> T:
        """Tell it a line, and hand what it answers to `take`, line by line, until that returns
        something.

        After `silence_s` without a word it is ended, and so it is where whoever asks is cancelled
        or `take` raises: nobody knows what it would say next. Raises SpeechError.
        """
        async with self._lock:
            answered = False
            try:
                process, lines = await self._start()
                await process.send(line)
                while True:
                    said = None
                    with anyio.move_on_after(silence_s):
                        said = await anext(lines, None)
                    if said is None:
                        raise SpeechError(self._describe(process, silence_s))
                    if (taken := take(said)) is not None:
                        answered = True
                        return taken
            finally:
                self._used_at = anyio.current_time()
                if not answered:
                    self._end()

    async def _start(self) -> tuple[LineProcess, AsyncGenerator[bytes]]:
        process = self._process
        if process is not None and process.ended:  # it is noticed within a second
            self._end()
        with anyio.move_on_after(START_S):
            while (
                self._process is None or self._lines is None or self._process.ended
            ) and not self._problem:
                self._wanted.set()
                await self._changed.wait()
        if self._process is None or self._lines is None:
            why = self._problem or self._last_end or f"it was not there after {START_S:.0f} s"
            self._problem = ""
            raise SpeechError(f"{self.name} did not start: {why}")
        return self._process, self._lines

    def _describe(self, process: LineProcess, silence_s: float) -> str:
        why = process.describe_end()
        return f"{self.name} {why or f'said nothing for {silence_s:.0f} s, and was stopped'}"
