"""Looked up across one's conversations: what was said, what waits, what is allowed for good."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from ..store.base import LAST_SEQ, Hit, OpenAsk, SearchFilter
from ..types.marked_texts import mark_text
from .errors import not_found
from .names import format_session_name, parse_session_name
from .routing import Call, Endpoint
from .views import GrantView
from .visible_sessions import require_session

MARK_BEGIN = "\ue000"
MARK_END = "\ue001"
"""Around each word that was searched for: no text has them by itself (the private use area)."""
MAX_RESULTS = 100
LATEST_S = 2.0**53
Seconds = Annotated[float, msgspec.Meta(ge=0, le=LATEST_S)]
AgentName = Annotated[str, msgspec.Meta(max_length=200)]


class SearchQuery(msgspec.Struct, frozen=True):
    """`q` are words, or their beginnings. `session` is one conversation by its name, '' for all.
    `order`: what fits best first, or the latest first; then `before` is the `seq` of the last one
    of the page before. `by`: what you said (`me`), or what an agent said. `since` and `until` are
    seconds since the epoch, `until` excluded. `agent`: with this agent. `archived`: also in
    archived conversations."""

    q: str = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_RESULTS)] = 20
    session: str = ""
    order: Literal["best", "latest"] = "best"
    before: Annotated[int, msgspec.Meta(ge=0, le=LAST_SEQ)] = LAST_SEQ
    by: Literal["", "me", "agent"] = ""
    since: Seconds = 0.0
    until: Seconds = LATEST_S
    agent: AgentName = ""
    archived: bool = True


class SearchResult(msgspec.Struct, frozen=True):
    """A place where it was said. In `excerpt` U+E000 and U+E001 stand around what was searched for.
    `seq` is the number of its event over all conversations."""

    name: str
    title: str
    n: int
    at: float
    role: str
    excerpt: str
    seq: int


class AskView(msgspec.Struct, frozen=True):
    """Something that waits for a person. `approval`: it is a call that must be approved, else a
    question. `elsewhere` are those who may answer, where nobody may who takes part in the
    conversation. `call_id` is the call. A question about several calls has a line for each; `calls`
    are their ids, and `tool` and `arguments` those of the first."""

    ask_id: str
    name: str
    key: str
    title: str
    tool: str
    arguments: str
    question: str
    reason: str
    source: str
    asked_at: float
    until: float
    choices: list[str]
    approval: bool
    elsewhere: list[str]
    call_id: str
    calls: list[str]


async def search(call: Call) -> list[SearchResult]:
    wanted = call.query
    who = call.principal
    agent = call.web.admin.agents[0]
    inside = (
        await require_session(call, parse_session_name(wanted.session, who, agent))
        if wanted.session
        else ""
    )
    before = wanted.before if wanted.order == "latest" else None
    filters = SearchFilter(
        by=wanted.by,
        since=wanted.since,
        until=wanted.until,
        agent=wanted.agent,
        archived=wanted.archived,
    )
    hits = await call.web.store.search(who, wanted.q[:500], wanted.limit, inside, before, filters)
    return [
        SearchResult(
            format_session_name(hit.session, who, agent),
            hit.title,
            hit.n,
            hit.at,
            hit.role,
            mark_excerpt(hit),
            hit.seq,
        )
        for hit in hits
    ]


def mark_excerpt(hit: Hit) -> str:
    text = hit.excerpt
    at = 0
    out = []
    for start, end in hit.marks:
        out += [text[at:start], MARK_BEGIN, text[start:end], MARK_END]
        at = end
    return "".join([*out, text[at:]])


async def list_approvals(call: Call) -> list[AskView]:
    return [_ask_view(call, each) for each in await call.web.store.open_asks(call.principal)]


def _ask_view(call: Call, ask: OpenAsk) -> AskView:
    redact = call.web.redact
    approval = bool(ask.tool)
    return AskView(
        ask.ask_id,
        format_session_name(ask.session, call.principal, call.web.admin.agents[0]),
        ask.session,
        ask.title,
        ask.tool,
        redact(ask.arguments),
        redact(ask.question),
        redact(ask.reason),
        ask.source,
        ask.at,
        ask.until,
        list(ask.choices),
        approval,
        list(ask.elsewhere),
        ask.call_id,
        list(ask.calls),
    )


async def list_grants(call: Call) -> list[GrantView]:
    return await call.web.admin.grants(call.principal)


async def revoke_grant(call: Call) -> GrantView:
    wanted = call.path("hash")
    if wanted not in {grant.id for grant in await call.web.admin.grants(call.principal)}:
        await call.web.people.add_audit_note(call.principal, "grant refused", wanted[:80])
        raise not_found(mark_text("such grant"))
    return await call.web.admin.revoke_grant(call.principal, wanted)


_T = "conversations"
ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/search",
        "read",
        search,
        "Search messages",
        query=SearchQuery,
        returns=list[SearchResult],
        tag=_T,
    ),
    Endpoint(
        "GET",
        "/api/approvals",
        "read",
        list_approvals,
        "List approvals and questions that wait for an answer",
        returns=list[AskView],
        tag=_T,
    ),
    Endpoint(
        "GET",
        "/api/grants",
        "read",
        list_grants,
        "List calls that are always allowed or refused",
        returns=list[GrantView],
        tag=_T,
    ),
    Endpoint(
        "DELETE",
        "/api/grants/{hash}",
        "approve",
        revoke_grant,
        "Ask about this call again",
        returns=GrantView,
        tag=_T,
    ),
)
