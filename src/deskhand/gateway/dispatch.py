"""Keeps one driver per session, many sessions at once, and wakes those that rest when their time
has come."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator

import anyio
from anyio.abc import TaskGroup

from ..agent.loop import Driver
from ..store.base import FirstCommit, OpenSession, Store
from ..types.clock import Clock
from ..types.door import Progress
from ..types.errors import DeskhandError, StaleSession, StoreCorrupt, StoreUnavailable
from ..types.events import Turn
from ..types.identity import Inbound, Principal

log = logging.getLogger(__name__)

WARM_SESSIONS = 500
WARM_BYTES = 64_000_000
"""So many sessions, and so much of them, are kept in memory while they are at rest."""
MAX_ADOPTED = 1_000
"""So many sessions that this process would not see to by itself are remembered, because somebody
has come for them."""
MAX_FAILURES = 5
ALONE_S = 60.0
POLL_S = 0.02
RECHECK_S = 10.0
"""What rested when the process began is looked at by then: the clock may have been set back while
nothing ran."""
PAUSES_S = (0.1, 0.3, 1.0, 3.0, 5.0)
SelectSession = Callable[[str], bool]
OnUp = Callable[[], None]
OnTrouble = Callable[[str, DeskhandError, bool], None]
"""Called with a session, what holds it up, and whether that is for good: then it is left alone
until something new comes in."""


class SessionSlot:
    """A session's driver and when to wake it: at `wake_at` by the time of day, or at `tick` by the
    clock that nobody sets, whichever comes first. Its task stays as long as the driver is warm: to
    wake one that waits is a tenth of the cost of a new one."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.running = self.tasked = self.forgotten = self.stale = False
        self.go = asyncio.Event()
        self.wake_at: float | None = None
        self.tick = 0.0
        self.size_bytes = 0


