"""The secret of this Deskhand for what it asks of agents elsewhere, made when it is first needed:
requests are signed with it, and the ids of tasks are bound to the conversation that was given them.
"""

from __future__ import annotations

import hmac
import secrets as random

from ..secrets.secrets import Secrets
from ..types.clock import Clock
from ..web.agent_signatures import SigningKey, to_base64url
from .client import Sign

NAME = "agent_server.key"
MARK_CHARS = 16


def load_seed(secrets: Secrets) -> str:
    """Raises ConfigError."""
    held = next((each.value for each in secrets.list_secrets() if each.name == NAME), "")
    if not held:
        held = to_base64url(random.token_bytes(32))
        secrets.set(NAME, held, "file")
    return held


def load_signing_key(secrets: Secrets) -> SigningKey:
    """Raises ConfigError."""
    return SigningKey(load_seed(secrets))


def make_sign(secrets: Secrets, agent: str, clock: Clock) -> Sign:
    """Signs requests in the name of this agent. Raises ConfigError."""
    key = load_signing_key(secrets)
    return lambda body: key.sign(agent, int(clock.now()), body)


def mark(seed: str, *parts: str) -> str:
    """What nobody can make up for these parts who does not have the seed."""
    return hmac.new(seed.encode(), "\0".join(parts).encode(), "sha256").hexdigest()[:MARK_CHARS]
