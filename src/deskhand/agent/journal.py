"""The one place where a session's events are made: folded at once, written together, shown after."""

from __future__ import annotations

import anyio
from msgspec.structs import replace

from ..models.base import Encoded
from ..policy.gate import quieted, trusting
from ..types.commit import Change, Choices, Commit, Outgoing, SayPart
from ..types.door import Progress
from ..types.events import AnyEvent, Compacted, Recorded, stored
from ..types.identity import Address
from ..types.limits import Limits
from ..types.options import SessionOptions
from .profile import Agent, Ports, under
from .state import State, fold


class Journal:
    """A session's state and the events that are not on disk yet.

    Whatever raises between `record` and the end of `flush` leaves the state ahead of the log: the owner must then drop
    this journal and load a new one.
    """

    def __init__(self, session: str, agent: Agent, ports: Ports) -> None:
        self.session, self.ports = session, ports
        self._agent = self._fitted = agent
        self._options = SessionOptions()
        self.state = State(session, zone=agent.zone)
        self.encoded = Encoded()
        self._pending: list[Recorded] = []
        self._admitted: list[int] = []
        self._outbox: list[Outgoing] = []
        self._changes: list[Change] = []
        self._delivered: list[str] = []

    async def load(self) -> None:
        """Fold the log. Raises StoreError."""
        history = await self.ports.store.history(self.session)
        if history:
            self.state.n = history[0].n - 1
        fold(self.state, history)

    @property
    def agent(self) -> Agent:
        """The agent as this session's options make it."""
        if self.state.options is not self._options:
            self._options = self.state.options
            self._fitted = under(self._agent, self._options)
        return self._fitted

    @property
    def limits(self) -> Limits:
        """What a turn may use, with how the model counts that is asked first."""
        limits, scale = self.agent.limits, self.ports.meter.scale(next(iter(self.agent.models), ""))
        return limits if scale == limits.scale else replace(limits, scale=scale)

    @property
    def clean(self) -> bool:
        """Nothing waits to be written."""
        return not (self._pending or self._admitted or self._outbox or self._changes)

    def record(self, *events: AnyEvent) -> None:
        """Fold these events now; they are written by the next `flush`."""
        at = self._pending[0].at if self._pending else self.ports.clock.now()  # one commit has one time
        for event in map(self.ports.hide, events):
            recorded = Recorded(0, self.session, self.state.n + 1, at, event)
            fold(self.state, (recorded,))
            self._pending.append(recorded)
            if isinstance(event, Compacted):  # the same messages may now read otherwise
                self.encoded.clear()

    def admit(self, inbox_id: int) -> None:
        self._admitted.append(inbox_id)

    def deliver(self, key: str) -> None:
        """Note that the log now holds the delivery of this outbox row."""
        self._delivered.append(key)

    def change(self, changes: tuple[Change, ...], outbox: tuple[Outgoing, ...] = ()) -> None:
        """Rows to be written in the same commit."""
        self._changes += changes
        here = self.state.turn.address if self.state.turn is not None else None  # elsewhere a person saw each byte
        self._outbox += [replace(o, parts=self._quieted(o.parts)) if o.address == here else o for o in outbox]

    def say(self, to: Address, parts: tuple[SayPart, ...], reply_to: str = "", ask: Choices | None = None) -> None:
        """Owe an answer there, if answers there go through the outbox."""
        if self.ports.posts(to):
            key = f"{self.session}#{self.state.n}.{len(self._outbox)}"
            self._outbox.append(Outgoing(key, to, self._quieted(parts), reply_to, ask))

    def _quieted(self, parts: tuple[SayPart, ...]) -> tuple[SayPart, ...]:
        label = trusting(self.state.label, self.state.options.trust or ())
        return quieted(parts, label, (each.message for each in self.state.messages))

    async def flush(self, *, wake_at: float | None = None, close: bool = False) -> None:
        """Write what is pending and show it. Raises StaleSession, StoreUnavailable."""
        if self.clean and wake_at is None and not close:
            return
        events = self._pending
        at = events[0].at if events else self.ports.clock.now()
        first, written = self.state.n - len(events) + 1, tuple(recorded.event for recorded in events)
        rows = (tuple(self._admitted), tuple(self._outbox), tuple(self._changes), tuple(self._delivered))
        commit = Commit(self.session, first, at, written, *rows, wake_at, close)
        self._pending, self._admitted, self._outbox, self._changes, self._delivered = [], [], [], [], []
        with anyio.CancelScope(shield=True):
            last = await self.ports.store.commit(commit)
        for recorded in stored(events, last):
            self.ports.publish(self.session, recorded)

    async def settle(self) -> None:
        """Write the rows of calls that are over, so that the next one finds them."""
        if self._changes:
            await self.flush()

    def show(self, progress: Progress) -> None:
        self.ports.publish(self.session, progress)
