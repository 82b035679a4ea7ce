"""All that can be asked of the web room, in one list: what the guard, the documentation and the tests go by."""

from __future__ import annotations

from . import blobs, files, house, login, people, session, setup, talk, watch
from .routing import Endpoint
from .sockets import Socket

ROOMS = (login, house, setup, talk, session, watch, files, blobs, people)
ENDPOINTS: tuple[Endpoint, ...] = tuple(endpoint for room in ROOMS for endpoint in room.ENDPOINTS)
SOCKETS: tuple[Socket, ...] = ()
