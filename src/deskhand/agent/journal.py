"""What a session is about to write: events are folded at once, written together, and shown
after."""

from __future__ import annotations

from datetime import tzinfo

import anyio
import msgspec
from msgspec.structs import replace

from ..models.base import Encoded
from ..policy.information_flow import apply_trust, defang_links, downgrade_label
from ..types.commit import Actions, Change, Choices, Commit, Outgoing, SayPart
from ..types.events import AnyEvent, Recorded, Turn
from ..types.identity import OWN_SURFACES, Address, Inbound
from ..types.labels import LOCAL, Label
from ..types.messages import Text
from .fold import fold
from .protocols import Runtime
from .state import State

MESSAGE_OVERHEAD_BYTES = 600
TEXT_COPIES = 3
"""What the objects of one message take beside its text, which also lies here as a wire has encoded
it, by itself and in one piece with those before it."""
_encode = msgspec.json.Encoder().encode


def uses_outbox(address: Address) -> bool:
    """True for channels that must be sent to. Terminal and web clients read the log instead."""
    return address.channel not in OWN_SURFACES


def _find_disturbed(turn: Turn, to: Address) -> str | None:
    """Whom a job disturbs that says something there. See `Outgoing.unasked`."""
    if to.group:
        return None
    return turn.principal.on_behalf_of if to == turn.address else ""


