"""Alerts: what owners are told unasked. Each owner is told where they last wrote."""

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

log = logging.getLogger(__name__)

LATE_S = 300.0
"""An alert that is not sent after so long has reached nobody so far."""
MAX_CHECKED = 200
MINUTE_S = 60.0
"""The list of conversations knows to the minute when something was last said."""
ALERTS_COMMAND = "deskhand alerts"

_address = msgspec.json.Decoder(Address).decode
_outgoing = msgspec.json.Decoder(Outgoing).decode


class _Row(msgspec.Struct, frozen=True):
    """What of an inbox row says who wrote where."""

    inbound: Inbound


_row = msgspec.json.Decoder(_Row).decode


State = Literal["sending", "sent", "unreached", "seen"]
"""seen: an owner looked at it here · sent: to one of them at least · unreached: to nobody so
far."""


class Alert(msgspec.Struct, frozen=True):
    """Something that owners were told. `at` is in seconds since the epoch."""

    id: int
    at: float
    text: str
    state: State


class Alerts:
    """`channels` are those that send now; None where that is not known, as in a command beside the
    service."""

    def __init__(self, store: Store, clock: Clock, channels: Collection[str] | None = None) -> None:
        self._store = store
        self._clock = clock
        self._channels = channels

    async def alert_owners(self, key: str, text: str, *, said_as: str = "") -> list[Change]:
        """The rows with which all owners are told this, once for each `key`. They go into the
        transaction of what it is about. It stands in the log in any case.

        `said_as` is the key of a message in the outbox that says the same: an owner who reads that
        is not told twice. Sent to anybody else, it reaches no owner, and does not count.
        """
        log.warning("%s", text)
        now = self._clock.now()
        key = blake2b(key.encode(), digest_size=16).hexdigest()
        said = [
            _outgoing(body).address for (body,) in await self._store.query("alert_said", (said_as,))
        ]
        owners = await self.owners()
        if not any(address in said for _, address in owners):
            said_as = ""
        rows = [Change("alert_add", (key, now, text, said_as)), Change("alert_trim", ())]
        for owner, address in owners:
            if address not in said:
                rows.append(_send_change(f"alert:{key}:{owner}", address, text, now))
        return rows

    async def notify_owners(self, key: str, text: str) -> list[Change]:
        """The same for what nobody has to act upon: it is no matter whether it reaches anybody."""
        log.info("%s", text)
        now = self._clock.now()
        return [
            _send_change(f"note:{key}:{owner}", where, text, now)
            for owner, where in await self.owners()
        ]

    async def latest(self, limit: int = 20) -> list[Alert]:
        """The latest first."""
        now = self._clock.now()
        rows = await self._store.query("alert_latest", (limit,))
        return [
            Alert(
                id_,
                at,
                text,
                _alert_state(now - at, seen=seen_at is not None, sent=sent, owed=owed),
            )
            for id_, at, text, seen_at, sent, owed in rows
        ]

    async def unreached(self) -> list[Alert]:
        """Those that reached nobody, the latest first. One that reaches somebody ends it for all
        before."""
        found = []
        for alert in await self.latest(MAX_CHECKED):
            if alert.state in ("sent", "seen"):
                break
            if alert.state == "unreached":
                found.append(alert)
        return found

    async def mark_seen(self) -> None:
        """An owner sees all that there are."""
        await self._store.change([Change("alert_seen", (self._clock.now(),))])

    async def health_facts(self) -> list[HealthFact]:
        """What the health says of alerts, where one has reached nobody. Members read it too: it
        quotes none."""
        found = await self.unreached()
        if not found:
            return []
        count = f"{len(found)} alerts" if len(found) > 1 else "1 alert"
        return [
            HealthFact(
                "alerts",
                "degraded",
                f"{count} reached nobody; see `{ALERTS_COMMAND}`",
                found[-1].at,
            )
        ]

    async def owners(self) -> list[tuple[str, Address]]:
        """The owners who can be written to, each with where they last wrote."""
        found = []
        for (owner,) in await self._store.query("alert_owners", ()):
            address = await self._find_address(owner)
            if address is not None:
                found.append((owner, address))
        return found

    async def _find_address(self, person: str) -> Address | None:
        """Where this person last wrote alone with us, or else where they were let in; None for
        nowhere.

        Who they are is asked now: what was linked after they wrote counts, and what was unlinked
        does not.
        """
        identities = await self._store.query("alert_identities", (person,))
        theirs = {(channel, account, id_) for channel, account, id_, _ in identities}
        channels = msgspec.json.encode(sorted({channel for channel, _, _ in theirs})).decode()

        for (body,) in await self._store.query("alert_recent", (channels,)):
            if (address := self._address_if_sent_by(body, theirs)) is not None:
                return address

        latest_at = 0.0
        latest = None
        for session, last_at in await self._store.query("alert_sessions", (channels,)):
            if last_at + MINUTE_S < latest_at:
                break  # nothing later was written in those that follow
            for at, body in await self._store.query("alert_written", (session,)):
                if (
                    at > latest_at
                    and (address := self._address_if_sent_by(body, theirs)) is not None
                ):
                    latest_at = at
                    latest = address
                    break
        if latest is not None:
            return latest

        stored = [_address(body) for *_, body in identities if body]
        return next((address for address in stored if self._may_send(address)), None)

    def _address_if_sent_by(
        self, body: bytes, theirs: Collection[tuple[str, str, str]]
    ) -> Address | None:
        """Where one of these identities wrote this; None where it was somebody else, or others read
        there too."""
        if not body:
            return None  # erased
        inbound = _row(body).inbound
        address = inbound.address
        sender = inbound.sender
        known = {(address.channel, address.account, sender), (address.channel, "", sender)}
        return address if self._may_send(address) and not known.isdisjoint(theirs) else None

    def _may_send(self, address: Address) -> bool:
        known = self._channels is None or address.channel in self._channels
        return known and not address.group and address.channel not in OWN_SURFACES


def _alert_state(age_s: float, *, seen: bool, sent: int, owed: int) -> State:
    if seen:
        return "seen"
    if sent:
        return "sent"
    return "sending" if owed and age_s <= LATE_S else "unreached"


def _send_change(key: str, address: Address, text: str, now: float) -> Change:
    out = Outgoing(
        key, address, (Text(text),), links=()
    )  # it may quote anything: no address in it leads anywhere
    return Change("alert_send", (key, "", msgspec.json.encode(out), now, address.channel))
