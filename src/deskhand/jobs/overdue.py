"""Runs that take too long, and those that wait for a person."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from ..store.retry import retry_until_written
from ..types.identity import Command, Inbound
from ..types.turn import STOP_TURN_ONLY
from .port import LiveRun, Port
from .target import JOBS_CHANNEL, address_of, describe_timeout, is_received

STOP_GRACE_S = 60.0

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
        for live in [each for each in self._prompt_runs() if each.deadline <= now]:
            left = await self._seconds_left(live)
            if left > 0:
                live.deadline = now + left
            elif live.stopping:
                await self._fail(live, f"{describe_timeout(live.entry.job)}, and did not stop")
            else:
                live.stopping = True
                live.deadline = now + STOP_GRACE_S
                await self._stop(live)

    def seconds_until_expiry(self) -> list[float]:
        """In how many seconds each of them will have taken too long."""
        return [live.deadline - self._ground.clock.monotonic() for live in self._prompt_runs()]

    def _prompt_runs(self) -> list[LiveRun]:
        """Those whose conversation goes on; for hooks and chores limits of their own hold."""
        return [
            each
            for each in self._live.values()
            if each.entry.run.state == "running" and each.entry.job.kind == "prompt"
        ]

    async def _seconds_left(self, live: LiveRun) -> float:
        """How many seconds more it may take; 0 for none."""
        entry = live.entry
        session = live.entry.run.session
        if self._ground.dispatch.turn(session) is None:
            return 0.0
        if await self._ground.store.query("job_asks", (session,)):
            return STOP_GRACE_S
        if live.turn_began_at is None and not is_received(
            await self._ground.store.events(session, entry.after_n), entry.key
        ):
            return STOP_GRACE_S
        if (
            live.stopping or live.turn_began_at is None
        ):  # an earlier process began it: it has had all of its time here
            return 0.0
        return max(0.0, live.turn_began_at + entry.job.timeout_s - self._ground.clock.monotonic())

    async def _stop(self, live: LiveRun) -> None:
        entry = live.entry
        stop = Command("stop", STOP_TURN_ONLY)
        at = (address_of(entry.job), live.principal.id, self._ground.clock.now())
        await self._port.injector.hand_in(
            Inbound(f"{entry.key}:stop", *at, stop, entry.run.session), live.principal
        )
        if self._ground.dispatch.owns(entry.run.session):
            self._ground.dispatch.wake(entry.run.session, cut=True)

    async def alert_needs_approval(self, live: LiveRun) -> None:
        """Where nobody reads along, the owner is told that a run waits for them: once."""
        session = live.entry.run.session
        rows = await self._ground.store.query("job_asks", (session,))
        if (
            not rows
            or rows[0][0] in live.alerted_asks
            or address_of(live.entry.job).channel != JOBS_CHANNEL
        ):
            return
        live.alerted_asks.add(rows[0][0])
        name = live.entry.job.name
        text = f"The job {name!r} waits for your yes. See the page, or `deskhand approvals`."
        changes = await self._ground.alerts.alert_owners(f"ask:{rows[0][0]}", text)
        await retry_until_written(partial(self._ground.store.change, changes))
