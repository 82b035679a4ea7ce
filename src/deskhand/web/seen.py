"""Which conversation an address means, and whether whoever asks may know of it."""

from __future__ import annotations

import anyio

from ..types.identity import session_key
from .errors import not_found
from .names import address_of, parse_session_name
from .routing import Call

ADMISSION_WAIT_S = 10.0
POLL_S = 0.02


def session_from_path(call: Call) -> str:
    return parse_session_name(call.path("name"), call.principal, call.web.house.agents[0])


async def require_session(call: Call, session: str = "") -> str:
    """The session of this address, which the person may see. Raises HttpProblem 404 else: nobody
    learns what is.

    What was accepted a moment ago may not be in the log yet; that is waited for."""
    session = session or session_from_path(call)
    store = call.web.store
    principal = call.principal
    known = False
    with anyio.move_on_after(ADMISSION_WAIT_S):
        while True:
            waiting = await store.list_waiting(
                session
            )  # first: it may be taken in between these two
            known = bool((await store.query("session_has_members", (session,)))[0][0])
            if known and await store.may_see(principal, session):
                return session
            if not any(
                "owner" in principal.roles or row.principal.id == principal.id for row in waiting
            ):
                break
            await anyio.sleep(POLL_S)
    if known:
        await call.web.people.add_audit_note(principal, "conversation refused", session)
    raise not_found("such conversation")


async def find_session(call: Call) -> str | None:
    """As `seen`; None for a conversation of one's own that has not begun, which has no messages and
    no tasks."""
    session = session_from_path(call)
    own = session_key(call.web.house.agents[0], address_of(call.principal, ""))
    if session.startswith(f"{own}:") and not await call.web.store.list_waiting(session):
        known = (await call.web.store.query("session_has_members", (session,)))[0][0]
        if not known:
            return None
    return await require_session(call, session)
