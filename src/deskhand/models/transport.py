"""The one HTTP session that all language models share: a body of bytes out, a stream of events
back, within limits."""

from __future__ import annotations

import asyncio
import io
import math
import ssl
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Literal

import aiohttp  # noqa: TID251 -- the addresses of providers are the words of a person
import anyio
import msgspec

from . import faults
from .faults import FailedCall
from .sse import LineTooLong, Splitter

_ERROR_BODY_BYTES = 64 * 1024
_DRAIN_S = 0.2
_CHUNKED_BODY_BYTES = 1 << 20
"""From here on aiohttp wants a body in pieces, and warns about one that is not."""
_FINAL_PAYLOADS = (
    b"[DONE]",
    b'{"type":"message_stop"',
    b'{"type": "message_stop"',
    b'{"type":"response.completed"',
    b'{"type":"response.incomplete"',
)


class TransportLimits(msgspec.Struct, frozen=True):
    """How long to wait, in seconds, and how much to take.

    `first_s` runs from the start of the call to the first byte of the reply, `idle_s` between two
    bytes of it, of whatever kind (reasoning and comments are life too), `total_s` over the whole
    call.
    """

    connect_s: float = 10
    first_s: float = 120
    idle_s: float = 60
    total_s: float = 600
    line_bytes: int = 4 << 20
    reply_bytes: int = 32 << 20


class Transport:
    """An HTTP session. Enter it inside the running loop; leaving it closes every connection.

    Without `keep`, every call has a connection of its own: llama.cpp's server promises to keep one
    open after a stream, and hangs up while the next request is being written.
    """

    def __init__(
        self,
        limits: TransportLimits | None = None,
        proxy: str | None = None,
        tls: ssl.SSLContext | None = None,
        *,
        keep: bool = True,
    ) -> None:
        self.limits = limits or TransportLimits()
        self._keep = keep
        self._proxy = proxy
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Transport:
        tls = self._tls or True
        if self._keep:
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30, ssl=tls)
        else:
            connector = aiohttp.TCPConnector(limit=0, force_close=True, ssl=tls)
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, connect=self.limits.connect_s),
            headers={
                "User-Agent": "deskhand",
                "Content-Type": "application/json",
                "Accept-Encoding": "identity",
            },
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def stream(self, call: FailedCall, body: bytes) -> AsyncGenerator[list[bytes], None]:
        """POST `body`; yield the payloads of server-sent events, as many as came together, or the
        whole body where the answer is plain JSON.

        Raises the ModelError that fits. Closing the iterator closes the connection, unless the
        reply was complete.
        """
        watch = _Watch(self.limits)
        response: aiohttp.ClientResponse | None = None
        try:
            response = await self._open(call, body, watch)
            watch.guard(response)
            splitter = Splitter(self.limits.line_bytes)
            plain = response.content_type == "application/json"
            whole: list[bytes] = []
            taken = 0
            content = response.content
            while chunk := await watch.next_chunk(content):
                taken += len(chunk)
                if taken > self.limits.reply_bytes:
                    raise faults.make_malformed_reply(
                        call, f"the reply is longer than {self.limits.reply_bytes} bytes"
                    )
                if plain:
                    whole.append(chunk)
                    continue
                payloads = splitter.feed(chunk)
                if payloads:
                    yield payloads
                    if payloads[-1].startswith(_FINAL_PAYLOADS):
                        await _drain(response)
                        return
            watch.check(call)
            yield [b"".join(whole)] if plain else splitter.close()
        except LineTooLong:
            raise faults.make_malformed_reply(
                call, f"a line is longer than {self.limits.line_bytes} bytes"
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            watch.check(call)
            if response is None:
                raise faults.make_unreachable(call, str(error)) from error
            raise faults.make_broken_reply(call, str(error)) from error
        finally:
            watch.stop()
            if response is not None:
                response.close()

    async def _open(self, call: FailedCall, body: bytes, watch: _Watch) -> aiohttp.ClientResponse:
        """The answer once its headers are here and say success."""
        if self._session is None:
            raise RuntimeError("the transport is used outside of its `async with`")
        limits = self.limits
        first_s = min(limits.first_s, limits.total_s)
        try:
            # On the path of every call, and a quarter of anyio's cost.
            async with asyncio.timeout(first_s):
                # A redirect would carry the key to another host.
                response = await self._session.post(
                    call.url,
                    data=body if len(body) < _CHUNKED_BODY_BYTES else io.BytesIO(body),
                    headers=call.headers,
                    proxy=self._proxy,
                    allow_redirects=False,
                )
        except aiohttp.ConnectionTimeoutError as error:
            raise faults.make_timeout(call, "connect", limits.connect_s) from error
        except TimeoutError as error:
            raise faults.make_timeout(call, "first", first_s) from error
        except ValueError as error:
            raise faults.make_unreachable(
                call, f"the address or the key has characters that HTTP does not allow: {error}"
            ) from error
        try:
            if response.status != 200:
                said = await _read_error_body(response, limits)
                raise faults.make_http_error(call, response.status, response.headers, said)
            if response.content_type == "text/html":
                said = await _read_error_body(response, limits)
                raise faults.make_malformed_reply(call, "this is a web page", said)
        except BaseException:
            response.close()
            raise
        return response


async def _drain(response: aiohttp.ClientResponse) -> None:
    """Read the end of the answer, which comes a moment after the last event, so that the connection
    can be used again. The reply is whole already: nothing that happens here is a failure."""
    timer = asyncio.get_running_loop().call_later(_DRAIN_S, response.close)
    try:
        while await response.content.readany():
            pass
    except (aiohttp.ClientError, OSError):
        pass
    finally:
        timer.cancel()


async def _read_error_body(response: aiohttp.ClientResponse, limits: TransportLimits) -> bytes:
    """The start of an error's body, or as much of it as came in time: the status alone says
    enough."""
    body = b""
    with anyio.move_on_after(min(limits.idle_s, 5)):
        with suppress(aiohttp.ClientError, OSError):
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) >= _ERROR_BODY_BYTES:
                    break
    return body


