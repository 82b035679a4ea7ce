"""Several conversations in one chat: `/start NAME` begins one or goes back to it, `/start` to the
one without a name.

What is written in that chat belongs to it from then on. On surfaces that list conversations nobody
needs it: there the person opens another one.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from ..store.base import Store
from ..store.queries import was_accepted
from ..types.identity import OWN_SURFACES, Command, Inbound
from .queries import clear_session_name, session_name_at, set_session_name

_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
"""It begins with a letter, so that no name is the number of a thread."""


class Places:
    """Which conversation goes on where."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def current_session(self, own: str, inbound: Inbound) -> str:
        """The conversation that goes on at the place whose own one is `own`."""
        if inbound.address.channel in OWN_SURFACES:
            return own
        name = session_name_at(self._store, own)
        return f"{own}:{name}" if name else own

    async def switch_session(self, own: str, inbound: Inbound) -> tuple[str, Inbound] | None:
        """Where a `/start` leads, and what is to be handed in there; None where it is none, or came
        before."""
        body = inbound.body
        place = inbound.address
        if not isinstance(body, Command) or body.name != "start" or place.channel in OWN_SURFACES:
            return None
        if await was_accepted(self._store, inbound):
            return None
        name = body.args.strip().lower()
        if not _NAME.fullmatch(name):
            await self._store.change([clear_session_name(own)])
            return own, inbound
        await self._store.change([set_session_name(own, name)])
        return f"{own}:{name}", replace(inbound, body=Command("title", name))
