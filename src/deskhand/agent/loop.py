"""Drive one session until nothing is owed. Safe to kill at any line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

import msgspec
from msgspec.structs import replace

from ..models.window import fit_messages, message_budget
from ..policy.approval import describe_approvers, may_approve, render_approver_notice
from ..store.base import FirstCommit
from ..types.commit import Change, Choices, Commit
from ..types.door import Progress
from ..types.errors import Refused
from ..types.events import (
    AnyEvent,
    ApprovalAnswered,
    CallClosed,
    CommandRun,
    MessageDelivered,
    Turn,
    TurnEnded,
)
from ..types.identity import Address, Answer, Command, Inbound, Principal, Said, Waiting
from ..types.interrupt import Interrupt
from ..types.jobs import render_turn_end
from ..types.messages import Text
from ..types.steps import AskModel, Compact, Condensed, EndTurn, RunTools, Step, Wait
from ..types.turn import make_call_closed, make_refusal
from .admit import admit_next
from .ask_model import Asking
from .calls import Calls
from .compact import make_compaction
from .journal import Journal
from .profile import Agent, Ports
from .rewind import MAX_TITLES, RewindView, make_branch, plan_rewind, plan_uncompact
from .state import State, find_asked_calls, fold
from .step import answer_text, next_step


class Rest(msgspec.Struct, frozen=True):
    """When a turn is to go on: by the time of day, and by the clock that nobody sets, whichever
    comes first."""

    until: float
    tick: float


class Driver:
    """Drives one session. Only one call of `drive` may be running; the store fences off any other
    process.

    `news` says that something new may wait in the inbox. It is set by whoever accepted it.
    """

    def __init__(self, session: str, agent: Agent, ports: Ports) -> None:
        self.session = session
        self.has_news = True
        self._agent = agent
        self._ports = ports
        self._interrupt = Interrupt()
        self._rest: Rest | None = None
        self._has_waiting = False
        self._journal: Journal | None = None
        self._asking: Asking | None = None
        self._calls: Calls | None = None

    def interrupt(self) -> None:
        """Cut short the model call or tool that is going on; the next step then sees what is
        new."""
        self.has_news = True
        self._interrupt.cancel()

    def snapshot(self) -> Progress | None:
        """What the model has said so far in a call that is going on."""
        return self._asking.snapshot() if self._asking else None

    @property
    def state(self) -> State | None:
        """The warm state, if there is one."""
        return self._journal.state if self._journal else None

    @property
    def rests_until(self) -> float:
        """When its rest has lasted long enough, by the clock that nobody sets."""
        return self._rest.tick if self._rest else 0.0

    @property
    def size_bytes(self) -> int:
        """About how much memory the warm state takes."""
        return self._journal.size_bytes if self._journal else 0

    def prepare_admission(self, inbound: Inbound, principal: Principal) -> FirstCommit | None:
        """For a warm session at rest: the commit that takes this message in, to ride with its
        acceptance."""
        journal = self._journal
        if (
            journal is None
            or journal.state.turn is not None
            or not isinstance(inbound.body, Said)
            or self.has_news
        ):
            return None
        state, at = journal.state, self._ports.clock.now()
        n = state.n + 1
        session = self.session

        def make(inbox_id: int) -> Commit:
            taken = admit_next(
                state, (Waiting(inbox_id, principal, inbound),), self._agent.commands
            )
            events = taken[1] if taken else []
            return Commit(session, n, at, tuple(events), (inbox_id,))

        return make

    def apply_admission(self, commit: Commit, last: int) -> None:
        """The first commit was written, up to this `seq`: fold it."""
        if self._journal is None:
            return
        for recorded in commit.to_recorded(last - len(commit.events) + 1):
            fold(self._journal.state, (recorded,))
            self._ports.publish(self.session, recorded)

    def drop_state(self) -> None:
        """Drop the warm state: the log is read again when it is needed."""
        self._journal = self._asking = self._calls = None

    async def give_up(self, reason: str) -> None:
        """End the turn, and all that waits, with a visible failure: the session must be usable
        again."""
        self.drop_state()
        journal = Journal(self.session, self._agent, self._ports)
        await journal.load()
        waiting = await self._ports.store.list_waiting(self.session)
        while taken := admit_next(journal.state, waiting, self._agent.commands):
            row, events = taken
            waiting.remove(row)
            journal.record(*(events or (make_refusal(row, "it failed repeatedly"),)))
            journal.mark_admitted(row.inbox_id)
        turn = journal.state.turn
        if turn is not None:
            said = f"Sorry, I encountered an error and gave this up: {reason}"
            lost = "given up; it may or may not have happened"
            journal.record(
                *(CallClosed(call_id, "interrupted", lost) for call_id in journal.state.calls)
            )
            journal.record(TurnEnded("dead", tuple(turn.answers), said))
            journal.enqueue_message(
                turn.address, (Text(render_turn_end(turn.principal, "dead", said)),), turn.reply_to
            )
        letter = Change(
            "dead_insert", (self.session, journal.state.n, self._ports.clock.now(), reason)
        )
        journal.add_changes((letter,))
        await journal.flush(close=True)

    async def drive(self) -> float | None:
        """Do all that is owed. Returns when the session is to be woken (seconds since the epoch),
        None for never.

        Raises StaleSession when somebody else drives it, StoreUnavailable when nothing can be
        written: call it again later. However it ends, the log is true and the next call goes on
        from it.
        """
        try:
            return await self._drive()
        except BaseException:
            self.drop_state()
            raise

    async def _drive(self) -> float | None:
        if self._journal is None:
            journal = Journal(self.session, self._agent, self._ports)
            await journal.load()
            self._journal = journal
            self.has_news = True
            self._asking, self._calls = (
                Asking(journal, self._interrupt),
                Calls(journal, self._interrupt),
            )
        journal = self._journal
        if journal.state.turn is None or self._ports.uses_outbox(journal.state.turn.address):
            await self._record_deliveries(journal)
        closed = False
        while True:
            now = self._ports.clock.now() if self._rest is None else self._effective_now()
            step = next_step(journal.state, journal.limits, now)
            if (self.has_news or self._has_waiting) and not isinstance(
                step, EndTurn
            ):  # an answer that is there is given first
                await self._admit_waiting(journal)
                now = self._ports.clock.now() if self._rest is None else self._effective_now()
                step = next_step(journal.state, journal.limits, now)
            if not isinstance(step, Wait):
                self._rest = None
            if step is None:
                if not (closed and journal.is_clean):
                    await journal.flush(close=True)
                return None
            if isinstance(step, Wait):
                self._begin_rest(step, now)
                await journal.flush(wake_at=step.until)
                if not self.has_news:  # else it came while this was written
                    return step.until
                continue
            closed = await self._run_step(journal, step, now)

    def _effective_now(self) -> float:
        """The time of day; after a rest that has lasted long enough, not before the end of it."""
        now = self._ports.clock.now()
        rest = self._rest
        return (
            now
            if rest is None or self._ports.clock.monotonic() < rest.tick
            else max(now, rest.until)
        )

    def _begin_rest(self, step: Wait, now: float) -> None:
        """Note how long it is from now, unless it goes on: what came in meanwhile makes no rest
        longer."""
        if self._rest is None or self._rest.until != step.until:
            tick = self._ports.clock.monotonic() + min(step.until - now, step.longest_s)
            self._rest = Rest(step.until, tick)

    async def _run_step(self, journal: Journal, step: Step, now: float) -> bool:
        """Do one step, which was owed at that time. True when it closed the session."""
        turn = journal.state.turn
        if isinstance(step, Compact):
            await self._compact(journal, step)
            return False
        if turn is None or self._asking is None or self._calls is None:
            raise AssertionError("a step is owed only while a turn is open")
        match step:
            case AskModel():
                await self._asking.run(step, step.not_before - now)
                if turn.request is not None:
                    await self._asking.enforce_schema(turn, turn.request)
                self._enqueue_interim_text(journal, turn)
            case RunTools():
                await self._calls.run(step, turn)
                await self._enqueue_asks(journal, turn)
            case EndTurn():
                await self._end_turn(journal, step, turn)
                return True
            case Wait() | Compact():
                raise AssertionError("resting is not performed, and shortening needs no turn")
            case _:
                assert_never(step)
        return False

    async def _compact(self, journal: Journal, step: Compact) -> None:
        """Shorten the context by rule, and have what goes summed up where somebody can."""
        state = journal.state
        told = Condensed()
        messages = [shown.message for shown in state.messages]
        most = (
            message_budget(messages, step.budget, state.context_tokens, journal.limits)
            if step.budget
            else 0
        )
        cut = fit_messages(messages, 1, most) if step.focus else fit_messages(messages, most)
        if cut.dropped and journal.agent.summarize is not None:
            with self._interrupt as waited:
                told = await journal.agent.summarize(
                    state, [messages[i] for i in cut.dropped], step.focus
                )
            if waited.cancelled_caught:
                return  # a person stopped it, or said something new: what is in view stays as it is
        journal.record(*((told.asked,) if told.asked else ()), make_compaction(state, cut, told))
        await journal.flush()

    async def _admit_waiting(self, journal: Journal) -> None:
        """Take in what may enter now."""
        self.has_news = self._interrupt.requested = False
        waiting = await self._ports.store.list_waiting(self.session)
        while taken := admit_next(journal.state, waiting, self._agent.commands):
            row, events = taken
            waiting.remove(row)
            events = events or await self._rewind_or_branch(journal, row)
            self._remember_grants(journal, events)
            journal.record(*events)
            journal.mark_admitted(row.inbox_id)
            stopping = journal.state.turn is not None and journal.state.turn.stopped
            for event in events:
                if (
                    isinstance(event, CommandRun) and not stopping
                ):  # a button hears what became of its press
                    to = row.inbound.external_id if isinstance(row.inbound.body, Answer) else ""
                    journal.enqueue_message(row.inbound.address, (Text(event.reply),), to)
        self._has_waiting = bool(waiting)
        if not journal.is_clean:
            await journal.flush()

    async def _rewind_or_branch(self, journal: Journal, row: Waiting) -> list[AnyEvent]:
        """What needs the log: to rewind, or to branch. Written at once after a crash, it is found
        done."""
        await journal.flush()
        state = journal.state
        store = self._ports.store
        body = row.inbound.body
        past = RewindView(self.session, await store.events(self.session), state.zone)
        try:
            if isinstance(body, Command) and body.name == "branch":
                taken = {
                    other.title
                    for other in await store.search_titles(row.principal, past.heading, MAX_TITLES)
                }
                commit = make_branch(
                    past, row.principal, state.n, "", self._ports.clock.now(), taken
                )
                if not await store.history(commit.session):
                    await store.commit(commit)
                said = (
                    f"You can also continue from here in “{commit.session}”; this conversation "
                    "is not changed."
                )
                return [CommandRun(row.inbox_id, row.principal, body.name, body.args, said)]
            if isinstance(body, Command) and body.name == "uncompact":
                return plan_uncompact(state, row, past)
            events = plan_rewind(state, row, past)
            return (
                await self._ports.revert_effects(self.session, row.principal, events)
                if self._ports.revert_effects
                else events
            )
        except Refused as error:
            return [make_refusal(row, str(error))]

    def _remember_grants(self, journal: Journal, events: Sequence[AnyEvent]) -> None:
        turn = journal.state.turn
        for event in events:
            if (
                isinstance(event, ApprovalAnswered)
                and event.choice in ("always", "never")
                and turn
                and self._calls
            ):
                call = find_asked_calls(journal.state, event.ask_id)[0].call
                journal.add_changes((self._calls.make_grant(event, call, turn),))

    async def _end_turn(self, journal: Journal, step: EndTurn, turn: Turn) -> None:
        """The end of a turn and its answer, in one commit."""
        text = step.said or answer_text(turn)
        said = step.said
        hooks = self._agent.hooks
        if (
            hooks is not None
            and (changed := await hooks.before_end(self.session, turn, text, step.reason)) != text
        ):
            text = said = changed
        if journal.state.calls:  # those of a program that took too long
            late = "no result was returned in time"
            journal.record(
                *(
                    make_call_closed(call, "expired", late)
                    for call in list(journal.state.calls.values())
                )
            )
        note = await self._make_closing_note(journal, turn)
        journal.record(TurnEnded(step.reason, tuple(turn.answers), said, note))
        words = render_turn_end(turn.principal, step.reason, text) if said else text
        if (words := "\n\n".join(filter(str.strip, (words, note)))).strip():
            journal.enqueue_message(turn.address, (Text(words),), turn.reply_to)
        await journal.flush(close=True)
        if hooks is not None:
            await hooks.after_end(self.session, turn, text, step.reason)

    async def _make_closing_note(self, journal: Journal, turn: Turn) -> str:
        """What people are told beside the answer."""
        if self._ports.close_turn is None:
            return ""
        note, changes = await self._ports.close_turn(self.session, turn)
        journal.add_changes(changes)
        return note

    async def _record_deliveries(self, journal: Journal) -> None:
        for sent in await self._ports.store.list_delivered(self.session):
            journal.record(MessageDelivered(sent.key, sent.platform_id, sent.mark))
            journal.mark_delivered(sent.key)

    def _enqueue_interim_text(self, journal: Journal, turn: Turn) -> None:
        """What the model says beside its calls is a message of its own."""
        shown = journal.state.messages[-1].message if journal.state.messages else None
        if journal.state.calls and shown is not None and shown.text.strip():
            journal.enqueue_message(turn.address, (Text(shown.text),))

    async def _enqueue_asks(self, journal: Journal, turn: Turn) -> None:
        """Put what is asked to whoever may answer it. Where that is somebody else than those who
        read here, they are told so, and have no buttons."""
        asks = {
            call.ask.ask_id: call.ask
            for call in journal.state.calls.values()
            if call.ask is not None
        }
        for ask in asks.values():
            shown = Choices(ask.ask_id, ask.question, ask.choices, bool(ask.binds), ask.about)
            here: Choices = shown
            to: Sequence[Address] = ()
            if (
                ask.binds
                and not may_approve(turn.principal)
                and (ask.elsewhere or turn.address.group)
            ):
                to = await self._ask_owners(journal, turn, shown)
            if to or ask.elsewhere:
                note = (
                    render_approver_notice(ask.elsewhere)
                    if to
                    else describe_approvers(ask.elsewhere)
                )
                here = replace(shown, choices=(), note="\n".join(filter(None, (ask.about, note))))
            journal.enqueue_message(turn.address, (Text(here.text),), turn.reply_to, here)

    async def _ask_owners(self, journal: Journal, turn: Turn, ask: Choices) -> Sequence[Address]:
        """Ask owners where they can be asked alone. Returns where that is."""
        if self._ports.owner_addresses is None or not self._ports.uses_outbox(turn.address):
            return ()
        owners = [
            address for address in await self._ports.owner_addresses() if address != turn.address
        ]
        for address in owners:
            journal.enqueue_message(address, (Text(ask.text),), "", ask)
        return owners
