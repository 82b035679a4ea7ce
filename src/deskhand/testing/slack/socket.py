"""Socket Mode of a pretended Slack: envelopes, their acknowledgement, and sending them again.

As https://docs.slack.dev/apis/events-api/using-socket-mode says. Slack sends events again at once,
after one minute and after five, then they are lost
(https://docs.slack.dev/apis/events-api); here the pauses are shorter. Interactive envelopes
come once: the person sees that it failed, and presses again.

Where several connections are open, Slack takes any; here it is the newest. While there is none,
events wait here, however long that lasts; `forget` ends that.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import anyio
import msgspec
from aiohttp import WSCloseCode, WSMsgType, web  # noqa: TID251 -- loopback

from .records import Press

Json = dict[str, Any]
MAX_LINKS = 10


class Envelope(msgspec.Struct, kw_only=True):
    """`tries` counts how often it was sent, `reason` says why it is sent again. `due` is when it is
    to be sent, in the time of the event loop."""

    id: str
    kind: str
    payload: Json
    press: Press | None = None
    tries: int = 0
    missed: int = 0
    reason: str = ""
    due: float = 0.0
    link: int = 0


class Link:
    """A connection that an app has opened."""

    def __init__(self, number: int, socket: web.WebSocketResponse, transport: Any) -> None:
        self.number = number
        self.socket = socket
        self.transport = transport
        self.deaf = False

    def cut(self) -> None:
        """The connection is gone, without a word."""
        if self.transport is not None:
            self.transport.abort()


class SocketMode:
    """The queue of an app and its connections. `acknowledged` are the ids of envelopes and what
    was said with them, `lost` the envelopes that were given up."""

    def __init__(self, ack_timeout_s: float, retry_pauses_s: tuple[float, ...]) -> None:
        self.links: list[Link] = []
        self.waiting: list[Envelope] = []
        self.acknowledged: list[tuple[str, Json]] = []
        self.lost: list[Envelope] = []
        self.swallowed = 0
        self._ack_timeout_s = ack_timeout_s
        self._pauses_s = retry_pauses_s
        self._numbers = itertools.count(1)
        self._news = asyncio.Event()

    def deliver(self, kind: str, payload: Json, press: Press | None) -> None:
        """Queue an envelope; an interactive one is lost if nobody is connected."""
        envelope = Envelope(
            id=f"envelope-{next(self._numbers)}", kind=kind, payload=payload, press=press
        )
        if not self.links:
            # Slack has tried it by then: what comes with the next connection is a repetition.
            envelope.missed = 1
            envelope.reason = "connection_failed"
        if kind == "interactive" and not self.links:
            self.lost.append(envelope)
        else:
            self.waiting.append(envelope)
        self.wake()

    def forget(self) -> int:
        """What waits is lost, as after hours without a connection. Returns how many these were."""
        count = len(self.waiting)
        self.lost += self.waiting
        self.waiting = []
        return count

    def wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    # ------------------------------------------------------------------ one connection

    async def serve(self, request: web.Request, app: str) -> web.WebSocketResponse:
        """Talk to an app until the connection ends."""
        # Pings are answered by hand: a deaf connection answers none.
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        link = Link(next(self._numbers), socket, request.transport)
        if len(self.links) >= MAX_LINKS:
            await self.say_goodbye(link, "too_many_websockets")
            return socket
        self.links.append(link)
        hello = {
            "type": "hello",
            "num_connections": len(self.links),
            "debug_info": {"host": "applink-1", "approximate_connection_time": 18060},
            "connection_info": {"app_id": app},
        }
        try:
            await socket.send_json(hello)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._send, link)
                await self._listen(link)
                tasks.cancel_scope.cancel()
        finally:
            self._leave(link)
        return socket

    def _leave(self, link: Link) -> None:
        if link in self.links:
            self.links.remove(link)
        for envelope in self.waiting:
            if envelope.link == link.number:
                envelope.due = 0.0
        self.wake()

    async def _listen(self, link: Link) -> None:
        async for message in link.socket:
            if link.deaf:
                continue
            if message.type == WSMsgType.PING:
                await link.socket.pong(message.data)
            elif message.type == WSMsgType.TEXT:
                self._acknowledge(link, message.json())

    def _acknowledge(self, link: Link, said: Json) -> None:
        """What came over one connection cannot be acknowledged over another."""
        envelope = next((each for each in self.waiting if each.id == said.get("envelope_id")), None)
        if envelope is None or envelope.link != link.number:
            return
        if self.swallowed > 0:
            self.swallowed -= 1
            return
        self.waiting.remove(envelope)
        self.acknowledged.append((envelope.id, said.get("payload") or {}))
        if envelope.press is not None:
            envelope.press.acknowledged = True

    async def _send(self, link: Link) -> None:
        loop = asyncio.get_running_loop()
        while True:
            news = self._news
            if self.links[-1:] == [link] and not link.deaf:
                try:
                    await self._send_due(link, loop.time)
                except ConnectionError:
                    return
            pending = [each.due for each in self.waiting]
            pause_s = max(min(pending) - loop.time(), 0.01) if pending else 60.0
            with anyio.move_on_after(pause_s):
                await news.wait()

    async def _send_due(self, link: Link, now: Callable[[], float]) -> None:
        for envelope in [each for each in self.waiting if each.due <= now()]:
            again = envelope.tries + envelope.missed
            if again > len(self._pauses_s) or (again and envelope.kind == "interactive"):
                self.waiting.remove(envelope)
                self.lost.append(envelope)
                continue
            pause_s = self._pauses_s[again] if again < len(self._pauses_s) else 0.0
            envelope.due = now() + self._ack_timeout_s + pause_s
            envelope.link = link.number
            shown: Json = {"envelope_id": envelope.id, "payload": envelope.payload}
            shown |= {"type": envelope.kind, "accepts_response_payload": False}
            if envelope.kind == "events_api":
                shown |= {"retry_attempt": again, "retry_reason": envelope.reason}
            envelope.tries += 1
            envelope.reason = "timeout"
            await link.socket.send_json(shown)

    async def say_goodbye(self, link: Link, reason: str) -> None:
        """Ask the app to connect anew, and close this connection unless that is only a warning."""
        about = {"host": "applink-1"}
        await link.socket.send_json({"type": "disconnect", "reason": reason, "debug_info": about})
        if reason != "warning":
            await link.socket.close(code=WSCloseCode.OK)
