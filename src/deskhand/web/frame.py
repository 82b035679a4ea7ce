"""The document in which the page shows what others made: pages, drawings and diagrams. It has no
origin, no network and no data, and nothing leads out of it."""

from __future__ import annotations

import secrets

from starlette.requests import Request
from starlette.responses import Response

from .errors import HttpProblem, error_response

FRAME_PATH = "/frame"
NONCE_BYTES = 24
POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'nonce-{nonce}' 'unsafe-eval'; "
    "style-src 'unsafe-inline'; img-src data: blob:; media-src data: blob:; font-src data:; "
    "connect-src 'none'; frame-src 'none'; worker-src 'none'; object-src 'none'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self', "
    "script-src 'unsafe-inline' 'unsafe-eval'"
)
"""Two policies, which both must allow a script. The first wants the nonce, so that none runs in a
frame within this one: such a frame would be a window of its own, with all that `document.js` has
taken away from this one. But with the nonce a script may come from anywhere, which the second
forbids."""
DENIED_FEATURES = (
    "accelerometer",
    "attribution-reporting",
    "autoplay",
    "browsing-topics",
    "camera",
    "clipboard-read",
    "clipboard-write",
    "display-capture",
    "encrypted-media",
    "fullscreen",
    "gamepad",
    "geolocation",
    "gyroscope",
    "hid",
    "identity-credentials-get",
    "idle-detection",
    "join-ad-interest-group",
    "local-fonts",
    "magnetometer",
    "microphone",
    "midi",
    "otp-credentials",
    "payment",
    "picture-in-picture",
    "private-state-token-issuance",
    "private-state-token-redemption",
    "publickey-credentials-create",
    "publickey-credentials-get",
    "run-ad-auction",
    "screen-wake-lock",
    "serial",
    "shared-storage",
    "storage-access",
    "usb",
    "window-management",
    "xr-spatial-tracking",
)
HEADERS = {
    "x-frame-options": "SAMEORIGIN",
    "x-dns-prefetch-control": "off",
    "permissions-policy": ", ".join(f"{feature}=()" for feature in DENIED_FEATURES),
}
_NO_SITE = "same-origin"


def frame_source(host: str) -> str:
    """The source expression under which a page at this host may show the frame, and nothing else.

    Policies have no form for an IPv6 address, so such a page may show all of its own origin.
    """
    return "'self'" if host.startswith("[") else f"{host}{FRAME_PATH}"


def make_frame(script: str, request: Request) -> Response:
    """The document, with a new nonce. It is for frames of our own page alone: what is shown in it
    cannot load it again to be heard by the server."""
    headers = request.headers
    framed = headers.get("sec-fetch-dest", "iframe") == "iframe"
    if not framed or headers.get("sec-fetch-site", _NO_SITE) != _NO_SITE:
        problem = HttpProblem(403, "forbidden", "This document is for frames of the page only.")
        return error_response(problem, request.state.request_id, request.url.path)
    nonce = secrets.token_urlsafe(NONCE_BYTES)
    document = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Preview</title>'
        f'<script nonce="{nonce}">{script}</script></head><body></body></html>'
    )
    return Response(
        document,
        headers={**HEADERS, "content-security-policy": POLICY.format(nonce=nonce)},
        media_type="text/html",
    )
