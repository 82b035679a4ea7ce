"""Takes back what a person allowed or refused for good."""

from __future__ import annotations

from ..store.base import Store
from ..types.errors import Refused
from ..types.identity import Principal
from .queries import StandingGrant, drop_grant, list_grants


async def revoke_grant(store: Store, principal: Principal, beginning: str) -> StandingGrant:
    """Take back the grant whose id begins with `beginning`, so that the call is asked about again.
    Raises Refused unless that is exactly one that `principal` may see."""
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
    await store.change((drop_grant(found[0].id),))
    return found[0]
