"""Takes back what a person allowed or refused for good."""

from __future__ import annotations

from ..store.base import Store
from ..store.queries import StandingGrant, drop_standing_grant, standing_grants
from ..types.errors import Refused
from ..types.identity import Principal


async def revoke_grant(store: Store, principal: Principal, beginning: str) -> StandingGrant:
    """Take back the grant whose id begins with `beginning`, so that the call is asked about again.
    Raises Refused unless that is exactly one that `principal` may see."""
    found = [
        grant
        for grant in await standing_grants(store, principal)
        if beginning and grant.id.startswith(beginning)
    ]
    if len(found) != 1:
        raise Refused(
            f"{beginning!r} {'matches more than one' if found else 'is not one'} of your "
            "standing answers"
        )
    await store.change((drop_standing_grant(found[0].id),))
    return found[0]
