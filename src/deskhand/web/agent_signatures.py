"""Signatures of requests between agents, as operator-use's agent server knows them: Ed25519 over
`agent id, newline, seconds since the epoch, newline, SHA-256 of the body in hex`, in the headers
`X-ACP-Agent-ID`, `X-ACP-Timestamp` and `X-ACP-Signature` (base64url without padding)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from hashlib import sha256

from ..types.errors import ConfigError

FRESH_S = 30
"""A signature holds for so long before and after its time."""
NO_EXTRA = "signatures need a library that is not installed: pip install 'deskhand[secrets]'"


def make_payload(agent_id: str, timestamp: int, body: bytes) -> bytes:
    """What is signed."""
    return f"{agent_id}\n{timestamp}\n{sha256(body).hexdigest()}".encode()


def verify(headers: Mapping[str, str], body: bytes, keys: Mapping[str, str], now: float) -> str:
    """The id of who has signed this request, of `keys`, with the signature in its one spelling. ''
    where the headers are missing or do not hold. Method and address are not signed. Raises
    ConfigError."""
    agent_id = headers.get("x-acp-agent-id", "")
    said_at = headers.get("x-acp-timestamp", "")
    signature = headers.get("x-acp-signature", "")
    key = keys.get(agent_id)
    if key is None or not said_at.isascii() or not said_at.isdigit() or len(said_at) > 12:
        return ""
    if abs(now - int(said_at)) > FRESH_S:
        return ""
    try:
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 -- an extra
        from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415
            Ed25519PublicKey,
        )
    except ModuleNotFoundError as error:
        raise ConfigError(NO_EXTRA) from error
    try:
        public = Ed25519PublicKey.from_public_bytes(from_base64url(key))
        signed = from_base64url(signature)
        public.verify(signed, make_payload(agent_id, int(said_at), body))
    except (InvalidSignature, ValueError):
        return ""
    return f"{agent_id} {to_base64url(signed)}"


class SigningKey:
    """Our own key. `seed` are its 32 secret bytes, in base64url. Raises ConfigError."""

    def __init__(self, seed: str) -> None:
        try:
            from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415 -- an extra
                Ed25519PrivateKey,
            )
        except ModuleNotFoundError as error:
            raise ConfigError(NO_EXTRA) from error
        try:
            self._key = Ed25519PrivateKey.from_private_bytes(from_base64url(seed))
        except ValueError as error:
            raise ConfigError("the key of this Deskhand is none: 32 bytes in base64url") from error

    @property
    def public(self) -> str:
        return to_base64url(self._key.public_key().public_bytes_raw())

    def sign(self, agent_id: str, timestamp: int, body: bytes) -> dict[str, str]:
        """The headers of a request with this body."""
        signature = self._key.sign(make_payload(agent_id, timestamp, body))
        return {
            "x-acp-agent-id": agent_id,
            "x-acp-timestamp": str(timestamp),
            "x-acp-signature": to_base64url(signature),
        }


def to_base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def from_base64url(text: str) -> bytes:
    """Raises ValueError."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError("no base64url") from error
