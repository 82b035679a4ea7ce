"""The one place where a session's events are made: folded at once, written together, shown
after."""

from __future__ import annotations

import anyio
import msgspec
from msgspec.structs import replace

from ..models.base import Encoded, ToolSchema
from ..policy.gate import apply_trust, defang_links, downgrade_label
from ..types.commit import Change, Choices, Commit, Outgoing, SayPart
from ..types.door import Progress
from ..types.events import AnyEvent, Compacted, Recorded
from ..types.identity import Address
from ..types.limits import Limits
from ..types.options import SessionOptions
from .profile import Agent, Ports, with_options
from .state import State, fold

MESSAGE_OVERHEAD_BYTES = 600
TEXT_COPIES = 3
"""What the objects of one message take beside its text, which also lies here as a wire has encoded
it, by itself and in one piece with those before it."""
_encode = msgspec.json.Encoder().encode


class Journal:
    """A session's state and the events that are not on disk yet.

    Whatever raises between `record` and the end of `flush` leaves the state ahead of the log: the
    owner must then drop this journal and load a new one.
    """

    def __init__(self, session: str, agent: Agent, ports: Ports) -> None:
        self.session = session
        self.ports = ports
        self._agent = self._fitted = agent
        self._options = SessionOptions()
        self.state = State(session, zone=agent.zone)
        self.encoded = Encoded()
        self._pending: list[Recorded] = []
        self._admitted: list[int] = []
        self._outbox: list[Outgoing] = []
        self._changes: list[Change] = []
        self._delivered: list[str] = []
        self._weighed = 0
        self._weighed_at = 0
        self._weight = 0

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
            self._fitted = with_options(self._agent, self._options)
        return self._fitted

    @property
    def schemas(self) -> tuple[ToolSchema, ...]:
        """What models are told of the agent's tools, whatever the options of this session."""
        return self._agent.schemas

    @property
    def size_bytes(self) -> int:
        """About how much memory this conversation takes. What came since the last time is added."""
        messages = self.state.messages
        if len(messages) < self._weighed or self.state.compacted_at != self._weighed_at:
            self._weighed = 0
            self._weight = 0
        fresh = messages[self._weighed :]
        if fresh:
            self._weight += len(fresh) * MESSAGE_OVERHEAD_BYTES + TEXT_COPIES * len(_encode(fresh))
        self._weighed = len(messages)
        self._weighed_at = self.state.compacted_at
        return self._weight

    @property
    def limits(self) -> Limits:
        """What a turn may use, with how the model counts that is asked first."""
        limits = self.agent.limits
        scale = self.ports.meter.scale(next(iter(self.agent.models), ""))
        return limits if scale == limits.scale else replace(limits, scale=scale)

    @property
    def is_clean(self) -> bool:
        """Nothing waits to be written."""
        return not (self._pending or self._admitted or self._outbox or self._changes)

    @property
    def can_defer_flush(self) -> bool:
        """All that waits to be written are reports of deliveries, which the next commit takes
        along."""
        reports = len(self._pending) == len(self._delivered)
        return reports and not (self._admitted or self._outbox or self._changes)

    def record(self, *events: AnyEvent, at: float | None = None) -> None:
        """Fold these events now; they are written by the next `flush`. `at` is when they happened,
        where something in them is counted from that: the clock may have been set since."""
        at = self.ports.clock.now() if at is None else at
        for event in map(self.ports.secrets.redact_event, events):
            recorded = Recorded(0, self.session, self.state.n + 1, at, event)
            fold(self.state, (recorded,))
            self._pending.append(recorded)
            if isinstance(event, Compacted):  # the same messages may now read otherwise
                self.encoded.clear()

    def mark_admitted(self, inbox_id: int) -> None:
        self._admitted.append(inbox_id)

    def mark_delivered(self, key: str) -> None:
        """Note that the log now holds the delivery of this outbox row."""
        self._delivered.append(key)

    def add_changes(self, changes: tuple[Change, ...], outbox: tuple[Outgoing, ...] = ()) -> None:
        """Rows to be written in the same commit."""
        self._changes += changes
        here = (
            self.state.turn.address if self.state.turn is not None else None
        )  # elsewhere a person saw each byte
        for outgoing in outbox:
            if outgoing.address == here:
                parts, links = self._defang_links(outgoing.parts)
                outgoing = replace(outgoing, parts=parts, links=links)
            self._outbox.append(self.ports.secrets.redact_outgoing(outgoing))

    def enqueue_message(
        self,
        to: Address,
        parts: tuple[SayPart, ...],
        reply_to: str = "",
        ask: Choices | None = None,
    ) -> None:
        """Owe an answer there, if answers there go through the outbox."""
        if self.ports.uses_outbox(to):
            key = f"{self.session}#{self.state.n}.{len(self._outbox)}"
            quiet, links = self._defang_links(parts)
            outgoing = Outgoing(key, to, quiet, reply_to, ask, links=links)
            self._outbox.append(self.ports.secrets.redact_outgoing(outgoing))

    def _defang_links(
        self, parts: tuple[SayPart, ...]
    ) -> tuple[tuple[SayPart, ...], tuple[str, ...] | None]:
        label = (
            self.state.label
            if self.state.turn is None
            else downgrade_label(self.state.label, self.state.turn.principal)
        )
        label = apply_trust(label, self.state.options.trust or ())
        return defang_links(parts, label, (each.message for each in self.state.messages))

    async def flush(self, *, wake_at: float | None = None, close: bool = False) -> None:
        """Write what is pending and show it. Raises StaleSession, StoreUnavailable."""
        if self.is_clean and wake_at is None and not close:
            return
        events: list[AnyEvent] = []
        times: list[float] = []
        for recorded in self._pending:
            events.append(recorded.event)
            times.append(recorded.at)
        commit = Commit(
            self.session,
            self.state.n - len(events) + 1,
            at=times[-1] if times else self.ports.clock.now(),
            events=tuple(events),
            admitted=tuple(self._admitted),
            outbox=tuple(self._outbox),
            changes=tuple(self._changes),
            delivered=tuple(self._delivered),
            wake_at=wake_at,
            close=close,
            times=tuple(times),
        )
        self._pending = []
        self._admitted = []
        self._outbox = []
        self._changes = []
        self._delivered = []
        with anyio.CancelScope(shield=True):
            last = await self.ports.store.commit(commit)
        for recorded in commit.to_recorded(last - len(events) + 1):
            self.ports.publish(self.session, recorded)

    async def flush_changes(self) -> None:
        """Write the rows of calls that are over, so that the next one finds them."""
        if self._changes:
            await self.flush()

    def publish_progress(self, progress: Progress) -> None:
        self.ports.publish(self.session, progress)
