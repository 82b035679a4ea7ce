"""Which conversation an address means, and whether whoever asks may know of it."""

from __future__ import annotations

import anyio

from ..types.identity import session_key
from .errors import not_found
from .names import address_of, key_of
from .routing import Call

TAKEN_IN_S = 10.0
LOOK_S = 0.02


def session_of(call: Call) -> str:
    return key_of(call.path("name"), call.principal, call.web.house.agents[0])


async def seen(call: Call, session: str = "") -> str:
    """The session of this address, which the person may see. Raises HttpProblem 404 else: nobody
    learns what is.

    What was accepted a moment ago may not be in the log yet; that is waited for."""
    session = session or session_of(call)
    store = call.web.store
    principal = call.principal
    known = False
    with anyio.move_on_after(TAKEN_IN_S):
        while True:
            waiting = await store.waiting(session)  # first: it may be taken in between these two
            known = bool((await store.rows("session_has_members", (session,)))[0][0])
            if known and await store.may_see(principal, session):
                return session
            if not any(
                "owner" in principal.roles or row.principal.id == principal.id for row in waiting
            ):
                break
            await anyio.sleep(LOOK_S)
    if known:
        await call.web.people.note(principal, "conversation refused", session)
    raise not_found("such conversation")


async def seen_or_new(call: Call) -> str | None:
    """As `seen`; None for a conversation of one's own that has not begun, which has no messages and
    no tasks."""
    session = session_of(call)
    own = session_key(call.web.house.agents[0], address_of(call.principal, ""))
    if session.startswith(f"{own}:") and not await call.web.store.waiting(session):
        known = (await call.web.store.rows("session_has_members", (session,)))[0][0]
        if not known:
            return None
    return await seen(call, session)
