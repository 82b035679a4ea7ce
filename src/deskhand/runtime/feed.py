"""Live events for whoever follows a session. Nobody who reads slowly can hold up a turn."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

import anyio

from ..store.base import Store
from ..types.door import Progress
from ..types.events import Recorded

BACKLOG = 256
"""Items that a follower may lag behind before it is sent back to the log."""
POLL_S = 0.05


class Follower:
    """One reader's queue. When it overflows the items are dropped and `lost` is set: the log has the events."""

    def __init__(self) -> None:
        self.items: deque[Recorded | Progress] = deque()
        self.lost = False
        self._news = anyio.Event()

    def put(self, item: Recorded | Progress) -> None:
        if len(self.items) >= BACKLOG:
            self.items.clear()
            self.lost = True
        self.items.append(item)
        self._news.set()

    def wake(self) -> None:
        self._news.set()

    async def wait(self, timeout_s: float) -> bool:
        """Until there is news (True), or the time is up."""
        with anyio.move_on_after(timeout_s):
            await self._news.wait()
        news = self._news.is_set()
        if news:
            self._news = anyio.Event()
        return news


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


async def follow(
    store: Store, feed: Feed, session: str, after: int, snapshot: Callable[[], Progress | None]
) -> AsyncIterator[Recorded | Progress]:
    """The session's events after number `after`, then what comes, for ever: each event once, in order, without a gap.

    Events that another process writes are seen within POLL_S. `snapshot` is asked once, when the log has been read.
    """
    n, version, first, quiet = after, -1, True, True
    with feed.following(session) as follower:
        while True:
            seen = store.version() if quiet or follower.lost else version
            if follower.lost or seen != version:
                follower.lost, version = False, seen
                for recorded in await store.events(session, n):
                    n = recorded.n
                    yield recorded
            if first and (partial := snapshot()) is not None:
                yield partial
            first = False
            while follower.items:
                item = follower.items.popleft()
                if isinstance(item, Progress):
                    if item.n > n:
                        yield item
                elif item.n == n + 1:
                    n = item.n
                    yield item
                elif item.n > n:
                    follower.lost = True
                    break
            if not follower.lost:
                quiet = not await follower.wait(POLL_S)
