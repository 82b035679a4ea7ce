"""Channels are switched on and off while Deskhand runs, by `channels.NAME.enabled`, and so are
groups, by `channels.NAME.group_rules`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

import anyio

from ..channels.group_rules import GroupRules
from ..config.config import Settings
from ..types.identity import Inbound

IsOn = Callable[[str], bool]
"""Whether the channel of this name is on."""


def always_on(name: str) -> bool:
    """The IsOn of channels that nobody switches."""
    return True


class ChannelSwitch:
    """Which channels are on now. One of the `configured` that is no longer in the settings is off;
    one that never was is always on."""

    def __init__(self, settings: Callable[[], Settings], configured: Collection[str]) -> None:
        self._settings = settings
        self._configured = frozenset(configured)
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._changed = anyio.Event()

    def is_on(self, name: str) -> bool:
        config = self._settings().config.channels.get(name)
        return name not in self._configured if config is None else config.enabled

    def hears(self, inbound: Inbound) -> bool:
        """Whether this is listened to. In a group its rule decides."""
        config = self._settings().config.channels.get(inbound.address.channel)
        return config is None or GroupRules(config).admits(inbound)

    def on_settings_changed(self) -> None:
        """Other settings hold: what was switched off ends at once."""
        for name, scope in self._scopes.items():
            if not self.is_on(name):
                scope.cancel()
        self._changed.set()
        self._changed = anyio.Event()

    async def wait_until_on(self, name: str) -> None:
        while not self.is_on(name):
            await self._changed.wait()

    @contextmanager
    def while_on(self, name: str) -> Iterator[None]:
        """What is done in here ends quietly when the channel is switched off."""
        with anyio.CancelScope() as scope:
            self._scopes[name] = scope
            try:
                yield
            finally:
                del self._scopes[name]
