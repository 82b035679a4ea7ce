"""The Chrome DevTools Protocol over the pipe of a Chromium: commands with their answers, and
events. https://chromedevtools.github.io/devtools-protocol/
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from typing import Protocol as Interface

import anyio
import msgspec

from ...types.errors import ToolError

WRONG_SHAPES = (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError)
"""What comes of messages that are not what they should be: a page may have taken the browser
over."""
CALL_S = 15.0
"""So long a command waits for its answer."""

OnEvent = Callable[[str, str, dict[str, Any]], None]
"""Called with the session of an event, its name, and what it says. Must not wait."""


class Pipe(Interface):
    """What messages are sent over. `ended` says why it is over; '' while it is not."""

    ended: str

    def describe_end(self) -> str: ...

    async def send(self, line: bytes) -> None: ...


class BrowserGone(ToolError):
    """The browser has ended, or its page has crashed or does not answer."""


class CommandRefused(ToolError):
    """The browser has refused a command."""


class _Failure(msgspec.Struct):
    message: str = ""


class _Message(msgspec.Struct):
    id: int = 0
    method: str = ""
    session_id: str = msgspec.field(name="sessionId", default="")
    params: dict[str, Any] = {}
    result: dict[str, Any] = {}
    error: _Failure | None = None


_decode = msgspec.json.Decoder(_Message).decode


class PendingCall:
    """A command that waits for its answer."""

    def __init__(self, number: int, method: str, session: str) -> None:
        self.number = number
        self.method = method
        self.session = session
        self.over = anyio.Event()
        self.answer: _Message | None = None


class Protocol:
    """One connection. Whoever reads the pipe gives each message to `take`, and runs
    `run_sender`."""

    def __init__(self, process: Pipe, on_event: OnEvent) -> None:
        self._process = process
        self._on_event = on_event
        self._calls: dict[int, PendingCall] = {}
        self._number = 0
        self._unsent: deque[bytes] = deque()
        self._has_unsent = anyio.Event()

    def take(self, message: bytes) -> None:
        """Take in what the browser says. What cannot be read is left out: a page may have got it to
        say anything."""
        try:
            said = _decode(message)
        except (ValueError, RecursionError):
            return
        if not said.id:
            with suppress(*WRONG_SHAPES):
                self._on_event(said.session_id, said.method, said.params)
        elif (call := self._calls.pop(said.id, None)) is not None:
            call.answer = said
            call.over.set()

    def post(self, method: str, params: dict[str, Any], session: str) -> int:
        """Say this without waiting for an answer. Returns its number."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        self._unsent.append(msgspec.json.encode(message))
        self._has_unsent.set()
        return self._number

    async def run_sender(self) -> None:
        """Send what is to be said, one after the other, until cancelled."""
        while True:
            await self._has_unsent.wait()
            self._has_unsent = anyio.Event()
            while self._unsent:
                await self._process.send(self._unsent.popleft())

    def end(self, session: str = "") -> None:
        """Nothing more comes of this session, or of all: those that wait are told."""
        for call in self._calls.values():
            if not session or call.session == session:
                call.over.set()

    async def call(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        session: str = "",
        timeout_s: float = CALL_S,
    ) -> dict[str, Any]:
        """What the browser answers to this command. Raises CommandRefused, BrowserGone."""
        call = self.begin(method, params or {}, session)
        try:
            return await self.finish(call, timeout_s)
        finally:
            self._calls.pop(call.number, None)

    def begin(self, method: str, params: dict[str, Any], session: str) -> PendingCall:
        """Say this. Its answer can be waited for again and again, with `finish`."""
        number = self.post(method, params, session)
        call = self._calls[number] = PendingCall(number, method, session)
        return call

    async def finish(self, call: PendingCall, timeout_s: float) -> dict[str, Any]:
        """What the browser answers to a call that was begun. Raises CommandRefused, BrowserGone."""
        with anyio.move_on_after(timeout_s):
            await call.over.wait()
        if self._process.ended:
            raise BrowserGone(f"the browser has ended: {self._process.describe_end()}")
        if call.answer is None and call.over.is_set():
            raise BrowserGone("the tab was closed")
        if call.answer is None:
            raise BrowserGone(f"the page has not answered for {timeout_s:.0f} s ({call.method})")
        if call.answer.error is not None:
            refusal = call.answer.error.message[:200]
            raise CommandRefused(f"the browser refused {call.method}: {refusal}")
        return call.answer.result
