"""All that can be asked of the web room, in one list: what the guard, the documentation and the
tests go by."""

from __future__ import annotations

from . import (
    a2a,
    admin,
    alerts,
    blobs,
    changes,
    channel_webhooks,
    commands,
    compat_computer,
    compat_openagent,
    compat_operator,
    compat_sockets,
    conversations,
    device_sign_in,
    files,
    folders,
    held_files,
    inbox,
    jobs,
    login,
    lookup,
    openai,
    people,
    processes,
    proposals,
    session,
    setup,
    shares,
    sign_in_pages,
    speech,
    subagents,
    tasks,
    team,
    waiting,
    watch,
)
from .openapi import make_openapi_endpoint
from .routing import Endpoint
from .sockets import Socket

MODULES = (
    login,
    sign_in_pages,
    admin,
    alerts,
    setup,
    conversations,
    session,
    waiting,
    shares,
    inbox,
    commands,
    speech,
    tasks,
    team,
    lookup,
    processes,
    subagents,
    changes,
    watch,
    files,
    folders,
    blobs,
    channel_webhooks,
    people,
    jobs,
    proposals,
    held_files,
    compat_computer,
    compat_openagent,
    compat_operator,
    device_sign_in,
    a2a,
    openai,
)
_ALL: tuple[Endpoint, ...] = tuple(endpoint for room in MODULES for endpoint in room.ENDPOINTS)
ENDPOINTS: tuple[Endpoint, ...] = (*_ALL, make_openapi_endpoint(_ALL))
SOCKETS: tuple[Socket, ...] = compat_sockets.SOCKETS
