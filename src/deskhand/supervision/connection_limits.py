"""HTTP connections of strangers: how long one may take to say what it wants, and how many there may
be."""

from __future__ import annotations

import asyncio

import h11
import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..net.framing import make_strict
from ..types.clock import Ids
from ..web.errors import ErrorBody, Problem

HEAD_TIMEOUT_S = 5.0
"""The head of a request is here by then, from its first byte on, or from when the connection was
made."""
MAX_STRANGERS = 64
MAX_CROWD = 1000
"""Connections that have not shown a credential which holds. One more, and the oldest that is idle
is closed: who really wants something has asked before 64 others could come. After a restart all
clients come back at once, so those of the last YOUNG_S do not count until they are a crowd."""
YOUNG_S = 1.0
HEAD_BYTES = 32_768
_NO_HTTP = (
    "This is not a valid HTTP/1.1 request: send each header only once, and at most 32 kB of "
    "headers."
)


class Connection(H11Protocol):
    """uvicorn's own, with these bounds, and with our words for what is no HTTP."""

    ids: Ids
    created_at = 0.0
    _head_timer: asyncio.TimerHandle | None = None

    @property
    def is_stranger(self) -> bool:
        return self.scope is None or self.scope["state"].get("grant") is None

    @property
    def is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        make_strict(self.conn, own=True)
        self.created_at = self.loop.time()
        self._start_head_timer()
        strangers = [
            each for each in self.connections if isinstance(each, Connection) and each.is_stranger
        ]
        old = [each for each in strangers if each.created_at < self.created_at - YOUNG_S]
        if len(old) > MAX_STRANGERS or len(strangers) > MAX_CROWD:
            oldest = min(strangers, key=lambda each: (not each.is_idle, each.created_at))
            oldest.connections.discard(oldest)
            oldest.transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._start_head_timer()
        else:
            self._cancel_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_head_timer()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        self._cancel_head_timer()
        super().shutdown()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "bad_request", _NO_HTTP)

    def _start_head_timer(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_TIMEOUT_S, self._on_head_timeout)

    def _cancel_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _on_head_timeout(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self._refuse(
                408,
                "too_slow",
                f"The headers of a request must arrive within {HEAD_TIMEOUT_S:g} seconds.",
            )

    def _refuse(self, status: int, code: str, message: str) -> None:
        """Answer by ourselves, beside the application, and hang up."""
        request_id = self.ids.new("req")
        problem = Problem(code, message, "invalid_request_error", request_id)
        body = msgspec.json.encode(ErrorBody(problem, message))
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"x-request-id", request_id.encode()),
            (b"connection", b"close"),
        ]
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            for event in (
                h11.Response(status_code=status, headers=headers),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def make_connection_class(ids: Ids) -> type[Connection]:
    """What uvicorn makes for each connection."""
    return type("Connection", (Connection,), {"ids": ids})
