"""Signatures of webhooks, made with a secret that both sides hold. Pure functions.

Two forms are accepted: Standard Webhooks
(https://github.com/standard-webhooks/standard-webhooks, "Signature scheme"), which signs the id and
the time too, and GitHub's `X-Hub-Signature-256` (https://docs.github.com/webhooks, "Validating
webhook deliveries"), which signs the body alone. A secret is for one of them. If it were for both,
a GitHub signature over a body that begins like a signed Standard Webhook could be sent again
without its time.
"""

from __future__ import annotations

import hmac
import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Mapping
from hashlib import sha256

from ...types.errors import Refused

WINDOW_S = 300.0
"""How far a signed time may be from ours. An older delivery is a replay."""
SECRET_PREFIX = "whsec_"
"""Begins a secret for Standard Webhooks; base64 follows. Any other secret is for GitHub's form, and
its bytes are the key."""
BODY_ID_PREFIX = "body-"
"""Begins the id of a delivery that is known by its bytes alone. Signed ids may not begin like
this."""
_ID = re.compile(r"[\x21-\x7e]{1,200}")
_TIME = re.compile(r"[0-9]{1,12}")
_MAX_SIGNATURES = 8
"""How many signatures of a request are checked. A sender that changes its secret sends two."""


def verify_webhook(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> str:
    """The id of this delivery, the same when it is sent again. `headers` have names in lower case.

    A delivery without a signed id is known by its bytes: the same bytes are the same delivery.
    Raises Refused that says what is wrong when the signature is wrong or too old.
    """
    if not secret:
        raise Refused("it has no secret")
    if not headers.keys() & {"webhook-signature", "x-hub-signature-256"}:
        raise Refused("the request is not signed")
    if secret.startswith(SECRET_PREFIX):
        if "webhook-signature" not in headers:
            raise Refused(
                "its secret is for Standard Webhooks; `deskhand jobs hook NAME --github` "
                "makes one for GitHub"
            )
        return _verify_standard(secret, headers, body, now)
    if "x-hub-signature-256" not in headers:
        raise Refused(
            "its secret is for GitHub's form; `deskhand jobs hook NAME` makes one for "
            "Standard Webhooks"
        )
    return _verify_github(secret, headers["x-hub-signature-256"], body)


def sign_webhook(secret: str, id_: str, at: float, body: bytes) -> dict[str, str]:
    """The headers that sign this body with a secret for Standard Webhooks. Raises Refused for any
    other secret."""
    stamp = str(int(at))
    code = b64encode(_sign_standard(secret, id_, stamp, body)).decode()
    return {"webhook-id": id_, "webhook-timestamp": stamp, "webhook-signature": f"v1,{code}"}


def _verify_standard(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> str:
    id_ = headers.get("webhook-id", "")
    stamp = headers.get("webhook-timestamp", "")
    if not _ID.fullmatch(id_) or id_.startswith(BODY_ID_PREFIX) or not _TIME.fullmatch(stamp):
        raise Refused("webhook-id or webhook-timestamp is missing or invalid")
    code = _sign_standard(secret, id_, stamp, body)
    signatures = headers["webhook-signature"].split(" ")[:_MAX_SIGNATURES]
    if not any(_signature_matches(code, given) for given in signatures):
        raise Refused("the signature does not match")
    # Checked after the signature, so that a stranger learns nothing of our clock.
    if abs(now - int(stamp)) > WINDOW_S:
        raise Refused(f"it was signed more than {WINDOW_S / 60:.0f} minutes from now")
    return id_


def _signature_matches(code: bytes, given: str) -> bool:
    version, _, value = given.partition(",")
    try:
        return version == "v1" and hmac.compare_digest(code, b64decode(value, validate=True))
    except (NotBase64, ValueError):
        return False


def _sign_standard(secret: str, id_: str, stamp: str, body: bytes) -> bytes:
    return hmac.digest(_decode_key(secret), f"{id_}.{stamp}.".encode() + body, "sha256")


def _decode_key(secret: str) -> bytes:
    """The bytes of a secret for Standard Webhooks. Raises Refused."""
    encoded = secret.removeprefix(SECRET_PREFIX)
    try:
        if encoded == secret:
            raise ValueError("no prefix")
        return b64decode(encoded, validate=True)
    except (NotBase64, ValueError):
        raise Refused(
            f"its secret is not {SECRET_PREFIX} followed by base64; make a new one: deskhand "
            "jobs hook NAME"
        ) from None


def _verify_github(secret: str, given: str, body: bytes) -> str:
    name, _, value = given.partition("=")
    code = hmac.digest(secret.encode(), body, "sha256").hex()
    if name != "sha256" or not hmac.compare_digest(code.encode(), value.encode(errors="replace")):
        raise Refused("the signature does not match")
    return f"{BODY_ID_PREFIX}{sha256(body).hexdigest()}"
