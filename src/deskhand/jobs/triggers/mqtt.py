"""Listens to an MQTT broker. Loaded by its entry point alone: it needs the extra `mqtt`."""

from __future__ import annotations

from collections.abc import Collection
from hashlib import sha256

import aiomqtt

from ...net.message_broker import MessageBroker
from ...net.mqtt import make_client, read_payload
from ...types.clock import Clock
from ...types.errors import NetError
from .broker import Listen, Subscriber


async def listen(
    broker: MessageBroker, topics: Collection[str], subscriber: Subscriber, clock: Clock
) -> None:
    """Hand in messages on these topics until the connection breaks. Raises NetError.

    A message is acknowledged when the subscriber has taken it. Until then the broker keeps it, also
    while nobody listens: the client id never changes, and its session is not clean. A message that
    comes twice has the same slot. Retained messages, which a broker repeats for every new
    subscription, are left out.
    """
    client = make_client(broker)
    try:
        async with client:
            await client.subscribe([(topic, 1) for topic in sorted(topics)])
            subscriber.report_broker_problem("")
            async for message in client.messages:
                if not message.retain:
                    payload = read_payload(message)
                    slot = _slot(message, payload, clock.now())
                    await subscriber.on_message(str(message.topic), payload, slot)
                client.acknowledge(message)
    except (aiomqtt.MqttError, OSError) as error:
        raise NetError(f"cannot reach the broker {broker.host}:{broker.port}: {error}") from error


def _slot(message: aiomqtt.Message, payload: bytes, now: float) -> str:
    """The name of a message. One that was not acknowledged comes again with the number that it had.
    Numbers are used again, so the hour is part of the name. A message without delivery guarantee
    (QoS 0) has no number, and comes once."""
    about = sha256(b"\0".join((str(message.topic).encode(), payload))).hexdigest()[:24]
    if message.qos:
        return f"mqtt:{message.mid}:{int(now // 3600)}:{about}"
    return f"mqtt:0:{now:.6f}:{about}"


_listen: Listen = listen
