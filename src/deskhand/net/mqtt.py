"""A client of an MQTT broker that acknowledges a message once it is taken, and not when it comes.
Imported where a broker is configured alone: it needs the extra `mqtt`."""

from __future__ import annotations

import ssl
from typing import Any, Self

import aiomqtt

from .message_broker import MessageBroker

KEEPALIVE_S = 30
TIMEOUT_S = 10.0
MAX_QUEUED = 1_000


class MqttClient(aiomqtt.Client):
    """`repeated` are the numbers of messages that the broker has sent before, and nobody has
    acknowledged.

    It asks the event loop to write only while its socket is open. aiomqtt 2.5 asks a moment too
    late, when another socket may have the same number.
    """

    repeated: set[int]

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

    def _on_message(self, client: Any, userdata: Any, message: Any) -> None:
        (self.repeated.add if message.dup else self.repeated.discard)(message.mid)
        super()._on_message(client, userdata, message)

    async def __aenter__(self) -> Self:
        try:
            return await super().__aenter__()
        except BaseException:  # aiomqtt leaves the socket open where it is cancelled
            self._client._sock_close()
            raise

    def acknowledge(self, message: aiomqtt.Message) -> None:
        """It is taken: the broker may forget it."""
        if message.qos:
            self._client.ack(message.mid, message.qos)


def make_client(broker: MessageBroker, *, keeps: bool = True) -> MqttClient:
    """A client whose messages wait for `acknowledge`. The broker has one connection for each
    `client_id`, the newest; unless it `keeps` what comes, it forgets all of it at the end."""
    client = MqttClient(
        broker.host,
        broker.port,
        username=broker.username or None,
        password=broker.password or None,
        identifier=broker.client_id,
        clean_session=not keeps,
        timeout=TIMEOUT_S,
        keepalive=KEEPALIVE_S,
        max_queued_incoming_messages=MAX_QUEUED,
        tls_context=ssl.create_default_context() if broker.tls else None,
    )
    client.repeated = set()
    client._client.manual_ack_set(True)  # aiomqtt cannot leave acknowledging to us
    return client


def read_payload(message: aiomqtt.Message) -> bytes:
    payload = message.payload
    return payload if isinstance(payload, bytes) else str(payload).encode()
