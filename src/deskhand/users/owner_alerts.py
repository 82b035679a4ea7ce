"""Alerts to owners. Each owner gets them in the chat where they last wrote."""

from __future__ import annotations

import logging
from collections.abc import Collection
from hashlib import blake2b
from typing import Literal

import msgspec

from ..store.base import Store
from ..types.clock import Clock
from ..types.commit import Change, Outgoing
from ..types.health import HealthFact
from ..types.identity import OWN_SURFACES, Address, Inbound
from ..types.messages import Text
from ..types.people import Identity
from . import queries

log = logging.getLogger(__name__)

LATE_S = 300.0
"""An alert that is not sent after this long counts as not delivered."""
MAX_CHECKED = 200
MINUTE_S = 60.0
"""Sessions store to the minute when something was last said."""
ALERTS_COMMAND = "deskhand alerts"

State = Literal["sending", "sent", "unreached", "seen"]
"""seen: an owner has read it in the list of alerts · sent: to at least one owner · unreached: to
nobody so far."""


class Alert(msgspec.Struct, frozen=True):
    """A message to owners. `at` is in seconds since the epoch."""

    id: int
    at: float
    text: str
    state: State


class Alerts:
    """Sends alerts and lists them. `channels` are those that can send now; None when that is not
    known, as in a terminal command while the service runs."""

    def __init__(self, store: Store, clock: Clock, channels: Collection[str] | None = None) -> None:
        self._store = store
        self._clock = clock
        self._channels = channels

    async def alert_owners(self, key: str, text: str, *, said_as: str = "") -> list[Change]:
        """Alert all owners, once for each `key`. Returns what must be committed for that, with what
        the alert is about. The text is logged at once.

        `said_as` is the key of a message in the outbox that says the same: owners who get that
        message are not alerted too. It counts only when it goes to an owner.
        """
        log.warning("%s", text)
        now = self._clock.now()
        key = blake2b(key.encode(), digest_size=16).hexdigest()
        said = await queries.addresses_of_message(self._store, said_as)
        owners = await self.owners()
        if not any(address in said for _, address in owners):
            said_as = ""
        changes = [queries.add_alert(key, now, text, said_as), queries.trim_alerts()]
        for owner, address in owners:
            if address not in said:
                changes.append(_send_change(f"alert:{key}:{owner}", address, text, now))
        return changes

    async def notify_owners(self, key: str, text: str) -> list[Change]:
        """The same for good news: it is not listed, and may reach nobody."""
        log.info("%s", text)
        now = self._clock.now()
        return [
            _send_change(f"note:{key}:{owner}", where, text, now)
            for owner, where in await self.owners()
        ]

    async def latest(self, limit: int = 20) -> list[Alert]:
        """The last alerts, the latest first."""
        now = self._clock.now()
        found = await queries.latest_alerts(self._store, limit)
        return [Alert(row.id, row.at, row.text, _alert_state(row, now)) for row in found]

    async def unreached(self) -> list[Alert]:
        """The alerts since the last delivered one, the latest first. They reached nobody."""
        found = []
        for alert in await self.latest(MAX_CHECKED):
            if alert.state in ("sent", "seen"):
                break
            if alert.state == "unreached":
                found.append(alert)
        return found

    async def mark_seen(self) -> None:
        """Note that an owner has seen all alerts."""
        await self._store.change([queries.mark_alerts_seen(self._clock.now())])

    async def health_facts(self) -> list[HealthFact]:
        """What the health says of alerts that reached nobody. Members read it too, so it quotes
        none."""
        found = await self.unreached()
        if not found:
            return []
        count = f"{len(found)} alerts" if len(found) > 1 else "1 alert"
        return [
            HealthFact(
                "alerts",
                "degraded",
                f"{count} not delivered; see `{ALERTS_COMMAND}`",
                found[-1].at,
            )
        ]

    async def owners(self) -> list[tuple[str, Address]]:
        """The owners who can be reached, each with the address where they last wrote."""
        found = []
        for owner in await queries.owner_names(self._store):
            address = await self._find_address(owner)
            if address is not None:
                found.append((owner, address))
        return found

    async def _find_address(self, person: str) -> Address | None:
        """Where this person last wrote in a chat of their own, or else where they were paired; None
        when neither is known.

        The identities that they have now count, not those that they had when they wrote.
        """
        known = await queries.identities_of(self._store, person)
        theirs = {each.identity for each in known}
        channels = {identity.channel for identity in theirs}

        for inbound in await queries.recent_messages(self._store, channels):
            if self._is_private_word_of(theirs, inbound):
                return inbound.address

        latest = await self._find_latest_address(theirs, channels)
        if latest is not None:
            return latest

        for each in known:
            if each.address is not None and self._may_send(each.address):
                return each.address
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


def _alert_state(alert: queries.StoredAlert, now: float) -> State:
    if alert.seen_at is not None:
        return "seen"
    if alert.sent:
        return "sent"
    if alert.owed and now - alert.at <= LATE_S:
        return "sending"
    return "unreached"


def _send_change(key: str, address: Address, text: str, now: float) -> Change:
    # An alert may quote anything, so no address in it is a link.
    return queries.send_once(Outgoing(key, address, (Text(text),), links=()), now)
