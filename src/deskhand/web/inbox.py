"""Endpoints of what a person missed: turns that failed, and those that ended while they were not
waiting. What waits for an answer is listed by `/api/approvals`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from ..store.base import LAST_SEQ
from ..store.queries import (
    TurnStory,
    find_session_row,
    inbox_seen_by,
    set_inbox_seen,
    tell_turn,
)
from ..types.events import Recorded, TurnEnded
from ..types.identity import Principal
from .names import format_session_name
from .routing import Call, Endpoint

LONG_S = 60.0
"""Who began a turn that takes as long may have gone away."""
BATCH = 60
MAX_SCANNED = 600
"""So many turns are looked at for one page: most are no news."""
TEXT_CHARS = 240

Maker = Literal["you", "job", "agent"]


class NewsView(msgspec.Struct, frozen=True):
    """A turn that failed or finished. `by` is who began it: `you`, a `job`, or another `agent`.
    `text` is how the answer begins, or why there was none; `took_s` is how long it took. `is_new`:
    it came after what the caller has seen."""

    seq: int
    n: int
    at: float
    kind: Literal["finished", "failed"]
    by: Maker
    name: str
    key: str
    title: str
    text: str
    took_s: float
    is_new: bool


class InboxView(msgspec.Struct, frozen=True, omit_defaults=True):
    """The latest first. For the next page send `more` as `before`; it is left out on the last
    page. `unseen` is how many of this page are new."""

    news: list[NewsView]
    unseen: int
    more: int | None = None


class InboxPage(msgspec.Struct, frozen=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 30
    before: Annotated[int, msgspec.Meta(ge=1, le=LAST_SEQ)] | None = None


class Seen(msgspec.Struct, frozen=True):
    """All up to the event with this `seq` is seen."""

    seq: Annotated[int, msgspec.Meta(ge=0, le=LAST_SEQ)]


async def list_news(call: Call) -> InboxView:
    store = call.web.store
    query = call.query
    seen = await inbox_seen_by(store, call.principal.id)
    found = list[NewsView]()
    before = query.before or LAST_SEQ
    for _ in range(MAX_SCANNED // BATCH):
        ended = await store.latest_events(call.principal, ("turn_ended",), BATCH, before)
        if not ended:
            return _make_page(found, None)
        for recorded in reversed(ended):
            before = recorded.seq
            news = await _find_news(call, recorded, seen)
            if news is not None:
                found.append(news)
            if len(found) == query.limit:
                return _make_page(found, before)
    return _make_page(found, before)


def _make_page(found: list[NewsView], more: int | None) -> InboxView:
    return InboxView(found, sum(news.is_new for news in found), more)


async def _find_news(call: Call, recorded: Recorded, seen: int) -> NewsView | None:
    """What there is to tell of this turn; None where its person saw it end, or it is not theirs."""
    event = recorded.event
    if not isinstance(event, TurnEnded) or event.reason == "stopped":
        return None
    story = await tell_turn(call.web.store, recorded.session, recorded.n)
    by = _whose(call.principal, story)
    if by is None:
        return None
    took_s = max(0.0, recorded.at - story.began_at)
    failed = event.is_unanswered
    if by == "you" and not failed and took_s < LONG_S:
        return None
    row = await find_session_row(call.web.store, recorded.session)
    text = " ".join((event.said or story.answer).split())[:TEXT_CHARS]
    return NewsView(
        seq=recorded.seq,
        n=recorded.n,
        at=recorded.at,
        kind="failed" if failed else "finished",
        by=by,
        name=format_session_name(recorded.session, call.principal, call.web.admin.agents[0]),
        key=recorded.session,
        title=row.title if row is not None else "",
        text=text,
        took_s=took_s,
        is_new=recorded.seq > seen,
    )


def _whose(caller: Principal, story: TurnStory) -> Maker | None:
    """Who began it, as the caller sees it; None where it was begun by and for somebody else."""
    who = story.principal
    if who is None:
        return None
    if who.kind == "person":
        return "you" if who.id == caller.id else None
    person = who.on_behalf_of
    if person not in ("", caller.id) or (not person and "owner" not in caller.roles):
        return None
    return "job" if who.kind == "clock" else "agent"


async def mark_seen(call: Call) -> Seen:
    await call.web.store.change([set_inbox_seen(call.principal.id, call.body.seq)])
    return Seen(await inbox_seen_by(call.web.store, call.principal.id))


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/inbox",
        "read",
        list_news,
        "List what failed, and what finished while you were not waiting",
        query=InboxPage,
        returns=InboxView,
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
