"""A conversation goes on elsewhere: `/handoff CHANNEL` takes it to the chat that its person has
there with the agent, and `/handoff back` returns it.

Until then, what is written in that chat goes to the conversation. It is that of `/start NAME`, with
a conversation of another place.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from ..store.base import Store
from ..store.queries import members_of
from ..types.identity import Address, Command, Inbound, Principal, session_key
from ..types.turn import HANDOFF, HANDOFF_BACK
from ..users.private_chats import PrivateChats
from .queries import (
    clear_session_name,
    first_address,
    hand_session_over,
    places_beside_own,
    take_session_back,
)


class Handoffs:
    """Finds out where a handoff leads. `route` names the agent that gets a message."""

    def __init__(self, store: Store, chats: PrivateChats, route: Callable[[Inbound], str]) -> None:
        self._store = store
        self._chats = chats
        self._route = route

    async def resolve(self, inbound: Inbound, principal: Principal, session: str) -> Inbound:
        """What to submit for this message to the session. A handoff has where it leads, and it
        holds from now on; without that it leads nowhere, as for a session that others read too.
        Anything else stays as it is."""
        command = inbound.body
        if not isinstance(command, Command) or command.name != HANDOFF:
            return inbound
        to = None
        if await self._is_theirs_alone(inbound, principal, session):
            channel = command.args.strip()
            if channel == HANDOFF_BACK:
                to = await self._take_back(inbound, session)
            elif channel:
                to = await self._hand_over(inbound, principal, session, channel)
        return replace(inbound, body=replace(command, to=to))

    async def _is_theirs_alone(self, inbound: Inbound, principal: Principal, session: str) -> bool:
        if inbound.address.group or principal.kind != "person":
            return False
        return await members_of(self._store, session) <= {principal.id}

    async def _hand_over(
        self, inbound: Inbound, principal: Principal, session: str, channel: str
    ) -> Address | None:
        to = await self._chats.find(principal.id, channel)
        if to is None or to == inbound.address:
            return None
        place = self._own_session(inbound, to)
        begun_there = place == session
        change = clear_session_name(place) if begun_there else hand_session_over(place, session)
        await self._store.change([change])
        return to

    async def _take_back(self, inbound: Inbound, session: str) -> Address | None:
        places = await places_beside_own(self._store, session)
        if not places:
            return None
        await self._store.change([take_session_back(session)])
        if self._own_session(inbound, inbound.address) not in places:
            return inbound.address
        home = await first_address(self._store, session)
        is_elsewhere = home is not None and self._own_session(inbound, home) not in places
        return home if is_elsewhere else None

    def _own_session(self, inbound: Inbound, at: Address) -> str:
        """The session of this place by itself."""
        return session_key(self._route(replace(inbound, address=at)), at)
