"""What other processes write into the log, for the listeners and followers of this one."""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio

from ..store.base import Store
from ..types.errors import StoreUnavailable
from ..types.events import Recorded
from ..users.user_cache import OWNER

log = logging.getLogger(__name__)

PAGE = 64
POLL_S = 0.05
RETRY_S = 1.0


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
        self._seq: int | None = None
        """The last event that was looked at; None before the first look."""
        self._lock = anyio.Lock()

    async def run(self) -> None:
        """For ever. What was written before the first look is left out; what is written while the
        database is away is published when it is back."""
        heard = 0
        while True:
            try:
                await self.catch_up()
            except StoreUnavailable as error:
                log.warning("Cannot read what other workers write: %s", error)
                await anyio.sleep(RETRY_S)
            heard = await self._store.wait_for_writes(heard, POLL_S)

    async def catch_up(self) -> None:
        """Publish what is there now. Call it before this process drives more sessions, or fewer: by
        then it is known who has written what."""
        async with self._lock:
            if self._seq is None or self._owns_all():
                self._seq = self._store.last_seq()  # nothing of it is of others
                return
            more = True
            while more:
                page = await self._store.events_since(OWNER, self._seq, PAGE)
                more = page.more
                for recorded in page:
                    self._seq = recorded.seq
                    if not self._is_own(recorded.session):
                        self._publish(recorded.session, recorded)
