"""What agents changed, as a timeline, and undoing it: each person finds only what was done for
them."""

from __future__ import annotations

from typing import Annotated

import msgspec

from ..types.diffs import CallDiff
from ..types.errors import Refused
from ..types.marked_texts import mark_text
from .admin import agents_for
from .errors import bad_request, not_found
from .names import format_session_name, parse_session_name
from .routing import Call, Endpoint
from .views import ChangeDetail, ChangesView, ChangeView, UndoneView
from .visible_sessions import require_session

MAX_CHANGES = 200
MAX_NUMBER = 1 << 60


class ChangeQuery(msgspec.Struct, frozen=True):
    """`session` is one conversation by its name, '' for all. `before` is the number of a change:
    those before it."""

    session: str = ""
    before: Annotated[int, msgspec.Meta(ge=1, le=MAX_NUMBER)] = MAX_NUMBER
    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_CHANGES)] = 50


class OfCall(msgspec.Struct, frozen=True):
    """`call` is the id of a call, `n` the number of the event that made it; 0 for the latest of
    that id."""

    call: Annotated[str, msgspec.Meta(max_length=200)] = ""
    n: Annotated[int, msgspec.Meta(ge=0, le=MAX_NUMBER)] = 0


class Undo(msgspec.Struct, frozen=True):
    """`force`: also over what was changed since, of which a copy is kept."""

    force: bool = False


async def list_changes(call: Call) -> ChangesView:
    wanted: ChangeQuery = call.query
    agent = call.web.admin.agents[0]
    inside = (
        await require_session(call, parse_session_name(wanted.session, call.principal, agent))
        if wanted.session
        else ""
    )
    found = await call.web.admin.list_changes(
        call.principal, inside, wanted.before, wanted.limit + 1
    )
    shown = [_with_session_name(call, each) for each in found[: wanted.limit]]
    return ChangesView(shown, shown[-1].n if len(found) > wanted.limit else None)


async def get_change(call: Call) -> ChangeDetail:
    found = await call.web.admin.get_change(call.principal, _parse_number(call), MAX_CHANGES)
    if found is None:
        raise not_found(mark_text("such change"))
    return msgspec.structs.replace(found, change=_with_session_name(call, found.change))


async def get_diff(call: Call) -> CallDiff:
    try:
        return await call.web.admin.diff_of_change(call.principal, _parse_number(call))
    except Refused as error:
        raise not_found(mark_text("such change")) from error


async def get_call_diff(call: Call) -> CallDiff:
    """Whoever sees a conversation sees what its calls changed, as far as the labels of the files
    allow it."""
    session = await require_session(call)
    asked = call.query
    try:
        return await call.web.admin.diff_of_call(call.principal, session, asked.n, asked.call)
    except Refused as error:
        raise not_found(mark_text("such call")) from error


async def undo(call: Call) -> UndoneView:
    number = _parse_number(call)
    found = await call.web.admin.get_change(call.principal, number, 1)
    if found is None or found.change.agent not in agents_for(call):
        await call.web.people.add_audit_note(call.principal, "undo refused", str(number))
        raise not_found(mark_text("such change"))
    return await call.web.admin.undo(call.principal, number, call.body.force)


def _parse_number(call: Call) -> int:
    given = call.path("number")
    if not given.isdecimal() or len(given) > 15:
        raise bad_request("A change has a number.")
    return int(given)


def _with_session_name(call: Call, found: ChangeView) -> ChangeView:
    if not found.session:
        return found
    return msgspec.structs.replace(
        found, session=format_session_name(found.session, call.principal, call.web.admin.agents[0])
    )


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/changes",
        "read",
        list_changes,
        "List changes that agents made",
        query=ChangeQuery,
        returns=ChangesView,
        tag="changes",
    ),
    Endpoint(
        "GET",
        "/api/changes/{number}",
        "read",
        get_change,
        "Get a change",
        returns=ChangeDetail,
        tag="changes",
    ),
    Endpoint(
        "GET",
        "/api/changes/{number}/diff",
        "read",
        get_diff,
        "Get a change as diffs",
        returns=CallDiff,
        tag="changes",
    ),
    Endpoint(
        "GET",
        "/api/sessions/{name}/diff",
        "read",
        get_call_diff,
        "Get what a call changed, or would change now, as diffs",
        query=OfCall,
        returns=CallDiff,
        tag="changes",
    ),
    Endpoint(
        "POST",
        "/api/changes/{number}/undo",
        "chat",
        undo,
        "Undo a change; of an undo, redo it",
        body=Undo,
        returns=UndoneView,
        optional=True,
        tag="changes",
    ),
)
