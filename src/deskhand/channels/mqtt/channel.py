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
from uuid import uuid4

import aiomqtt
import msgspec
from msgspec.structs import replace

from ...net.message_broker import MessageBroker
from ...net.mqtt import MqttClient, make_client, read_payload
from ...types.commit import Outgoing
from ...types.errors import ChannelError, ConfigError, LoginRefused, SendRefused
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
from ..pieces import MessageForm, Piece, find_attachment_name, prepend_note

FORM = MessageForm(text=60_000, buttons=False)
MAX_TEXT_CHARS = 32_000
PORTS = {"mqtt": 1883, "mqtts": 8883}
_INSTRUCTIONS = "The device {} reads this, and perhaps a program: answer briefly, in plain text."
REFUSED_CODE = 128
"""Answers to a subscription from here on are refusals."""
_LEVEL = frozenset("+#/\0")
"""What the name of a device cannot contain: https://docs.oasis-open.org/mqtt/mqtt/v5.0, 4.7."""


def open_mqtt(context: ChannelContext) -> MqttChannel:
    """The broker of this configuration. Raises ConfigError where it cannot work, with what to
    do."""
    config = context.config
    try:
        place = urlsplit(config.base_url)
        port = place.port or PORTS.get(place.scheme, 0)
    except ValueError:
        place, port = urlsplit(""), 0
    if not port or place.scheme not in PORTS or not place.hostname:
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
        port=port,
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
        self._names = self._load_names()
        self._record = HealthRecord(context.now)
        self._long_sends = LongSends(FORM)

    # ------------------------------------------------------------------ in

    async def receive(self) -> AsyncIterator[Inbound]:
        with only_reader(self._context.state, self._broker.client_id):
            client = make_client(self._broker)
            async with self._translate_errors(), client:
                granted = await client.subscribe([(f"{self._prefix}/in/+", 1)])
                if any(int(str(getattr(each, "value", each))) >= REFUSED_CODE for each in granted):
                    why = f"the broker does not let this user read {self._prefix}/in/+"
                    raise LoginRefused(why, 300)
                self._client = client
                self._record.note_answer()
                try:
                    async for message in client.messages:
                        if not message.retain and (inbound := await self._read(client, message)):
                            yield inbound
                        client.acknowledge(message)
                        self._names.pop(message.mid, None)
                        self._record.note_answer()
                finally:
                    self._client = None

    async def _read(self, client: MqttClient, message: aiomqtt.Message) -> Inbound | None:
        device = str(message.topic).rpartition("/")[2]
        own, parts = await self._read_parts(device, read_payload(message))
        if not parts or not device:
            return None
        return Inbound(
            f"own:{own}" if own else self._find_name(client, message),
            Address(self.name, "", device),
            device,
            self._context.now(),
            Said(Message("user", parts)),
        )

    def _find_name(self, client: MqttClient, message: aiomqtt.Message) -> str:
        """A name that nothing else has; of a message that the broker sends again it is the one of
        before. The broker uses its numbers again, so that they are no names."""
        known = self._names.get(message.mid, "") if message.mid in client.repeated else ""
        name = known or uuid4().hex
        if message.qos and not known:
            self._names[message.mid] = name
            self._context.save_cursor(msgspec.json.encode(self._names).decode())
        return name

    def _load_names(self) -> dict[int, str]:
        try:
            return msgspec.json.decode(self._context.load_cursor() or "{}", type=dict[int, str])
        except (msgspec.DecodeError, RecursionError):
            return {}

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
            shown = msgspec.json.format(text, indent=2)
        except (msgspec.DecodeError, RecursionError, ValueError):
            said, shown = None if text.lstrip()[:1] in ("{", "[") else text, text
        if isinstance(said, dict) and isinstance(said.get("text"), str):
            given = said.get("id")
            named = isinstance(given, str | int) and not isinstance(given, bool) and given != ""
            own = msgspec.json.encode([device, given]).decode() if named else ""
            return own, (Text(said["text"]),) if said["text"].strip() else ()
        if isinstance(said, str):
            return "", (Text(said),) if said.strip() else ()
        head = Text(f"[MQTT device: {device}]\n", data)
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
                words = prepend_note(words, f"{find_attachment_name(piece.file)}: not sent by MQTT")
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
            async with self._visit() as client:
                await client.publish(topic, payload, qos=1)

    def _visit(self) -> MqttClient:
        """A connection beside the one that reads, under a name of its own."""
        alone = replace(self._broker, client_id=f"deskhand-{uuid4().hex[:12]}")
        return make_client(alone, keeps=False)

    # ------------------------------------------------------------------ facts

    def instructions(self, address: Address) -> str:
        return _INSTRUCTIONS.format(address.chat)

    async def introduce(self) -> Introduction:
        """Connects for a moment."""
        async with self._translate_errors(), self._visit():
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
            if "not authori" in str(error).lower() or "bad user name" in str(error).lower():
                why = f"the broker {place} does not accept this user and password"
                return LoginRefused(why, 300, unsent=True)
            unsent = "refused" in str(error).lower()
            return ChannelError(f"cannot reach the broker {place}: {error}", unsent=unsent)

        return self._record.watch((aiomqtt.MqttError, OSError), translate)


_: type[Channel] = MqttChannel
_others: tuple[type[Instructing], type[Allowing], type[Healthy], type[Introducing]] = (
    MqttChannel,
    MqttChannel,
    MqttChannel,
    MqttChannel,
)
