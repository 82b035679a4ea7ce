"""Keeps long work going: after each turn, and after each start of Deskhand."""

from __future__ import annotations

import logging
from typing import assert_never

import anyio
from msgspec.structs import replace

from ..agent.compacted_event import is_compacted
from ..agent.fold import fold
from ..agent.state import State
from ..assembly.host import Host
from ..assembly.side_queries import SideQueries
from ..config.sections import DeepWorkConfig
from ..gateway.inject import InboundInjector
from ..store.queries import was_accepted
from ..tools.queries import tasks_of
from ..tools.task_words import SHORT_LIST_LINES, graph_label, list_tasks, percent_done, render_tasks
from ..types.budget import Charge
from ..types.errors import (
    BudgetSpent,
    ModelError,
    Refused,
    StaleSession,
    StoreError,
    StoreUnavailable,
)
from ..types.events import CommandRun, ModelReplied, OptionsSet, Recalled, Recorded, TurnEnded
from ..types.goals import DEEP_WORK_COMPACTED, GOAL_REACHED, LongWork
from ..types.identity import SYSTEM, Command, Inbound, Principal, Said, responsible_person
from ..types.labels import LOCAL, Label, join_labels
from ..types.marked_texts import mark_text
from ..types.messages import Message, Text
from ..types.tasks import TaskGraph
from ..types.turn import STOP_TURN_ONLY
from . import queries
from .context import render_context
from .fold import DEEP, JUDGE, LongRun, fold_run
from .judge import GoalVerdict, judge_goal
from .next_moves import CompactContext, Halt, JudgeGoal, Later, Move, Nudge, StateNote, next_moves
from .progress import load_long_work, make_long_work, render_long_work

log = logging.getLogger(__name__)

POLL_S = 1.0
"""How often to look whether a session is due."""
MAX_JUDGES = 4
"""So many judges are asked at once."""
JUDGE_TIMEOUT_S = 180.0
JUDGE_RETRY_S = (60.0, 600.0)
"""How long to wait before a failed judge is asked again. After the last time a person is told."""
FAULT_RETRY_S = 60.0
"""How long a session is left alone after a fault of the database."""
NOW = (0.0, 0.0)


