"""The family of a conversation: what it was branched from, and what was branched from it."""

from __future__ import annotations

import msgspec

from ..store.branches import BranchRow, family_of
from .names import format_session_name
from .routing import Call, Endpoint
from .visible_sessions import require_session

MAX_BRANCHES = 200
WORDS_CHARS = 80


class FamilyMember(msgspec.Struct, frozen=True):
    """A conversation of a family. `origin` is the name of the one that it was branched from; where
    you may not see that one, the nearest above it that you may see, or empty.

    It left its origin after event `from_n`, where `turn` turns had ended. `after` is how the last
    message before that begins, `words` how the first message begins that was written in the branch
    itself. `at` is when it was last used (seconds since the epoch). `current`: it is the one that
    was asked for.
    """

    name: str
    title: str
    origin: str
    from_n: int
    turn: int
    after: str
    words: str
    at: float
    archived: bool
    current: bool


class FamilyView(msgspec.Struct, frozen=True):
    """Each conversation stands behind its origin; the first are those that lead to the one that was
    asked for. `more`: there are others."""

    branches: list[FamilyMember]
    more: bool


async def list_branches(call: Call) -> FamilyView:
    session = await require_session(call)
    found = await family_of(call.web.store, call.principal, session, MAX_BRANCHES + 1)
    shown = [_make_view(call, row, current=row.session == session) for row in found[:MAX_BRANCHES]]
    return FamilyView(shown, len(found) > MAX_BRANCHES)


def _make_view(call: Call, row: BranchRow, *, current: bool) -> FamilyMember:
    agent = call.web.admin.agents[0]
    return FamilyMember(
        name=format_session_name(row.session, call.principal, agent),
        title=row.title,
        origin=format_session_name(row.origin, call.principal, agent) if row.origin else "",
        from_n=row.from_n,
        turn=row.turn,
        after=_first_words(call, row.after),
        words=_first_words(call, row.words),
        at=row.last_at,
        archived=row.archived,
        current=current,
    )


def _first_words(call: Call, text: str) -> str:
    """On one line. What is cut was redacted before: half a secret is not recognised."""
    line = " ".join(call.web.redact(text).split())
    if len(line) <= WORDS_CHARS:
        return line
    return f"{line[:WORDS_CHARS]}\N{HORIZONTAL ELLIPSIS}"


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/sessions/{name}/branches",
        "read",
        list_branches,
        "List the branches of a conversation, and what it was branched from",
        returns=FamilyView,
        tag="conversations",
    ),
)
