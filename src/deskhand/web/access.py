"""What agents may use beyond their workspace: folders of this machine, hosts for their commands,
and sign-ins for their browser."""

from __future__ import annotations

from .access_views import AccessView, AllowFolder, WhichFolder, WhichHost, WhichSignIn
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


async def remove_sign_in(call: Call) -> AccessView:
    return await call.web.access.remove_sign_in(call.principal, call.query.site)


_T = "settings"
ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/access",
        "admin",
        list_access,
        "List the folders, hosts and sign-ins that agents may use beyond their workspace",
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
    Endpoint(
        "DELETE",
        "/api/access/sign-ins",
        "admin",
        remove_sign_in,
        "Delete a sign-in, so that agents use no account at that site any more",
        query=WhichSignIn,
        returns=AccessView,
        tag=_T,
    ),
)
