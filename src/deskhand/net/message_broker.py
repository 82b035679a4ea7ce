"""Where an MQTT broker is."""

from __future__ import annotations

import msgspec


class MessageBroker(msgspec.Struct, frozen=True, kw_only=True):
    """A broker, and as whom to connect to it. As long as the `client_id` stays the same, the broker
    keeps what was not acknowledged, also while nobody is connected."""

    host: str
    port: int
    username: str
    password: str
    client_id: str
    tls: bool
