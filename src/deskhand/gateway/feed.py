"""Live events for the followers of a session. A slow reader never holds up a turn."""

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
from .dispatch import Dispatch
from .remote_turns import RemoteTurns

BACKLOG = 256
EVENTS = 16
"""Items, and events among them, that a follower may lag behind before it has to read the log: a
page of the log is small, and the queues of many readers are not."""
PAGE = 64
POLL_S = 0.05
SLOW_POLL_S = 1.0
"""How often the log is polled while another process drives: without a tap, and with one."""
Batch = Sequence[Recorded | Progress]
_OF_TOOLS = ("tool_output", "tool_result")


class FeedReader:
    """The queue of one reader. When it overflows, the items are dropped and `lost` is set: the
    reader gets the events from the log. System prompts are left out unless the reader may see
    them."""

    def __init__(self, *, sees_prompts: bool = False) -> None:
        self._sees_prompts = sees_prompts
        self.items: deque[Recorded | Progress] = deque()
        self._events = 0
        self.lost = False
        self.failed: DeskhandError | None = None
        # A bare future: an Event costs more, for every piece of every answer.
        self._waiter: asyncio.Future[None] | None = None

    def put(self, item: Recorded | Progress) -> None:
        self._events += isinstance(item, Recorded)
        if len(self.items) >= BACKLOG or self._events > EVENTS:
            self.items.clear()
            self.lost = True
            self._events = int(isinstance(item, Recorded))
        self.items.append(item)
        self._wake()

    def fail(self, error: DeskhandError) -> None:
        """Following ends with this error."""
        self.failed = error
        self._wake()

    def mark_lost(self) -> None:
        """Items may be missing: the reader must read the log."""
        self.lost = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def take(self, n: int) -> Recorded | Progress | None:
        """The next item after event n. None when there is none, or a gap: then `lost` is set, and
        the log must be read."""
        while self.items:
            item = self.items.popleft()
            if isinstance(item, Progress):
                if item.kind == "prompt" and not self._sees_prompts:
                    continue
                if item.n > n:
                    return item
                if item.n == n and item.kind in _OF_TOOLS:  # it has the number of the event before
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
        """Wait until there is something, or the time is up."""
        if self.items or self.lost or self.failed is not None:
            return
        self._waiter = asyncio.get_running_loop().create_future()
        if timeout_s is None:
            await self._waiter
        else:
            with anyio.move_on_after(timeout_s):
                await self._waiter


class Bell:
    """Tells one reader that the log has something new."""

    def __init__(self) -> None:
        self._rung = anyio.Event()

    def ring(self) -> None:
        self._rung.set()

    async def wait(self, timeout_s: float | None) -> bool:
        """Whether it has rung since the last wait, or does so within this time."""
        with anyio.move_on_after(timeout_s):
            await self._rung.wait()
        rung = self._rung.is_set()
        self._rung = anyio.Event()
        return rung


class Tap(Protocol):
    """Brings a follower what another process drives, as far as that process sends it."""

    @property
    def is_connected(self) -> bool:
        """Whether items come in by themselves now."""
        ...

    async def open(self, n: int) -> None:
        """Let the follower get what comes after event n, if that is possible now. Cheap to call
        again."""
        ...

    def close(self) -> None: ...


class NoTap:
    """A tap for a process that no other one sends to."""

    is_connected = False

    async def open(self, n: int) -> None:
        pass

    def close(self) -> None:
        pass


OpenTap = Callable[[str, Principal, FeedReader], Tap]


