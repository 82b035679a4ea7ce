"""Drives many sessions at once, and wakes sessions when they are due."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator

import anyio
from anyio.abc import TaskGroup

from ..agent.end_turn import give_up
from ..agent.loop import drive
from ..agent.session import Session
from ..store.base import MAX_CRASHES, FirstCommit, OpenSession, Store
from ..types.clock import Clock
from ..types.door import Progress
from ..types.errors import DeskhandError, StaleSession, StoreCorrupt, StoreUnavailable
from ..types.events import Turn
from ..types.identity import Inbound, Principal
from ..types.task_names import name_drive

log = logging.getLogger(__name__)

WARM_SESSIONS = 500
WARM_BYTES = 64_000_000
"""So many sessions at rest, and so many bytes of them, are kept in memory."""
ROOM = 0.9
"""How much of that is left when there was too much: each drop looks at all of them."""
MAX_ADOPTED = 1_000
"""So many sessions are remembered that this process drives only because somebody uses them here."""
MAX_FAILURES = 5
ALONE_S = 60.0
POLL_S = 0.02
MAX_SLEEP_S = 60.0
RECHECK_S = 10.0
"""A session that rested when the process began is driven by then, as the clock may have been set
back meanwhile."""
PAUSES_S = (0.1, 0.3, 1.0, 3.0, 5.0)
TOO_MANY_CRASHES = "it ended the whole process four times"
SelectSession = Callable[[str], bool]
OnUp = Callable[[], None]
OnTrouble = Callable[[str, DeskhandError, bool], None]
"""Called with a session, the error that holds it up, and whether that is for good: then it is not
driven until something new comes in."""


class SessionSlot:
    """A session in memory and when to wake it: at `wake_at` (seconds since the epoch) or at `tick`
    (monotonic), whichever comes first. Its task lives as long as the slot, because waking a task
    costs a tenth of starting one."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.running = False
        self.tasked = False
        self.forgotten = False
        self.stale = False
        self.go = asyncio.Event()
        self.wake_at: float | None = None
        self.tick = 0.0
        self.size_bytes = 0


