"""What a WebSocket of ours is: a path, who may, and what is done with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.websockets import WebSocket

from ..types.people import Grant, Scope
from .protocols import Web

Serve = Callable[[Web, WebSocket, Grant], Awaitable[None]]
FRAME_BYTES = 1_000_000
CLOSE_REVOKED = 4001
"""The close code for a credential that no longer holds."""


class Socket(msgspec.Struct, frozen=True):
    path: str
    needs: Scope
    serve: Serve
    summary: str


def frame_text(frame: dict[str, Any]) -> str:
    """What one frame says. Raises UnicodeDecodeError."""
    given = frame.get("text")
    return str(given) if given is not None else bytes(frame.get("bytes") or b"").decode()
