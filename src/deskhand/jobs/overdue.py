"""Runs that take too long, and those that wait for a person."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from ..store.retry import insist
from ..types.identity import Command, Inbound
from ..types.turn import TURN
from .port import LiveRun, Port
from .target import CLOCK, address_of, is_taken_in, too_long

STOPPING_S = 60.0

Fail = Callable[[LiveRun, str], Awaitable[None]]


class Overdue:
    """Looks after what goes on. `live` is read each time; `fail` ends a run with an error."""

    def __init__(self, port: Port, live: Mapping[str, LiveRun], fail: Fail) -> None:
        self._port = port
        self._ground = port.ground
        self._live = live
        self._fail = fail

    async def expire(self) -> None:
        """What takes longer than it may is stopped; what does not even stop is given up. Who waits
        for a person's yes is left alone: the question has an end of its own. So is what waits
        behind somebody else's turn in the same chat: its time has not begun, and that turn is not
        ours to stop."""
        now = self._ground.clock.monotonic()
        for live in [each for each in self._leased() if each.until <= now]:
            left = await self._left(live)
            if left > 0:
                live.until = now + left
            elif live.stopping:
                await self._fail(live, f"{too_long(live.entry.job)}, and did not stop")
            else:
                live.stopping = True
                live.until = now + STOPPING_S
                await self._stop(live)

    def expire_in(self) -> list[float]:
        """In how many seconds each of them will have taken too long."""
        return [live.until - self._ground.clock.monotonic() for live in self._leased()]

    def _leased(self) -> list[LiveRun]:
        """Those whose conversation goes on; for hooks and chores limits of their own hold."""
        return [
            each
            for each in self._live.values()
            if each.entry.run.state == "running" and each.entry.job.kind == "prompt"
        ]

    async def _left(self, live: LiveRun) -> float:
        """How many seconds more it may take; 0 for none."""
        entry = live.entry
        session = live.entry.run.session
        if self._ground.dispatch.turn(session) is None:
            return 0.0
        if await self._ground.store.rows("job_asks", (session,)):
            return STOPPING_S
        if live.begun is None and not is_taken_in(
            await self._ground.store.events(session, entry.after_n), entry.key
        ):
            return STOPPING_S
        if (
            live.stopping or live.begun is None
        ):  # an earlier process began it: it has had all of its time here
            return 0.0
        return max(0.0, live.begun + entry.job.timeout_s - self._ground.clock.monotonic())

    async def _stop(self, live: LiveRun) -> None:
        entry = live.entry
        stop = Command("stop", TURN)
        at = (address_of(entry.job), live.principal.id, self._ground.clock.now())
        await self._port.waker.hand_in(
            Inbound(f"{entry.key}:stop", *at, stop, entry.run.session), live.principal
        )
        if self._ground.dispatch.drives(entry.run.session):
            self._ground.dispatch.wake(entry.run.session, cut=True)

    async def ask_for_yes(self, live: LiveRun) -> None:
        """Where nobody reads along, the owner is told that a run waits for them: once."""
        session = live.entry.run.session
        rows = await self._ground.store.rows("job_asks", (session,))
        if not rows or rows[0][0] in live.asked or address_of(live.entry.job).channel != CLOCK:
            return
        live.asked.add(rows[0][0])
        name = live.entry.job.name
        text = f"The job {name!r} waits for your yes. See the page, or `deskhand approvals`."
        changes = await self._ground.alerts.tell(f"ask:{rows[0][0]}", text)
        await insist(partial(self._ground.store.change, changes))
