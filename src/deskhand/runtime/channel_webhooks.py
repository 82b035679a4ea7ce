"""Implements `web.protocols.ChannelWebhooksBackend`: which channel gets what its platform posts or
has signed."""

from __future__ import annotations

from collections.abc import Iterable

from ..channels.base import Channel
from ..channels.webhook import OpeningPage, Webhook
from ..types.errors import Refused
from ..types.people import Identity
from ..types.webhooks import WebhookAnswer, WebhookRequest
from ..web.protocols import ChannelWebhooksBackend


class ChannelWebhooks:
    def __init__(self, channels: Iterable[Channel]) -> None:
        opened = tuple(channels)
        self._channels = {each.name: each for each in opened if isinstance(each, Webhook)}
        self._opening = {each.name: each for each in opened if isinstance(each, OpeningPage)}

    async def take(self, name: str, request: WebhookRequest) -> WebhookAnswer:
        channel = self._channels.get(name)
        if channel is None:
            raise Refused(f"nothing is posted for a channel {name!r}")
        return await channel.take_webhook(request)

    def identify(self, name: str, data: str) -> Identity:
        channel = self._opening.get(name)
        if channel is None:
            raise Refused(f"no page is opened in a channel {name!r}")
        return channel.identify(data)


_: type[ChannelWebhooksBackend] = ChannelWebhooks
