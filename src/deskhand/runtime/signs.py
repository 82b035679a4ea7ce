"""Shows that an answer is on its way, where a platform can: a lease that is renewed as long as somebody is worked for.

It is derived from what is being driven, so nothing has to be taken back, and nothing stays after a crash.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import anyio

from ..channels.base import Channel, Typing
from ..types.clock import Clock
from ..types.errors import ChannelError
from ..types.identity import Address
from .dispatch import Dispatch

log = logging.getLogger(__name__)

LOOK_S = 0.5
LEASE_S = 4.0
"""A sign is shown for five seconds."""
REFUSED_S = 60.0
SEND_S = 5.0


class Signs:
    """All of this process."""

    def __init__(self, channels: Mapping[str, Channel], dispatch: Dispatch, clock: Clock) -> None:
        self.channels = {name: each for name, each in channels.items() if isinstance(each, Typing)}
        self._dispatch, self._clock = dispatch, clock
        self._until: dict[Address, float] = {}

    async def run(self) -> None:
        """Look who is worked for, for ever."""
        async with anyio.create_task_group() as tasks:
            while True:
                now = self._clock.monotonic()
                self._until = {place: until for place, until in self._until.items() if until > now}
                for place in {turn.address for _, turn in self._dispatch.working()}:
                    channel = self.channels.get(place.channel)
                    if channel is not None and place not in self._until:
                        self._until[place] = now + LEASE_S
                        tasks.start_soon(self._show, channel, place)
                await anyio.sleep(LOOK_S)

    async def _show(self, channel: Typing, place: Address) -> None:
        try:
            with anyio.fail_after(SEND_S):
                await channel.typing(place)
        except (ChannelError, TimeoutError) as error:
            log.debug("nobody sees at %s that an answer is on its way: %s", place.channel, error)
            self._until[place] = self._clock.monotonic() + REFUSED_S
