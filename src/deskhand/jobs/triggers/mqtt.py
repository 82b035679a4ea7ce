"""Messages of an MQTT broker set jobs off. Loaded by its entry point alone: it needs the extra
`mqtt`."""

from __future__ import annotations

import ssl
from collections.abc import Collection
from hashlib import sha256
from typing import Any

import aiomqtt

from ...types.errors import NetError
from .broker import MessageBroker, OnMessage

KEEPALIVE_S = 30
TIMEOUT_S = 10.0
MAX_QUEUED = 1_000


class Client(aiomqtt.Client):
    """One that asks the event loop to write only while its socket is open: aiomqtt 2.5 asks a
    moment too late, when the number of the socket may be that of another one."""

    def _on_socket_register_write(self, client: Any, userdata: Any, sock: Any) -> None:
        loop = self._loop

        def write() -> None:
            try:
                client.loop_write()
            except (
                OSError,
                ValueError,
            ) as error:  # what is wrong with the connection is told where it is read from
                if not self._disconnected.done():
                    self._disconnected.set_exception(error)

        def register() -> None:
            if sock.fileno() > -1:
                loop.add_writer(sock.fileno(), write)

        loop.call_soon_threadsafe(register)  # paho connects in a thread


async def listen(broker: MessageBroker, topics: Collection[str], took: OnMessage) -> None:
    """Hand in what comes on these topics, until the connection breaks. Raises NetError.

    A message is acknowledged when `took` has returned, and until then the broker keeps it, also
    while nobody listens: the client has a name for ever, and its session is not clean. What comes
    twice then has the same slot. What a broker only repeats because somebody subscribes (retained)
    is nothing that has happened.
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
    paho = client._client  # aiomqtt has no word for it: acknowledging is left to us
    paho.manual_ack_set(True)
    try:
        async with client:
            await client.subscribe([(topic, 1) for topic in sorted(topics)])
            broker.connected()
            async for message in client.messages:
                payload = (
                    message.payload
                    if isinstance(message.payload, bytes)
                    else str(message.payload).encode()
                )
                if not message.retain:
                    await took(str(message.topic), payload, _slot(message, payload, broker.now()))
                if message.qos:
                    paho.ack(message.mid, message.qos)
    except (aiomqtt.MqttError, OSError) as error:
        raise NetError(f"the broker {broker.host}:{broker.port} is not reached: {error}") from error


def _slot(message: aiomqtt.Message, payload: bytes, now: float) -> str:
    """What was not acknowledged comes again with the number that it had. Numbers begin anew, so an
    hour belongs to them; a message that nobody keeps (QoS 0) has none, and comes once."""
    about = sha256(b"\0".join((str(message.topic).encode(), payload))).hexdigest()[:24]
    return (
        f"mqtt:{message.mid}:{int(now // 3600)}:{about}"
        if message.qos
        else f"mqtt:0:{now:.6f}:{about}"
    )
