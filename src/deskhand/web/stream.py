"""A session's events as server-sent events: what a client missed, then what comes, exactly once and
in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Annotated, TypeVar

import anyio
import msgspec
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..store.queries import last_event_number
from ..types.door import Progress
from ..types.errors import DeskhandError
from ..types.events import Recorded
from .errors import bad_request
from .guard import Credential, Guesses
from .protocols import Web
from .routing import Call
from .visible_sessions import require_session

HEARTBEAT_S = 15.0
"""A comment is sent so often, so that no proxy takes a quiet stream for a dead one."""
STUCK_S = 30.0
"""A client that takes in nothing for so long is hung up on."""
SEND_BYTES = 65_536
"""What is written at once, where there is much."""
CREDENTIAL_POLL_S = 0.5
"""How soon a credential that was revoked ends its streams."""


Batch = Sequence[Recorded | Progress]
T = TypeVar("T", bound=Recorded | Progress)
_encode = msgspec.json.Encoder().encode


class From(msgspec.Struct, frozen=True):
    """`after` is the number of the last event that the client has; the header `Last-Event-ID` says
    the same, and wins. 0 is the beginning. `last`: of what is missing, no more than so many of the
    last events; 0 for all."""

    after: Annotated[int, msgspec.Meta(le=2**53)] = 0
    last: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 0


def as_sse(item: Recorded | Progress) -> bytes:
    """One item on the wire. Only events have an id: what a client resumes from is always in the
    log."""
    data = _encode(item)
    if isinstance(item, Recorded):
        return b"id: %d\nevent: recorded\ndata: %b\n\n" % (item.n, data)
    return b"event: progress\ndata: %b\n\n" % data


def as_sse_by_seq(recorded: Recorded) -> bytes:
    """The same for events of many conversations."""
    return b"id: %d\nevent: recorded\ndata: %b\n\n" % (recorded.seq, _encode(recorded))


async def follow_events(call: Call) -> EventStream:
    """`GET /api/sessions/{name}/events`."""
    session = await require_session(call)
    after = resume_point(call, call.query.after)
    if call.query.last:
        last = await last_event_number(call.web.store, session)
        after = max(after, last - call.query.last)
    return make_event_stream(call, call.web.door.follow_in_batches(session, call.principal, after))


def resume_point(call: Call, after: int) -> int:
    given = call.request.headers.get("last-event-id", "").strip()
    if not given:
        return max(0, after)
    if not given.isdecimal() or len(given) > 18:
        raise bad_request("`Last-Event-ID` is the number of an event.")
    return int(given)


def make_event_stream(call: Call, batches: AsyncGenerator[Batch]) -> EventStream:
    return EventStream(call.web, encode_batches(batches, as_sse), make_standing(call.request))


async def encode_batches(
    batches: AsyncGenerator[Sequence[T]], encode: Callable[[T], bytes]
) -> AsyncGenerator[bytes]:
    """The items on the wire, as many at once as there are, and why there will be no more."""
    yield b": connected\n\n"
    try:
        async with aclosing(batches):
            async for batch in batches:
                if len(batch) == 1:
                    yield encode(batch[0])
                    continue
                found = list[bytes]()
                size = 0
                for item in batch:
                    found.append(encode(item))
                    size += len(found[-1])
                    if size > SEND_BYTES:
                        yield b"".join(found)
                        found = []
                        size = 0
                if found:
                    yield b"".join(found)
    except DeskhandError as error:
        yield b"event: closed\ndata: %b\n\n" % msgspec.json.encode({"reason": str(error)})


class Standing(msgspec.Struct, frozen=True):
    """The credential under which a stream was opened."""

    credential: Credential | None
    guesses: Guesses

    async def is_valid(self) -> bool:
        return self.credential is None or await self.guesses.is_valid(self.credential)

    async def wait_until_invalid(self, web: Web) -> None:
        """Returns when it no longer holds, or the service is ending."""
        async with anyio.create_task_group() as tasks:

            async def stopping() -> None:
                await web.stopping.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(stopping)
            while await self.is_valid():  # noqa: ASYNC110 -- the store tells
                await anyio.sleep(CREDENTIAL_POLL_S)
            tasks.cancel_scope.cancel()


def make_standing(connection: HTTPConnection) -> Standing:
    return Standing(connection.state.credential, connection.state.guesses)


class EventStream(Response):
    """Sends what comes, with a beat in between. A client that reads slowly slows only itself: what
    it has not taken in is read from the log again. One that takes in nothing at all is hung up on,
    and comes back when it can."""

    media_type = "text/event-stream"

    def __init__(self, web: Web, pieces: AsyncGenerator[bytes], standing: Standing) -> None:
        super().__init__(headers={"x-accel-buffering": "no"}, media_type=self.media_type)
        del self.headers["content-length"]
        self._web = web
        self._pieces = pieces
        self._standing = standing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})

        # when the write that is going on began
        stuck = False
        began = 0.0
        now = asyncio.get_running_loop().time
        async with anyio.create_task_group() as tasks:

            async def write(data: bytes) -> None:
                nonlocal began
                began = now()
                await send({"type": "http.response.body", "body": data, "more_body": True})
                began = 0.0

            async def cancel_on_disconnect() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                tasks.cancel_scope.cancel()

            async def cancel_when_invalid() -> None:
                await self._standing.wait_until_invalid(self._web)
                tasks.cancel_scope.cancel()

            async def send_heartbeats() -> None:
                nonlocal stuck
                while not stuck:  # a scope for each write would cost more than the write
                    await anyio.sleep(HEARTBEAT_S)
                    if not began:
                        await write(b": beat\n\n")
                    stuck = bool(began) and now() - began > STUCK_S
                tasks.cancel_scope.cancel()

            for task in (cancel_on_disconnect, cancel_when_invalid, send_heartbeats):
                tasks.start_soon(task)
            async with aclosing(self._pieces):
                async for piece in self._pieces:
                    await write(piece)
            tasks.cancel_scope.cancel()
        if not stuck:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