class Feed:
    """The followers of sessions in this process. `tap` opens what brings a follower the items of
    another process; `remote` is what this one hears of the turns of other workers."""

    def __init__(self, tap: OpenTap = lambda session, principal, follower: NoTap()) -> None:
        self.tap = tap
        self.remote = RemoteTurns()
        self._followers: dict[str, set[FeedReader]] = {}
        self._watching: set[Bell] = set()

    def publish(self, session: str, item: Recorded | Progress) -> None:
        """Hand an item to the session's followers; never waits."""
        for follower in self._followers.get(session, ()):
            follower.put(item)
        if isinstance(item, Recorded):
            for bell in self._watching:
                bell.ring()

    def report_trouble(self, session: str, error: DeskhandError, for_good: bool) -> None:
        """Tell the session's followers what holds it up. When that is for good, following ends with
        the error."""
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
    def following(self, session: str, *, sees_prompts: bool = False) -> Iterator[FeedReader]:
        follower = FeedReader(sees_prompts=sees_prompts)
        self._followers.setdefault(session, set()).add(follower)
        try:
            yield follower
        finally:
            self._followers[session].discard(follower)
            if not self._followers[session]:
                del self._followers[session]


NoteRefusal = Callable[[Principal, str, str], Awaitable[None]]
"""Notes that somebody asked for something that is not theirs: who, what they wanted to do, and with
what."""


class FeedSource(msgspec.Struct, frozen=True):
    """Where a follower reads. While this process drives, events come from the feed. While another
    one does, the store is polled, and progress comes through a tap. `note_refusal` is called for
    everybody who is refused."""

    store: Store
    feed: Feed
    dispatch: Dispatch
    note_refusal: NoteRefusal


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
    """The same in batches: each time all that there is, at most a page of the log."""
    store = source.store
    n = after
    stale = True
    partial_shown = False
    if not await store.may_see(principal, session):
        await source.note_refusal(principal, "follow", session)
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
                partial_shown = False
                # What this process writes reaches the feed: only the others have to be polled.
                version = -1 if source.dispatch.is_driving else store.version()
                more = True
                while more and (page := await store.events(session, n, PAGE)):
                    n = page[-1].n
                    more = page.more
                    yield page
            if not partial_shown:
                partial = source.dispatch.snapshot(session)
                if partial is None and source.feed.remote.partials:
                    partial = source.feed.remote.partials.get(session)
                if partial is not None:
                    yield [partial]  # pieces were missed
            partial_shown = True
            batch, n = _take_batch(follower, n)
            if batch:
                yield batch
            if follower.failed is not None:
                raise follower.failed
            if not follower.lost:
                if source.dispatch.is_driving:
                    await follower.wait(None)
                    continue
                await tap.open(n)
                await follower.wait(SLOW_POLL_S if tap.is_connected else POLL_S)
                stale = version != store.version()


def _take_batch(follower: FeedReader, n: int) -> tuple[Batch, int]:
    """All that there is after event n, and the number of the last event by then."""
    batch: list[Recorded | Progress] = []
    while (item := follower.take(n)) is not None:
        if isinstance(item, Recorded):
            n = item.n
        elif batch and (joined := join_pieces(batch[-1], item)) is not None:
            batch[-1] = joined
            continue
        batch.append(item)
    return batch, n


def join_pieces(before: Recorded | Progress, piece: Progress) -> Progress | None:
    """Both as one piece; None unless one goes on where the other ends. A reader that cannot keep up
    so gets fewer pieces, not later ones."""
    if (
        isinstance(before, Progress)
        and before.kind == piece.kind
        and (before.n, before.attempt) == (piece.n, piece.attempt)
        and (
            piece.kind == "thinking"
            or (piece.kind == "text" and before.offset + len(before.text) == piece.offset)
        )
    ):
        return msgspec.structs.replace(before, text=before.text + piece.text)
    return None


async def watch_sessions(
    source: FeedSource, principal: Principal, after_seq: int
) -> AsyncGenerator[Recorded]:
    """The events after `after_seq` in the sessions that the principal may see, then new ones, for
    ever. Each event once and in order. Events from before they took part in a session are left
    out."""
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
            while not await bell.wait(None if source.dispatch.is_driving else POLL_S):
                if version != store.version():
                    break
