"""Events that a platform posts to us, in the place of a connection that we hold.

A request is answered with success only when what is in it is stored: until then the platform sends
it again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator
from typing import Generic, Protocol, TypeVar, runtime_checkable
from urllib.parse import quote, urlsplit

import anyio

from ..types.errors import ConfigError
from ..types.people import Identity
from ..types.webhooks import LATER, TAKEN, WebhookAnswer, WebhookRequest
from .settings import ChannelConfig

MAX_WAITING = 100
WEBHOOK_PATH = "/api/hooks/channels/"
"""Where the page's server takes what platforms post; the name of the channel follows."""
T = TypeVar("T")


@runtime_checkable
class Webhook(Protocol):
    """A channel to which a platform can post."""

    async def take_webhook(self, request: WebhookRequest) -> WebhookAnswer:
        """What the platform posts. Returns when it is stored, or is to be sent again. Raises
        Refused where it is not signed as the platform signs, or nothing is to be posted."""
        ...


@runtime_checkable
class OpeningPage(Protocol):
    """A channel whose platform opens the page inside it."""

    def identify(self, data: str) -> Identity:
        """Who has opened it, by what the platform has signed. Raises Refused where it has not, or
        not lately, or the page is not opened there."""
        ...


def make_webhook_address(name: str, config: ChannelConfig) -> str:
    """The address to which a platform posts for this channel. Raises ConfigError where the setting
    is no address that it could use."""
    base = config.webhook.rstrip("/")
    if not is_public_address(base):
        raise ConfigError(
            f"channels.{name}.webhook has to be an address with https:// and a host, as platforms "
            "post to no other: set the public one under which a proxy with TLS serves the page"
        )
    return f"{base}{WEBHOOK_PATH}{quote(name, safe='')}"


def is_public_address(base: str) -> bool:
    """Whether this is an address with https:// and a host, and nothing that is not part of it."""
    try:
        parts = urlsplit(base)
    except ValueError:
        return False
    is_plain = not (parts.query or parts.fragment or "@" in parts.netloc)
    return parts.scheme == "https" and bool(parts.hostname) and is_plain


class _Posted(Generic[T]):
    def __init__(self, event: T) -> None:
        self.event = event
        self.is_stored = False
        self.over = anyio.Event()


class PostedEvents(Generic[T]):
    """Hands events from the requests that bring them to the one that reads, in their order. A
    request waits for `patience_s` at most."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._waiting: deque[_Posted[T]] = deque()
        self._news = anyio.Event()
        self._is_read = False

    async def put(self, event: T) -> WebhookAnswer:
        """Hand it over, and say what came of it: TAKEN once it is stored, LATER where nobody reads,
        too many wait, or it takes too long."""
        if not self._is_read or len(self._waiting) >= MAX_WAITING:
            return LATER
        posted = _Posted(event)
        self._waiting.append(posted)
        self._news.set()
        with anyio.move_on_after(self._patience_s):
            await posted.over.wait()
        return TAKEN if posted.is_stored else LATER

    async def read(self, idle_s: float) -> AsyncGenerator[T | None]:
        """The events, for ever; None when nothing came for so long. When the next one is asked for,
        the one before counts as stored. What is left at the end is to be sent again."""
        self._is_read = True
        try:
            while True:
                while self._waiting:
                    posted = self._waiting[0]
                    yield posted.event
                    self._waiting.popleft()
                    posted.is_stored = True
                    posted.over.set()
                self._news = anyio.Event()
                with anyio.move_on_after(idle_s) as idle:
                    await self._news.wait()
                if idle.cancelled_caught:
                    yield None
        finally:
            self._is_read = False
            for posted in self._waiting:
                posted.over.set()
            self._waiting.clear()
