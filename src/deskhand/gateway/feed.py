"""Live events for whoever follows a session. Nobody who reads slowly can hold up a turn."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, closing, contextmanager
from typing import Protocol

import anyio
import msgspec

from ..store.base import Store
from ..types.door import Progress
from ..types.errors import DeskhandError, Refused
from ..types.events import Recorded
from ..types.identity import Principal

BACKLOG = 256
EVENTS = 16
"""Items, and events among them, that a follower may lag behind before it is sent back to the log: a
page is small, and what many readers have in mind is not."""
PAGE = 64
POLL_S = 0.05
SLOW_POLL_S = 1.0
"""How often the log is looked at where another process drives: alone, and beside a tap that
flows."""
Batch = Sequence[Recorded | Progress]
_OF_TOOLS = ("tool_output", "tool_result")


class Follower:
    """One reader's queue. When it overflows the items are dropped and `lost` is set: the log has
    the events. System prompts are left out unless the reader sees them."""

    def __init__(self, *, sees_prompts: bool = False) -> None:
        self._sees_prompts = sees_prompts
        self.items: deque[Recorded | Progress] = deque()
        self._events = 0
        self.lost = False
        self.failed: DeskhandError | None = None
        self._waiter: asyncio.Future[None] | None = (
            None  # an Event costs more, for every piece of every answer
        )

    def put(self, item: Recorded | Progress) -> None:
        self._events += isinstance(item, Recorded)
        if len(self.items) >= BACKLOG or self._events > EVENTS:
            self.items.clear()
            self.lost, self._events = True, int(isinstance(item, Recorded))
        self.items.append(item)
        self._wake()

    def fail(self, error: DeskhandError) -> None:
        """There will be nothing more."""
        self.failed = error
        self._wake()

    def mark_lost(self) -> None:
        """Some may be missing: the log has them."""
        self.lost = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def take(self, n: int) -> Recorded | Progress | None:
        """The next item behind event n. None where there is nothing more, or a gap: then the log
        must be read."""
        while self.items:
            item = self.items.popleft()
            if isinstance(item, Progress):
                if item.kind == "prompt" and not self._sees_prompts:
                    continue
                if item.n > n or (
                    item.kind in _OF_TOOLS and item.n == n
                ):  # it counts from the event it follows
                    return item
                continue
            self._events -= 1
            if item.n == n + 1:
                return item
            if item.n > n:
                self.lost = True
                return None
        return None

    async def wait(self, timeout_s: float | None) -> None:
        """Until there is something, or the time is up."""
        if self.items or self.lost or self.failed is not None:
            return
        self._waiter = asyncio.get_running_loop().create_future()
        if timeout_s is None:
            await self._waiter
        else:
            with anyio.move_on_after(timeout_s):
                await self._waiter


class Bell:
    """Tells one reader that there is something, and not what: that stands in the log."""

    def __init__(self) -> None:
        self._rung = anyio.Event()

    def ring(self) -> None:
        self._rung.set()

    async def wait(self, timeout_s: float | None) -> bool:
        """Whether it has rung since it was waited for last, or does so within that time."""
        with anyio.move_on_after(timeout_s):
            await self._rung.wait()
        rung = self._rung.is_set()
        self._rung = anyio.Event()
        return rung


class Tap(Protocol):
    """Where a follower hears what another process drives, as far as that tells."""

    @property
    def is_connected(self) -> bool:
        """What happens comes in by itself."""
        ...

    async def open(self, n: int) -> None:
        """Have what comes after event n put to the follower, if that is possible now. Cheap to call
        again."""
        ...

    def close(self) -> None: ...


class Dry:
    """Nothing comes from elsewhere."""

    is_connected = False

    async def open(self, n: int) -> None:
        pass

    def close(self) -> None:
        pass


OpenTap = Callable[[str, Principal, Follower], Tap]


class Feed:
    """Who follows which session in this process. `tap` brings what another process drives."""

    def __init__(self, tap: OpenTap = lambda session, principal, follower: Dry()) -> None:
        self.tap = tap
        self._followers: dict[str, set[Follower]] = {}
        self._watching: set[Bell] = set()

    def publish(self, session: str, item: Recorded | Progress) -> None:
        """Hand an item to the session's followers; never waits."""
        for follower in self._followers.get(session, ()):
            follower.put(item)
        if isinstance(item, Recorded):
            for bell in self._watching:
                bell.ring()

    def report_trouble(self, session: str, error: DeskhandError, for_good: bool) -> None:
        """Tell the session's followers what holds it up; where that is for good, following ends
        with the error."""
        if for_good:
            for follower in self._followers.get(session, ()):
                follower.fail(error)
        else:
            self.publish(session, Progress("status", sys.maxsize, text=str(error)))

    @contextmanager
    def watching(self) -> Iterator[Bell]:
        """A bell that rings for every event of every session."""
        bell = Bell()
        self._watching.add(bell)
        try:
            yield bell
        finally:
            self._watching.discard(bell)

    @contextmanager
    def following(self, session: str, *, sees_prompts: bool = False) -> Iterator[Follower]:
        follower = Follower(sees_prompts=sees_prompts)
        self._followers.setdefault(session, set()).add(follower)
        try:
            yield follower
        finally:
            self._followers[session].discard(follower)
            if not self._followers[session]:
                del self._followers[session]


