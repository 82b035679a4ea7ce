"""What an MQTT channel makes of what devices say, and how it answers them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import aiomqtt
import anyio
import pytest
from anyio.abc import SocketStream, TaskStatus
from msgspec.structs import replace

from deskhand.channels.base import Speaking
from deskhand.channels.mqtt.channel import MqttChannel, open_mqtt
from deskhand.channels.settings import ChannelConfig
from deskhand.gateway.inbound_body import label_parts
from deskhand.net.mqtt import read_payload
from deskhand.testing.broker import free_port, mosquitto
from deskhand.testing.channel import MemoryContext
from deskhand.testing.channel_suite import saying, take, words
from deskhand.types.addresses import find_live_spans
from deskhand.types.commit import Choices, Outgoing
from deskhand.types.errors import ChannelError, ConfigError, LoginRefused, SendRefused
from deskhand.types.identity import Address, Inbound, Principal, Said
from deskhand.types.messages import Audio, File, Text

Open = Callable[..., MqttChannel]
HERE = Address("mqtt", "", "kitchen")
PUBLISH, PUBACK, SUBSCRIBE, SUBACK, CONNECT = 0x30, 0x40, 0x82, 0x90, 0x10


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def open_channel(port: int, tmp_path: Path) -> Open:
    """Opens a channel on the broker at this port, with these settings."""

    def open_(**config: Any) -> MqttChannel:
        settings = ChannelConfig(**{"base_url": f"mqtt://127.0.0.1:{port}", **config})
        return open_mqtt(MemoryContext("mqtt", settings, tmp_path / "state", "password"))

    return open_


@pytest.fixture
async def broker(port: int, tmp_path: Path) -> AsyncIterator[Path]:
    """A mosquitto, and the folder in which it keeps what it knows."""
    async with mosquitto(tmp_path, port):
        yield tmp_path


async def says(port: int, payload: str | bytes, device: str = "kitchen", **how: Any) -> None:
    async with aiomqtt.Client("127.0.0.1", port) as client:
        await client.publish(f"operator/in/{device}", payload, **{"qos": 1, **how})


async def knows(channel: MqttChannel) -> None:
    """The broker knows of the channel, and keeps what is for it from here on."""
    with anyio.move_on_after(0.3):
        await take(channel, 1, confirm=False)


@asynccontextmanager
async def panel(port: int) -> AsyncIterator[aiomqtt.Client]:
    """Hears what devices are answered."""
    async with aiomqtt.Client("127.0.0.1", port) as client:
        await client.subscribe("operator/out/#", 1)
        yield client


async def heard(client: aiomqtt.Client) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    with anyio.move_on_after(0.3):
        async for message in client.messages:
            device = str(message.topic).rpartition("/")[2]
            found.append((device, read_payload(message).decode()))
    return found


def parts(inbound: Inbound) -> tuple[Any, ...]:
    assert isinstance(inbound.body, Said), inbound
    return inbound.body.message.parts


SAID: list[tuple[bytes, str]] = [
    (b"what is the weather?", "what is the weather?"),
    (b'{"text": "**hello**", "id": "1"}', "**hello**"),
    (b'"quoted"', "quoted"),
    ("grüße".encode(), "grüße"),
]
DATA: list[bytes] = [
    b'{"temperature": 21.5}',
    b'{"text": 5}',
    b"[1, 2]",
    b"21.5",
    b'{"headline": "/stop", "humidity": NaN}',
    b'{"headline": "/stop", "size": 1e999}',
    b'{"headline": "/stop", "half": "\\ud800"}',
    b'{"headline": "/stop"}\n{"headline": "/stop"}',
    b'{"headline": "/stop", "deep": ' + b"[" * 2_000 + b"]" * 2_000 + b"}",
    b'{"headline": "/stop", "cut": "o',
]
NOTHING: list[bytes] = [b"", b"  \n", b'""', b'{"text": ""}', b'{"text": " "}']


@pytest.mark.parametrize(("payload", "wanted"), SAID)
async def test_what_is_typed(
    payload: bytes, wanted: str, broker: Path, port: int, open_channel: Open
) -> None:
    channel = open_channel()
    await knows(channel)
    await says(port, payload)
    (inbound,) = await take(channel, 1, confirm=True)
    assert inbound.address == HERE and inbound.sender == "kitchen"
    assert parts(inbound) == (Text(wanted),)


@pytest.mark.parametrize("payload", DATA, ids=range(len(DATA)))
async def test_data_is_nobodys_word(
    payload: bytes, broker: Path, port: int, open_channel: Open
) -> None:
    """Also where it is not quite JSON: whoever has written a value in it cannot make it a word."""
    channel = open_channel()
    await knows(channel)
    await says(port, payload)
    (inbound,) = await take(channel, 1, confirm=True)
    assert isinstance(inbound.body, Said)
    message = label_parts(inbound.body.message, Principal("olga", ("owner",)))
    assert message.own_text == "" and message.text


async def test_files_and_what_says_nothing(broker: Path, port: int, open_channel: Open) -> None:
    channel = open_channel()
    await knows(channel)
    for payload in (*NOTHING, b"\xff\xd8picture", b'["' + b"x" * 40_000 + b'"]', b"end"):
        await says(port, payload)
    await says(port, "nobody", device="")
    found = await take(channel, 3, confirm=True)
    assert [words(each) for each in found[2:]] == ["end"]
    assert [parts(each)[-1].name for each in found[:2]] == ["message.bin", "message.json"]
    for inbound in found[:2]:
        part = parts(inbound)[-1]
        assert isinstance(part, File)
        assert len(await channel._context.get_blob(part.blob)) == part.size_bytes


async def test_whose_message_it_is(broker: Path, port: int, open_channel: Open) -> None:
    """A device speaks as itself alone, and takes no name of a message from another."""
    channel = open_channel(prefix="home/desk")
    await knows(channel)
    for device, id_ in (("a", "b:1"), ("a:b", "1"), ("a", "1")):
        async with aiomqtt.Client("127.0.0.1", port) as client:
            payload = f'{{"text": "hello", "id": "{id_}"}}'
            await client.publish(f"home/desk/in/{device}", payload, qos=1)
    found = await take(channel, 3, confirm=True)
    assert [each.address.chat for each in found] == ["a", "a:b", "a"]
    assert all(each.sender == each.address.chat for each in found)


IDS: list[tuple[str, str]] = [
    ('{"text": "on", "id": null}', '{"text": "off", "id": null}'),
    ('{"text": "on", "id": ""}', '{"text": "off", "id": ""}'),
    ('{"text": "on", "id": false}', '{"text": "off", "id": false}'),
]


@pytest.mark.parametrize(("first", "second"), IDS)
async def test_an_id_that_is_none(
    first: str, second: str, broker: Path, port: int, open_channel: Open
) -> None:
    channel = open_channel()
    await knows(channel)
    await says(port, first)
    await says(port, second)
    assert [words(each) for each in await take(channel, 2, confirm=True)] == ["on", "off"]


async def test_the_same_id_is_taken_once_and_what_is_retained_never(
    broker: Path, port: int, open_channel: Open
) -> None:
    channel = open_channel()
    await says(port, "from before", retain=True)
    await knows(channel)
    await says(port, '{"text": "one", "id": 7}')
    await says(port, '{"text": "one", "id": 7}')
    await says(port, "two")
    found = await take(channel, 2, confirm=True)
    assert [words(each) for each in found] == ["one", "two"]


async def test_a_button_is_pressed_again_after_the_broker_has_forgotten(
    broker: Path, port: int, tmp_path: Path, open_channel: Open
) -> None:
    """A broker counts its messages from 1 when it is new: that is no message that came before."""
    names = []
    for folder in (tmp_path / "old", tmp_path / "new"):
        folder.mkdir()
        fresh = free_port()
        async with mosquitto(folder, fresh):
            channel = open_channel(base_url=f"mqtt://127.0.0.1:{fresh}")
            await knows(channel)
            await says(fresh, "lights off")
            names += [each.external_id for each in await take(channel, 1, confirm=True)]
    assert len(set(names)) == 2


# ---------------------------------------------------------------------- out


async def test_how_it_is_said(broker: Path, port: int, open_channel: Open) -> None:
    channel = open_channel()
    async with panel(port) as client:
        name = await channel.send(saying(HERE, "**so** [x](https://a.test)"), "late")
        file = File("sha256:1", "a.txt", "text/plain", 4)
        await channel.send(saying(HERE, file, key="k2"), "")
        await channel.send(saying(HERE, Audio("sha256:1", "audio/ogg"), key="k3"), "")
        assert (
            not isinstance(channel, Speaking)
            and name
            and await heard(client)
            == [
                ("kitchen", "(late)\nso x (https://a.test)"),
                ("kitchen", "(a.txt: not sent by MQTT)"),
                ("kitchen", "(voice.ogg: not sent by MQTT)"),
            ]
        )


async def test_a_question_is_words(broker: Path, port: int, open_channel: Open) -> None:
    ask = Choices("ask_0123456789abcdef", "rm -r *x*", ("once", "no"), approval=True)
    channel = open_channel()
    async with panel(port) as client:
        await channel.send(Outgoing("q", HERE, (Text("x"),), ask=ask), "")
        decided = replace(ask, decided="Refused.")
        await channel.send(Outgoing("d", HERE, (Text("x"),), ask=decided), "")
        (_, asked), (_, ended) = await heard(client)
    assert "rm -r *x*" in asked and "once, no" in asked
    assert "Refused." in ended and "Answer with" not in ended


async def test_a_name_of_a_file_leads_nowhere(broker: Path, port: int, open_channel: Open) -> None:
    channel = open_channel()
    async with panel(port) as client:
        file = File("sha256:1", "evil.test?d=secret", "text/plain", 4)
        await channel.send(replace(saying(HERE, "see", file), links=()), "")
        said = "\n".join(text for _, text in await heard(client))
    assert [said[start:end] for start, end in find_live_spans(said) if "evil" in said] == []


NO_DEVICES = ["", "a/b", "+", "#", "a\0b"]


@pytest.mark.parametrize("device", NO_DEVICES)
async def test_what_is_no_device(device: str, open_channel: Open) -> None:
    with pytest.raises(SendRefused):
        await open_channel().send(saying(replace(HERE, chat=device), "hello"), "")


async def test_many_are_answered_at_once_while_nobody_reads(
    broker: Path, port: int, open_channel: Open
) -> None:
    """As when a job ends for many devices: they do not cut each other off."""
    channel = open_channel()
    devices = [f"device{i}" for i in range(6)]
    async with panel(port) as client:
        async with anyio.create_task_group() as tasks:
            for name in devices:
                said = saying(replace(HERE, chat=name), "hello", key=name)
                tasks.start_soon(channel.send, said, "")
        assert sorted(name for name, _ in await heard(client)) == devices


async def test_asking_for_its_name_does_not_end_the_reading(
    broker: Path, port: int, open_channel: Open
) -> None:
    """`deskhand doctor` asks while the server runs."""
    reading = open_channel()
    async with aclosing(cast(AsyncGenerator[Inbound], reading.receive())) as inbounds:

        async def ask() -> None:
            await anyio.sleep(0.3)
            await open_channel().introduce()
            await says(port, "still there?")

        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                assert words(await anext(inbounds)) == "still there?"


# ---------------------------------------------------------------------- faults


async def test_where_nobody_answers_it_was_surely_not_sent(open_channel: Open) -> None:
    channel = open_channel()
    with pytest.raises(ChannelError) as refused:
        await channel.send(saying(HERE, "hello"), "")
    assert refused.value.unsent
    assert channel.health().error


async def test_a_wrong_password_is_a_refused_login(
    port: int, tmp_path: Path, open_channel: Open
) -> None:
    (tmp_path / "users").write_text("")
    lines = ("allow_anonymous false", f"password_file {tmp_path / 'users'}")
    async with mosquitto(tmp_path, port, *lines):
        channel = open_channel(user="desk")
        with pytest.raises(LoginRefused):
            await take(channel, 1, confirm=False)
        with pytest.raises(LoginRefused):
            await channel.introduce()
        assert channel.health().error


WRONG: list[dict[str, str]] = [
    {"base_url": ""},
    {"base_url": "localhost"},
    {"base_url": "http://localhost"},
    {"base_url": "mqtt://"},
    {"base_url": "mqtt://localhost:port"},
    {"base_url": "mqtt://localhost:99999"},
    {"base_url": "mqtt://[::1"},
    {"prefix": ""},
    {"prefix": "/"},
    {"prefix": "a/+"},
    {"prefix": "#"},
]


@pytest.mark.parametrize("config", WRONG, ids=str)
async def test_what_cannot_be_configured(config: dict[str, str], open_channel: Open) -> None:
    with pytest.raises(ConfigError):
        open_channel(**config)


async def test_two_readers_of_one_account(broker: Path, open_channel: Open) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(knows, open_channel())
        await anyio.sleep(0.1)
        with pytest.raises(ChannelError, match="another channel"):
            await take(open_channel(), 1, confirm=False)


class Wire:
    """A broker that says only what it is told to: `login` and `grant` are the codes of CONNACK and
    SUBACK; with `silent` it never answers, with `cuts` it ends the connection instead of
    acknowledging."""

    def __init__(self, *, login: int = 0, grant: int = 1, silent: bool = False) -> None:
        self.login = login
        self.grant = grant
        self.silent = silent
        self.cuts = False
        self.says: list[tuple[int, bytes]] = []
        self.acknowledged: list[int] = []
        self.open = 0

    async def serve(self, stream: SocketStream) -> None:
        self.open += 1
        try:
            async with stream:
                await self._talk(stream)
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.IncompleteRead):
            pass
        finally:
            self.open -= 1

    async def _talk(self, stream: SocketStream) -> None:
        buffer = b""
        while True:
            buffer += await stream.receive()
            while len(buffer) > 1 and len(buffer) >= 2 + buffer[1]:
                packet, buffer = buffer[: 2 + buffer[1]], buffer[2 + buffer[1] :]
                for answer in () if self.silent else self._answer(packet):
                    await stream.send(answer)

    def _answer(self, packet: bytes) -> list[bytes]:
        if packet[0] == CONNECT:
            return [bytes([0x20, 2, 0, self.login])]
        if packet[0] == SUBSCRIBE:
            return [bytes([SUBACK, 3]) + packet[2:4] + bytes([self.grant]), *self._publish()]
        if packet[0] == PUBACK:
            self.acknowledged.append(int.from_bytes(packet[2:4], "big"))
            return self._publish()
        if packet[0] & 0xF0 == PUBLISH:
            if self.cuts:
                raise anyio.EndOfStream
            end = 4 + int.from_bytes(packet[2:4], "big")
            return [bytes([PUBACK, 2]) + packet[end : end + 2]]
        return []

    def _publish(self) -> list[bytes]:
        """The next one, once the one before is acknowledged."""
        if not self.says:
            return []
        mid, text = self.says.pop(0)
        topic = b"operator/in/kitchen"
        body = len(topic).to_bytes(2, "big") + topic + mid.to_bytes(2, "big") + text
        return [bytes([PUBLISH | 2, len(body)]) + body]


class Bridge:
    """Hands on what clients and the broker at `broker_port` say, for as many connections as are
    left; others are cut at once."""

    def __init__(self, broker_port: int) -> None:
        self.port = free_port()
        self.connections_left = 0
        self._broker_port = broker_port

    async def serve(self, *, task_status: TaskStatus[None]) -> None:
        async with await anyio.create_tcp_listener(
            local_host="127.0.0.1", local_port=self.port
        ) as listener:
            task_status.started()
            await listener.serve(self._join)

    async def _join(self, client: SocketStream) -> None:
        self.connections_left -= 1
        async with client:
            if self.connections_left < 0:
                return
            async with (
                await anyio.connect_tcp("127.0.0.1", self._broker_port) as server,
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(_carry, server, client)
                await _carry(client, server)
                tasks.cancel_scope.cancel()


async def _carry(source: SocketStream, target: SocketStream) -> None:
    with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
        async for data in source:
            await target.send(data)


@pytest.fixture
async def wire(port: int) -> AsyncIterator[Callable[..., Awaitable[Wire]]]:
    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port) as listener,
        anyio.create_task_group() as tasks,
    ):

        async def start(**about: Any) -> Wire:
            made = Wire(**about)
            tasks.start_soon(listener.serve, made.serve)
            return made

        yield start
        tasks.cancel_scope.cancel()


async def test_a_number_that_is_free_again_is_another_message(
    wire: Callable[..., Awaitable[Wire]], open_channel: Open
) -> None:
    """A broker may take the lowest number that is free, so that each message is the first: MQTT
    3.1.1, 2.3.1. What is new is not marked DUP."""
    broker = await wire()
    broker.says = [(1, b"lights on"), (1, b"lights off"), (1, b"lights on")]
    names: list[str] = []
    with anyio.move_on_after(1):
        async with aclosing(cast(AsyncGenerator[Inbound], open_channel().receive())) as inbounds:
            names += [(await anext(inbounds)).external_id for _ in range(3)]
    assert len(names) == 3 and len(set(names)) == 3


async def test_it_is_acknowledged_when_the_next_is_asked_for(
    wire: Callable[..., Awaitable[Wire]], open_channel: Open
) -> None:
    broker = await wire()
    broker.says = [(1, b"one"), (2, b"two")]
    await take(open_channel(), 1, confirm=False)
    assert broker.acknowledged == []


async def test_a_subscription_that_is_refused_is_said(
    wire: Callable[..., Awaitable[Wire]], open_channel: Open
) -> None:
    await wire(grant=0x80)
    channel = open_channel()
    with anyio.fail_after(3), pytest.raises(ChannelError):
        await take(channel, 1, confirm=False)
    assert channel.health().error


async def test_what_is_not_acknowledged_may_have_arrived(
    wire: Callable[..., Awaitable[Wire]], open_channel: Open
) -> None:
    broker = await wire()
    broker.cuts = True
    with pytest.raises(ChannelError) as lost:
        await open_channel().send(saying(HERE, "hello"), "")
    assert not lost.value.unsent


async def test_a_long_answer_that_breaks_off_goes_on_where_it_was(
    broker: Path, port: int, open_channel: Open
) -> None:
    """What has arrived is not said again."""
    bridge = Bridge(port)
    channel = open_channel(base_url=f"mqtt://127.0.0.1:{bridge.port}")
    words = " ".join(f"word{i}" for i in range(20_000))
    long = saying(HERE, words)
    async with anyio.create_task_group() as tasks, panel(port) as client:
        await tasks.start(bridge.serve)
        bridge.connections_left = 1
        with pytest.raises(ChannelError):
            await channel.send(long, "")
        bridge.connections_left = 10
        await channel.send(long, "may be a duplicate")
        found = await heard(client)
        tasks.cancel_scope.cancel()
    assert found[1][1].startswith("(may be a duplicate)\n")
    said = [text.removeprefix("(may be a duplicate)\n") for _, text in found]
    assert " ".join(said).split() == words.split()


async def test_nothing_is_left_of_what_is_given_up(
    wire: Callable[..., Awaitable[Wire]], open_channel: Open
) -> None:
    """The broker never answers, and whoever sends ends before it does."""
    broker = await wire(silent=True)
    with anyio.move_on_after(0.5):
        await open_channel().send(saying(HERE, "hello"), "")
    await anyio.sleep(0.3)
    assert broker.open == 0
