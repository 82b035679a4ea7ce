"""What a person missed: turns that failed, and those that ended while they were not waiting."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal

import msgspec

from ..store.base import Store
from ..store.queries import TurnOpening, find_last_answer, find_turn_opening
from ..types.events import Recorded, TurnEnded
from ..types.identity import Principal

LONG_S = 60.0
"""Who began a turn that takes as long may have gone away."""
KEPT_S = 14 * 24 * 3600.0
"""What is older is in its conversation alone."""
BATCH = 60

StartedBy = Literal["you", "job", "agent"]


class MissedTurn(msgspec.Struct, frozen=True):
    """A turn that its person did not see end. `by` is who began it: they, a job, or an agent;
    `took_s` is how long it took."""

    ended: Recorded
    event: TurnEnded
    by: StartedBy
    took_s: float

    @property
    def has_failed(self) -> bool:
        return self.event.is_unanswered


async def iter_missed(
    store: Store, principal: Principal, now: float, before: int, after: int = 0
) -> AsyncIterator[MissedTurn]:
    """The turns that this person missed and that ended with an event between these two, the latest
    first. Raises StoreUnavailable."""
    while ended := await store.latest_events(principal, ("turn_ended",), BATCH, before):
        for recorded in reversed(ended):
            if recorded.seq <= after or recorded.at < now - KEPT_S:
                return
            missed = await _find_missed(store, principal, recorded)
            if missed is not None:
                yield missed
        before = ended[0].seq


async def read_outcome(store: Store, missed: MissedTurn) -> str:
    """The answer, or why there was none, on one line."""
    ended = missed.ended
    text = missed.event.said or await find_last_answer(store, ended.session, ended.n)
    return " ".join(text.split())


async def _find_missed(store: Store, principal: Principal, recorded: Recorded) -> MissedTurn | None:
    """None where its person saw it end, or it is not theirs."""
    event = recorded.event
    if not isinstance(event, TurnEnded) or event.reason == "stopped":
        return None
    opening = await find_turn_opening(store, recorded.session, recorded.n)
    by = _started_by(principal, opening)
    if opening is None or by is None:
        return None
    took_s = max(0.0, recorded.at - opening.at)
    if by == "you" and not event.is_unanswered and took_s < LONG_S:
        return None
    return MissedTurn(recorded, event, by, took_s)


def _started_by(person: Principal, opening: TurnOpening | None) -> StartedBy | None:
    """Who began it, as this person sees it; None where it was begun by and for somebody else."""
    if opening is None:
        return None
    who = opening.principal
    if who.kind == "person":
        return "you" if who.id == person.id else None
    on_behalf_of = who.on_behalf_of
    is_theirs = on_behalf_of == person.id if on_behalf_of else "owner" in person.roles
    if not is_theirs:
        return None
    return "job" if who.kind == "clock" else "agent"
