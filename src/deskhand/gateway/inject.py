"""Submits what no person wrote: a due job, a goal that is not reached, a restart. It goes through
the inbox like everything else."""

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
    """Submits to sessions. The caller checks that it may. `redact` takes secrets out."""

    store: Store
    dispatch: Dispatch
    redact: Callable[[str], str] = str

    async def hand_in(
        self, inbound: Inbound, principal: Principal, changes: Sequence[Change] = ()
    ) -> Accepted:
        """Store it for its session, once for its `external_id`, in one transaction with these
        `changes`, and wake the session. Raises StoreUnavailable, and Refused when too much waits
        there."""
        inbound = replace(inbound, body=redact_body(inbound.body, self.redact))
        accepted = await self.store.accept(inbound, principal, inbound.session, changes=changes)
        if not accepted.duplicate and self.dispatch.owns(inbound.session):
            self.dispatch.wake(inbound.session)
        return accepted
