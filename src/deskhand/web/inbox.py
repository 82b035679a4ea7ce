"""Endpoints of what a person missed: turns that failed, and those that ended while they were not
waiting. What waits for an answer is listed by `/api/approvals`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Literal

import msgspec

from ..store.base import LAST_SEQ
from ..store.queries import find_session_row, inbox_seen_by, set_inbox_seen
from .missed_turns import MissedTurn, StartedBy, iter_missed, read_outcome
from .names import format_session_name
from .routing import Call, Endpoint

TEXT_CHARS = 240


class InboxItem(msgspec.Struct, frozen=True):
    """A turn that failed or finished. `by` is who began it: `you`, a `job`, or another `agent`.
    `text` is how the answer begins, or why there was none; `took_s` is how long it took. `is_new`:
    it came after what the caller has seen."""

    seq: int
    n: int
    at: float
    kind: Literal["finished", "failed"]
    by: StartedBy
    name: str
    key: str
    title: str
    text: str
    took_s: float
    is_new: bool


class InboxView(msgspec.Struct, frozen=True, omit_defaults=True):
    """The latest first. For the next page send `more` as `before`; it is left out on the last
    page."""

    items: list[InboxItem]
    more: int | None = None


class InboxPage(msgspec.Struct, frozen=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 30
    before: Annotated[int, msgspec.Meta(ge=1, le=LAST_SEQ)] | None = None


class CountFrom(msgspec.Struct, frozen=True):
    """`after`: count what came after the event with this `seq`."""

    after: Annotated[int, msgspec.Meta(ge=0, le=LAST_SEQ)] = 0


class InboxCount(msgspec.Struct, frozen=True):
    """How many items are new. What comes later is counted `after` the event with this `seq`."""

    unseen: int
    seq: int


class Seen(msgspec.Struct, frozen=True):
    """All up to the event with this `seq` is seen."""

    seq: Annotated[int, msgspec.Meta(ge=0, le=LAST_SEQ)]


async def list_inbox(call: Call) -> InboxView:
    seen = await inbox_seen_by(call.web.store, call.principal.id)
    found = list[InboxItem]()
    async for missed in _iter_missed(call, call.query.before or LAST_SEQ):
        found.append(await _make_item(call, missed, seen))
        if len(found) == call.query.limit:
            return InboxView(found, missed.ended.seq)
    return InboxView(found)


async def count_inbox(call: Call) -> InboxCount:
    store = call.web.store
    seq = store.last_seq()
    after = max(call.query.after, await inbox_seen_by(store, call.principal.id))
    return InboxCount(len([missed async for missed in _iter_missed(call, seq + 1, after)]), seq)


def _iter_missed(call: Call, before: int, after: int = 0) -> AsyncIterator[MissedTurn]:
    return iter_missed(call.web.store, call.principal, call.web.clock.now(), before, after)


async def _make_item(call: Call, missed: MissedTurn, seen: int) -> InboxItem:
    ended = missed.ended
    row = await find_session_row(call.web.store, ended.session)
    return InboxItem(
        seq=ended.seq,
        n=ended.n,
        at=ended.at,
        kind="failed" if missed.has_failed else "finished",
        by=missed.by,
        name=format_session_name(ended.session, call.principal, call.web.admin.agents[0]),
        key=ended.session,
        title=row.title if row is not None else "",
        text=(await read_outcome(call.web.store, missed))[:TEXT_CHARS],
        took_s=missed.took_s,
        is_new=ended.seq > seen,
    )


async def mark_seen(call: Call) -> Seen:
    await call.web.store.change([set_inbox_seen(call.principal.id, call.body.seq)])
    return Seen(await inbox_seen_by(call.web.store, call.principal.id))


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/inbox",
        "read",
        list_inbox,
        "List what failed, and what finished while you were not waiting",
        query=InboxPage,
        returns=InboxView,
        tag="conversations",
    ),
    Endpoint(
        "GET",
        "/api/inbox/count",
        "read",
        count_inbox,
        "Count what is new in the inbox",
        query=CountFrom,
        returns=InboxCount,
        tag="conversations",
    ),
    Endpoint(
        "PUT",
        "/api/inbox/seen",
        "read",
        mark_seen,
        "Mark what is listed up to here as seen",
        body=Seen,
        returns=Seen,
        tag="conversations",
    ),
)
