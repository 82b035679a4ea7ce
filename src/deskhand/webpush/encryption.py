"""What goes through a push service is encrypted for one browser: RFC 8291, with the content coding
`aes128gcm` of RFC 8188. The push service sees how long it is, and no more."""

from __future__ import annotations

import secrets

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from ..types.errors import Refused
from ..types.push import AUTH_BYTES, KEY_BYTES, PushSubscription

CURVE = ec.SECP256R1()
RECORD_BYTES = 4096
MAX_PLAIN_BYTES = 3_000
"""Push services take messages of 4,096 bytes; some take a little less."""
PADDED_TO = 512
"""A message is as long as the next multiple of this, so that its length says little."""
SALT_BYTES = 16
LAST_RECORD = b"\x02"


def check_subscription(subscription: PushSubscription) -> None:
    """Raises Refused where nothing can be encrypted for this browser."""
    if len(subscription.auth) != AUTH_BYTES:
        raise Refused(f"the browser's `auth` is {len(subscription.auth)} bytes, not {AUTH_BYTES}.")
    if len(subscription.key) != KEY_BYTES:
        raise Refused(f"the browser's `p256dh` is {len(subscription.key)} bytes, not {KEY_BYTES}.")
    try:
        ec.EllipticCurvePublicKey.from_encoded_point(CURVE, subscription.key)
    except ValueError:
        raise Refused("the browser's `p256dh` is no point of the curve P-256.") from None


def encrypt(
    text: bytes,
    subscription: PushSubscription,
    *,
    salt: bytes = b"",
    ours: ec.EllipticCurvePrivateKey | None = None,
    padded_to: int = PADDED_TO,
) -> bytes:
    """The body of a push message, in one record. `text` is at most MAX_PLAIN_BYTES; `salt` and the
    key `ours` are new for each message, and given only by who compares the result."""
    assert len(text) <= MAX_PLAIN_BYTES
    salt = salt or secrets.token_bytes(SALT_BYTES)
    ours = ours or ec.generate_private_key(CURVE)
    own_point = ours.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    theirs = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, subscription.key)

    info = b"WebPush: info\0" + subscription.key + own_point
    shared = _derive(ours.exchange(ec.ECDH(), theirs), subscription.auth, info, 32)
    key = _derive(shared, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derive(shared, salt, b"Content-Encoding: nonce\0", 12)

    padding = bytes(-(len(text) + 1) % padded_to) if padded_to else b""
    header = salt + RECORD_BYTES.to_bytes(4) + bytes([len(own_point)]) + own_point
    return header + AESGCM(key).encrypt(nonce, text + LAST_RECORD + padding, None)


def _derive(material: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length, salt, info).derive(material)
