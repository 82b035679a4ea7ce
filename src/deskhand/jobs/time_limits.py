"""How long a run may take, and what happens to one that takes longer or waits for a person."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..agent.finished_turn import is_received
from ..agent.fold import fold
from ..agent.state import State
from ..assembly.host import Host
from ..gateway.inject import InboundInjector
from ..types.commit import Change
from ..types.identity import Command, Inbound, Principal
from ..types.marked_texts import mark_text
from ..types.turn import STOP_TURN_ONLY
from .ledger import RunEntry, open_ask
from .target import JOBS_CHANNEL, address_of

STOP_GRACE_S = 60.0


class LiveRun(msgspec.Struct, kw_only=True):
    """A run that this process looks after. Times are on the monotonic clock: at `deadline` it has
    taken too long; `turn_began_at` is None when this process did not see its turn begin."""

    entry: RunEntry
    principal: Principal
    deadline: float
    stopping: bool = False
    turn_began_at: float | None = None
    alerted_asks: set[str] = msgspec.field(default_factory=set)

    @property
    def has_turn(self) -> bool:
        """True while its conversation goes on. Hooks and chores have time limits of their own."""
        return self.entry.run.state == "running" and self.entry.job.kind == "prompt"


async def seconds_left(host: Host, live: LiveRun) -> float:
    """How many seconds more the run may take; 0 when its time is over.

    A run that waits for a person's approval is given more time: the approval has an end of its own.
    So is one that waits behind another turn in the same chat: its own turn has not begun.
    """
    entry = live.entry
    session = entry.run.session
    if not await _is_turn_open(host, session):
        return 0.0
    if await open_ask(host.store, session):
        return STOP_GRACE_S
    if live.turn_began_at is None:
        log = await host.store.events(session, entry.after_n)
        if not is_received(log, entry.key):
            return STOP_GRACE_S
    if live.stopping or live.turn_began_at is None:
        # An earlier process began the turn. The whole time limit has passed in this one.
        return 0.0
    return max(0.0, live.turn_began_at + entry.job.timeout_s - host.clock.monotonic())


async def _is_turn_open(host: Host, session: str) -> bool:
    """Whether a turn goes on there; where another worker drives it, its log tells."""
    if host.dispatch.may_drive(session):
        return host.dispatch.turn(session) is not None
    return fold(State(session), await host.store.history(session)).turn is not None


async def stop_turn(host: Host, injector: InboundInjector, live: LiveRun) -> None:
    """Stop the turn of this run, as a person would."""
    entry = live.entry
    session = entry.run.session
    stop = Inbound(
        f"{entry.key}:stop",
        address_of(entry.job),
        live.principal.id,
        host.clock.now(),
        Command("stop", STOP_TURN_ONLY),
        session,
    )
    await injector.hand_in(stop, live.principal)
    if host.dispatch.owns(session):
        host.dispatch.wake(session, cut=True)


async def alert_needs_approval(host: Host, live: LiveRun) -> Sequence[Change]:
    """Tell owners that a run waits for an approval, once for each, where nobody reads its
    conversation. Returns what must be committed for that."""
    if address_of(live.entry.job).channel != JOBS_CHANNEL:
        return ()
    ask_id = await open_ask(host.store, live.entry.run.session)
    if not ask_id or ask_id in live.alerted_asks:
        return ()
    live.alerted_asks.add(ask_id)
    text = mark_text(
        "The job {job} waits for your yes. See the page, or `deskhand approvals`."
    ).format(job=repr(live.entry.job.name))
    return await host.alerts.alert_owners(f"ask:{ask_id}", text)
