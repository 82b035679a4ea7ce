"""What agents may use beyond their workspace: folders of this machine, and hosts for their
commands."""

from __future__ import annotations

from .access_views import AccessView, AllowFolder, WhichFolder, WhichHost
from .routing import Call, Endpoint


async def list_access(call: Call) -> AccessView:
    return await call.web.access.list_access(call.principal)


async def allow_folder(call: Call) -> AccessView:
    wanted = call.body
    return await call.web.access.allow_folder(
        call.principal, wanted.agent, wanted.path, write=wanted.write
    )


async def revoke_folder(call: Call) -> AccessView:
    return await call.web.access.revoke_folder(call.principal, call.query.agent, call.query.path)


async def revoke_host(call: Call) -> AccessView:
    return await call.web.access.revoke_host(call.principal, call.query.agent, call.query.host)


_T = "settings"
ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/access",
        "admin",
        list_access,
        "List the folders and hosts that agents may use beyond their workspace",
        returns=AccessView,
        tag=_T,
    ),
    Endpoint(
        "PUT",
        "/api/access/folders",
        "admin",
        allow_folder,
        "Let an agent read a folder, or write there as well",
        body=AllowFolder,
        returns=AccessView,
        tag=_T,
    ),
    Endpoint(
        "DELETE",
        "/api/access/folders",
        "admin",
        revoke_folder,
        "Let an agent no longer use a folder",
        query=WhichFolder,
        returns=AccessView,
        tag=_T,
    ),
    Endpoint(
        "DELETE",
        "/api/access/hosts",
        "admin",
        revoke_host,
        "Let commands no longer reach a host",
        query=WhichHost,
        returns=AccessView,
        tag=_T,
    ),
)
