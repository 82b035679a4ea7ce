"""One HTTP exchange through the proxy: read strictly, written anew, so that both sides see the same
request."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio
import h11
import msgspec
from anyio.abc import ByteStream

from ..types.secrets import Scrubber
from .framing import make_strict

HEAD_BYTES = 1 << 15
HEAD_S = 15.0
KEEP_ALIVE_S = 60.0
IDLE_S = 120.0
"""Until the first request is whole, until the next one begins, and between two pieces of
anything."""
PIECE_BYTES = 1 << 16
_DRAIN_BYTES = 1 << 18
_DRAIN_S = 1.0

CONNECTION_ERRORS = (
    OSError,
    anyio.EndOfStream,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    h11.ProtocolError,
)
"""How a connection ends that did not end well."""

# RFC 9110 section 7.6.1. What frames the body is not taken from one side to the other, but made
# anew.
_HOP_HEADERS = frozenset(
    (
        b"connection keep-alive proxy-connection proxy-authorization proxy-authenticate "
        b"te trailer transfer-encoding upgrade expect"
    ).split()
)
_NEVER_HOP_HEADERS = frozenset((b"host", b"content-length", b"authorization", b"cookie"))

Headers = list[tuple[bytes, bytes]]


class Malformed(Exception):
    """The request cannot be understood in one way only. The message is for its sender."""


class ByteCounts(msgspec.Struct):
    """How many bytes of content went each way."""

    up: int = 0
    down: int = 0


class Peer:
    """One side of an exchange: its stream, and what h11 makes of it."""

    def __init__(self, stream: ByteStream, connection: h11.Connection) -> None:
        self.stream = stream
        self.http = connection

    @classmethod
    def client(cls, stream: ByteStream) -> Peer:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        return cls(stream, make_strict(connection))

    @classmethod
    def upstream(cls, stream: ByteStream) -> Peer:
        connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES)
        return cls(stream, make_strict(connection))

    async def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """What comes next. Raises one of CONNECTION_ERRORS; TimeoutError is among them."""
        while True:
            event = self.http.next_event()
            if event is not h11.NEED_DATA:
                return event
            try:
                with anyio.fail_after(IDLE_S):
                    data = await self.stream.receive(PIECE_BYTES)
            except anyio.EndOfStream:
                data = b""
            self.http.receive_data(data)

    async def send(self, event: h11.Event) -> None:
        """Raises one of CONNECTION_ERRORS."""
        data = self.http.send(event)
        if data:
            with anyio.fail_after(IDLE_S):
                await self.stream.send(data)


async def read_request(client: Peer, within_s: float) -> h11.Request | None:
    """The next request; None where no more comes. Raises Malformed, or one of
    CONNECTION_ERRORS."""
    try:
        with anyio.fail_after(within_s):
            event = await client.next_event()
    except h11.RemoteProtocolError as error:
        raise Malformed(f"this is not valid HTTP: {error}") from error
    if not isinstance(event, h11.Request):
        return None
    if event.http_version not in (b"1.0", b"1.1"):
        raise Malformed("only HTTP/1.0 and HTTP/1.1 are supported")
    if b"#" in event.target:
        raise Malformed("a request must not have a fragment")
    return event


async def send_refusal(client: Peer, status: int, text: str) -> None:
    """Answer by ourselves, and end the connection: what the client still sends is thrown away for a
    moment, so that it reads the answer first."""
    if client.http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
        return
    body = f"{text}\n".encode()
    headers = [
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Content-Length", str(len(body))),
        ("Connection", "close"),
        ("X-Deskhand", "refused"),
    ]
    try:
        await client.send(h11.Response(status_code=status, headers=headers, reason=b"Deskhand"))
        await client.send(h11.Data(data=body))
        await client.send(h11.EndOfMessage())
        await client.stream.send_eof()
        with anyio.move_on_after(_DRAIN_S):
            left = _DRAIN_BYTES
            while left > 0:
                left -= len(await client.stream.receive(PIECE_BYTES))
    except (*CONNECTION_ERRORS, NotImplementedError):  # TLS has no half of a connection to close
        pass


def strip_hop_headers(headers: Sequence[tuple[bytes, bytes]]) -> Headers:
    """Without what is meant for the next hop alone."""
    named = set[bytes]()
    for name, value in headers:
        if name.lower() == b"connection":
            named.update(token.strip().lower() for token in value.split(b","))
    dropped = _HOP_HEADERS | (named - _NEVER_HOP_HEADERS)
    return [(name, value) for name, value in headers if name.lower() not in dropped]


async def relay_exchange(
    client: Peer,
    upstream: Peer,
    request: h11.Request,
    sent: ByteCounts,
    scrub: Callable[[], Scrubber] | None = None,
) -> None:
    """Send the request and what follows it of the client, and the answer back. Raises one of
    CONNECTION_ERRORS; Malformed where the answer cannot be looked through."""
    failed: list[BaseException] = []
    problem: Exception | None = None

    async def send_body() -> None:
        try:
            while True:
                event = await client.next_event()
                if isinstance(event, h11.Data):
                    await upstream.send(h11.Data(data=event.data))
                    sent.up += len(event.data)
                elif isinstance(event, h11.EndOfMessage):
                    await upstream.send(h11.EndOfMessage())
                    return
                else:
                    raise h11.RemoteProtocolError("the body broke off")
        except CONNECTION_ERRORS as error:
            # Where there is no answer either: it might say why.
            if upstream.http.their_state is h11.SEND_RESPONSE:
                with anyio.move_on_after(2):
                    await answered.wait()
                    return
                failed.append(error)
                tasks.cancel_scope.cancel()

    answered = anyio.Event()
    await upstream.send(request)
    if client.http.they_are_waiting_for_100_continue:
        await client.send(h11.InformationalResponse(status_code=100, headers=[]))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send_body)
        problem = await _relay_response(client, upstream, sent, scrub and scrub(), answered)
        tasks.cancel_scope.cancel()
    if problem is not None:
        raise problem
    if failed:
        raise failed[0]


async def _relay_response(
    client: Peer, upstream: Peer, sent: ByteCounts, scrubber: Scrubber | None, answered: anyio.Event
) -> Exception | None:
    """Carry the answer back; what went wrong, if something did."""
    try:
        while isinstance(event := await upstream.next_event(), h11.InformationalResponse):
            pass
        if not isinstance(event, h11.Response):
            raise h11.RemoteProtocolError("the server closed the connection without an answer")
        answered.set()
        await client.send(_make_response(event, scrubber))
        while True:
            event = await upstream.next_event()
            if isinstance(event, h11.Data):
                sent.down += len(event.data)
                data = scrubber.feed(bytes(event.data)) if scrubber else event.data
                if data:
                    await client.send(h11.Data(data=data))
            elif isinstance(event, h11.EndOfMessage):
                if scrubber and (rest := scrubber.flush()):
                    await client.send(h11.Data(data=rest))
                await client.send(h11.EndOfMessage())
                return None
            else:
                raise h11.RemoteProtocolError("the answer broke off")
    except (*CONNECTION_ERRORS, Malformed) as error:
        return error


def _make_response(event: h11.Response, scrubber: Scrubber | None) -> h11.Response:
    headers = strip_hop_headers(event.headers.raw_items())
    reason = event.reason
    if scrubber is not None:
        if _is_compressed(headers):
            raise Malformed(
                "the answer is compressed although this was not requested, so secrets in it "
                "cannot be found"
            )
        # Without a secret the body has another length.
        headers = [pair for pair in headers if pair[0].lower() != b"content-length"]
        headers = [(name, scrubber.scrub(value)) for name, value in headers]
        reason = scrubber.scrub(reason)
    return h11.Response(status_code=event.status_code, headers=headers, reason=reason)


def _is_compressed(headers: Headers) -> bool:
    encodings = [value for name, value in headers if name.lower() == b"content-encoding"]
    return any(value.strip().lower() not in (b"identity", b"") for value in encodings)
