"""What Slack posts, and how it is signed. Pure.

https://docs.slack.dev/authentication/verifying-requests-from-slack
"""

from __future__ import annotations

import hmac
import re
from urllib.parse import parse_qs

import msgspec

from ...types.errors import Refused
from ...types.webhooks import WebhookRequest
from .reader import Json

WINDOW_S = 300.0
"""How far the time of a request may be from ours. An older one is a replay."""
_TIME = re.compile(r"[0-9]{1,12}")


def verify_slack(secret: str, request: WebhookRequest, now: float) -> None:
    """Raises Refused where the request is not signed with this secret at about this time (seconds
    since the epoch)."""
    timestamp = request.headers.get("x-slack-request-timestamp", "")
    given = request.headers.get("x-slack-signature", "")
    if not secret:
        raise Refused("there is no signing secret")
    if not _TIME.fullmatch(timestamp) or abs(int(timestamp) - now) > WINDOW_S:
        raise Refused("its time is missing, or too far from ours")
    signed = b"v0:" + timestamp.encode() + b":" + request.body
    wanted = f"v0={hmac.new(secret.encode(), signed, 'sha256').hexdigest()}"
    if not hmac.compare_digest(given.encode(), wanted.encode()):
        raise Refused("it is not signed by Slack")


def read_posted(request: WebhookRequest) -> Json | None:
    """What is posted: an object of JSON, which presses of buttons have in a form. None for anything
    else, such as a slash command."""
    body = request.body
    if request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=20)
        body = fields.get("payload", [""])[0].encode()
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