class Deep:
    """All sessions that go on by themselves.

    What it remembers of them only saves reading the log again. The exception is what judges have
    used, which counts for the limits of their goals and is in no log.
    """

    def __init__(self, ground: Host, waker: InboundInjector, thinking: SideQueries) -> None:
        self._ground = ground
        self._waker = waker
        self._thinking = thinking
        self._runs: dict[str, LongRun] = {}
        self._due: dict[str, tuple[float, float]] = {}
        self._busy: set[str] = set()
        self._unjudged: dict[str, int] = {}
        self._judges = anyio.Semaphore(MAX_JUDGES)
        self._poke = anyio.Event()

    @property
    def _config(self) -> DeepWorkConfig:
        return self._ground.settings().config.deep_work

    listens_to = (
        OptionsSet,
        CommandRun,
        ModelReplied,
        TurnEnded,
    )

    def on_event(self, recorded: Recorded) -> None:
        """Look at the session of this event soon, if it matters to long work. Never waits."""
        event = recorded.event
        may_begin = isinstance(event, OptionsSet | CommandRun)
        is_known = recorded.session in self._runs
        if may_begin or (is_known and isinstance(event, TurnEnded | ModelReplied)):
            self._due[recorded.session] = NOW
            self._poke.set()

    async def run(self) -> None:
        """Keep all long work going, first what was going on when the last process ended. Never
        returns."""
        for session in await queries.long_work_sessions(self._ground.store):
            self._due[session] = NOW
        self._busy.clear()
        async with anyio.create_task_group() as tasks:
            while True:
                self._poke = anyio.Event()
                for session in self._due_sessions():
                    del self._due[session]
                    if self._ground.dispatch.owns(session):
                        self._busy.add(session)
                        tasks.start_soon(self._process, session)
                with anyio.move_on_after(POLL_S if self._due else None):
                    await self._poke.wait()

    def _due_sessions(self) -> list[str]:
        """The sessions that are due. Measured with two clocks, so that a clock that was set back
        delays nobody."""
        clock = self._ground.clock
        now = clock.now()
        elapsed = clock.monotonic()
        due = [
            session for session, (at, since) in self._due.items() if at <= now or since <= elapsed
        ]
        return [session for session in due if session not in self._busy]

    def _schedule(self, session: str, wait_s: float) -> None:
        clock = self._ground.clock
        self._due.setdefault(session, (clock.now() + wait_s, clock.monotonic() + wait_s))

    async def _process(self, session: str) -> None:
        """Look at one session, concurrently with the others."""
        try:
            await self._advance(session)
        except (StoreUnavailable, StaleSession) as error:  # the other sessions go on
            log.warning(
                "Cannot go on with %s. Trying again in %.0f s: %s", session, FAULT_RETRY_S, error
            )
            self._schedule(session, FAULT_RETRY_S)
        except StoreError as error:
            log.warning("Cannot read %s, so it does not go on: %s", session, error)
        finally:
            self._busy.discard(session)
            self._poke.set()

    async def _advance(self, session: str) -> None:
        """Do what is next in this session."""
        store = self._ground.store
        run = self._runs.get(session)
        if run is None:
            if not await queries.is_long_work(store, session):
                return
            run = self._runs[session] = LongRun(session)
        fold_run(run, await store.events(session, run.n))
        if not (run.deep or run.goal):
            del self._runs[session]
            return
        if await store.list_waiting(session):
            return  # its turn comes first, and its end is an event
        graph = self.graph(session) if run.deep else {}
        for move in next_moves(run, graph, self._config, self._ground.clock.now()):
            await self._perform(run, move)

    def graph(self, session: str) -> TaskGraph:
        """The tasks of a session."""
        return tasks_of(self._ground.store, session)

    async def _perform(self, run: LongRun, move: Move) -> None:
        match move:
            case Nudge():
                await self._nudge(run, move.key, move.by, Text(move.text, LOCAL))
            case StateNote():
                await self._notify(run, move.key, move.name, move.text)
            case CompactContext():
                await self._notify(run, move.key, DEEP_WORK_COMPACTED, move.text)
            case JudgeGoal():
                await self._judge_goal(run, move.key)
            case Later(at=at):
                self._schedule(run.session, at - self._ground.clock.now())
            case Halt():
                who = run.deep_by or run.goal_by
                stop = Principal(DEEP, (), "agent", responsible_person(who) if who else "")
                await self._hand_in(run, move.key, Command("stop", STOP_TURN_ONLY), stop)
                self._ground.dispatch.wake(run.session, cut=True)
            case _:
                assert_never(move)

    async def _nudge(self, run: LongRun, key: str, by: str, said: Text) -> None:
        """Tell the agent to go on, for the person who began the work and with the roles that they
        still have."""
        who = run.goal_by if by == JUDGE else run.deep_by
        if who is None:
            return
        person = Principal(responsible_person(who), who.roles)
        roles = (await self._ground.with_current_roles(person)).roles
        if who.roles and not roles:
            log.warning("%s does not go on: %s has no roles any more.", run.session, person.id)
            return
        await self._hand_in(
            run, key, Said(Message("user", (said,))), Principal(by, roles, "agent", person.id)
        )

    async def _notify(self, run: LongRun, key: str, name: str, words: str) -> None:
        await self._hand_in(run, key, Command(name, words), SYSTEM)

    async def _hand_in(
        self, run: LongRun, key: str, body: Said | Command, principal: Principal
    ) -> None:
        inbound = Inbound(
            key, run.address, principal.id, self._ground.clock.now(), body, run.session
        )
        try:
            await self._waker.hand_in(inbound, principal)
        except Refused as error:
            log.warning("%s does not go on: %s", run.session, error)

    async def _judge_goal(self, run: LongRun, key: str) -> None:
        """Ask a judge whether the goal is reached, once after each turn."""
        store = self._ground.store
        session = run.session
        goal = run.goal
        judged_at = (run.end_n, run.goal_n)
        if await was_accepted(store, run.address, key):
            return
        state = fold(State(session), await store.history(session))
        person = responsible_person(run.goal_by) if run.goal_by else ""
        charge = Charge(session, person, self._ground.agent_of(session).name)
        try:
            async with self._judges:
                with anyio.fail_after(JUDGE_TIMEOUT_S):
                    verdict, label, used = await judge_goal(self._thinking, charge, goal, state)
        except (ModelError, TimeoutError) as error:
            await self._handle_no_verdict(run, key, error)
            return
        self._unjudged.pop(session, None)

        fold_run(run, await store.events(session, run.n))
        run.goal_used += used.input_tokens + used.output_tokens
        spent = run.goal_used >= self._config.goal_tokens and verdict.verdict != "reached"
        # Only what bears on the verdict counts: other events are no reason to ask again.
        changed = run.halted or not run.goal or (run.end_n, run.goal_n) != judged_at
        if run.open or changed or spent or await store.list_waiting(session):
            self._due.setdefault(session, NOW)  # look again: somebody wrote, or the goal ends here
            return
        await self._act_on_verdict(run, key, verdict, label)

    async def _act_on_verdict(
        self, run: LongRun, key: str, verdict: GoalVerdict, label: Label
    ) -> None:
        match verdict.verdict:
            case "reached":
                await self._notify(run, key, GOAL_REACHED, "The goal is reached.")
            case "needs_person":
                words = f"The goal waits for you: {verdict.missing or 'say how to go on'}"
                await self._notify(run, key, JUDGE + "_waits", words)
            case "not_reached":
                missing = f" What is missing: {verdict.missing}" if verdict.missing else ""
                text = f"The goal is not reached yet: {run.goal}\nGo on.{missing}"
                await self._nudge(run, key, JUDGE, Text(text, label))

    async def _handle_no_verdict(self, run: LongRun, key: str, error: Exception) -> None:
        """Ask again later, and in the end tell a person: without a judge the work does not go
        on."""
        tries = self._unjudged.get(run.session, 0)
        why = str(error).rstrip(".") or f"it took longer than {JUDGE_TIMEOUT_S:.0f} s"
        log.warning("No judge could be asked about the goal of %s: %s", run.session, why)
        if tries < len(JUDGE_RETRY_S) and not isinstance(error, BudgetSpent):
            self._unjudged[run.session] = tries + 1
            self._schedule(run.session, JUDGE_RETRY_S[tries])
            return
        self._unjudged.pop(run.session, None)
        words = (
            f"The goal stays, and I wait: nobody could judge it ({why}). Write to me, and I go on."
        )
        await self._notify(run, key, JUDGE + "_waits", words)

    # Progress, for the model and for people

    async def add_progress(self, state: State, found: Recalled | None) -> Recalled | None:
        """What memory found for this message, followed by the progress of deep work."""
        graph = self.graph(state.session)
        known = self._runs.get(state.session)
        run = replace(known) if known is not None else LongRun(state.session)
        fold_run(run, await self._ground.store.events(state.session, run.n))

        text = render_context(graph, run, self._config, left_out=is_compacted(state))
        if not text:
            return found
        label = graph_label(graph)
        if found is None:
            return Recalled((), Text(text, label))
        part = Text(f"{found.part.text}\n{text}", join_labels((found.part.label, label)))
        return Recalled(found.facts, part)

    def render_progress(self, session: str) -> str:
        """The progress of long work and the tasks, for people; '' when there is none."""
        lines = []
        run = self._runs.get(session)
        graph = self.graph(session)
        if run is not None:
            lines += render_long_work(make_long_work(run, graph, self._config))
        if list_tasks(graph):
            heading = mark_text("Tasks ({percent_number} %):")
            lines.append(heading.format(percent_number=percent_done(graph)))
            lines.append(render_tasks(graph, SHORT_LIST_LINES))
        return "\n".join(lines)

    async def get_long_work(self, session: str) -> LongWork | None:
        """The progress of a session, whoever drives it; None when it does not go on by itself."""
        run = self._runs.get(session)
        known = replace(run) if run is not None else None
        return await load_long_work(self._ground.store, session, self._config, known)
