"""Several sessions in one chat: `/start NAME` begins a session or returns to it, and `/start`
returns to the one without a name.

From then on, what is written in the chat goes to that session. Surfaces that list conversations do
not need this. In the place of a name stands the whole key of a session of another place that was
handed over (`handoffs`).
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from ..store.base import Store
from ..types.identity import OWN_SURFACES, Command, Inbound
from .queries import clear_session_name, session_name_at, set_session_name

_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
"""A name begins with a letter, so that it cannot be the number of a thread."""


def is_of_elsewhere(name: str) -> bool:
    """Whether it is the key of a session, and no name."""
    return "/" in name


class NamedSessions:
    """Which session goes on at which place."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def current_session(self, own: str, inbound: Inbound) -> str:
        """The session that goes on at a place; `own` is the session without a name there."""
        if inbound.address.channel in OWN_SURFACES:
            return own
        name = session_name_at(self._store, own)
        if is_of_elsewhere(name):
            return name
        return f"{own}:{name}" if name else own

    async def switch_session(self, own: str, inbound: Inbound) -> tuple[str, Inbound] | None:
        """The session to which a `/start` leads, and what to submit there; None for anything
        else."""
        body = inbound.body
        place = inbound.address
        if not isinstance(body, Command) or body.name != "start" or place.channel in OWN_SURFACES:
            return None
        name = body.args.strip().lower()
        if not _NAME.fullmatch(name):
            await self._store.change([clear_session_name(own)])
            return own, inbound
        await self._store.change([set_session_name(own, name)])
        return f"{own}:{name}", replace(inbound, body=Command("title", name))
