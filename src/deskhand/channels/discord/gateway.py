"""One connection to Discord's gateway, over which events come.

https://discord.com/developers/docs/events/gateway. A connection that breaks is taken up again where
it was: Discord then sends everything after the last event that we name, for some minutes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import anyio
import msgspec
import websockets
from websockets.exceptions import ConnectionClosed

from ...types.errors import ChannelError
from .translate import translate_close

Json = Mapping[str, Any]
T = TypeVar("T")
MAX_FRAME_BYTES = 2**26
HELLO_S = 30.0
_LOST_SESSION = (1000, 1001, 4003, 4007, 4009)
"""Closed so, the session is over, and what was missed has to be asked for."""


class Resume(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a session can be taken up again: `seq` is the last event that was taken. Without a
    `session` there is none."""

    session: str = ""
    url: str = ""
    seq: int = 0


class Event(msgspec.Struct, frozen=True):
    kind: str
    data: Json
    seq: int


class Gateway:
    """A connection, used by one task. `resume` is where it is to begin."""

    def __init__(
        self, token: str, intents: int, resume: Resume, monotonic: Callable[[], float]
    ) -> None:
        self._token = token
        self._intents = intents
        self._monotonic = monotonic
        self._resume = resume
        self._socket: websockets.ClientConnection | None = None
        self._seq = resume.seq
        self._beat_s = HELLO_S
        self._next_beat = 0.0
        self._answered = True
        self.lost_session = False
        self.is_asked = False

    async def connect(self, url: str) -> None:
        """Raises OSError, WebSocketException, TimeoutError."""
        self._socket = await websockets.connect(  # noqa: TID251 -- Discord gives it to its bot
            f"{url.rstrip('/')}/?v=10&encoding=json", max_size=MAX_FRAME_BYTES, proxy=None
        )
        self._next_beat = self._monotonic() + HELLO_S

    async def read(self) -> Event | None:
        """The next event; None where the connection is over and the next can be made. Raises
        LoginRefused."""
        try:
            while True:
                frame = await self._read_frame()
                if frame is None:
                    return None
                match frame.get("op"):
                    case 0:
                        self._seq = int(frame.get("s") or 0)
                        return Event(str(frame.get("t")), frame.get("d") or {}, self._seq)
                    case 1:
                        await self._beat()
                    case 7:
                        self.is_asked = True
                        return None
                    case 9:
                        self.lost_session = not frame.get("d")
                        return None
                    case 10:
                        await self._greet(frame)
                    case 11:
                        self._answered = True
        except ConnectionClosed as error:
            code = error.rcvd.code if error.rcvd is not None else 0
            if refused := translate_close(code):
                raise refused from error
            self.lost_session = code in _LOST_SESSION
            return None

    async def keep_alive(self, work: Awaitable[T]) -> T:
        """The result of what takes long; beats meanwhile."""

        async def beat() -> None:
            while True:
                await anyio.sleep(max(self._next_beat - self._monotonic(), 0.0))
                await self._beat()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(beat)
            found = await work
            tasks.cancel_scope.cancel()
        self._answered = True  # the answers are still to be read
        return found

    async def close(self) -> None:
        """With a code that leaves the session open, so that it can be taken up again."""
        if self._socket is not None:
            with anyio.CancelScope(shield=True), anyio.move_on_after(1):
                await self._socket.close(4000)

    async def _read_frame(self) -> Json | None:
        """The next frame; beats while it waits. None where the other side is dead."""
        while True:
            wait = self._next_beat - self._monotonic()
            with anyio.move_on_after(max(wait, 0)):
                frame: Json = msgspec.json.decode(await self._open_socket.recv())
                return frame
            if not self._answered or self._beat_s == HELLO_S:
                return None
            await self._beat()

    async def _greet(self, hello: Json) -> None:
        self._beat_s = float(hello["d"]["heartbeat_interval"]) / 1000
        self._answered = True
        self._next_beat = self._monotonic() + self._beat_s
        resume = self._resume
        if resume.session:
            about = {"token": self._token, "session_id": resume.session, "seq": resume.seq}
            await self._send(6, about)
            return
        properties = {"os": "linux", "browser": "deskhand", "device": "deskhand"}
        about = {"token": self._token, "intents": self._intents, "properties": properties}
        await self._send(2, about)

    async def _beat(self) -> None:
        self._answered = False
        self._next_beat = self._monotonic() + self._beat_s
        await self._send(1, self._seq or None)

    async def _send(self, op: int, data: object) -> None:
        await self._open_socket.send(msgspec.json.encode({"op": op, "d": data}).decode())

    @property
    def _open_socket(self) -> websockets.ClientConnection:
        if self._socket is None:
            raise ChannelError("the gateway is not connected")
        return self._socket
