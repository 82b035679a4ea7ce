"""The requests that Slack makes of events for a webhook, with their signature.

https://docs.slack.dev/authentication/verifying-requests-from-slack
"""

from __future__ import annotations

import hashlib
import hmac
from urllib.parse import urlencode

import msgspec

from .blocks import Json


def signed(payload: Json, secret: str, now: float) -> tuple[dict[str, str], bytes]:
    """Headers and body of the request, made at this time in seconds since the epoch. Events come
    as JSON, presses as a form."""
    kind = "application/json"
    body = msgspec.json.encode(payload)
    if payload.get("type") == "block_actions":
        kind = "application/x-www-form-urlencoded"
        body = urlencode({"payload": body.decode()}).encode()
    timestamp = str(int(now))
    signature = hmac.new(secret.encode(), f"v0:{timestamp}:".encode() + body, hashlib.sha256)
    headers = {
        "Content-Type": kind,
        "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
        "X-Slack-Request-Timestamp": timestamp,
        "X-Slack-Signature": f"v0={signature.hexdigest()}",
    }
    return headers, body