class _Watch:
    """The time limits of one call, by one timer that is moved lazily: a chunk costs two clock
    readings.

    It closes the response instead of cancelling a task: a cancel could hit whoever iterates,
    outside of this room.
    """

    __slots__ = ("_begun", "_end", "_limits", "_loop", "_response", "_since", "_timer", "expired")

    def __init__(self, limits: TransportLimits) -> None:
        self._loop = asyncio.get_running_loop()
        self._limits = limits
        self._since = self._loop.time()
        self._end = self._since + limits.total_s
        self._begun = False
        self._response: aiohttp.ClientResponse | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.expired: Literal["", "first", "idle", "total"] = ""

    def guard(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._tick()

    async def next_chunk(self, content: aiohttp.StreamReader) -> bytes:
        """Whatever has come; empty at the end. Only our waiting counts as silence, not the reader's
        work."""
        if self._begun:
            self._since = self._loop.time()
        chunk = await content.readany()
        self._since = math.inf
        self._begun = True
        return chunk

    def check(self, call: FailedCall) -> None:
        """Raise if a limit was the reason that the stream ended."""
        match self.expired:
            case "first":
                raise faults.make_timeout(call, "first", self._limits.first_s)
            case "idle":
                raise faults.make_timeout(call, "idle", self._limits.idle_s)
            case "total":
                raise faults.make_timeout(call, "total", self._limits.total_s)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self) -> None:
        now = self._loop.time()
        patience_s = self._limits.idle_s if self._begun else self._limits.first_s
        due = min(self._since + patience_s, self._end)
        if now < due:
            # No later than one idle_s from now: a silence that begins meanwhile ends no earlier
            # than that.
            self._timer = self._loop.call_at(min(due, now + self._limits.idle_s), self._tick)
            return
        if now >= self._end:
            self.expired = "total"
        else:
            self.expired = "idle" if self._begun else "first"
        if self._response is not None:
            self._response.close()