class Journal:
    """A session's state, and the events that are not on disk yet.

    Whatever raises between `record` and the end of `commit` leaves the state ahead of the log: the
    owner must then drop this journal and load a new one.
    """

    def __init__(self, session: str, zone: tzinfo | None, runtime: Runtime) -> None:
        self.session = session
        self.state = State(session, zone=zone)
        self.encoded = Encoded()
        self.is_loaded = False
        self._runtime = runtime
        self.has_tool_changes = False
        """Rows wait that the next call must find."""
        self._closed = False
        self._pending: list[Recorded] = []
        self._admitted: list[int] = []
        self._outbox: list[Outgoing] = []
        self._changes: list[Change] = []
        self._delivered: list[str] = []
        self._message_n = 0
        self._messages = 0
        self._weighed = 0
        self._weight = 0

    async def load(self) -> None:
        """Fold the log. Raises StoreError."""
        history = await self._runtime.store.history(self.session)
        if history:
            self.state.n = history[0].n - 1
        fold(self.state, history)
        self.is_loaded = True

    def begin(self) -> None:
        """There is no log to load: the session begins here."""
        self.is_loaded = True

    @property
    def size_bytes(self) -> int:
        """About how much memory this conversation takes. What came since the last time is added."""
        messages = self.state.messages
        fresh = messages[self._weighed :]
        if fresh:
            self._weight += len(fresh) * MESSAGE_OVERHEAD_BYTES + TEXT_COPIES * len(_encode(fresh))
        self._weighed = len(messages)
        return self._weight

    @property
    def is_clean(self) -> bool:
        """Nothing waits to be written."""
        return not (self._pending or self._admitted or self._outbox or self._changes)

    @property
    def can_defer_commit(self) -> bool:
        """All that waits to be written are reports of deliveries, which the next commit takes
        along."""
        only_reports = len(self._pending) == len(self._delivered)
        return only_reports and not (self._admitted or self._outbox or self._changes)

    def record(self, *events: AnyEvent, at: float | None = None) -> None:
        """Fold these events now; the next `commit` writes them. `at` is when they happened, where
        something in them is counted from that: the clock may have been set since."""
        runtime = self._runtime
        if at is None:
            at = runtime.clock.now()
        before = self.state.messages
        for each in events:
            event = runtime.secrets.redact_event(each)
            recorded = Recorded(0, self.session, self.state.n + 1, at, event)
            fold(self.state, (recorded,))
            self._pending.append(recorded)
        if self.state.messages is not before:
            self._forget_messages()

    def apply(self, recorded: Recorded) -> None:
        """Fold an event that is on disk already, and show it."""
        self._closed = False
        before = self.state.messages
        fold(self.state, (recorded,))
        if self.state.messages is not before:
            self._forget_messages()
        self._runtime.publisher.publish(self.session, recorded)

    def _forget_messages(self) -> None:
        """Another conversation began, or a summary was made: what the model sees is another list,
        so nothing that is known of the one before counts."""
        self.encoded.clear()
        self._weighed = 0
        self._weight = 0

    def reopen(self) -> None:
        """Something came in: the store no longer has this session as one at rest."""
        self._closed = False

    def mark_admitted(self, inbox_id: int) -> None:
        self._admitted.append(inbox_id)

    def mark_delivered(self, key: str) -> None:
        """Note that the log now holds the delivery of this outbox row."""
        self._delivered.append(key)

    def add_changes(self, changes: tuple[Change, ...]) -> None:
        """Rows to be written in the same commit, which nobody needs before that."""
        self._changes += changes

    def add_tool_changes(
        self, changes: tuple[Change, ...], outbox: tuple[Outgoing, ...] = ()
    ) -> None:
        """Rows that a tool made, to be written with its result: before the next call is run."""
        self._changes += changes
        self.has_tool_changes = self.has_tool_changes or bool(changes)
        turn = self.state.turn
        for outgoing in outbox:
            if turn is not None and outgoing.address == turn.address:
                # What is sent elsewhere was approved by a person, byte for byte.
                parts, links = self._defang_links(outgoing.parts)
                outgoing = replace(outgoing, parts=parts, links=links)
            if turn is not None and turn.principal.kind == "clock":
                outgoing = replace(outgoing, unasked=_find_disturbed(turn, outgoing.address))
            self._outbox.append(self._runtime.secrets.redact_outgoing(outgoing))

    def enqueue_message(
        self,
        to: Address,
        parts: tuple[SayPart, ...],
        reply_to: str = "",
        buttons: Choices | Actions | None = None,
        *,
        aloud: str | None = None,
        ended: Turn | None = None,
    ) -> None:
        """Owe an answer there, if answers there go through the outbox; `aloud` as a voice message.
        Record first what it is about: its key names the last event, and after a crash it must be
        the same. `ended` is the turn that says it, where that is over. `buttons` are a question, or
        commands that are offered below it."""
        if not uses_outbox(to):
            return
        if self.state.n != self._message_n:
            self._message_n = self.state.n
            self._messages = 0
        key = f"{self.session}#{self.state.n}.{self._messages}"
        self._messages += 1
        quiet, links = self._defang_links(parts)
        ask = buttons if isinstance(buttons, Choices) else None
        outgoing = Outgoing(key, to, quiet, reply_to, ask, links=links, aloud=aloud)
        if isinstance(buttons, Actions):
            outgoing = replace(outgoing, actions=buttons)
        turn = ended or self.state.turn
        if turn is not None and turn.principal.kind == "clock":
            outgoing = replace(outgoing, unasked=_find_disturbed(turn, to))
        self._outbox.append(self._runtime.secrets.redact_outgoing(outgoing))

    def enqueue_press(
        self, inbound: Inbound, words: str, *, removes_buttons: bool, left: Actions | None = None
    ) -> None:
        """Owe an answer to who pressed a button, with `words` where it did nothing. The buttons of
        its message are removed, up to those that are `left`, unless somebody else may press them
        still."""
        parts = (Text(words, LOCAL),) if words else ()
        outgoing = Outgoing(
            f"{self.session}#press.{inbound.external_id}",
            inbound.address,
            parts,
            inbound.external_id,
            pressed=inbound.reply_to if removes_buttons else "",
            left=left if removes_buttons else None,
        )
        if parts or outgoing.pressed:
            self._outbox.append(outgoing)

    @property
    def turn_label(self) -> Label:
        """The label of everything that was read, as it counts for who opened this turn."""
        state = self.state
        if state.turn is None:
            return state.label
        return downgrade_label(state.label, state.turn.principal)

    @property
    def trusted_label(self) -> Label:
        """The label of the turn, less the sources that its person trusts."""
        return apply_trust(self.turn_label, self.state.options.trust or ())

    def _defang_links(
        self, parts: tuple[SayPart, ...]
    ) -> tuple[tuple[SayPart, ...], tuple[str, ...] | None]:
        messages = (each.message for each in self.state.messages)
        return defang_links(parts, self.trusted_label, messages)

    async def commit(self, *, wake_at: float | None = None, close: bool = False) -> None:
        """Write what is pending, and show it. With `wake_at` the session is to be woken then
        (seconds since the epoch); with `close` it is at rest. When this returns, everything is on
        disk.

        Raises StaleSession if another process drives this session, StoreUnavailable if nothing can
        be written.
        """
        if self.is_clean and wake_at is None and (not close or self._closed):
            return

        events = tuple([recorded.event for recorded in self._pending])
        times = tuple([recorded.at for recorded in self._pending])
        commit = Commit(
            self.session,
            self.state.n - len(events) + 1,
            at=times[-1] if times else self._runtime.clock.now(),
            events=events,
            admitted=tuple(self._admitted),
            outbox=tuple(self._outbox),
            changes=tuple(self._changes),
            delivered=tuple(self._delivered),
            wake_at=wake_at,
            close=close,
            times=times,
        )
        self._pending = []
        self._admitted = []
        self._outbox = []
        self._changes = []
        self._delivered = []
        self.has_tool_changes = False
        with anyio.CancelScope(shield=True):
            last = await self._runtime.store.commit(commit)
        self._closed = close
        for recorded in commit.to_recorded(last - len(events) + 1):
            self._runtime.publisher.publish(self.session, recorded)
