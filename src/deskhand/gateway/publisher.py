"""Hands events and progress to whoever listens: those who follow a session, and the parts of
Deskhand that do something when it happens."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable
from typing import Protocol

from msgspec.structs import replace

from ..types.door import Progress
from ..types.events import AnyEvent, Recorded
from .feed import Feed
from .streamed_replies import Drafts

log = logging.getLogger(__name__)

_UNREDACTED = frozenset({"tool_result", "prompt", "request", "status"})
"""Progress with text that was not redacted where it was made."""


class Listener(Protocol):
    """A part of Deskhand that does something when events happen. `listens_to` names their kinds."""

    @property
    def listens_to(self) -> tuple[type[AnyEvent], ...]: ...

    def on_event(self, recorded: Recorded, /) -> None:
        """It has happened, and is on disk. Never waits."""


class EventPublisher:
    """Implements `agent.protocols.Publisher`. There is one list of listeners, which they join."""

    def __init__(
        self,
        feed: Feed,
        drafts: Drafts,
        redact: Callable[[str], str],
        relay: Callable[[str, Progress], None] | None = None,
    ) -> None:
        """`relay` sends what is being said to another process."""
        self._relay = relay
        self._feed = feed
        self._drafts = drafts
        self._redact = redact
        self._listeners: defaultdict[type[AnyEvent], list[Listener]] = defaultdict(list)

    def join(self, *listeners: Listener) -> None:
        """Tell these from now on of each event of their kinds, in the order in which they join."""
        for listener in listeners:
            for kind in listener.listens_to:
                self._listeners[kind].append(listener)

    def leave(self, listener: Listener) -> None:
        """Tell this one no more."""
        for kind in listener.listens_to:
            self._listeners[kind].remove(listener)

    def publish(self, session: str, item: Recorded | Progress) -> None:
        if isinstance(item, Progress) and item.kind in _UNREDACTED:
            item = replace(item, text=self._redact(item.text))
        if self._relay is not None and isinstance(item, Progress):
            self._relay(session, item)
        if not isinstance(item, Progress) or item.kind != "step":
            self._feed.publish(session, item)
        if isinstance(item, Recorded):
            for listener in tuple(self._listeners.get(type(item.event), ())):
                try:
                    listener.on_event(item)
                except Exception:
                    log.exception("%s failed on an event of %s.", listener, session)
        if self._drafts.channels:
            self._drafts.on_item(session, item)
