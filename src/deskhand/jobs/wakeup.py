"""A signal that there is something to do, for one task that otherwise sleeps."""

from __future__ import annotations

import anyio


class Wakeup:
    """Set by anybody, waited for by one task. A signal that comes before the wait ends it at
    once."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    @property
    def is_set(self) -> bool:
        return self._event.is_set()

    def set(self) -> None:
        """End the wait."""
        self._event.set()

    def clear(self) -> None:
        """Forget signals so far. Call it before looking for work, so that none is missed."""
        self._event = anyio.Event()

    async def wait(self) -> None:
        """Return when it is set."""
        await self._event.wait()
