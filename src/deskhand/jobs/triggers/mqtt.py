"""Listens to an MQTT broker. Loaded by its entry point alone: it needs the extra `mqtt`."""

from __future__ import annotations

import ssl
from collections.abc import Collection
from hashlib import sha256
from typing import Any

import aiomqtt

from ...types.clock import Clock
from ...types.errors import NetError
from .broker import Listen, MessageBroker, Subscriber

KEEPALIVE_S = 30
TIMEOUT_S = 10.0
MAX_QUEUED = 1_000


class Client(aiomqtt.Client):
    """Asks the event loop to write only while its socket is open. aiomqtt 2.5 asks a moment too
    late, when another socket may have the same number."""

    def _on_socket_register_write(self, client: Any, userdata: Any, sock: Any) -> None:
        loop = self._loop

        def write() -> None:
            try:
                client.loop_write()
            except (OSError, ValueError) as error:  # raised again where messages are read
                if not self._disconnected.done():
                    self._disconnected.set_exception(error)

        def register() -> None:
            if sock.fileno() > -1:
                loop.add_writer(sock.fileno(), write)

        loop.call_soon_threadsafe(register)  # paho connects in a thread


async def listen(
    broker: MessageBroker, topics: Collection[str], subscriber: Subscriber, clock: Clock
) -> None:
    """Hand in messages on these topics until the connection breaks. Raises NetError.

    A message is acknowledged when the subscriber has taken it. Until then the broker keeps it, also
    while nobody listens: the client id never changes, and its session is not clean. A message that
    comes twice has the same slot. Retained messages, which a broker repeats for every new
    subscription, are left out.
    """
    client = Client(
        broker.host,
        broker.port,
        username=broker.username or None,
        password=broker.password or None,
        identifier=broker.client_id,
        clean_session=False,
        timeout=TIMEOUT_S,
        keepalive=KEEPALIVE_S,
        max_queued_incoming_messages=MAX_QUEUED,
        tls_context=ssl.create_default_context() if broker.tls else None,
    )
    paho = client._client  # aiomqtt cannot leave acknowledging to us
    paho.manual_ack_set(True)
    try:
        async with client:
            await client.subscribe([(topic, 1) for topic in sorted(topics)])
            subscriber.report_broker_problem("")
            async for message in client.messages:
                payload = message.payload
                if not isinstance(payload, bytes):
                    payload = str(payload).encode()
                if not message.retain:
                    slot = _slot(message, payload, clock.now())
                    await subscriber.on_message(str(message.topic), payload, slot)
                if message.qos:
                    paho.ack(message.mid, message.qos)
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
