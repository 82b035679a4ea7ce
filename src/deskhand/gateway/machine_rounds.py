"""Counts the turns that programs open, over all surfaces and agents, so that two programs do not
talk for ever.

Such a round is opened by a bot that writes, an event that triggers a job, or a command in the
background that has ended. Schedules do not count, as they never open rounds faster. Any message of
a person resets the count.
"""

from __future__ import annotations

from collections.abc import Callable

from ..config.clock import SteadyClock
from ..store.base import Store
from ..types.clock import Clock
from ..types.marked_texts import mark_text
from ..users.owner_alerts import Alerts
from . import queries

WINDOW_S = 3600.0
MAX_NAMED = 3
"""So many of the programs that began most rounds are named to the owners."""
WHAT_CHARS = 120


class MachineRounds:
    """Allows `most` rounds within an hour, or any number when that is 0. The count survives a
    restart."""

    def __init__(self, store: Store, clock: Clock, alerts: Alerts, most: Callable[[], int]) -> None:
        self._store = store
        self._clock = SteadyClock(clock)
        self._alerts = alerts
        self._most = most
        self._since = self._clock.now()
        self._begun = False
        self.counted = True
        """Whether there may be rounds to reset: counted now, or before a restart."""

    async def begin_round(self, what: str) -> str:
        """Count a round that the program `what` begins. Returns why it may not begin now, or ''.
        Raises StoreError."""
        most = self._most()
        now = self._clock.now()
        if not self._begun:
            # The clock may have been set: count all rounds from before this start as of its time.
            await self._store.change((queries.move_rounds(self._since),))
            self._begun = True
        if most:
            rounds = await queries.count_rounds(self._store, now - WINDOW_S, now + WINDOW_S)
            if rounds.count >= most:
                await self._alert_owners(most, rounds.first)
                return mark_text(
                    "programs began {count_number} rounds within an hour, and nobody wrote; they "
                    "may go on once somebody writes, or when the hour is over"
                ).format(count_number=most)
        self.counted = True
        await self._store.change(
            (
                queries.add_round(what[:WHAT_CHARS], now),
                queries.trim_rounds(now - WINDOW_S, now + WINDOW_S),
            )
        )
        return ""

    async def are_counted(self) -> bool:
        """Whether another process may have counted rounds. Raises StoreError."""
        now = self._clock.now()
        rounds = await queries.count_rounds(self._store, now - WINDOW_S, now + WINDOW_S)
        return rounds.count > 0

    async def reset(self) -> None:
        """A person wrote something: forget all rounds. Raises StoreError."""
        self.counted = False
        await self._store.change((queries.clear_rounds(),))

    async def _alert_owners(self, most: int, first: int) -> None:
        """Tell the owners, once each time the limit is reached."""
        busiest = await queries.busiest_programs(self._store, MAX_NAMED)
        named = ", ".join(f"{each.program} ({each.count})" for each in busiest)
        begun = (
            mark_text(
                "Programs have started {count_number} turns within an hour, and nobody has written "
                "meanwhile: {programs}."
            )
            if most > 1
            else mark_text(
                "Programs have started 1 turn within an hour, and nobody has written meanwhile: "
                "{programs}."
            )
        ).format(count_number=most, programs=named)
        waits = mark_text(
            "I do not answer programs until somebody writes to me, or the hour is over. The limit "
            "is `machine_rounds` in the configuration."
        )
        text = f"{begun} {waits}"
        changes = await self._alerts.alert_owners(f"machine rounds:{first}", text)
        await self._store.change(changes)