NoteRefusal = Callable[[Principal, str, str], Awaitable[None]]
"""Writes down that somebody asked for what is not theirs: who, what, and of what."""


class FeedSource(msgspec.Struct, frozen=True):
    """Where a follower reads. `driving` tells whether this process writes the session's events;
    while another one does, the store is looked at, and what happens in between comes through a tap.
    `snapshot` is what the model has said in a call that is going on. `note` hears of who was
    refused."""

    store: Store
    feed: Feed
    is_driving: Callable[[], bool]
    snapshot: Callable[[str], Progress | None]
    note: NoteRefusal


async def follow_session(
    source: FeedSource, session: str, principal: Principal, after: int
) -> AsyncGenerator[Recorded | Progress]:
    """The session's events after number `after`, then what comes, for ever: each event once, in
    order, without a gap.

    System prompts are shown to owners alone. Raises Refused when the session is not the principal's
    to see, and what the session cannot go on from.
    """
    async with aclosing(follow_in_batches(source, session, principal, after)) as found:
        async for batch in found:
            for item in batch:
                yield item


async def follow_in_batches(
    source: FeedSource, session: str, principal: Principal, after: int
) -> AsyncGenerator[Batch]:
    """The same, and each time all that there is: at most a page of the log, or what a follower may
    lag behind."""
    store = source.store
    n = after
    stale = True
    told = False
    if not await store.may_see(principal, session):
        await source.note(principal, "follow", session)
        raise Refused(f"{session!r} is not yours to see")
    sees_prompts = "owner" in principal.roles  # a system prompt holds what is known of the owner
    with (
        source.feed.following(session, sees_prompts=sees_prompts) as follower,
        closing(source.feed.tap(session, principal, follower)) as tap,
    ):
        while True:
            if stale or follower.lost:
                stale = False
                follower.lost = False
                told = False
                version = (
                    -1 if source.is_driving() else store.version()
                )  # what this process writes, it hears of
                more = True
                while more and (page := await store.events(session, n, PAGE)):
                    n = page[-1].n
                    more = page.more
                    yield page
            if not told and (partial := source.snapshot(session)) is not None:
                yield [partial]  # pieces were missed
            told = True
            batch: list[Recorded | Progress] = []
            while (item := follower.take(n)) is not None:
                if isinstance(item, Recorded):
                    n = item.n
                batch.append(item)
            if batch:
                yield batch
            if follower.failed is not None:
                raise follower.failed
            if not follower.lost:
                driving = source.is_driving()
                if not driving:
                    await tap.open(n)
                await follower.wait(
                    None if driving else SLOW_POLL_S if tap.is_connected else POLL_S
                )
                stale = not driving and version != store.version()


async def watch_sessions(
    source: FeedSource, principal: Principal, after_seq: int
) -> AsyncGenerator[Recorded]:
    """What happened after `after_seq` in the sessions that the principal may see, then what
    happens, for ever. Each event once and in order; one of a session that they take part in only
    later is left out."""
    store = source.store
    seq = after_seq
    with source.feed.watching() as bell:
        while True:
            version = store.version()
            more = True
            while more and (page := await store.events_since(principal, seq, PAGE)):
                more = page.more
                for recorded in page:
                    seq = recorded.seq
                    yield recorded
            while not await bell.wait(None if source.is_driving() else POLL_S):
                if version != store.version():
                    break
