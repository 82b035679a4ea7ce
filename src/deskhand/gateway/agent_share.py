"""Which agents this process drives, where several processes share them.

Several agents may work in one folder, and what commands change there is seen by the process that
runs them. So an agent is driven by one process at a time, together with all that share its folder.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

import anyio
import msgspec

from ..store.base import Store, WorkerRow
from ..types.errors import DeskhandError, StoreUnavailable
from ..types.events import Recorded
from .dispatch import Dispatch
from .log_tail import LogTail

log = logging.getLogger(__name__)

LOOK_S = 1.0
"""So often it is looked at who drives what. A worker that ends or comes is noticed by then."""

Agents = frozenset[str]


class Workplace(Protocol):
    """What agents leave in their folders, and what runs there."""

    async def recover(self, agents: Agents) -> None:
        """Make up for what commands of these agents left that were killed with the process that
        drove them. Nothing is driven before that."""

    def is_busy(self, agents: Agents) -> bool:
        """Whether a process in the background runs for one of them."""


class AgentGroup(msgspec.Struct, frozen=True):
    """Agents that are driven by one process, as they work in one folder. `on_server`: by the one
    that leads."""

    agents: Agents
    on_server: bool = False


class AgentGroups(msgspec.Struct, frozen=True):
    """All agents. Without `server_drives` the process that leads has none but those of its own,
    while there are workers."""

    groups: Sequence[AgentGroup]
    server_drives: bool = True


class Handover(msgspec.Struct, frozen=True):
    """What a process may take over now (`free`), what it has (`own`), what it has and should not
    (`odd`), as the configuration has changed, and of how many shared groups it has too many."""

    free: tuple[Agents, ...] = ()
    own: tuple[Agents, ...] = ()
    shared: tuple[Agents, ...] = ()
    odd: Agents = frozenset()
    too_many: int = 0


def choose_handover(agents: AgentGroups, workers: Sequence[WorkerRow]) -> Handover:
    """The next move of the process that `is_self`: each is to have the same number of groups, or
    one less, beside those that only the server drives."""
    row = next((row for row in workers if row.is_self), None)
    if row is None:
        return Handover()
    taken = {agent for row in workers for agent in row.agents}
    held = frozenset(row.agents)
    pinned = [group.agents for group in agents.groups if group.on_server and row.leads]
    shared = [group.agents for group in agents.groups if not group.on_server]
    own = tuple(group for group in (*pinned, *shared) if group <= held)
    own_shared = tuple(group for group in shared if group <= held)

    drivers = [each for each in workers if agents.server_drives or not each.leads] or workers
    if row in drivers:
        counts = [sum(group <= set(each.agents) for group in shared) for each in drivers]
        share = len(shared) // len(drivers)
        # What is left over is taken one by one, by those who have least.
        most = max(share, len(own_shared) + (len(own_shared) == min(counts)))
        too_many = (len(own_shared) - min(counts)) // 2
    else:
        most = 0
        too_many = len(own_shared)
    free = [group for group in shared if not group & taken][: max(0, most - len(own_shared))]
    return Handover(
        free=(*(group for group in pinned if not group & taken), *free),
        own=own,
        shared=own_shared,
        odd=held.difference(*own),
        too_many=too_many,
    )


class AgentShare:
    """The agents whose conversations this process drives. `groups` gives all agents, those together
    that work in one folder. `publish` is told of what other workers write."""

    def __init__(
        self,
        store: Store,
        dispatch: Dispatch,
        workplace: Workplace,
        groups: Callable[[], AgentGroups],
        agent_of: Callable[[str], str],
        publish: Callable[[str, Recorded], None] | None = None,
    ) -> None:
        self._store = store
        self._dispatch = dispatch
        self._workplace = workplace
        self._groups = groups
        self._agent_of = agent_of
        self._tail = LogTail(store, publish, self.has, self.has_all) if publish else None
        self.held: Agents = frozenset()
        self._taken_up: Agents = frozenset()
        """Those of them in which everything that is owed was looked at."""

    def has(self, session: str) -> bool:
        """Whether the agent of this session is driven here."""
        return self._agent_of(session) in self.held

    def has_all(self) -> bool:
        """Whether every agent is driven here."""
        return all(group.agents <= self.held for group in self._groups().groups)

    async def run(self, *, beside_nobody: bool = False) -> None:
        """Take over agents that nobody drives, and leave some to workers that come, for ever.
        `beside_nobody`: this process has no agents while others work, as it drives only some of
        their conversations."""
        while True:
            try:
                await self.balance(beside_nobody=beside_nobody)
            except StoreUnavailable as error:
                log.warning("Cannot look which agents other workers drive: %s", error)
            await anyio.sleep(LOOK_S)

    async def run_tail(self) -> None:
        """Publish what other workers write, for ever."""
        if self._tail is not None:
            await self._tail.run()

    async def balance(self, *, beside_nobody: bool = False) -> None:
        """One look. Raises StoreUnavailable."""
        workers = await self._store.workers()
        handover = choose_handover(self._groups(), workers)
        leaves = self._dispatch.is_draining or (beside_nobody and len(workers) > 1)
        if leaves:
            handover = Handover(own=handover.own, shared=handover.own, too_many=len(handover.own))
        for group in handover.own if not leaves else ():
            await self._take_over(group)
        for group in handover.free:
            if await self._store.take(group):
                await self._take_over(group)
        if handover.odd:
            await self._give_back(handover.odd)
        too_many = handover.too_many
        for group in handover.shared:
            if too_many and await self._give_back(group):
                too_many -= 1

    async def _take_over(self, group: Agents) -> None:
        """Drive these agents, which are this process's now. Tried again at the next look where
        something fails, without the other agents waiting for it."""
        if group <= self._taken_up:
            return
        try:
            if not group <= self.held:
                await self._workplace.recover(group)
                if self._tail is not None:
                    await self._tail.catch_up()
                self.held |= group
                log.info("Driving %s.", ", ".join(sorted(group)))
            await self._dispatch.take_up(self._is_in(group))
            self._taken_up |= group
        except (DeskhandError, OSError) as error:
            log.warning("Cannot take over %s yet: %s", ", ".join(sorted(group)), error)

    async def _give_back(self, group: Agents) -> bool:
        """Leave these agents to another worker. False where something of them goes on here."""
        if self._workplace.is_busy(group) or self._dispatch.is_driving_any(self._is_in(group)):
            return False
        if self._tail is not None:
            await self._tail.catch_up()  # while what was written here still counts as our own
        if not self._dispatch.let_go(self._is_in(group)):
            return False
        self.held -= group
        self._taken_up -= group
        await self._store.give_back(group)
        log.info("Leaving %s to another worker.", ", ".join(sorted(group)))
        return True

    def _is_in(self, group: Agents) -> Callable[[str], bool]:
        return lambda session: self._agent_of(session) in group
