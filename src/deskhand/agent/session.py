"""One session in memory: what has come of its log, and what its steps need."""

from __future__ import annotations

from functools import cache

import msgspec
from msgspec.structs import replace

from ..models.base import ToolSchema
from ..store.base import FirstCommit
from ..types.clock import Clock
from ..types.commit import Commit
from ..types.door import Progress
from ..types.events import Turn
from ..types.identity import Inbound, Principal, Said, Waiting
from ..types.interrupt import Interrupt
from ..types.limits import Limits
from ..types.options import SessionOptions
from ..types.steps import Step, Wait
from .agent import Agent, with_options
from .journal import Journal
from .next_admission import admit_next
from .protocols import Runtime
from .reply_in_progress import ReplyInProgress
from .state import State


class Inbox:
    """Whether messages may wait for this session.

    `has_news` is set by whoever stores one. Messages that could not enter yet are looked at again
    when the state has moved on from event `left_at` (None: none are left).
    """

    def __init__(self) -> None:
        self.has_news = True
        self.left_at: int | None = None

    def may_admit(self, state: State) -> bool:
        """Whether it is worth looking for messages that may enter now."""
        has_moved_on = self.left_at is not None and self.left_at != state.n
        return self.has_news or has_moved_on


class Rest:
    """A wait in the middle of a turn. It is over at a time of day, or after as long as that was
    when it began: a clock that is set back keeps nobody waiting."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: float | None = None
        self.tick = 0.0
        """When it has lasted long enough, by the monotonic clock."""

    def now(self) -> float:
        """The time of day (seconds since the epoch); after a rest that has lasted long enough, not
        before its end."""
        now = self._clock.now()
        if self._until is None or self._clock.monotonic() < self.tick:
            return now
        return max(now, self._until)

    def follow(self, step: Step | None, now: float) -> None:
        """Begin a rest with a Wait, go on with it while the same is waited for, end it with any
        other step."""
        if not isinstance(step, Wait):
            self._until = None
            self.tick = 0.0
        elif self._until != step.until:
            self._until = step.until
            self.tick = self._clock.monotonic() + min(step.until - now, step.longest_s)


class Searched(msgspec.Struct, frozen=True):
    """The last look into memory: in the turn that was opened then, after so many messages and
    steps."""

    opened_at: float = 0.0
    said: int = 0
    steps: int = 0


class Session:
    """Drive it with `loop.drive`. Only one drive may run; the store fences off other processes.

    `journal` holds its state, and what is not on disk yet. `reply` is the model call that is going
    on. Nothing here is the truth: `drop` forgets it, and the log is read again when it is needed.
    """

    def __init__(self, name: str, agent: Agent, runtime: Runtime) -> None:
        self.name = name
        self.runtime = runtime
        self.inbox = Inbox()
        self.interrupt = Interrupt()
        self.rest = Rest(runtime.clock)
        self.depth = agent.depth
        self._agent = agent
        self.drop()

    def drop(self) -> None:
        """Forget the state: the log is read again when it is needed."""
        self.journal = Journal(self.name, self._agent.zone, self.runtime)
        self.state = self.journal.state
        self.reply: ReplyInProgress | None = None
        self.searched = Searched()
        self._options = SessionOptions()
        self._agent_with_options = self._agent

    async def load(self) -> None:
        """Read the log, if it is not in memory. Raises StoreError."""
        if not self.journal.is_loaded:
            await self.journal.load()
            self.inbox.has_news = True

    @property
    def agent(self) -> Agent:
        """The agent as the options of this session make it."""
        options = self.state.options
        if options is not self._options:
            self._options = options
            self._agent_with_options = with_options(self._agent, options)
        return self._agent_with_options

    @property
    def schemas(self) -> tuple[ToolSchema, ...]:
        """What models are told of the tools that this conversation is offered."""
        return self._agent.schemas.offered(self.state.options)

    @property
    def limits(self) -> Limits:
        """What a turn may use, with how the first model of the chain counts tokens."""
        agent = self.agent
        limits = agent.limits
        scale = self.runtime.meter.scale(agent.models[0] if agent.models else "")
        return limits if scale == limits.scale else replace(limits, scale=scale)

    @property
    def turn(self) -> Turn:
        """The open turn. Steps other than `Compact` are owed only while there is one."""
        turn = self.state.turn
        if turn is None:
            raise AssertionError(f"{self.name!r}: a step is owed only while a turn is open")
        return turn

    def interrupt_step(self) -> None:
        """Cut short the model call or tool that is going on; the next step then sees what is
        new."""
        self.inbox.has_news = True
        self.interrupt.cancel()

    def snapshot(self) -> Progress | None:
        """All the text of the reply that is being written, for who comes late."""
        return self.reply.snapshot() if self.reply is not None else None

    def prepare_admission(self, inbound: Inbound, principal: Principal) -> FirstCommit | None:
        """For a session at rest: makes the commit that takes this message in, to ride in the
        transaction of its acceptance. A session whose log was not read is taken for one without
        events. Nobody may drive the session until `apply_admission`: `Dispatch.reserve` sees to
        that."""
        state = self.state
        is_new = not self.journal.is_loaded
        at_rest = state.turn is None and (is_new or not self.inbox.has_news)
        if not at_rest or not isinstance(inbound.body, Said):
            return None
        if is_new:
            self.inbox.has_news = False  # `load` sets it, where the log has to be read after all
        at = self.runtime.clock.now()
        n = state.n + 1

        @cache  # it is made in the transaction, and once more for the memory
        def make(inbox_id: int) -> Commit:
            waiting = (Waiting(inbox_id, principal, inbound),)
            admitted = admit_next(state, waiting, self._agent.commands)
            events = admitted[1] if admitted else []
            return Commit(self.name, n, at, tuple(events), (inbox_id,))

        return make

    def apply_admission(self, commit: Commit, last: int) -> None:
        """That commit was written, up to the event `last` of the whole log."""
        if commit.n == 1:
            self.journal.begin()
        if not self.journal.is_loaded:
            return
        for recorded in commit.to_recorded(last - len(commit.events) + 1):
            self.journal.apply(recorded)
