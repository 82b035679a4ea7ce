"""Keeps teams going: gives what teammates write to each other, lets those that are idle take tasks
of the list, and shuts down those that have had nothing to do for long."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import anyio
import msgspec
from msgspec.structs import replace

from ..assembly.host import Host
from ..gateway.inject import InboundInjector
from ..policy.information_flow import withhold_private_parts
from ..store.queries import shut_down_teammate, tasks_of_subagent, teammates_of
from ..store.retry import retry_until_written
from ..subagents.delegation import make_title
from ..subagents.queries import TaskName, TaskPlace, add_task, count_live
from ..subagents.tasks import Subagents
from ..tools.queries import change_task, load_tasks
from ..types.commit import Change
from ..types.errors import Refused, StaleSession
from ..types.identity import Inbound, Result
from ..types.labels import LOCAL, join_labels
from ..types.messages import Text
from ..types.subagents import CHANNEL, SubagentTask, TaskRequest, id_of, task_name
from ..types.tasks import Task
from ..types.teams import LEAD, Mail, Teammate
from . import queries
from .leases import claim, find_claimable, move_lease, render_claimed, settle
from .mail import render_mail

log = logging.getLogger(__name__)

TICK_S = 0.25
LOOK_S = 1.0
"""So often it is looked whether anything has been written, and at what nobody has written."""
PAUSE_S = 30.0
"""So long a team waits when programs have begun too many turns."""
FORGET_S = 30 * 24 * 3600.0
EXPECTED_S = 600.0
"""So long it is looked for what a call is about to commit."""


class Further(msgspec.Struct, frozen=True):
    """A further task of a teammate, in a list under this title. `told`: nobody is to hear of its
    end. `may_change`: the lead has said yes to its plan."""

    title: str
    told: bool = False
    may_change: bool = False


class Teams:
    """The teams of this Deskhand. Only the process that leads calls `run`."""

    def __init__(self, host: Host, injector: InboundInjector, subagents: Subagents) -> None:
        self._host = host
        self._store = host.store
        self._injector = injector
        self._subagents = subagents
        self._poke = anyio.Event()
        self._look_until = 0.0
        """Until when (monotonic) it is looked even though there is no team."""
        self._again_at = 0.0

    def expect(self) -> None:
        """A call is about to be committed that begins a team, or writes to one."""
        self._look_until = self._host.clock.monotonic() + EXPECTED_S
        self._poke.set()

    async def run(self) -> None:
        """Give mail and tasks until cancelled."""
        await self._store.change((queries.forget_mail(self._host.clock.now() - FORGET_S),))
        clock = self._host.clock
        version = -1
        look_at = 0.0
        has_team = True
        while True:
            self._poke = anyio.Event()
            now = clock.monotonic()
            is_active = has_team or self._look_until > now or self._store.shares_work
            if is_active and ((seen := self._store.version()) != version or now >= look_at):
                version = seen
                look_at = now + LOOK_S
                has_team = await self._look()
            with anyio.move_on_after(TICK_S if is_active else None):
                await self._poke.wait()

    async def _look(self) -> bool:
        """Do what can be done now. Returns whether there is a team at all."""
        owns = self._host.dispatch.owns
        team = [each for each in await queries.open_teammates(self._store) if owns(each.team)]
        mail = [each for each in await queries.wanted_mail(self._store) if owns(each.team)]
        for each in mail:
            await self._try(partial(self._give, each))
        for name in dict.fromkeys(mate.team for mate in team):
            await self._try(partial(self._settle, name))
        written_to = {(each.team, each.recipient) for each in mail}
        for mate in team:
            if mate.state == "leaving":
                await self._try(partial(self._see_off, mate))
            elif (mate.team, mate.name) not in written_to:
                await self._try(partial(self._look_after, mate))
        return bool(team or mail)

    async def _try(self, step: Callable[[], Awaitable[None]]) -> None:
        """What was changed meanwhile is looked at again at the next look."""
        try:
            await step()
        except StaleSession:
            self._poke.set()
        except Refused as error:
            log.warning("A team cannot go on: %s", error)
            self._again_at = self._host.clock.monotonic() + PAUSE_S

    # Mail

    async def _give(self, mail: Mail) -> None:
        """Hand over what somebody has written, once."""
        members = {each.name: each for each in teammates_of(self._store, mail.team)}
        sender = members.get(mail.sender)
        left = mail.sender != LEAD and (sender is None or sender.state != "active")
        if left and mail.kind != "shutdown_response":
            await self._write(queries.drop_mail(mail))
        elif mail.recipient == LEAD:
            await self._give_to_lead(mail, members)
        else:
            await self._give_to_teammate(mail, members.get(mail.recipient))

    async def _give_to_lead(self, mail: Mail, members: dict[str, Teammate]) -> None:
        sender = members.get(mail.sender)
        tasks = await tasks_of_subagent(self._store, sender.id) if sender is not None else []
        if not tasks:
            await self._write(queries.drop_mail(mail))
            return
        if not await self._may_begin(mail.team):
            return
        request = tasks[-1].request
        part = Text(render_mail(mail), mail.label)
        principal = await self._subagents.principal_of(tasks[-1])
        inbound = Inbound(
            external_id=f"{CHANNEL}:mail:{mail.id}",
            address=request.address,
            sender=principal.id,
            at=self._host.clock.now(),
            body=Result(mail.id, withhold_private_parts(request.audience, (part,))),
            session=mail.team,
        )
        rows = (queries.mark_given(mail),)
        await retry_until_written(partial(self._injector.hand_in, inbound, principal, rows))
        self._host.dispatch.adopt(mail.team)

    async def _give_to_teammate(self, mail: Mail, mate: Teammate | None) -> None:
        if mate is None or mate.state != "active" or mail.request is None:
            await self._write(queries.drop_mail(mail))
            return
        if not await self._may_begin(mail.team):
            return
        request = replace(mail.request, task=render_mail(mail), label=mail.label)
        rows = [queries.mark_given(mail)]
        may_change = False
        if mail.kind == "plan_approval_response":
            asked = await queries.find_mail(self._store, mail.team, mail.about)
            may_change = asked is not None and asked.answer == "approved"
            rows += await self._keep_leases(mate)
        title = mail.text or mail.kind.replace("_", " ")
        told = mail.sender != LEAD or mail.kind == "shutdown_request"
        await self._begin(mate, request, rows, Further(title, told, may_change))

    async def _keep_leases(self, mate: Teammate) -> list[Change]:
        """It goes on with what it had when it showed its plan."""
        last = (await tasks_of_subagent(self._store, mate.id))[-1]
        lease = task_name(mate.id, last.round + 1)
        now = self._host.clock.now()
        return [
            change_task(mate.team, task, move_lease(task, lease), now)
            for task in (await load_tasks(self._store, mate.team)).values()
            if task.lease and id_of(task.lease) == mate.id
        ]

    # Tasks

    async def _see_off(self, mate: Teammate) -> None:
        """It has shut down: what it held is free, once it has ended."""
        tasks = await tasks_of_subagent(self._store, mate.id)
        graph = await load_tasks(self._store, mate.team)
        holds = any(task.lease and id_of(task.lease) == mate.id for task in graph.values())
        if not holds and not any(task.is_live for task in tasks):
            await self._write(queries.mark_left(mate))

    async def _look_after(self, mate: Teammate) -> None:
        """Give it something to do; shut it down where there was nothing for long."""
        tasks = await tasks_of_subagent(self._store, mate.id)
        if not tasks:
            await self._write(shut_down_teammate(mate))
            return
        if any(task.is_live for task in tasks):
            if mate.idle_since is not None:
                await self._write(queries.set_idle_since(mate, None))
            return
        if mate.waits or await self._claim(mate, tasks[-1]):
            return
        now = self._host.clock.now()
        idle_s = self._host.settings().config.subagents.teammate_idle_s
        if mate.idle_since is None:
            await self._write(queries.set_idle_since(mate, now))
        elif now - mate.idle_since >= idle_s:
            await self._write(queries.retire(mate))

    async def _settle(self, team: str) -> None:
        """What was worked on, and is worked on no more, is done or free again; but for what those
        have who wait for a word on their plan."""
        graph = await load_tasks(self._store, team)
        for task in graph.values():
            if not task.lease:
                continue
            works = await tasks_of_subagent(self._store, id_of(task.lease))
            work = next((each for each in works if each.name == task.lease), None)
            if work is not None and work.is_live:
                continue
            if not await self._awaits_word(team, id_of(task.lease)):
                await self._put(team, task, settle(graph, task, work))

    async def _awaits_word(self, team: str, id_: str) -> bool:
        """Whether this sub-agent has shown a plan and has not been given the answer. To be asked
        when its work is over: a plan is shown before that. What is answered is on its way in the
        same commit, so that is read last."""
        mate = next((each for each in teammates_of(self._store, team) if each.id == id_), None)
        if mate is None or mate.state != "active":
            return False
        if mate.waits:
            return True
        mail = await queries.wanted_mail(self._store)
        return any(
            each.kind == "plan_approval_response"
            and (each.team, each.recipient) == (team, mate.name)
            for each in mail
        )

    async def _claim(self, mate: Teammate, last: SubagentTask) -> bool:
        """Have it take a task of the list. Returns whether there was one. The lease and the task
        of the sub-agent are one transaction."""
        graph = await load_tasks(self._store, mate.team)
        task = find_claimable(graph, mate.name)
        if task is None or not await self._may_begin(mate.team):
            return False
        claimed = claim(task, mate.name, task_name(mate.id, last.round + 1))
        request = replace(
            last.request,
            task=render_claimed(task),
            label=join_labels((LOCAL, task.label)),
            call_id="",
            waits=False,
            depends_on=(),
        )
        row = change_task(mate.team, task, claimed, self._host.clock.now())
        await self._begin(mate, request, [row], Further(task.title))
        return True

    async def _put(self, team: str, before: Task, after: Task) -> None:
        await self._write(change_task(team, before, after, self._host.clock.now()))

    async def _begin(
        self, mate: Teammate, request: TaskRequest, rows: Sequence[Change], further: Further
    ) -> None:
        """Give this teammate a further task, with these rows."""
        last = (await tasks_of_subagent(self._store, mate.id))[-1]
        path = (*request.path[:-1], make_title(further.title, mate.name))
        plans = last.request.plans and not further.may_change
        row = add_task(
            TaskName(mate.id, last.round + 1),
            TaskPlace(last.parent, last.session),
            replace(request, path=path, plans=plans),
            self._host.clock.now(),
            told=further.told,
        )
        # Where somebody else has begun that task meanwhile, nothing of this is written.
        await self._write(*rows, queries.set_idle_since(mate, None), replace(row, must=True))
        self._subagents.expect_task(task_name(mate.id, last.round + 1))

    async def _may_begin(self, team: str) -> bool:
        """Whether one more turn may begin now; when not, that is asked again after a while."""
        now = self._host.clock.monotonic()
        if now < self._again_at:
            return False
        config = self._host.settings().config.subagents
        live = await count_live(self._store, team)
        if live.session >= config.per_session or live.all >= config.at_once:
            return False
        if await self._host.rounds.begin_round(f"the team of {team.partition('/')[0]}"):
            self._again_at = now + PAUSE_S
            return False
        return True

    async def _write(self, *changes: Change) -> None:
        await retry_until_written(partial(self._store.change, changes))
