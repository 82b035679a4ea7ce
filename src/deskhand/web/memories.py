"""What Deskhand remembers about a person and what it tells everybody: listed, explained and changed
by hand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ..types.errors import NoSuchFact
from .admin import agents_for
from .memory_views import (
    ContradictionView,
    Correction,
    FactDecision,
    FactDetail,
    FactMerge,
    MemoriesView,
    MemoryQuery,
    MemoryReader,
    Pinning,
    Sharing,
)
from .routing import Call, Endpoint

_ID_DIGITS = 15


def _reader(call: Call) -> MemoryReader:
    return MemoryReader(call.principal, tuple(agents_for(call)))


async def _find_id(call: Call) -> int:
    """The fact that the path names, which the caller may see. Raises NoSuchFact."""
    given = call.path("id")
    if not (given.isascii() and given.isdecimal()) or len(given) > _ID_DIGITS:
        raise NoSuchFact
    try:
        return await call.web.memory.require(_reader(call), int(given))
    except NoSuchFact:
        await call.web.people.add_audit_note(call.principal, "memory refused", given)
        raise


async def list_facts(call: Call) -> MemoriesView:
    return await call.web.memory.list_facts(_reader(call), call.query)


async def list_contradictions(call: Call) -> list[ContradictionView]:
    return await call.web.memory.list_contradictions(_reader(call))


async def get_fact(call: Call) -> FactDetail:
    return await call.web.memory.get_fact(_reader(call), await _find_id(call))


async def correct(call: Call) -> FactDetail:
    return await call.web.memory.correct(_reader(call), await _find_id(call), call.body.text)


async def merge(call: Call) -> FactDetail:
    body: FactMerge = call.body
    id_ = await _find_id(call)
    return await call.web.memory.merge(_reader(call), id_, body.other, body.text)


async def share(call: Call) -> FactDetail:
    return await call.web.memory.share(_reader(call), await _find_id(call), call.body.shared)


async def pin(call: Call) -> FactDetail:
    return await call.web.memory.pin(_reader(call), await _find_id(call), call.body.pinned)


async def decide(call: Call) -> FactDetail:
    body: FactDecision = call.body
    id_ = await _find_id(call)
    return await call.web.memory.decide(_reader(call), id_, body.other, both=body.both)


async def approve(call: Call) -> FactDetail:
    return await call.web.memory.approve(_reader(call), await _find_id(call))


async def forget(call: Call) -> FactDetail:
    return await call.web.memory.forget(_reader(call), await _find_id(call))


async def undo(call: Call) -> FactDetail:
    return await call.web.memory.undo(_reader(call), await _find_id(call))


def _change(
    rest: str, handler: Callable[[Call], Awaitable[FactDetail]], summary: str, body: Any = None
) -> Endpoint:
    async def change(call: Call) -> FactDetail:
        found = await handler(call)
        if any(fact.scope != "user" for fact in (found.fact, *found.history)):
            # Of what others are told, the audit trail says who changed it.
            subject = f"{rest} #{call.path('id')}"
            await call.web.people.add_audit_note(call.principal, "memory changed", subject)
        return found

    return Endpoint(
        "POST",
        f"/api/memories/{{id}}/{rest}",
        "chat",
        change,
        summary,
        body=body,
        returns=FactDetail,
        tag="memory",
    )


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/memories",
        "read",
        list_facts,
        "List or search what is remembered about you and what everybody is told",
        query=MemoryQuery,
        returns=MemoriesView,
        tag="memory",
    ),
    Endpoint(
        "GET",
        "/api/memories/contradictions",
        "read",
        list_contradictions,
        "List pairs of memories that cannot both hold",
        returns=list[ContradictionView],
        tag="memory",
    ),
    Endpoint(
        "GET",
        "/api/memories/{id}",
        "read",
        get_fact,
        "Get a memory, its source and its earlier versions",
        returns=FactDetail,
        tag="memory",
    ),
    _change("correct", correct, "Replace a memory by its correction", Correction),
    _change("merge", merge, "Replace two memories by one that says the same", FactMerge),
    _change("share", share, "Tell a memory to everybody, or to nobody but you", Sharing),
    _change("pin", pin, "Tell a memory in every conversation, or only where it fits", Pinning),
    _change("decide", decide, "Keep one of two contradicting memories, or both", FactDecision),
    _change("approve", approve, "Approve a held memory, or keep a candidate"),
    _change("forget", forget, "Forget a memory; undo brings it back"),
    _change("undo", undo, "Undo the last change of a memory"),
)
