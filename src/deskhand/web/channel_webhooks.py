"""Where platforms post what happens on a channel."""

from __future__ import annotations

import logging

from starlette.responses import Response

from ..types.errors import Refused
from ..types.webhooks import WebhookRequest
from .errors import HttpProblem
from .routing import Call, Endpoint, read_limited

log = logging.getLogger(__name__)

WEBHOOK_BYTES = 2**20
WEBHOOK_S = 10.0
"""A request has to be here as a whole after that."""
REFUSED = "There is no such channel, or this is not signed as its platform signs."


async def take_webhook(call: Call) -> Response:
    """What the platform posts, signed as it signs. A stranger learns nothing of which channels
    there are."""
    body = await read_limited(call.request, WEBHOOK_BYTES, WEBHOOK_S)
    headers = {name.lower(): value for name, value in call.request.headers.items()}
    try:
        request = WebhookRequest(headers, body)
        answer = await call.web.channel_webhooks.take(call.path("name"), request)
    except Refused as error:
        log.info("a webhook of a channel was refused: %s", error)
        raise HttpProblem(401, "not_signed", REFUSED) from error
    return Response(answer.body, answer.status, media_type="application/json")


ENDPOINTS = (
    Endpoint(
        "POST",
        "/api/hooks/channels/{name}",
        "public",
        take_webhook,
        "Where Telegram and Slack post what happens on a channel, with their signature",
        body=bytes,
        raw=True,
        tag="channels",
    ),
)
