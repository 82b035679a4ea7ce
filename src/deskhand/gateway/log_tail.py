"""What other processes write into the log, for the listeners and followers of this one."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from ..store.base import Store
from ..types.events import Recorded
from ..types.identity import Principal

READER = Principal("deskhand", ("owner",), "system")
PAGE = 64
POLL_S = 0.05


class LogTail:
    """Publishes each event that another process has written: once, in the order of the log.
    `is_own` says of a session whether this process drives it, and so publishes its events by
    itself."""

    def __init__(
        self,
        store: Store,
        publish: Callable[[str, Recorded], None],
        is_own: Callable[[str], bool],
        owns_all: Callable[[], bool],
    ) -> None:
        self._store = store
        self._publish = publish
        self._is_own = is_own
        self._owns_all = owns_all
        self._seq = 0
        self._lock = anyio.Lock()

    async def run(self) -> None:
        """For ever. What was written before is left out."""
        await self.skip()
        while True:
            await self._store.wait_for_writes(POLL_S)
            if self._owns_all():
                await self.skip()
            else:
                await self.catch_up()

    async def skip(self) -> None:
        """Leave out what is there now: this process has written all of it."""
        async with self._lock:
            self._seq = self._store.last_seq()

    async def catch_up(self) -> None:
        """Publish what is there now. Call it before this process drives more sessions, so that what
        others have written in them is not taken for its own."""
        async with self._lock:
            more = True
            while more:
                page = await self._store.events_since(READER, self._seq, PAGE)
                more = page.more
                for recorded in page:
                    self._seq = recorded.seq
                    if not self._is_own(recorded.session):
                        self._publish(recorded.session, recorded)
