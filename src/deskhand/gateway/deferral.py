"""What nobody waits for is told when its reader wants to be told, and rings once for the same
thing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import tzinfo

from msgspec.structs import replace

from ..store.base import Store
from ..types.clock import Clock
from ..types.commit import OutboxRow
from ..users.queries import find_reader, notification_times_of
from .queries import defer_message, deferred_messages, release_message, unasked_since

SAME_THING_S = 12 * 3600.0
"""For so long the same words ring only once in a chat."""
RELEASE_EVERY_S = 10.0


class Deferral:
    """Holds back messages of jobs in their readers' quiet hours, or until their next digest, and
    lets them go together: only the first of them rings. A question waits for quiet hours alone;
    what somebody waits for, reminders and alerts are never held back. `zone` is that of the times
    of a day."""

    def __init__(self, store: Store, clock: Clock, zone: Callable[[], tzinfo]) -> None:
        self._store = store
        self._clock = clock
        self._zone = zone
        self._are_deferred = True  # until it is known otherwise
        self._next_release = 0.0

    async def sift(self, rows: Sequence[OutboxRow]) -> list[OutboxRow]:
        """Those that may be sent now, as they are to be sent. Raises StoreUnavailable."""
        found = []
        for row in rows:
            if row.outgoing.unasked is None:
                found.append(row)
            elif row.state != "pending" or row.attempts or not await self._must_wait(row):
                found.append(await self._silence_repeated(row))
            else:
                await self._store.change([defer_message(row.id)])
                self._are_deferred = True
        return found

    async def release(self) -> None:
        """Let go what has waited for long enough. Raises StoreUnavailable."""
        now = self._clock.monotonic()
        if not self._are_deferred or now < self._next_release:
            return
        self._next_release = now + RELEASE_EVERY_S
        waiting = await deferred_messages(self._store)
        self._are_deferred = bool(waiting)
        rung = set()
        for row in waiting:
            if await self._must_wait(row):
                continue
            outgoing = row.outgoing
            place = replace(outgoing.address, thread="")
            if place in rung:
                outgoing = replace(outgoing, silent=True)
            rung.add(place)
            await self._store.change([release_message(row.id, outgoing)])

    async def _must_wait(self, row: OutboxRow) -> bool:
        outgoing = row.outgoing
        person = await find_reader(self._store, outgoing.address) or outgoing.unasked
        if not person:
            return False
        wanted = await notification_times_of(self._store, person)
        if outgoing.ask is not None:  # the job waits for the answer, and a question expires
            wanted = replace(wanted, digest=())
        return wanted.must_wait(row.at, self._clock.now(), self._zone())

    async def _silence_repeated(self, row: OutboxRow) -> OutboxRow:
        """The row, so that it does not ring where the same was said there lately."""
        outgoing = row.outgoing
        if outgoing.silent or outgoing.ask is not None:
            return row
        since = self._clock.now() - SAME_THING_S
        async for before in unasked_since(self._store, row, since):
            if (before.address, before.parts) == (outgoing.address, outgoing.parts):
                return replace(row, outgoing=replace(outgoing, silent=True))
        return row
