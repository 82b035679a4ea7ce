"""Who may answer what an agent asks, and where."""

from __future__ import annotations

from collections.abc import Sequence

from ..agent.protocols import AskPlace
from ..store.base import Store
from ..store.queries import find_subagent, members_of
from ..types.errors import StoreError
from ..types.events import Turn
from ..types.identity import Address
from ..types.people import OWNER_NAME, People
from .owner_alerts import Alerts


class UserApprovers:
    """Implements `agent.protocols.Approvers` with the users in the store."""

    def __init__(self, store: Store, people: People, alerts: Alerts) -> None:
        self._store = store
        self._people = people
        self._alerts = alerts

    def place(self, session: str, turn: Turn) -> AskPlace:
        """A sub-agent asks the people of the conversation that it works for."""
        task = find_subagent(self._store, session)
        if task is None:
            return AskPlace(turn.address, turn.reply_to)
        path = " > ".join(task.request.path)
        return AskPlace(task.request.people, note=f"Asked by the sub-agent {path}")

    async def outside(self, session: str) -> tuple[str, ...]:
        task = find_subagent(self._store, session)
        members = await members_of(self._store, task.request.root if task is not None else session)
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
