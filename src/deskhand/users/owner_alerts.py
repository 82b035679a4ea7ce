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
from ..types.identity import Address
from ..types.labels import LOCAL
from ..types.marked_texts import mark_text
from ..types.messages import Text
from . import queries
from .private_chats import PrivateChats

log = logging.getLogger(__name__)

LATE_S = 300.0
"""An alert that is not sent after this long counts as not delivered."""
MAX_CHECKED = 200
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
        self._chats = PrivateChats(store, channels)

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
        said = (
            mark_text("{count_number} alerts not delivered; see `{command}`")
            if len(found) > 1
            else mark_text("1 alert not delivered; see `{command}`")
        )
        return [
            HealthFact(
                "alerts",
                "degraded",
                said.format(count_number=len(found), command=ALERTS_COMMAND),
                found[-1].at,
            )
        ]

    async def owners(self) -> list[tuple[str, Address]]:
        """The owners who can be reached, each with the address where they last wrote."""
        found = []
        for owner in await queries.owner_names(self._store):
            address = await self._chats.find(owner)
            if address is not None:
                found.append((owner, address))
        return found


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
    return queries.send_once(Outgoing(key, address, (Text(text, LOCAL),), links=()), now)
