"""`/restart`: the service ends and is started again, and says so where that was asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from ..store.base import Store
from ..types.clock import Clock
from ..types.events import CommandRun, Recorded
from ..types.identity import SYSTEM, Command, Inbound

RESTARTED = "System restarted. Send me a message to continue."


class Restart:
    """What was asked for in this process. `asked` is set once anybody did."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._commands: list[tuple[str, int]] = []
        self.requested = anyio.Event()

    listens_to = (CommandRun,)

    def on_event(self, recorded: Recorded) -> None:
        """An event passes: it may be the command of somebody who may give it."""
        event = recorded.event
        if isinstance(event, CommandRun) and event.name == "restart" and not event.refused:
            self._commands.append((recorded.session, event.inbox_id))
            self.requested.set()

    def request(self) -> None:
        """The page asks: nobody has to be told afterwards."""
        self.requested.set()

    async def reload_instead(
        self, reload: Callable[[], Awaitable[None]], wake: Callable[[str], None]
    ) -> None:
        """Where nobody would start this process again: what a restart is good for, whenever it is
        asked for."""
        while True:
            await self.requested.wait()
            await reload()
            await self.notify_requesters(wake)

    async def notify_requesters(self, wake: Callable[[str], None] = lambda session: None) -> None:
        """Store for each who asked what they are told when somebody drives again: once, whatever
        dies in between. Call it when nothing is driven any more, or with `wake`, to have it told
        now."""
        for session, inbox_id in self._commands:
            found = await self._store.accepted_since(inbox_id - 1)
            origin = next((row.inbound for _, row in found if row.inbox_id == inbox_id), None)
            if origin is None:
                continue
            words = Command("restarted", RESTARTED)
            word = Inbound(
                f"restarted:{inbox_id}",
                origin.address,
                SYSTEM.id,
                self._clock.now(),
                words,
                session,
            )
            await self._store.accept(word, SYSTEM, session)
            wake(session)
        self._commands.clear()
        self.requested = anyio.Event()
