"""Implements `web.protocols.ChannelWebhooksBackend`: which channel gets what a platform posts."""

from __future__ import annotations

from collections.abc import Iterable

from ..channels.base import Channel
from ..channels.webhook import Webhook
from ..types.errors import Refused
from ..types.webhooks import WebhookAnswer, WebhookRequest
from ..web.protocols import ChannelWebhooksBackend


class ChannelWebhooks:
    def __init__(self, channels: Iterable[Channel]) -> None:
        self._channels = {each.name: each for each in channels if isinstance(each, Webhook)}

    async def take(self, name: str, request: WebhookRequest) -> WebhookAnswer:
        channel = self._channels.get(name)
        if channel is None:
            raise Refused(f"nothing is posted for a channel {name!r}")
        return await channel.take_webhook(request)


_: type[ChannelWebhooksBackend] = ChannelWebhooks
