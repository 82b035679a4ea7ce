"""Where somebody can be written to alone."""

from __future__ import annotations

from collections.abc import Collection

from ..store.base import Store
from ..types.identity import OWN_SURFACES, Address, Inbound
from ..types.people import Identity
from . import queries

MINUTE_S = 60.0
"""Sessions store to the minute when something was last said."""


class PrivateChats:
    """Finds the chats of users. `channels` are those that can send now; None when that is not
    known, as in a terminal command while the service runs."""

    def __init__(self, store: Store, channels: Collection[str] | None = None) -> None:
        self._store = store
        self._channels = channels

    async def find(self, person: str, channel: str = "") -> Address | None:
        """Where this person last wrote in a chat of their own, or else where they were paired; None
        when neither is known. With `channel` on that one only.

        The identities that they have now count, not those that they had when they wrote.
        """
        known = await queries.identities_of(self._store, person)
        theirs = {each.identity for each in known if channel in ("", each.identity.channel)}
        channels = {identity.channel for identity in theirs}

        for inbound in await queries.recent_messages(self._store, channels):
            if self._is_private_word_of(theirs, inbound):
                return inbound.address

        latest = await self._find_latest_address(theirs, channels)
        if latest is not None:
            return latest

        for each in known:
            paired = each.address if each.identity in theirs else None
            if paired is not None and self._may_send(paired):
                return paired
        return None

    async def _find_latest_address(
        self, theirs: Collection[Identity], channels: Collection[str]
    ) -> Address | None:
        """Where one of these identities last wrote, by the logs of their conversations."""
        latest_at = 0.0
        latest = None
        for session in await queries.recent_sessions(self._store, channels):
            if session.last_at + MINUTE_S < latest_at:
                break  # nothing later was written in the sessions that follow
            for message in await queries.messages_written_in(self._store, session.key):
                if message.at > latest_at and self._is_private_word_of(theirs, message.inbound):
                    latest_at = message.at
                    latest = message.inbound.address
                    break
        return latest

    def _is_private_word_of(self, theirs: Collection[Identity], inbound: Inbound) -> bool:
        """True when one of these identities wrote it, where nobody else reads and where we can
        write."""
        address = inbound.address
        here = Identity(address.channel, inbound.sender, address.account)
        anywhere = Identity(address.channel, inbound.sender)
        return self._may_send(address) and (here in theirs or anywhere in theirs)

    def _may_send(self, address: Address) -> bool:
        known = self._channels is None or address.channel in self._channels
        return known and not address.group and address.channel not in OWN_SURFACES
