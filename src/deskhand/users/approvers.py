"""Who may answer what an agent asks, and where."""

from __future__ import annotations

from collections.abc import Sequence

from ..store.base import Store
from ..store.queries import members_of
from ..types.errors import StoreError
from ..types.identity import Address
from ..types.people import OWNER_NAME, People
from .owner_alerts import Alerts


class UserApprovers:
    """Implements `agent.protocols.Approvers` with the users in the store."""

    def __init__(self, store: Store, people: People, alerts: Alerts) -> None:
        self._store = store
        self._people = people
        self._alerts = alerts

    async def outside(self, session: str) -> tuple[str, ...]:
        members = await members_of(self._store, session)
        try:
            users = await self._people.users()
        except StoreError:
            return (OWNER_NAME,)
        for user in users:
            if user.name in members and {"owner", "approver"} & set(user.roles):
                return ()
        return tuple(user.name for user in users if "owner" in user.roles)

    async def owner_addresses(self) -> Sequence[Address]:
        return [address for _, address in await self._alerts.owners()]
