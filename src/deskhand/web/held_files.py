"""Files that are held back from prompts: which, why, what stands in them, and an owner's word on
it."""

from __future__ import annotations

from .held_views import Approved, HeldView, SeenView, WhichFile
from .routing import Call, Endpoint


async def list_held(call: Call) -> list[HeldView]:
    return await call.web.held.list_files(call.principal)


async def view_held(call: Call) -> SeenView:
    return await call.web.held.view_file(call.principal, call.query.path)


async def approve(call: Call) -> list[HeldView]:
    return await call.web.held.approve(call.principal, call.body.path, call.body.digest)


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/held",
        "admin",
        list_held,
        "List files that are held back from prompts, and why",
        returns=list[HeldView],
        tag="skills",
    ),
    Endpoint(
        "GET",
        "/api/held/file",
        "admin",
        view_held,
        "Get a file that is held back",
        query=WhichFile,
        returns=SeenView,
        tag="skills",
    ),
    Endpoint(
        "POST",
        "/api/held/approve",
        "admin",
        approve,
        "Approve a file as it was shown; returns the files that are still held back",
        body=Approved,
        returns=list[HeldView],
        tag="skills",
    ),
)
