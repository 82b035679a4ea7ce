"""What no person said: a due job, a goal that is not reached, a restart. It comes in as everything
else does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from ..secrets.inbound_redaction import redact_body
from ..store.base import Accepted, Store
from ..types.commit import Change
from ..types.identity import Inbound, Principal
from .dispatch import Dispatch


class InboundInjector(msgspec.Struct, frozen=True):
    """Hands in for conversations. Whoever calls it has seen to it that it may. `redact` takes
    secrets out."""

    store: Store
    dispatch: Dispatch
    redact: Callable[[str], str] = str

    async def hand_in(
        self, inbound: Inbound, principal: Principal, changes: Sequence[Change] = ()
    ) -> Accepted:
        """Store it for its session, once by its `external_id`, in one transaction with these
        `changes`, and wake whoever drives that. Raises StoreUnavailable, and Refused where too much
        waits there."""
        inbound = replace(inbound, body=redact_body(inbound.body, self.redact))
        accepted = await self.store.accept(inbound, principal, inbound.session, changes=changes)
        if not accepted.duplicate and self.dispatch.owns(inbound.session):
            self.dispatch.wake(inbound.session)
        return accepted
