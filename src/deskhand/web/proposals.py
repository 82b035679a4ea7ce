"""Skills that agents propose: what there is, what stands in each, and a person's word on it."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ..types.marked_texts import mark_text
from .errors import HttpProblem
from .proposal_views import No, ProposalDetail, ProposalView, Yes
from .routing import Call, Endpoint

_ID_DIGITS = 15


class Which(msgspec.Struct, frozen=True):
    """`all`: also those that were decided."""

    all: Annotated[bool, Meta(description="also those that were decided")] = False


def _parse_id(call: Call) -> int:
    given = call.path("id")
    if not (given.isascii() and given.isdecimal()) or len(given) > _ID_DIGITS:
        raise HttpProblem(404, "not_found", mark_text("there is no such proposal"))
    return int(given)


async def list_proposals(call: Call) -> list[ProposalView]:
    return await call.web.proposals.list_proposals(call.principal, call.query.all)


async def get_proposal(call: Call) -> ProposalDetail:
    return await call.web.proposals.get_proposal(call.principal, _parse_id(call))


async def accept(call: Call) -> ProposalDetail:
    return await call.web.proposals.accept(call.principal, _parse_id(call), call.body.untrusted)


async def reject(call: Call) -> ProposalDetail:
    return await call.web.proposals.reject(call.principal, _parse_id(call), call.body.why)


async def revert(call: Call) -> ProposalDetail:
    return await call.web.proposals.revert(call.principal, _parse_id(call))


def _proposal_endpoint(method: Any, rest: str, handler: Any, summary: str, **more: Any) -> Endpoint:
    path = f"/api/proposals/{{id}}{rest}"
    return Endpoint(
        method, path, "admin", handler, summary, returns=ProposalDetail, tag="skills", **more
    )


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/proposals",
        "admin",
        list_proposals,
        "List proposed skills; `?all=true`: decided ones too",
        query=Which,
        returns=list[ProposalView],
        tag="skills",
    ),
    _proposal_endpoint("GET", "", get_proposal, "Get a proposed skill with its text"),
    _proposal_endpoint(
        "POST",
        "/accept",
        accept,
        'Accept a proposed skill; send `{"untrusted": true}` if content from outside had been read',
        body=Yes,
    ),
    _proposal_endpoint("POST", "/reject", reject, "Reject a proposed skill", body=No),
    _proposal_endpoint("POST", "/revert", revert, "Remove an accepted skill again"),
)
