"""Which conversation a request names, and whether the caller may see it."""

from __future__ import annotations

import anyio

from ..store.base import SessionRow
from ..store.queries import find_session_row, has_members
from ..types.identity import session_key
from ..types.marked_texts import mark_text
from .errors import not_found
from .names import address_of, parse_session_name
from .routing import Call

ADMISSION_WAIT_S = 10.0
POLL_S = 0.02


def session_from_path(call: Call) -> str:
    """The session that the path names, which the caller may see or not."""
    return parse_session_name(call.path("name"), call.principal, call.web.admin.agents[0])


async def require_session(call: Call, session: str = "") -> str:
    """The session that the path names, or `session`.

    A message that was accepted a moment ago may not be in the log yet: waits up to
    ADMISSION_WAIT_S for it. Raises HttpProblem 404 if the caller may not see the session, whether
    it exists or not.
    """
    session = session or session_from_path(call)
    store = call.web.store
    principal = call.principal
    known = False
    with anyio.move_on_after(ADMISSION_WAIT_S):
        while True:
            # The inbox is read first: the message may be admitted between these two reads.
            waiting = await store.list_waiting(session)
            known = await has_members(store, session)
            if known and await store.may_see(principal, session):
                return session
            sees_all = "owner" in principal.roles
            if not any(sees_all or row.principal.id == principal.id for row in waiting):
                break
            await anyio.sleep(POLL_S)
    if known:
        await call.web.people.add_audit_note(principal, "conversation refused", session)
    raise not_found(mark_text("such conversation"))


async def require_row(call: Call, session: str) -> SessionRow:
    """The line of this session in the list of sessions. Raises HttpProblem 404 if it has been
    erased."""
    row = await find_session_row(call.web.store, session)
    if row is None:
        raise not_found(mark_text("such conversation"))
    return row


async def find_session(call: Call) -> str | None:
    """As `require_session`, or None for a conversation of the caller's own that has not begun."""
    session = session_from_path(call)
    own = session_key(call.web.admin.agents[0], address_of(call.principal, ""))
    store = call.web.store
    if (
        session.startswith(f"{own}:")
        and not await store.list_waiting(session)
        and not await has_members(store, session)
    ):
        return None
    return await require_session(call, session)
