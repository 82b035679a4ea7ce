"""All that can be asked of the web room, in one list: what the guard, the documentation and the tests go by."""

from __future__ import annotations

from . import house, login, setup, talk
from .routing import Endpoint
from .sockets import Socket

ENDPOINTS: tuple[Endpoint, ...] = (*login.ENDPOINTS, *house.ENDPOINTS, *setup.ENDPOINTS, *talk.ENDPOINTS)
SOCKETS: tuple[Socket, ...] = ()
