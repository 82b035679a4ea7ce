"""MQTT: devices that write to `{prefix}/in/{device}` and are answered at `{prefix}/out/{device}`.

A message is acknowledged when the next inbound is asked for, and never before: until then the
broker keeps it, also while nobody is connected. Which device may write to which topic is the
broker's to decide.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from hashlib import sha256
from urllib.parse import urlsplit

import aiomqtt
import msgspec
from msgspec.structs import replace

from ...net.message_broker import MessageBroker
from ...net.mqtt import MqttClient, make_client, make_message_name, read_payload
from ...types.commit import Outgoing
from ...types.errors import ChannelError, ConfigError, SendRefused
from ...types.identity import Address, Inbound, Said
from ...types.labels import Label
from ...types.messages import File, Message, Part, Text
from ..base import (
    Allowing,
    Channel,
    ChannelContext,
    ChannelHealth,
    Healthy,
    Instructing,
    Introducing,
    Introduction,
)
from ..health_record import HealthRecord
from ..long_sends import LongSends
from ..markup import write_plain
from ..only_reader import only_reader
from ..pieces import MessageForm, Piece, prepend_note

FORM = MessageForm(text=60_000, buttons=False)
MAX_TEXT_CHARS = 32_000
PORTS = {"mqtt": 1883, "mqtts": 8883}
_INSTRUCTIONS = "The device {} reads this, and perhaps a program: answer briefly, in plain text."
_LEVEL = frozenset("+#/\0")
"""What the name of a device cannot contain: https://docs.oasis-open.org/mqtt/mqtt/v5.0, 4.7."""


def open_mqtt(context: ChannelContext) -> MqttChannel:
    """The broker of this configuration. Raises ConfigError where it cannot work, with what to
    do."""
    config = context.config
    place = urlsplit(config.base_url)
    if place.scheme not in PORTS or not place.hostname:
        raise ConfigError(
            f"channels.{context.name}.base_url has to be the address of a broker, such as "
            "mqtt://localhost or mqtts://broker.example.org"
        )
    prefix = config.prefix.strip("/")
    if not prefix or _LEVEL & set(prefix.replace("/", "")):
        raise ConfigError(f"channels.{context.name}.prefix cannot be {config.prefix!r}")
    password = context.secret(config.token_env or "MQTT_PASSWORD")
    account = sha256(f"{context.state.resolve()} {context.name}".encode()).hexdigest()[:12]
    broker = MessageBroker(
        host=place.hostname,
        port=place.port or PORTS[place.scheme],
        username=config.user,
        password=password if config.user else "",
        client_id=f"deskhand-{account}",
        tls=place.scheme == "mqtts",
    )
    return MqttChannel(context, broker, prefix)


class MqttChannel:
    """One broker. What it says is plain text."""

    idempotent = False

    def __init__(self, context: ChannelContext, broker: MessageBroker, prefix: str) -> None:
        self.name = context.name
        self._context = context
        self._broker = broker
        self._prefix = prefix
        self._client: MqttClient | None = None
        self._record = HealthRecord(context.now)
        self._long_sends = LongSends(FORM)

    # ------------------------------------------------------------------ in

    async def receive(self) -> AsyncIterator[Inbound]:
        with only_reader(self._context.state, self._broker.client_id):
            client = make_client(self._broker)
            async with self._translate_errors(), client:
                await client.subscribe([(f"{self._prefix}/in/+", 1)])
                self._client = client
                self._record.note_answer()
                try:
                    async for message in client.messages:
                        if not message.retain and (inbound := await self._read(message)):
                            yield inbound
                        client.acknowledge(message)
                        self._record.note_answer()
                finally:
                    self._client = None

    async def _read(self, message: aiomqtt.Message) -> Inbound | None:
        now = self._context.now()
        device = str(message.topic).rpartition("/")[2]
        name, parts = await self._read_parts(device, read_payload(message))
        if not parts or not device:
            return None
        return Inbound(
            f"{device}:{name}" if name else make_message_name(message, now),
            Address(self.name, "", device),
            device,
            now,
            Said(Message("user", parts)),
        )

    async def _read_parts(self, device: str, payload: bytes) -> tuple[str, tuple[Part, ...]]:
        """The device's own name of the message, or '', and what it says.

        Text is what somebody typed there, and so is `text` of a JSON object. Everything else is
        data, which may come from anywhere.
        """
        data = Label("untrusted", source=f"the device {device}")
        try:
            text = payload.decode()
        except UnicodeDecodeError:
            blob = await self._context.put_blob(payload)
            return "", (File(blob, "message.bin", "application/octet-stream", len(payload)),)
        try:
            said = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            said = text
        head = Text(f"[MQTT device: {device}]\n", data)
        if isinstance(said, dict) and isinstance(said.get("text"), str):
            return str(said.get("id", "")), (Text(said["text"]),)
        if isinstance(said, str):
            return "", (Text(said),) if said.strip() else ()
        shown = msgspec.json.format(msgspec.json.encode(said), indent=2).decode()
        if len(shown) > MAX_TEXT_CHARS:
            blob = await self._context.put_blob(payload)
            return "", (head, File(blob, "message.json", "application/json", len(payload)))
        return "", (head, Text(shown, data))

    # ------------------------------------------------------------------ out

    async def send(self, outgoing: Outgoing, mark: str) -> str:
        device = outgoing.address.chat
        if not device or _LEVEL & set(device):
            raise SendRefused(f"{device!r} cannot be the name of a device")

        async def send(i: int, piece: Piece) -> str:
            words = piece.words
            if piece.file is not None:
                words = prepend_note(words, f"{piece.file.name or 'a file'}: not sent by MQTT")
            await self._publish(device, write_plain(words).encode())
            return f"{outgoing.key} {i}"  # MQTT has no names for messages

        return await self._long_sends.send(outgoing, mark, send)

    async def _publish(self, device: str, payload: bytes) -> None:
        """Over the connection that is there, else over one for this message alone."""
        topic = f"{self._prefix}/out/{device}"
        async with self._translate_errors():
            if self._client is not None:
                await self._client.publish(topic, payload, qos=1)
                return
            alone = replace(self._broker, client_id=f"{self._broker.client_id}-out")
            async with make_client(alone) as client:
                await client.publish(topic, payload, qos=1)

    # ------------------------------------------------------------------ facts

    def instructions(self, address: Address) -> str:
        return _INSTRUCTIONS.format(address.chat)

    async def introduce(self) -> Introduction:
        """Connects for a moment."""
        async with self._translate_errors(), make_client(self._broker):
            pass
        return Introduction(self._broker.host, f"{self._prefix}/in/NAME")

    def health(self) -> ChannelHealth:
        return self._record.current

    @property
    def allow_from(self) -> tuple[str, ...]:
        return tuple(map(str, self._context.config.allow_from))

    def _translate_errors(self) -> AbstractAsyncContextManager[None]:
        """What the broker answers inside is noted, and raised as ours."""

        def translate(error: Exception) -> ChannelError:
            place = f"{self._broker.host}:{self._broker.port}"
            return ChannelError(f"cannot reach the broker {place}: {error}")

        return self._record.watch((aiomqtt.MqttError, OSError), translate)


_: type[Channel] = MqttChannel
_others: tuple[type[Instructing], type[Allowing], type[Healthy], type[Introducing]] = (
    MqttChannel,
    MqttChannel,
    MqttChannel,
    MqttChannel,
)
