"""Counts rounds that no person began, over all surfaces and agents, so that machines do not talk
for ever.

A round is a turn that another program opens: a bot that writes, an event that sets a job off, a
command in the background that has ended. Schedules are not counted: they end none of their own
rounds sooner. Whatever a person says anywhere begins the count anew.
"""

from __future__ import annotations

from collections.abc import Callable

from ..config.clock import SteadyClock
from ..store.base import Store
from ..types.clock import Clock
from ..users.owner_alerts import Alerts
from . import queries

WINDOW_S = 3600.0
MAX_NAMED = 3
"""So many of those who began most rounds are named to the owners."""
WHAT_CHARS = 120


class MachineRounds:
    """`most` rounds within an hour, 0 for any number. The count survives a restart."""

    def __init__(self, store: Store, clock: Clock, alerts: Alerts, most: Callable[[], int]) -> None:
        self._store = store
        self._clock = SteadyClock(clock)
        self._alerts = alerts
        self._most = most
        self._since = self._clock.now()
        self._begun = False
        self.counted = True
        """Whether there may be rounds that a person's word takes away. What was counted before a
        restart is."""

    async def begin_round(self, what: str) -> str:
        """Count a round that `what` begins. Returns why it may not begin now, '' where it may.
        Raises StoreError."""
        most = self._most()
        now = self._clock.now()
        if (
            not self._begun
        ):  # the clock may have been set meanwhile: all before this start counts as of then
            await self._store.change((queries.move_rounds(self._since),))
            self._begun = True
        if most:
            rounds = await queries.count_rounds(self._store, now - WINDOW_S, now + WINDOW_S)
            if rounds.count >= most:
                await self._alert_owners(most, rounds.first)
                return (
                    f"{most} rounds within an hour were begun by programs and none by a person; "
                    "it goes on once somebody writes something, or when the hour is over"
                )
        self.counted = True
        await self._store.change(
            (
                queries.add_round(what[:WHAT_CHARS], now),
                queries.trim_rounds(now - WINDOW_S, now + WINDOW_S),
            )
        )
        return ""

    async def reset(self) -> None:
        """A person said something: the count begins anew. Raises StoreError."""
        self.counted = False
        await self._store.change((queries.clear_rounds(),))

    async def _alert_owners(self, most: int, first: int) -> None:
        """Tell the owners, once for each time that it happens."""
        busiest = await queries.busiest_programs(self._store, MAX_NAMED)
        named = ", ".join(f"{each.program} ({each.count})" for each in busiest)
        text = (
            f"Programs have started {most} turn{'s' * (most > 1)} within an hour, and no "
            f"person any: {named}. "
            "I do not answer programs any more until somebody writes to me, or an hour has passed. "
            "The limit is `machine_rounds` in the configuration."
        )
        changes = await self._alerts.alert_owners(f"machine rounds:{first}", text)
        await self._store.change(changes)
