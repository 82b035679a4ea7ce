"""Agents are shared out: each is driven by one worker, and all workers have about as many."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from deskhand.gateway.agent_share import (
    AgentGroup,
    AgentGroups,
    AgentShare,
    Handover,
    choose_handover,
)
from deskhand.store.base import WorkerRow
from deskhand.types.errors import StoreBusy, ToolError


def group(*agents: str, on_server: bool = False) -> AgentGroup:
    return AgentGroup(frozenset(agents), on_server)


def agents(*groups: AgentGroup, server_drives: bool = True) -> AgentGroups:
    return AgentGroups(groups, server_drives)


def row(name: str, *agents: str, leads: bool = False, is_self: bool = False) -> WorkerRow:
    return WorkerRow(name, agents, leads, is_self)


ANN, BEN, CAL = group("ann"), group("ben"), group("cal")


def test_who_is_alone_takes_all() -> None:
    assert choose_handover(agents(ANN, BEN), [row("me", is_self=True)]).free == (
        ANN.agents,
        BEN.agents,
    )


def test_who_has_its_share_takes_no_more() -> None:
    workers = [row("me", "ann", is_self=True), row("other")]
    assert choose_handover(agents(ANN, BEN), workers) == Handover(
        own=(ANN.agents,), shared=(ANN.agents,)
    )


def test_who_has_too_many_leaves_some() -> None:
    workers = [row("me", "ann", "ben", "cal", is_self=True), row("other")]
    assert choose_handover(agents(ANN, BEN, CAL), workers).too_many == 1


def test_agents_of_one_folder_stay_together() -> None:
    pair = group("ann", "ben")
    assert choose_handover(agents(pair), [row("me", is_self=True)]).free == (pair.agents,)
    half = [row("me", is_self=True), row("other", "ann")]
    assert choose_handover(agents(pair), half).free == ()
    assert choose_handover(agents(pair), [row("me", "ann", is_self=True)]).odd == {"ann"}


def test_what_is_the_servers_no_worker_takes() -> None:
    own = group("ann", on_server=True)
    assert choose_handover(agents(own, BEN), [row("me", is_self=True)]).free == (BEN.agents,)
    held = choose_handover(agents(own), [row("me", "ann", is_self=True), row("server", leads=True)])
    assert held.odd == {"ann"}
    leads = choose_handover(
        agents(own, BEN), [row("me", leads=True, is_self=True), row("other", "ben")]
    )
    assert leads.free == (own.agents,)


def test_a_server_that_only_serves() -> None:
    """It leaves its agents to the workers, but for those that only it may drive, and has them again
    where no worker is left."""
    own = group("dan", on_server=True)
    server = row("server", "ann", "ben", "dan", leads=True, is_self=True)
    beside = choose_handover(agents(ANN, BEN, own, server_drives=False), [server, row("one")])
    assert beside.free == () and beside.too_many == 2 and own.agents in beside.own
    alone = row("server", "dan", leads=True, is_self=True)
    assert choose_handover(agents(ANN, BEN, own, server_drives=False), [alone]).free == (
        ANN.agents,
        BEN.agents,
    )


def test_who_was_taken_for_dead_does_nothing() -> None:
    assert choose_handover(agents(ANN), [row("other")]) == Handover()


class Trouble:
    """A store and a workplace of which each fails once."""

    shares_work = True

    def __init__(self) -> None:
        self.fails = {"recover": ToolError("the folder is away"), "take up": StoreBusy("away")}
        self.agents: tuple[str, ...] = ()
        self.taken_up = list[str]()
        self.is_draining = False

    def _fail(self, what: str) -> None:
        if error := self.fails.pop(what, None):
            raise error

    async def workers(self) -> list[WorkerRow]:
        return [row("me", *self.agents, is_self=True)]

    async def take(self, agents: Collection[str]) -> bool:
        self.agents = (*self.agents, *agents)
        return True

    async def recover(self, agents: Collection[str]) -> None:
        if "ann" in agents:
            self._fail("recover")

    async def take_up(self, which: Callable[[str], bool]) -> None:
        self._fail("take up")
        self.taken_up += [name for name in ("ann/x", "ben/x") if which(name)]


async def test_what_fails_is_tried_again_and_holds_up_nobody_else() -> None:
    world: Any = Trouble()
    share = AgentShare(
        world, world, world, lambda: agents(ANN, BEN), lambda name: name.partition("/")[0]
    )
    await share.balance()
    assert share.held == {"ben"} and world.taken_up == [], "ann's folder, and ben's sessions"
    await share.balance()
    assert share.held == {"ann", "ben"}
    assert sorted(world.taken_up) == ["ann/x", "ben/x"]
    await share.balance()
    assert len(world.taken_up) == 2, "once each"


def step(
    groups: Sequence[AgentGroup], workers: list[WorkerRow], at: int, *, server_drives: bool
) -> None:
    """One look of worker `at`."""
    seen = [replace(each, is_self=n == at) for n, each in enumerate(workers)]
    handover = choose_handover(AgentGroups(groups, server_drives), seen)
    held = set(workers[at].agents) - handover.odd
    for left in handover.shared[: handover.too_many]:
        held -= left
    for new in handover.free:
        held |= new
    workers[at] = replace(workers[at], agents=tuple(sorted(held)))


@given(st.data())
def test_it_ends_with_everything_driven_once_and_shared_out_evenly(data: st.DataObject) -> None:
    """Whoever looks when, and wherever the agents were before."""
    count = data.draw(st.integers(1, 6))
    names = [f"a{number}" for number in range(data.draw(st.integers(1, 8)))]
    groups = [group(name, on_server=data.draw(st.booleans())) for name in names]
    workers = [row(f"w{number}", leads=number == 0) for number in range(count)]
    server_drives = data.draw(st.booleans())
    for name in names:
        at = data.draw(st.integers(-1, count - 1))
        if at >= 0:
            workers[at] = replace(workers[at], agents=(*workers[at].agents, name))

    order = data.draw(st.lists(st.integers(0, count - 1), max_size=20))
    for at in order:
        step(groups, workers, at, server_drives=server_drives)
    for _ in range(20):
        for at in range(count):
            step(groups, workers, at, server_drives=server_drives)

    assert sorted(agent for each in workers for agent in each.agents) == sorted(names)
    pinned = {agent for each in groups if each.on_server for agent in each.agents}
    assert pinned <= set(workers[0].agents)
    shared = [len(set(each.agents) - pinned) for each in workers]
    if not server_drives and count > 1:
        assert shared.pop(0) == 0
    assert max(shared) - min(shared) <= 1
