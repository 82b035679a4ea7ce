"""Shows a typing indicator on platforms that have one while a session is driven, and marks messages
as read that arrive meanwhile.

The indicator follows from what is driven and expires by itself, so nothing has to be cleared, also
after a crash.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import anyio
from anyio.abc import TaskGroup

from ..channels.base import Acknowledging, Channel, Typing
from ..types.clock import Clock
from ..types.errors import ChannelError
from ..types.identity import Address, Edit, Inbound, Receipt, Said
from .channel_switch import IsOn, always_on
from .dispatch import Dispatch

log = logging.getLogger(__name__)

POLL_S = 0.5
LEASE_S = 4.0
"""Platforms show the indicator for five seconds."""
REFUSED_S = 60.0
SEND_S = 5.0


class TypingIndicator:
    """The typing indicators of this process."""

    def __init__(
        self,
        channels: Mapping[str, Channel],
        dispatch: Dispatch,
        clock: Clock,
        is_on: IsOn = always_on,
    ) -> None:
        self._is_on = is_on
        self.channels = {name: each for name, each in channels.items() if isinstance(each, Typing)}
        self._acknowledging = {
            name: each for name, each in channels.items() if isinstance(each, Acknowledging)
        }
        self._dispatch = dispatch
        self._clock = clock
        self._until: dict[Address, float] = {}
        self._tasks: TaskGroup | None = None

    async def run(self) -> None:
        """Renew the indicators until cancelled."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            while True:
                now = self._clock.monotonic()
                self._until = {place: until for place, until in self._until.items() if until > now}
                active = [turn for _, turn in self._dispatch.iter_active_turns()]
                awaited = [turn for turn in active if turn.principal.kind != "clock"]
                for place in {turn.address for turn in awaited}:
                    channel = self.channels.get(place.channel)
                    is_on = channel is not None and self._is_on(place.channel)
                    if channel is not None and is_on and place not in self._until:
                        self._until[place] = now + LEASE_S
                        tasks.start_soon(self._show_typing, channel, place)
                await anyio.sleep(POLL_S)

    def on_accepted(self, inbound: Inbound, receipt: Receipt) -> None:
        """Mark a message as read when its session is busy with an earlier one. Never waits."""
        channel = self._acknowledging.get(inbound.address.channel)
        if self._tasks is not None and channel is not None and self._is_steering(inbound, receipt):
            self._tasks.start_soon(self._acknowledge, channel, inbound)

    def _is_steering(self, inbound: Inbound, receipt: Receipt) -> bool:
        if receipt.status != "accepted":
            return False
        turn = next(
            (
                turn
                for session, turn in self._dispatch.iter_active_turns()
                if session == receipt.session
            ),
            None,
        )
        if turn is None or turn.answers[0] == receipt.inbox_id:
            return False
        match inbound.body:
            case Said(message=message):
                return not message.text.lstrip().startswith(("/", "!"))  # commands are answered
            case Edit(of=of):
                return of in turn.heard
            case _:
                return False

    async def _acknowledge(self, channel: Acknowledging, inbound: Inbound) -> None:
        try:
            with anyio.fail_after(SEND_S):
                await channel.acknowledge(inbound)
        except (ChannelError, TimeoutError) as error:
            log.debug(
                "nobody sees at %s that a message was read: %s", inbound.address.channel, error
            )

    async def _show_typing(self, channel: Typing, place: Address) -> None:
        try:
            with anyio.fail_after(SEND_S):
                await channel.show_typing(place)
        except (ChannelError, TimeoutError) as error:
            log.debug("nobody sees at %s that an answer is on its way: %s", place.channel, error)
            self._until[place] = self._clock.monotonic() + REFUSED_S
