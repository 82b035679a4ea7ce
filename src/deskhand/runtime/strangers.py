"""What those hear who are not known here: nothing, or once in a while that they are not."""

from __future__ import annotations

import logging
from collections import OrderedDict

import anyio

from ..channels.base import Channel
from ..types.clock import Clock
from ..types.commit import Outgoing
from ..types.errors import ChannelError
from ..types.identity import Answer, Inbound
from ..types.labels import LOCAL
from ..types.messages import Text

log = logging.getLogger(__name__)

SENTENCE = "I do not know you, so I cannot answer. My owner can let you in."
AGAIN_S = 3600.0
"""Nobody is told more often, so that two machines do not talk for ever."""
REMEMBERED = 1000
SEND_S = 10.0


class Strangers:
    """Tells them, if `announce`. It is said at once or never: nothing of a stranger is stored."""

    def __init__(self, clock: Clock, *, announce: bool) -> None:
        self._clock, self._announce = clock, announce
        self._told: OrderedDict[tuple[str, str, str], float] = OrderedDict()

    async def refuse(self, inbound: Inbound, channel: Channel) -> None:
        """Somebody wrote on this channel whom nobody authorised."""
        address, now = inbound.address, self._clock.monotonic()
        who = (address.channel, address.account, inbound.sender)
        pressed = isinstance(inbound.body, Answer)  # a button waits for an answer, and it is seen by them alone
        if not pressed and now - self._told.get(who, -AGAIN_S) < AGAIN_S:
            return
        self._told[who] = now
        self._told.move_to_end(who)
        if len(self._told) > REMEMBERED:
            self._told.popitem(last=False)
        log.info("%s: %s is not known here and was not let in", channel.name, inbound.sender)
        if not (self._announce or pressed):
            return
        reply_to = inbound.external_id if address.group or pressed else ""
        key = f"stranger:{address.channel}:{address.account}:{inbound.external_id}"
        try:
            with anyio.fail_after(SEND_S):
                await channel.send(Outgoing(key, address, (Text(SENTENCE, LOCAL),), reply_to), "")
        except (ChannelError, TimeoutError) as error:
            log.warning("%s: a stranger could not be told: %s", channel.name, error)
