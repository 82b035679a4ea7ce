"""Browsers that get notifications, also with the page closed: Web Push."""

from __future__ import annotations

from typing import Protocol

import msgspec

from .people import Grant

KEY_BYTES = 65
AUTH_BYTES = 16
MAX_ENDPOINT_CHARS = 1000


class PushSubscription(msgspec.Struct, frozen=True):
    """Where a browser gets notifications. `endpoint` is its address at its push service,
    `key` its public key (a point of P-256, uncompressed) and `auth` the secret that it shares with
    us (RFC 8291)."""

    endpoint: str
    key: bytes
    auth: bytes


class PushDevice(msgspec.Struct, frozen=True):
    """A browser of `person` that gets notifications as long as the login `token` holds. `label` is
    what people call it, and `contact` whom its push service may write to. It was told of questions
    up to `asked_at` and of turns up to the event `ended_seq`. Times are seconds since the epoch."""

    id: str
    person: str
    token: str
    subscription: PushSubscription
    label: str
    contact: str
    at: float
    asked_at: float
    ended_seq: int


class PushDevices(Protocol):
    """The browsers of all people that get notifications. Raises StoreUnavailable."""

    def public_key(self) -> str:
        """The key by which push services know this Deskhand, in base64url. Raises ConfigError."""
        ...

    async def add(
        self, grant: Grant, subscription: PushSubscription, label: str, origin: str
    ) -> PushDevice:
        """Send notifications to this browser from now on, to nobody else who used it before. One
        that is known is renewed. `origin` is where its page comes from. Raises Refused for a push
        service that is not known."""
        ...

    async def use_language(self, person: str, language: str) -> None:
        """The page of this person is in the language of this code; '' where that is not known."""
        ...

    async def of(self, person: str) -> list[PushDevice]:
        """Those of this person, the latest first."""
        ...

    async def remove(self, person: str, device: str) -> bool:
        """Send this one no more. False where this person has none such."""
        ...

    async def test(self, person: str, device: str) -> bool:
        """Send this one a notification that says that it works. False where this person has none
        such. Raises PushFailed."""
        ...
