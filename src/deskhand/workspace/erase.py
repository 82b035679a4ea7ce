"""Erases a session with those of its sub-agents, and the memories that were made of them alone."""

from __future__ import annotations

import msgspec

from ..memory.facts import existing_facts, facts_of_session, forget_session
from ..store.base import Store
from ..store.queries import subagents_of
from ..types.errors import Refused
from ..types.identity import SYSTEM, Principal, responsible_person

MAX_SUBAGENTS = 100_000


class Gone(msgspec.Struct, frozen=True):
    """How many events and memories were erased. `kept` memories stay, because they have another
    source or belong to somebody else."""

    events: int
    memories: int = 0
    kept: int = 0

    def __add__(self, other: Gone) -> Gone:
        return Gone(
            self.events + other.events, self.memories + other.memories, self.kept + other.kept
        )

    @property
    def summary(self) -> str:
        """A sentence on the memories, or '' when there were none."""
        went = (
            f"{_format_count(self.memories)} made of it alone "
            f"{'is' if self.memories == 1 else 'are'} "
            "gone with it."
        )
        stays = "stays: it has" if self.kept == 1 else "stay: they have"
        stay = f"{_format_count(self.kept)} {stays} another source, or another owner."
        return " ".join([*[went] * bool(self.memories), *[stay] * bool(self.kept)])


async def erase_session(
    store: Store, principal: Principal, session: str, at: float, *, memories: bool = True
) -> Gone:
    """Erase a session, as `Store.erase` does, and with it those of its sub-agents. With `memories`
    also what was remembered of it alone, in the same transaction: an owner erases the memories of
    everybody, anybody else only their own. Raises Refused."""
    if not await store.may_see(principal, session):
        raise Refused(f"you do not take part in {session!r}, so you cannot erase it")
    below = Gone(0)
    for own in dict.fromkeys(task.session for task in subagents_of(store, session, MAX_SUBAGENTS)):
        below += await erase_session(store, _with_sight(principal), own, at, memories=memories)

    known = await facts_of_session(store, session)
    sees_all = "owner" in principal.roles and principal.kind != "system"
    theirs = (
        forget_session(session, "" if sees_all else responsible_person(principal))
        if memories
        else ()
    )
    events = await store.erase(principal, session, at, theirs)
    left = await existing_facts(store, known)
    return below + Gone(events, len(known) - len(left), len(left))


def _with_sight(principal: Principal) -> Principal:
    """Whoever may erase a conversation may erase what worked for it, seen by them or not; of
    memories they erase what they always may."""
    if "owner" in principal.roles:
        return principal
    return Principal(SYSTEM.id, SYSTEM.roles, SYSTEM.kind, responsible_person(principal))


def _format_count(number: int) -> str:
    return f"{number:,} memor{'y' if number == 1 else 'ies'}"