class Dispatch:
    """Drives the sessions of this process. `open_session` takes a session into memory;
    `on_trouble` is told what holds a session up."""

    def __init__(
        self,
        store: Store,
        open_session: Callable[[str], Session],
        clock: Clock,
        on_trouble: OnTrouble,
    ) -> None:
        self._store = store
        self._open_session = open_session
        self._clock = clock
        self._on_trouble = on_trouble
        self._slots: OrderedDict[str, SessionSlot] = OrderedDict()
        self._waiting: dict[str, SessionSlot] = {}
        """Those of them that have a `wake_at`."""
        self.most_sessions = WARM_SESSIONS
        self.most_bytes = WARM_BYTES
        self._warm_bytes = 0
        self._tasks: TaskGroup | None = None
        self._alarm = anyio.Event()
        self._draining = False
        self._takes: Callable[[str], bool] = lambda session: True
        self.has_agent_of: SelectSession | None = None
        """Whether this process has the agent of that session; None where no other one can."""
        self._adopted: dict[str, None] = {}

    @property
    def is_driving(self) -> bool:
        """Whether this process drives. Otherwise it only accepts and reads."""
        return self._tasks is not None

    @property
    def is_draining(self) -> bool:
        """Whether it begins nothing more."""
        return self._draining

    def owns(self, session: str) -> bool:
        """Whether this process sees to that session: it drives it, or leads another one that
        does."""
        return session in self._adopted or self._takes(session)

    def may_drive(self, session: str) -> bool:
        """Whether this process has the agent of that session, and no other one."""
        return self.has_agent_of is None or self.has_agent_of(session)

    def drives(self, session: str) -> bool:
        """Whether this process drives that session, and runs what it starts."""
        return self.may_drive(session) and self.owns(session)

    def adopt(self, session: str, *, cut: bool = False) -> None:
        """Wake this session, and drive it from now on whatever `takes` says: somebody uses it
        here."""
        self._note_adopted(session)
        self.wake(session, cut=cut)

    def _note_adopted(self, session: str) -> None:
        if self._tasks is None or not self._takes(session):
            self._adopted[session] = None
            if len(self._adopted) > MAX_ADOPTED:
                del self._adopted[next(iter(self._adopted))]

    async def run(
        self,
        started: Callable[[], None] = lambda: None,
        takes: SelectSession = lambda session: True,
        up: OnUp = lambda: None,
    ) -> None:
        """Drive everything that is owed until cancelled. Only the holder of the driver lock may
        call this.

        `takes` says which sessions to drive. The others stay at rest for another process; what
        comes in through the door of this one is driven in any case. `up` is called before sessions
        that crashed are driven alone, which may take a while, and `started` when all are driven.
        """
        self._takes = takes
        dead = await self._store.begin_run(self._clock.now())
        if dead and self.may_drive(dead):
            await give_up(self._slot(dead).session, TOO_MANY_CRASHES)
        clean = False
        try:
            async with anyio.create_task_group() as tasks:
                up()
                await self._drive_suspects(tasks)
                # From here on `wake` works. What came before is in the list that is read now.
                self._tasks = tasks
                await self._restore_wakeups()
                started()
                await self._wake_due_sessions()
        except anyio.get_cancelled_exc_class():
            clean = True  # a stop that was asked for; everything else counts as a crash
            raise
        finally:
            self._tasks = None
            if clean:
                with anyio.CancelScope(shield=True):
                    await self._store.end_run()

    def is_driving_any(self, which: SelectSession) -> bool:
        """Whether one of these sessions is being driven now."""
        return any(slot.running and which(name) for name, slot in self._slots.items())

    async def take_up(self, is_new: SelectSession) -> None:
        """Drive what is owed in these sessions, which this process may drive from now on: another
        one did before. Those that ended it too often are given up; those that may be to blame are
        driven one by one."""
        if self._tasks is None:
            return  # `run` looks at all of them
        for row in await self._store.open_sessions():
            slot = self._slots.get(row.session)
            is_free = slot is None or not slot.running
            if row.attempts > MAX_CRASHES and is_new(row.session) and is_free:
                slot = self._reserve_slot(row.session)
                try:
                    await give_up(slot.session, TOO_MANY_CRASHES)
                finally:
                    slot.running = False
        await self._drive_suspects(self._tasks, is_new)
        await self._restore_wakeups(is_new)

    def let_go(self, is_old: SelectSession) -> bool:
        """Forget these sessions, as another process is to drive them from now on: tell
        `has_agent_of` before anything else runs. False, and nothing happens, while one of them is
        driven."""
        old = [slot for session, slot in self._slots.items() if is_old(session)]
        if any(slot.running for slot in old):
            return False
        for slot in old:
            self._set_wakeup(slot, None)
            self._forget(slot)
        return True

    async def drain(self) -> None:
        """Begin nothing more, and wait until every session rests. What comes in meanwhile waits for
        the next run."""
        self._draining = True
        while any(slot.running for slot in self._slots.values()):  # noqa: ASYNC110 -- the bound is the caller's
            await anyio.sleep(POLL_S)

    async def _restore_wakeups(self, which: SelectSession = lambda session: True) -> None:
        for row in await self._store.open_sessions():
            if which(row.session) and self.drives(row.session):
                self._restore_wakeup(row)

    async def _drive_suspects(
        self, tasks: TaskGroup, which: SelectSession = lambda session: True
    ) -> None:
        """Drive each session that was open in three crashes by itself, until it has committed
        something. If the process crashes again, that session is to blame."""
        for row in await self._store.open_sessions():
            if row.attempts < MAX_CRASHES or not which(row.session) or not self.drives(row.session):
                continue
            slot = self._slots.get(row.session)
            if slot is not None and slot.running:
                continue
            slot = self._reserve_slot(row.session)
            await self._store.drive_alone(row.session)
            log.warning("Driving %s alone: it was open in three crashes.", row.session)
            # Set only when the drive returns. One that crashes cancels this, but perhaps not before
            # the next step, and then the note of who was driven alone must not be cleared.
            returned = anyio.Event()
            tasks.start_soon(self._drive_until_rest, slot, returned)
            with anyio.move_on_after(ALONE_S):
                while not returned.is_set() and await self._is_suspect(row.session):  # noqa: ASYNC110 -- the store tells
                    await anyio.sleep(POLL_S)
        await self._store.drive_alone("")

    async def _drive_until_rest(self, slot: SessionSlot, returned: anyio.Event) -> None:
        await self._drive(slot)
        returned.set()

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
            self._set_wakeup(slot, row.wake_at)
            slot.tick = self._clock.monotonic() + RECHECK_S

    def wake(self, session: str, *, cut: bool = False) -> None:
        """Drive the session now, or tell its drive that there is news. With `cut` it stops waiting
        for a model, a tool or a person."""
        if self._tasks is None or (self.has_agent_of and not self.has_agent_of(session)):
            return
        slot = self._slot(session)
        slot.session.inbox.has_news = True
        if slot.running:
            if cut:
                slot.session.interrupt_step()
            return
        if self._draining:
            return
        self.start(self._reserve_slot(session))

    def reserve(
        self, session: str, inbound: Inbound, principal: Principal
    ) -> tuple[SessionSlot, FirstCommit] | None:
        """The slot of a session that is at rest, with the commit that takes this message in, or
        None. A session that is not in memory is taken for a new one; where it is not, the store
        leaves that commit out. The slot counts as running: call `start` in any case."""
        if self._tasks is None or self._draining:
            return None
        if self.has_agent_of is not None and not self.has_agent_of(session):
            return None
        slot = self._slots.get(session)
        if slot is None:
            self._note_adopted(session)
            slot = self._slot(session)
        if slot.running or slot.stale:
            return None
        first = slot.session.prepare_admission(inbound, principal)
        return (self._reserve_slot(session), first) if first is not None else None

    def start(self, slot: SessionSlot) -> None:
        """Drive a reserved slot."""
        slot.go.set()
        if self._tasks is None:
            slot.running = False
        elif not slot.tasked:
            slot.tasked = True
            session = slot.session
            name = name_drive(session.name, session.depth)
            self._tasks.start_soon(self._run_slot, slot, name=name)

    def snapshot(self, session: str) -> Progress | None:
        slot = self._slots.get(session)
        return slot.session.snapshot() if slot else None

    def turn(self, session: str) -> Turn | None:
        """The open turn of a session that is in memory here."""
        slot = self._slots.get(session)
        return slot.session.state.turn if slot else None

    def iter_active_turns(self) -> Iterator[tuple[str, Turn]]:
        """The sessions that are being driven now, with their turns. Sessions at rest are left
        out."""
        for session, slot in list(self._slots.items()):
            if slot.running and (turn := self.turn(session)) is not None:
                yield session, turn

    @property
    def warm(self) -> dict[str, int]:
        """The sessions in memory, with the approximate size of each in bytes."""
        return {session: slot.size_bytes for session, slot in self._slots.items()}

    def renew(self) -> None:
        """Open each session anew for its next drive: agents or settings have changed."""
        for slot in self._slots.values():
            slot.stale = True

    def _slot(self, session: str) -> SessionSlot:
        slot = self._slots.get(session)
        if slot is None:
            slot = self._slots[session] = SessionSlot(self._open_session(session))
            if len(self._slots) - len(self._waiting) > self.most_sessions:
                self._make_room(slot)
        elif slot.stale and not slot.running:
            slot.session = self._open_session(session)
            slot.stale = False
        self._slots.move_to_end(session)
        return slot

    def _reserve_slot(self, session: str) -> SessionSlot:
        slot = self._slot(session)
        slot.running = True
        self._set_wakeup(slot, None)
        return slot

    def _set_wakeup(self, slot: SessionSlot, wake_at: float | None) -> None:
        slot.wake_at = wake_at
        if wake_at is None:
            self._waiting.pop(slot.session.name, None)
        else:
            self._waiting[slot.session.name] = slot

    def _update_size(self, slot: SessionSlot) -> None:
        """Note how much memory a session takes after it was driven, and make room if that is too
        much."""
        size_bytes = slot.session.journal.size_bytes
        self._warm_bytes += size_bytes - slot.size_bytes
        slot.size_bytes = size_bytes
        if self._warm_bytes > self.most_bytes:
            self._make_room(slot)

    def _make_room(self, keep: SessionSlot) -> None:
        """Drop sessions at rest until the others fit with some room to spare, those first that were
        driven longest ago. A session that is to be woken later keeps its slot, and is read from the
        log again then."""
        most_sessions = int(self.most_sessions * ROOM)
        most_bytes = int(self.most_bytes * ROOM)
        for slot in list(self._slots.values()):
            fits = len(self._slots) - len(self._waiting) <= most_sessions
            if fits and self._warm_bytes <= most_bytes:
                return
            if slot.running or slot is keep:
                continue
            if slot.wake_at is not None:
                self._warm_bytes -= slot.size_bytes
                slot.size_bytes = 0
                slot.session.drop()
            else:
                self._forget(slot)

    def _forget(self, slot: SessionSlot) -> None:
        """Drop a session at rest from memory, and end its task."""
        self._warm_bytes -= slot.size_bytes
        slot.size_bytes = 0
        del self._slots[slot.session.name]
        slot.forgotten = True
        slot.go.set()

    async def _run_slot(self, slot: SessionSlot) -> None:
        """Drive the session each time it is started, until its slot is dropped."""
        try:
            while not slot.forgotten:
                slot.go.clear()
                await self._drive(slot)
                await slot.go.wait()
        finally:
            slot.tasked = False

    async def _drive(self, slot: SessionSlot) -> None:
        """Drive until nothing is owed. When the store is not available, try again until it is.
        After MAX_FAILURES errors of ours end the turn with the reason; when even that fails,
        stop."""
        session = slot.session
        failures = 0
        parked = 0
        reason = ""
        try:
            while failures < 2 * MAX_FAILURES:
                try:
                    if failures >= MAX_FAILURES:
                        await give_up(session, reason)
                        break
                    self._set_wakeup(slot, await drive(session))
                    slot.tick = session.rest.tick
                    if not session.inbox.has_news or slot.wake_at is not None:
                        break
                except (StoreUnavailable, StaleSession) as error:
                    pause_s = PAUSES_S[min(parked, len(PAUSES_S) - 1)]
                    log.warning("%s waits %.1f s: %s", session.name, pause_s, error)
                    if isinstance(error, StoreUnavailable) and parked:  # the first may pass at once
                        self._on_trouble(session.name, error, False)
                    await anyio.sleep(pause_s)
                    parked += 1
                except Exception as error:
                    failures += 1
                    reason = f"{type(error).__name__}: {str(error)[:300]}"
                    log.exception("Driving %s failed.", session.name)
                    if failures == 2 * MAX_FAILURES or isinstance(error, StoreCorrupt):
                        self._on_trouble(session.name, _shown_error(error, reason), True)
                    pause_s = 0.0
                    if failures < MAX_FAILURES:
                        pause_s = PAUSES_S[min(failures, len(PAUSES_S) - 1)]
                    await anyio.sleep(pause_s)
        finally:
            slot.running = False
        if not slot.forgotten:
            self._update_size(slot)
        if slot.wake_at is not None:
            self._alarm.set()

    async def _wake_due_sessions(self) -> None:
        """Wake each session when it is due, until cancelled."""
        while True:
            now = self._clock.now()
            tick = self._clock.monotonic()
            rests = {
                session: min(slot.wake_at - now, slot.tick - tick)
                for session, slot in self._waiting.items()
                if slot.wake_at is not None
            }
            for session, left_s in rests.items():
                if left_s <= 0:
                    self.wake(session)
            self._alarm = anyio.Event()
            due_in_s = [left_s for left_s in rests.values() if left_s > 0]
            with anyio.move_on_after(min([MAX_SLEEP_S, *due_in_s])):
                await self._alarm.wait()


def _shown_error(error: Exception, reason: str) -> DeskhandError:
    """The error that the followers of the session are shown."""
    if isinstance(error, DeskhandError):
        return error
    return DeskhandError(f"This conversation stopped because of an internal error ({reason}).")
