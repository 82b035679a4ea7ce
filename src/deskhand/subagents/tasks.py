"""Carries the tasks of sub-agents from the call that gave them to their result: each is given once,
and its end told once, whatever dies in between."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import anyio
from msgspec.structs import replace

from ..agent.finished_turn import FinishedTurn, find_turn_end, is_received, sum_usage
from ..agent.fold import fold
from ..agent.state import State
from ..assembly.host import Host
from ..gateway.inject import InboundInjector
from ..gateway.progress_text import quote_name, render_progress
from ..policy.approval import may_approve, parse_choice
from ..policy.information_flow import withhold_private_parts
from ..store.queries import (
    asking_sessions,
    find_subagent,
    last_event_number_now,
    session_of_message,
    stop_all_below,
    tasks_of_subagent,
)
from ..store.retry import retry_until_written
from ..tools.base import Context
from ..types.commit import Change
from ..types.door import Progress
from ..types.errors import Refused, StaleSession, ToolError
from ..types.events import (
    ApprovalAsked,
    CallClosed,
    CallsHandedOver,
    CommandRun,
    Erased,
    MessageReceived,
    ModelReplied,
    Recorded,
    ToolFinished,
    TurnEnded,
)
from ..types.identity import (
    SYSTEM,
    Body,
    Command,
    Configure,
    Inbound,
    Principal,
    Result,
    Said,
    responsible_person,
)
from ..types.labels import LOCAL, Label, join_labels
from ..types.messages import Message, Text
from ..types.options import SessionOptions
from ..types.subagents import (
    SubagentTask,
    TaskState,
    describe_steps,
    id_of,
    is_subagent_session,
    subagent_session,
    task_name,
)
from ..types.turn import STOP_TURN_ONLY
from ..users.queries import roles_of
from . import queries
from .delegation import (
    NewTask,
    check_other_agent,
    make_follow_up,
    make_options,
    make_request,
    new_id,
)
from .messages import render_result, render_task
from .queries import TaskEnd, TaskName, TaskPlace

log = logging.getLogger(__name__)

TICK_S = 0.25
FORGET_S = 30 * 24 * 3600.0
EXPECTED_S = 600.0
"""So long it is looked for a task whose call is about to be committed. It comes within a moment, or
not at all."""
PAUSE_S = 30.0
"""How long a task waits that cannot go on: its conversation is full, or programs have opened too
many turns."""


class Subagents:
    """The sub-agents of this Deskhand. Only the process that leads calls `run`."""

    def __init__(self, host: Host, injector: InboundInjector) -> None:
        self._host = host
        self._store = host.store
        self._injector = injector
        self._publisher = host.publisher
        self.is_active = False
        self._expected: dict[str, float] = {}
        """The tasks that are about to be committed, and until when (monotonic) they are looked
        for."""
        self._rounds_again_at = 0.0
        self._again_at: dict[str, float] = {}
        """Until when (monotonic) a task that could not go on is left alone, by its key."""
        self._poke = anyio.Event()
        self._changed: set[str] = set()
        self._working: dict[str, SubagentTask] = {}
        """The task that each session works on, as far as it is known here."""

    async def find_asking(
        self, inbound: Inbound, principal: Principal, session: str
    ) -> tuple[str, str] | None:
        """See `gateway.door.AnswerRouter`. The words of somebody who may approve are the answer to
        the question to which they reply; or to the one that is open, where the session does nothing
        but wait for whoever asks it: else they may be meant for something that was said since."""
        body = inbound.body
        if not isinstance(body, Said) or body.request is not None or not may_approve(principal):
            return None
        if parse_choice(body.message.text) is None or is_subagent_session(session):
            return None
        asking = await asking_sessions(self._store, session)
        if inbound.reply_to:
            channel = inbound.address.channel
            replied = await session_of_message(self._store, channel, inbound.reply_to)
            asking = [each for each in asking if each[0] == replied != session]
            return asking[0] if len(asking) == 1 else None
        if len(asking) != 1 or not await self._waits_for(session, asking[0][0]):
            return None
        return asking[0] if asking[0][0] != session else None

    async def _waits_for(self, session: str, below: str) -> bool:
        """Whether a call of this session rests until that sub-agent hands back its result, be it
        through others."""
        while below != session:
            task = find_subagent(self._store, below)
            if task is None or not await self._is_waited(task):
                return False
            below = task.parent
        return True

    # Events

    listens_to = (
        CallsHandedOver,
        ToolFinished,
        CallClosed,
        CommandRun,
        MessageReceived,
        ModelReplied,
        ApprovalAsked,
        TurnEnded,
    )

    def on_event(self, recorded: Recorded) -> None:
        """See `gateway.publisher.Listener`. It is told of events only while there are sub-agents,
        so that no other turn costs more."""
        session = recorded.session
        match recorded.event:
            case (
                CallsHandedOver(to="subagent")
                | ToolFinished()
                | CommandRun(name="stop")
                | CallClosed(status="interrupted")
            ):
                self._poke.set()
            case MessageReceived() | TurnEnded() if session in self._working:
                self._changed.add(session)
                self._poke.set()
            case ModelReplied() | ApprovalAsked() if session in self._working:
                self._show(self._working[session], recorded.event)
            case _:
                pass

    def _show(self, task: SubagentTask, event: ModelReplied | ApprovalAsked) -> None:
        """Let those who follow the parent see what the sub-agent does; in chats in one line."""
        request = task.request
        if not request.waits:
            return
        n = last_event_number_now(self._store, task.parent)
        if isinstance(event, ModelReplied) and event.message.calls:
            who = quote_name(self._host.redact(task.title))
            step = f"{who}: {render_progress(event.message.calls)}"
            self._publisher.publish(task.parent, Progress("step", n, text=step))
        for line in describe_steps(event):
            text = self._host.redact(f"{task.title} \N{MIDDLE DOT} {line}\n")
            shown = Progress("tool_output", n, text=text, call_id=request.call_id)
            self._publisher.publish(task.parent, shown)

    def _listen(self, *, wanted: bool) -> None:
        if wanted and not self.is_active:
            self._publisher.join(self)
        elif self.is_active and not wanted:
            self._publisher.leave(self)
        self.is_active = wanted

    # The work

    async def run(self) -> None:
        """Give tasks, stop them and tell of their ends until cancelled."""
        await self._store.change((queries.forget_tasks(self._host.clock.now() - FORGET_S),))
        version = -1
        while True:
            self._poke = anyio.Event()
            if (now := self._store.version()) != version or self.is_active:
                version = now
                await self._look()
            with anyio.move_on_after(TICK_S if self._is_polling else None):
                await self._poke.wait()

    @property
    def _is_polling(self) -> bool:
        """Whether something may happen of which this process is not told."""
        return self.is_active or self._store.shares_work

    async def _look(self) -> None:
        """Do what is owed to each task now."""
        # Before the rows are read: one that comes in between is among them.
        for name, until in list(self._expected.items()):
            if until <= self._host.clock.monotonic() or await self._has_come(name):
                self._expected.pop(name, None)
        tasks = [task for task in await queries.open_tasks(self._store) if self._is_ours(task)]
        self._listen(wanted=bool(tasks or self._expected))

        changed = self._changed
        self._changed = set()
        before = self._working
        self._working = {task.session: task for task in tasks}
        for task in tasks:
            is_resting = task.state == "running" and not task.stop and task.session in before
            if not is_resting or task.session in changed:
                await self._try_to_carry_on(task)

    async def _has_come(self, name: str) -> bool:
        return any(task.name == name for task in await tasks_of_subagent(self._store, id_of(name)))

    def _is_ours(self, task: SubagentTask) -> bool:
        return self._host.dispatch.owns(task.parent)

    async def _try_to_carry_on(self, task: SubagentTask) -> None:
        """One that cannot go on now holds up no other; it is looked at again after a while."""
        now = self._host.clock.monotonic()
        if self._again_at.get(task.key, 0.0) > now:
            self._changed.add(task.session)
            return
        self._again_at.pop(task.key, None)
        try:
            await self._carry_on(task)
        except Refused as error:
            log.warning("The sub-agent %s cannot go on: %s", task.id, error)
            self._again_at[task.key] = now + PAUSE_S

    async def _carry_on(self, task: SubagentTask) -> None:
        """Take the next step of this task, if one can be taken."""
        if task.state == "wanted":
            task = await self._begin(task)
        elif task.state == "running":
            task = await self._see_end(task)
        if not task.is_live and not task.told:
            await self._tell(task)

    async def _begin(self, task: SubagentTask) -> SubagentTask:
        """Give the task, once those that it depends on, and those before it, are over."""
        if task.stop:
            return await self._end(task, TaskEnd("stopped", task.stop, LOCAL))
        earlier = await tasks_of_subagent(self._store, task.id)
        if any(each.state == "wanted" and each.round < task.round for each in earlier):
            return task
        needed: list[SubagentTask] = []
        for id_ in task.request.depends_on:
            needed += (await tasks_of_subagent(self._store, id_))[-1:]
        failed = [each for each in needed if each.state in ("error", "stopped")]
        if failed:
            why = f"it depends on {failed[0].id}, which ended so: {failed[0].said}"
            return await self._end(task, TaskEnd("error", why, failed[0].label))
        if any(each.is_live for each in needed):
            return task
        try:
            await self._give(task, needed)
        except (Refused, ToolError) as error:
            return await self._end(task, TaskEnd("error", str(error), LOCAL))
        return replace(task, state="running")

    async def _give(self, task: SubagentTask, needed: Sequence[SubagentTask]) -> None:
        """Put the task to the sub-agent, in one transaction with the row that says so. Raises
        Refused and ToolError, where it may not be given any more."""
        principal = await self.principal_of(task)
        agent = task.request.agents[-1]
        parents = task.parent.partition("/")[0]
        if agent != parents:
            check_other_agent(agent, parents, principal, self._host.settings())
        past = await self._store.events(task.session)
        if any(isinstance(recorded.event, Erased) for recorded in past):
            raise ToolError("its conversation was erased")

        # What holds for the parent is written by Deskhand itself, whoever has set it there.
        options = Configure(replace(await self._options_of(task), title=task.title))
        ours = Principal(SYSTEM.id, principal.roles, SYSTEM.kind, principal.on_behalf_of)
        await self._hand_in(task, "options", options, ours)
        has_begun = any(isinstance(recorded.event, MessageReceived) for recorded in past)
        said = Said(Message("user", render_task(task, needed, heading=not has_begun)))
        await self._hand_in(task, "", said, principal, queries.mark_given(task))
        self._wake(task.session)

    async def _options_of(self, task: SubagentTask) -> SessionOptions:
        """How it is to work: a teammate as the team works now, and not when it was written to."""
        request = task.request
        if not request.teammate:
            return request.options
        lead = fold(State(task.parent), await self._store.history(task.parent))
        models = request.agents[-1] == task.parent.partition("/")[0]
        return make_options(lead.options, request, models=models)

    async def _hand_in(
        self, task: SubagentTask, what: str, body: Body, principal: Principal, *rows: Change
    ) -> None:
        """Put this to the sub-agent, once for each task and `what`."""
        inbound = Inbound(
            f"{task.key}:{what}" if what else task.key,
            task.place,
            principal.id,
            self._host.clock.now(),
            body,
            task.session,
        )
        await retry_until_written(partial(self._injector.hand_in, inbound, principal, rows))

    async def _see_end(self, task: SubagentTask) -> SubagentTask:
        """See whether its turn has ended, and stop it where somebody wants that."""
        past = await self._store.events(task.session)
        found = find_turn_end(past, task.key)
        if found is not None:
            return await self._end_with(task, found, past)
        if task.stop and is_received(past, task.key):
            stop = Command("stop", STOP_TURN_ONLY)
            await self._hand_in(task, "stop", stop, await self.principal_of(task))
            self._wake(task.session, cut=True)
        return task

    async def _end_with(
        self, task: SubagentTask, found: FinishedTurn, past: Sequence[Recorded]
    ) -> SubagentTask:
        reason = found.event.reason
        state: TaskState = "error" if found.event.is_unanswered else "done"
        said = found.answer
        if reason == "stopped":
            state = "stopped"
            said = task.stop or "somebody stopped it"
        usage = sum_usage(past, task.key, found.n)
        end = TaskEnd(state, said, await self._label_of(task), usage)
        # What was begun since then is for a further task.
        ended_at = next(recorded.at for recorded in past if recorded.n == found.n)
        below = stop_all_below(task.session, "whoever gave the task has ended", ended_at)
        return await self._end(task, end, below)

    async def _end(self, task: SubagentTask, end: TaskEnd, *rows: Change) -> SubagentTask:
        await self._write(queries.mark_ended(task, end, self._host.clock.now()), *rows)
        return replace(task, state=end.state, said=end.said, label=end.label)

    async def _label_of(self, task: SubagentTask) -> Label:
        """The label of all that the sub-agent has read."""
        history = await self._store.history(task.session)
        read = fold(State(task.session), history).label
        return join_labels((LOCAL, task.request.label, read))

    async def _tell(self, task: SubagentTask) -> None:
        """Hand the result back: once, also across crashes, and not where nobody is to hear of it
        any more. One that opens a turn waits for a later look when programs have begun too many
        rounds."""
        request = task.request
        is_waited = await self._is_waited(task)
        if not is_waited and not await self._may_open_turn(task):
            return
        principal = await self.principal_of(task)
        part = Text(render_result(task, heading=not is_waited), task.label)
        inbound = Inbound(
            external_id=f"{task.key}:end",
            address=request.address,
            sender=principal.id,
            at=self._host.clock.now(),
            body=Result(task.name, withhold_private_parts(request.audience, (part,))),
            session=task.parent,
        )
        changes = (replace(queries.mark_told(task), must=True),)
        with suppress(StaleSession):  # somebody has stopped it since it was read
            await retry_until_written(partial(self._injector.hand_in, inbound, principal, changes))
        self._wake(task.parent)

    async def _may_open_turn(self, task: SubagentTask) -> bool:
        """Whether one more round may begin now; when not, that is asked again after a while."""
        now = self._host.clock.monotonic()
        if now < self._rounds_again_at:
            return False
        agent = task.parent.partition("/")[0]
        if await self._host.rounds.begin_round(f"sub-agents of {agent}"):
            self._rounds_again_at = now + PAUSE_S
            return False
        return True

    async def _is_waited(self, task: SubagentTask) -> bool:
        """Whether a call of the parent rests until this is over."""
        if not task.request.waits:
            return False
        state = fold(State(task.parent), await self._store.history(task.parent))
        handed = (call.handed for call in state.calls.values())
        return any(each is not None and each.id == task.name for each in handed)

    async def principal_of(self, task: SubagentTask) -> Principal:
        """Whoever acts in this task: for its person, with the rank that they still have."""
        given = task.request.principal
        person = Principal(responsible_person(given), given.roles)
        who = await self._host.with_current_roles(person)
        roles = await roles_of(self._store, who.id)
        if roles is not None:
            who = replace(who, roles=roles)
        return Principal(f"agent:{task.parent.partition('/')[0]}", who.roles, "agent", who.id)

    def _wake(self, session: str, *, cut: bool = False) -> None:
        self._host.dispatch.adopt(session, cut=cut)

    async def _write(self, *changes: Change) -> None:
        await retry_until_written(partial(self._store.change, changes))

    # For tools

    async def plan_task(self, wish: NewTask, context: Context) -> tuple[str, Change]:
        """The name under which its result comes back, and the row to be committed with the call:
        with that the task is given, once. Raises ToolError."""
        settings = self._host.settings()
        parent = find_subagent(self._store, context.session)
        agent, request = make_request(wish, context, settings, parent)
        for other in wish.depends_on:
            await self.find_tasks(other, context.session)
        await self.check_room(context)

        id_ = new_id(context)
        own = subagent_session(agent, id_)
        place = TaskPlace(context.session, own)
        row = queries.add_task(TaskName(id_), place, request, context.clock.now())
        return id_, self._expect(id_, row)

    async def plan_follow_up(self, id_: str, text: str, context: Context) -> tuple[str, Change]:
        """The same for a further task of this sub-agent; one that works hears it at once. Raises
        ToolError."""
        tasks = await self.find_tasks(id_, context.session)
        last = tasks[-1]
        await self.check_room(context)
        parent = find_subagent(self._store, context.session)
        request = make_follow_up(text, context, self._host.settings(), last.request, parent)
        key = TaskName(id_, last.round + 1)
        name = task_name(key.id, key.round)
        place = TaskPlace(last.parent, last.session)
        row = queries.add_task(key, place, request, context.clock.now())
        return name, self._expect(name, row)

    async def find_tasks(self, id_: str, session: str) -> list[SubagentTask]:
        """The tasks of a sub-agent of this session, at least one. Raises ToolError."""
        tasks = await tasks_of_subagent(self._store, id_)
        if not tasks or tasks[0].parent != session:
            raise ToolError(f"there is no sub-agent {id_!r} of this conversation")
        return tasks

    async def check_room(self, context: Context) -> None:
        """Raises ToolError where no more may work."""
        config = self._host.settings().config.subagents
        live = await queries.count_live(self._store, context.session)
        if live.session >= config.per_session:
            raise ToolError(
                f"{live.session} sub-agents of this conversation work already, and no more may: "
                "wait for one, or cancel it"
            )
        if live.all >= config.at_once:
            raise ToolError(f"{live.all} sub-agents work already, and no more may: wait for one")

    def _expect(self, name: str, row: Change) -> Change:
        """The call is about to be committed: then the task of this name is to be given."""
        self.expect_task(name)
        return row

    def expect_task(self, name: str) -> None:
        """The task of this name is in the store, or is about to be."""
        self._expected[name] = self._host.clock.monotonic() + EXPECTED_S
        self._poke.set()
        self._listen(wanted=True)
