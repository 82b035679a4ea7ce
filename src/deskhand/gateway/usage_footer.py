"""Adds a line with the token usage of the turn to answers on a channel."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from msgspec.structs import replace

from ..store.base import Store
from ..types.commit import OutboxRow, Outgoing
from ..types.errors import StoreError
from ..types.events import AskedAside, ModelReplied, Recorded, TurnEnded
from ..types.labels import LOCAL
from ..types.messages import Text, Usage

log = logging.getLogger(__name__)

LOOK_BACK = 1000
"""The replies of a turn are looked for in so many events before its end."""


class UsageFooter:
    """Adds the line to the answer that ended a turn. It is computed from the log, so a second try
    gives the same line."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def __call__(self, row: OutboxRow) -> Outgoing:
        n = _event_number(row)
        if n is None:
            return row.outgoing
        try:
            events = await self._store.events(row.session, max(0, n - LOOK_BACK))
        except StoreError as error:  # the answer matters more
            log.warning("what %s used cannot be read: %s", row.session, error)
            return row.outgoing
        usage = sum_turn_usage(recorded for recorded in events if recorded.n <= n)
        if usage is None or usage == Usage():
            return row.outgoing
        return replace(
            row.outgoing, parts=(*row.outgoing.parts, Text(f"\n\n{render_usage(usage)}", LOCAL))
        )


def sum_turn_usage(events: Iterable[Recorded]) -> Usage | None:
    """The usage of the turn that the last of these events ended, or None when it did not end
    one."""
    used: Usage | None = None
    for recorded in reversed(list(events)):
        event = recorded.event
        if used is None:
            if not isinstance(event, TurnEnded):
                return None
            used = Usage()
        elif isinstance(event, TurnEnded):
            break
        elif isinstance(event, ModelReplied | AskedAside):
            used += event.usage
    return used


def render_usage(usage: Usage) -> str:
    """Usage: In 1.2k / Out 300 / Cached 0 / Written 0. `Written` is what went into the provider's
    cache."""
    named = (
        ("In", usage.input_tokens),
        ("Out", usage.output_tokens),
        ("Cached", usage.cached_tokens),
        ("Written", usage.cache_write_tokens),
    )
    return "Usage: " + " / ".join(f"{name} {_format_count(tokens)}" for name, tokens in named)


def _format_count(tokens: int) -> str:
    if tokens < 1000:
        return str(tokens)
    if tokens < 999_950:
        return f"{tokens / 1000:.1f}k"
    return f"{tokens / 1e6:.1f}M"


def _event_number(row: OutboxRow) -> int | None:
    """The number of the event with which a row was committed, from its key: `session#n.i`."""
    session, _, place = row.outgoing.key.rpartition("#")
    n = place.partition(".")[0]
    return int(n) if session == row.session and n.isdecimal() else None
