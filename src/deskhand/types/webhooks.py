"""What a platform posts to us, and what it is answered."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class WebhookRequest(msgspec.Struct, frozen=True):
    """A request of a platform. `headers` have names in lower case."""

    headers: Mapping[str, str]
    body: bytes


class WebhookAnswer(msgspec.Struct, frozen=True):
    """What it is answered: a status of HTTP, and JSON or nothing."""

    status: int
    body: bytes = b""


TAKEN = WebhookAnswer(200)
LATER = WebhookAnswer(503)
"""It is not stored, and may be sent again."""
UNREADABLE = WebhookAnswer(400)
