"""By what push services know who sends: a signed token in each request (RFC 8292, VAPID)."""

from __future__ import annotations

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from ..types.errors import ConfigError
from ..web.agent_signatures import from_base64url, to_base64url
from .encryption import CURVE

KEY_BYTES = 32
HOLDS_S = 12 * 3600
"""Push services refuse a token for more than a day."""


def make_seed() -> str:
    """A new private key as it is stored."""
    made = ec.generate_private_key(CURVE)
    return to_base64url(made.private_numbers().private_value.to_bytes(KEY_BYTES))


class VapidKey:
    """The key of this Deskhand; `seed` is from `make_seed`. Raises ConfigError."""

    def __init__(self, seed: str) -> None:
        try:
            value = from_base64url(seed)
            if len(value) != KEY_BYTES:
                raise ValueError
            self._key = ec.derive_private_key(int.from_bytes(value), CURVE)
        except ValueError as error:
            raise ConfigError("the key for Web Push is none: 32 bytes in base64url") from error

    @property
    def public(self) -> str:
        """In base64url, as browsers ask for it."""
        point = self._key.public_key()
        return to_base64url(point.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint))

    def make_header(self, audience: str, contact: str, now: float) -> str:
        """The value of `Authorization` for a push service at the origin `audience`, which may write
        to `contact`, a `mailto:` or `https:` address."""
        claims = {"aud": audience, "exp": int(now) + HOLDS_S, "sub": contact}
        return f"vapid t={jwt.encode(claims, self._key, 'ES256')}, k={self.public}"
