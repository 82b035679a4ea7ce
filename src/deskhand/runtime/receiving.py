"""What people write on channels, handed to the door; and what those hear who are refused."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import cast

from ..channels.base import Channel
from ..gateway.channel_switch import ChannelSwitch
from ..gateway.typing_indicator import TypingIndicator
from ..supervision.health_facts import Vitals
from ..types.door import Door
from ..types.identity import Deletion, Inbound, Principal, Receipt
from ..users.strangers import NO_ACCESS, Strangers

log = logging.getLogger(__name__)


class Receiving:
    """Takes in what comes on channels. `authorize` says who somebody is, or None."""

    def __init__(
        self,
        door: Door,
        authorize: Callable[[Inbound], Principal | None],
        strangers: Strangers,
        switch: ChannelSwitch,
        typing_indicator: TypingIndicator,
        vitals: Vitals,
    ) -> None:
        self._door = door
        self._authorize = authorize
        self._strangers = strangers
        self._switch = switch
        self._typing_indicator = typing_indicator
        self._vitals = vitals

    async def run(self, channel: Channel) -> None:
        """Submit what people write on this channel while it is on, for ever. Raises what the
        channel raises."""
        while True:
            await self._switch.wait_until_on(channel.name)
            with self._switch.while_on(channel.name):
                await self._receive(channel)

    async def _receive(self, channel: Channel) -> None:
        """What could not be stored is not confirmed."""
        async with aclosing(cast(AsyncGenerator[Inbound], channel.receive())) as inbounds:
            async for inbound in inbounds:
                source = inbound.address.channel
                if source != channel.name:  # it could act for the people of another channel
                    log.error("%s: dropped a message that says it is from %r", channel.name, source)
                    continue
                if not self._switch.hears(inbound):
                    log.debug("%s: nobody is heard, or not %s, in a group", source, inbound.sender)
                    continue
                receipt = await self._door.submit(inbound)
                if receipt.status == "refused":
                    await self._answer_refused(inbound, receipt, channel)
                self._typing_indicator.on_accepted(inbound, receipt)
                self._vitals.record_success(f"channel {channel.name}")

    async def _answer_refused(self, inbound: Inbound, receipt: Receipt, channel: Channel) -> None:
        """Tell a stranger, or somebody who may not talk to this agent, that they were refused."""
        if isinstance(inbound.body, Deletion):
            return  # people delete what was never said to an agent
        if inbound.by_program:
            log.info("%s: ignored the bot %s: %s", channel.name, inbound.sender, receipt.reason)
        elif receipt.reason == NO_ACCESS:
            await self._strangers.refuse_agent(inbound, channel)
        elif self._authorize(inbound) is None:
            await self._strangers.refuse(inbound, channel)