class Dispatch:
    """Drives sessions. `make` gives a new driver for a session; `troubled` hears why one is held
    up."""

    def __init__(
        self, store: Store, make: Callable[[str], Driver], clock: Clock, troubled: OnTrouble
    ) -> None:
        self._store = store
        self._make = make
        self._clock = clock
        self._troubled = troubled
        self._slots: OrderedDict[str, SessionSlot] = OrderedDict()
        self.most_sessions = WARM_SESSIONS
        self.most_bytes = WARM_BYTES
        self._warm_bytes = 0
        self._tasks: TaskGroup | None = None
        self._alarm = anyio.Event()
        self._draining = False
        self._takes: Callable[[str], bool] = lambda session: True
        self._adopted: dict[str, None] = {}

    @property
    def is_driving(self) -> bool:
        """This process drives; otherwise it only accepts and reads."""
        return self._tasks is not None

    @property
    def is_draining(self) -> bool:
        """Nothing more is begun."""
        return self._draining

    def owns(self, session: str) -> bool:
        """Whether this process sees to that session while it drives."""
        return session in self._adopted or self._takes(session)

    def adopt(self, session: str, *, cut: bool = False) -> None:
        """Wake this session, and see to it from now on whatever `takes` says of it: somebody has
        come for it."""
        if self._tasks is None or not self._takes(session):
            self._adopted[session] = None
            if len(self._adopted) > MAX_ADOPTED:
                del self._adopted[next(iter(self._adopted))]
        self.wake(session, cut=cut)

    async def run(
        self,
        started: Callable[[], None] = lambda: None,
        takes: SelectSession = lambda session: True,
        up: OnUp = lambda: None,
    ) -> None:
        """Take over what is owed and drive for ever. Only the holder of the driver lock may call
        this. `up` is called before what crashed is driven alone, which may take its time; `started`
        when all else is driven as well.

        `takes` tells which sessions to drive; others stay at rest until somebody drives them who
        does. What comes in through the Door of this process is driven in any case.
        """
        self._takes = takes
        dead = await self._store.begin_run(self._clock.now())
        if dead:
            await self._slot(dead).driver.give_up("it ended the whole process four times")
        clean = False
        try:
            async with anyio.create_task_group() as tasks:
                up()
                await self._drive_suspects(tasks)
                # from here on `wake` works; what came before is in the list that is read now
                self._tasks = tasks
                for row in await self._store.open_sessions():
                    if self.owns(row.session):
                        self._restore_wakeup(row)
                started()
                await self._wake_due_sessions()
        except anyio.get_cancelled_exc_class():
            clean = True  # we were told to end; anything else counts as a crash
            raise
        finally:
            self._tasks = None
            if clean:
                with anyio.CancelScope(shield=True):
                    await self._store.end_run()

    async def drain(self) -> None:
        """Begin no more, and wait until what is being driven rests. What comes in meanwhile waits
        for the next run."""
        self._draining = True
        while any(slot.running for slot in self._slots.values()):  # noqa: ASYNC110 -- the bound is the caller's
            await anyio.sleep(POLL_S)

    async def _drive_suspects(self, tasks: TaskGroup) -> None:
        """What crashed three times is driven by itself until it has got further, so that a fourth
        crash names the culprit and the others do not wait for longer than that takes."""
        for row in await self._store.open_sessions():
            if row.attempts >= 3 and self.owns(row.session):
                await self._store.drive_alone(row.session)
                log.warning("driving %s alone: it was open in three crashes", row.session)
                slot = self._reserve_slot(row.session)
                tasks.start_soon(self._drive, slot)
                with anyio.move_on_after(ALONE_S):
                    while slot.running and await self._is_suspect(row.session):  # noqa: ASYNC110 -- the store tells
                        await anyio.sleep(POLL_S)
        await self._store.drive_alone("")

    async def _is_suspect(self, session: str) -> bool:
        """Whether it has committed nothing since its last crash."""
        return any(
            row.session == session and row.attempts for row in await self._store.open_sessions()
        )

    def _restore_wakeup(self, row: OpenSession) -> None:
        if row.wake_at is None:
            self.wake(row.session)
        else:
            slot = self._slot(row.session)
            slot.wake_at, slot.tick = row.wake_at, self._clock.monotonic() + RECHECK_S

    def wake(self, session: str, *, cut: bool = False) -> None:
        """Drive the session now, or tell its driver that there is news; `cut` ends what it is
        waiting for outside."""
        if self._tasks is None:
            return
        slot = self._slot(session)
        slot.driver.has_news = True
        if slot.running:
            if cut:
                slot.driver.interrupt()
            return
        if self._draining:
            return
        self.start(self._reserve_slot(session))

    def reserve(
        self, session: str, inbound: Inbound, principal: Principal
    ) -> tuple[SessionSlot, FirstCommit] | None:
        """A warm session at rest and the commit that takes this message in, held until `start` or
        `release`."""
        slot = self._slots.get(session)
        if self._tasks is None or self._draining or slot is None or slot.running or slot.stale:
            return None
        first = slot.driver.prepare_admission(inbound, principal)
        return (self._reserve_slot(session), first) if first is not None else None

    def start(self, slot: SessionSlot) -> None:
        """Drive a reserved slot."""
        slot.go.set()
        if self._tasks is None:
            slot.running = False
        elif not slot.tasked:
            slot.tasked = True
            self._tasks.start_soon(self._run_slot, slot)

    def snapshot(self, session: str) -> Progress | None:
        slot = self._slots.get(session)
        return slot.driver.snapshot() if slot else None

    def turn(self, session: str) -> Turn | None:
        """What goes on in a session that is warm here."""
        slot = self._slots.get(session)
        state = slot.driver.state if slot else None
        return state.turn if state else None

    def iter_active_turns(self) -> Iterator[tuple[str, Turn]]:
        """The sessions that are being driven for somebody now, with their turns; those that rest
        are not."""
        for session, slot in list(self._slots.items()):
            if slot.running and (turn := self.turn(session)) is not None:
                yield session, turn

    @property
    def warm(self) -> dict[str, int]:
        """The sessions that are kept in memory, with about how many bytes each takes."""
        return {session: slot.size_bytes for session, slot in self._slots.items()}

    def renew(self) -> None:
        """What drivers are made of has changed: each session gets a new one for its next drive."""
        for slot in self._slots.values():
            slot.stale = True

    def _slot(self, session: str) -> SessionSlot:
        slot = self._slots.get(session)
        if slot is None:
            slot = self._slots[session] = SessionSlot(self._make(session))
            if len(self._slots) > self.most_sessions:
                self._make_room(slot)
        elif slot.stale and not slot.running:
            slot.driver = self._make(session)
            slot.stale = False
        self._slots.move_to_end(session)
        return slot

    def _reserve_slot(self, session: str) -> SessionSlot:
        slot = self._slot(session)
        slot.running = True
        slot.wake_at = None
        return slot

    def _update_size(self, slot: SessionSlot) -> None:
        """Note how much memory a session takes that has been driven, and make room where it is too
        much."""
        size_bytes = slot.driver.size_bytes
        self._warm_bytes += size_bytes - slot.size_bytes
        slot.size_bytes = size_bytes
        if self._warm_bytes > self.most_bytes:
            self._make_room(slot)

    def _make_room(self, keep: SessionSlot) -> None:
        """Let go of the sessions at rest that were driven longest ago, until the others fit. One
        that is to be woken at a time stays known, and is read from the log again then."""
        waiting = sum(1 for slot in self._slots.values() if slot.wake_at is not None)
        for session, slot in list(self._slots.items()):
            if (
                len(self._slots) - waiting <= self.most_sessions
                and self._warm_bytes <= self.most_bytes
            ):
                return
            if slot.running or slot is keep:
                continue
            self._warm_bytes -= slot.size_bytes
            slot.size_bytes = 0
            if slot.wake_at is not None:
                slot.driver.drop_state()
                continue
            del self._slots[session]
            slot.forgotten = True
            slot.go.set()

    async def _run_slot(self, slot: SessionSlot) -> None:
        """Drive whenever it is to go, until it is forgotten."""
        try:
            while not slot.forgotten:
                slot.go.clear()
                await self._drive(slot)
                await slot.go.wait()
        finally:
            slot.tasked = False

    async def _drive(self, slot: SessionSlot) -> None:
        """Drive until nothing is owed, whatever the disk or our own bugs do meanwhile."""
        failures = 0
        parked = 0
        reason = ""
        try:
            while failures < 2 * MAX_FAILURES:  # a log that cannot even be given up is left alone
                try:
                    if failures >= MAX_FAILURES:
                        await slot.driver.give_up(reason)
                        break
                    slot.wake_at = await slot.driver.drive()
                    slot.tick = slot.driver.rests_until
                    if not slot.driver.has_news or slot.wake_at is not None:
                        break
                except (StoreUnavailable, StaleSession) as error:
                    log.warning("%s is parked: %s", slot.driver.session, error)
                    if isinstance(error, StoreUnavailable) and parked:  # not what passes at once
                        self._troubled(slot.driver.session, error, False)
                    await anyio.sleep(PAUSES_S[min(parked, 4)])
                    parked += 1
                except Exception as error:
                    failures, reason = failures + 1, f"{type(error).__name__}: {str(error)[:300]}"
                    if failures == 2 * MAX_FAILURES or isinstance(error, StoreCorrupt):
                        told = (
                            error
                            if isinstance(error, DeskhandError)
                            else DeskhandError(f"It broke ({reason}).")
                        )
                        self._troubled(slot.driver.session, told, True)
                    log.exception("driving %s failed", slot.driver.session)
                    await anyio.sleep(PAUSES_S[min(failures, 4)] if failures < MAX_FAILURES else 0)
        finally:
            slot.running = False
        if not slot.forgotten:
            self._update_size(slot)
        if slot.wake_at is not None:
            self._alarm.set()

    async def _wake_due_sessions(self) -> None:
        """Wake what rests when its time has come."""
        while True:
            now = self._clock.now()
            tick = self._clock.monotonic()
            rests = {
                session: min(slot.wake_at - now, slot.tick - tick)
                for session, slot in self._slots.items()
                if slot.wake_at is not None
            }
            for session, left_s in rests.items():
                if left_s <= 0:
                    self.wake(session)
            self._alarm = anyio.Event()
            with anyio.move_on_after(
                min([60.0, *(left_s for left_s in rests.values() if left_s > 0)])
            ):
                await self._alarm.wait()
