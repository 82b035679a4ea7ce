"""What people allowed or refused for good: to be seen and taken back."""

from __future__ import annotations

import msgspec

from ..store.base import Store
from ..types.commit import Change
from ..types.errors import Refused
from ..types.identity import Principal


class StandingGrant(msgspec.Struct, frozen=True):
    """`always` or `never` to exactly this call of this person, which `by` said at `at` (seconds
    since the epoch)."""

    id: str
    verdict: str
    agent: str
    tool: str
    arguments: str
    at: float
    by: str


async def list_grants(store: Store, principal: Principal) -> list[StandingGrant]:
    """Those that `principal` gave; an owner sees all. The oldest first."""
    rows = await store.query("call_grants_of", (int("owner" in principal.roles), principal.id))
    return [StandingGrant(*row) for row in rows]


async def revoke_grant(store: Store, principal: Principal, beginning: str) -> StandingGrant:
    """Take back the one whose id begins so: it is asked again. Raises Refused where that is not one
    of theirs."""
    found = [
        grant
        for grant in await list_grants(store, principal)
        if beginning and grant.id.startswith(beginning)
    ]
    if len(found) != 1:
        raise Refused(
            f"{beginning!r} {'begins more than one' if found else 'is none'} of what you "
            "allowed for good"
        )
    await store.change((Change("call_grant_drop", (found[0].id,)),))
    return found[0]
