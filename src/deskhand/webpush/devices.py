"""The browsers that get notifications, and the key by which push services know this Deskhand."""

from __future__ import annotations

from typing import Protocol

from msgspec.structs import replace

from ..assembly.host import Host
from ..languages.catalogue import find_language
from ..types.errors import ConfigError, Refused
from ..types.people import Grant
from ..types.push import PushDevice, PushSubscription
from ..users.queries import report_language
from . import queries
from .notices import INBOX, Notice

KEY_NAME = "web_push.key"
MAX_DEVICES = 20
"""Of one person; the oldest is forgotten."""
LABEL_CHARS = 60
NO_EXTRA = "notifications need a library that is not installed: pip install 'deskhand[push]'"
NOBODY = "https://localhost"
"""Whom a push service may write to, where this Deskhand has no address. Apple's refuses it."""


class Pusher(Protocol):
    """Sends to push services as this Deskhand. Implemented by `pusher.WebPusher`."""

    @property
    def public_key(self) -> str: ...

    def check(self, subscription: PushSubscription) -> None:
        """Raises Refused for a browser to which nothing can be encrypted, or whose push service is
        not known."""
        ...

    async def push(self, device: PushDevice, notice: Notice) -> None:
        """Hand over one message. Raises PushFailed: PushGone and PushLater are two of its
        kinds."""
        ...


class StoredPushDevices:
    """Implements `types.push.PushDevices`."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def public_key(self) -> str:
        return self.open_pusher().public_key

    async def add(
        self, grant: Grant, subscription: PushSubscription, label: str, origin: str
    ) -> PushDevice:
        if not grant.browser:
            raise Refused("Only a signed-in browser gets notifications, and this is an API token.")
        self.open_pusher().check(subscription)
        contact = self._host.settings().config.web.push.contact
        now = self._host.clock.now()
        device = PushDevice(
            self._host.ids.new("d"),
            grant.principal.id,
            grant.token_id,
            subscription,
            " ".join(label.split())[:LABEL_CHARS] or "A browser",
            contact or (origin if origin.startswith("https://") else NOBODY),
            now,
            asked_at=now,
            ended_seq=self._host.store.last_seq(),
        )
        others = list[PushDevice]()
        for known in await self.of(device.person):
            if known.subscription.endpoint == subscription.endpoint:
                device = _renew(known, device)
            else:
                others.append(known)
        old = [queries.drop_device(each.id) for each in others[MAX_DEVICES - 1 :]]
        await self._host.store.change([*old, queries.put_device(device)])
        return device

    async def use_language(self, person: str, language: str) -> None:
        found = find_language(language)
        if found is not None:
            await self._host.store.change([report_language(person, found.code)])

    async def of(self, person: str) -> list[PushDevice]:
        return await queries.list_devices(self._host.store, person)

    async def remove(self, person: str, device: str) -> bool:
        if device not in {each.id for each in await self.of(person)}:
            return False
        await self._host.store.change([queries.drop_device(device)])
        return True

    async def test(self, person: str, device: str) -> bool:
        for each in await self.of(person):
            if each.id == device:
                said = "Notifications work in this browser."
                now = self._host.clock.now()
                await self.open_pusher().push(each, Notice("Deskhand", said, "test", INBOX, now))
                return True
        return False

    def open_pusher(self) -> Pusher:
        """With the settings that hold now. Raises ConfigError."""
        try:
            from .pusher import WebPusher  # noqa: PLC0415 -- an extra, and most need it never
            from .vapid import make_seed  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise ConfigError(NO_EXTRA) from error
        host = self._host
        held = next((each for each in host.secrets.list_secrets() if each.name == KEY_NAME), None)
        seed = held.value if held is not None else make_seed()
        if held is None:
            host.secrets.set(KEY_NAME, seed, "file")
        services = host.settings().config.web.push.services
        return WebPusher(host.net, host.clock, seed, services)


def _renew(known: PushDevice, given: PushDevice) -> PushDevice:
    """The same browser with what it says now. What waits to be sent to it still does."""
    return replace(
        given,
        id=known.id,
        at=known.at,
        asked_at=known.asked_at,
        ended_seq=known.ended_seq,
    )
