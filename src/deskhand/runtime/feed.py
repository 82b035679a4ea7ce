"""Live events for whoever follows a session. Nobody who reads slowly can hold up a turn."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager

import anyio
import msgspec

from ..store.base import Store
from ..types.door import Progress
from ..types.errors import Refused
from ..types.events import Recorded
from ..types.identity import Principal

BACKLOG = 256
"""Items that a follower may lag behind before it is sent back to the log."""
POLL_S = 0.05


class Follower:
    """One reader's queue. When it overflows the items are dropped and `lost` is set: the log has the events."""

    def __init__(self) -> None:
        self.items: deque[Recorded | Progress] = deque()
        self.lost = False
        self._waiter: asyncio.Future[None] | None = None  # an Event costs more, for every piece of every answer

    def put(self, item: Recorded | Progress) -> None:
        if len(self.items) >= BACKLOG:
            self.items.clear()
            self.lost = True
        self.items.append(item)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def wait(self, timeout_s: float | None) -> None:
        """Until there is something, or the time is up."""
        if self.items or self.lost:
            return
        self._waiter = asyncio.get_running_loop().create_future()
        if timeout_s is None:
            await self._waiter
        else:
            with anyio.move_on_after(timeout_s):
                await self._waiter


class Feed:
    """Who follows which session in this process."""

    def __init__(self) -> None:
        self._followers: dict[str, set[Follower]] = {}

    def publish(self, session: str, item: Recorded | Progress) -> None:
        """Hand an item to the session's followers; never waits."""
        for follower in self._followers.get(session, ()):
            follower.put(item)

    @contextmanager
    def following(self, session: str) -> Iterator[Follower]:
        follower = Follower()
        self._followers.setdefault(session, set()).add(follower)
        try:
            yield follower
        finally:
            self._followers[session].discard(follower)
            if not self._followers[session]:
                del self._followers[session]


class Source(msgspec.Struct, frozen=True):
    """Where a follower reads. `driving` tells whether this process writes the session's events; while another one
    does, the store is looked at every POLL_S. `snapshot` is what the model has said in a call that is going on."""

    store: Store
    feed: Feed
    driving: Callable[[], bool]
    snapshot: Callable[[str], Progress | None]


async def follow(source: Source, session: str, principal: Principal, after: int) -> AsyncGenerator[Recorded | Progress]:
    """The session's events after number `after`, then what comes, for ever: each event once, in order, without a gap.

    Raises Refused when the session is not the principal's to see.
    """
    store, n, stale, first = source.store, after, True, True
    if not await store.may_see(principal, session):
        raise Refused(f"{session!r} is not yours to see")
    with source.feed.following(session) as follower:
        while True:
            if stale or follower.lost:
                stale, follower.lost, version = False, False, store.version()
                for recorded in await store.events(session, n):
                    n = recorded.n
                    yield recorded
            if first and (partial := source.snapshot(session)) is not None:
                yield partial
            first = False
            while follower.items:
                item = follower.items.popleft()
                if isinstance(item, Progress):
                    if item.n > n or (item.kind == "tool_output" and item.n == n):  # of the event that it follows
                        yield item
                elif item.n == n + 1:
                    n = item.n
                    yield item
                elif item.n > n:  # a gap: the log must be read
                    follower.lost = True
                    break
            if not follower.lost:
                driving = source.driving()
                await follower.wait(None if driving else POLL_S)
                stale = not driving and version != store.version()
