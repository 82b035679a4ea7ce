"""Every channel passes the suite."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import msgspec
import pytest
from aiohttp import web
from msgspec.structs import replace

from deskhand.channels.base import Channel
from deskhand.channels.slack.channel import SlackChannel
from deskhand.channels.telegram.channel import TelegramChannel
from deskhand.channels.webhook import Webhook
from deskhand.config.clock import SystemClock
from deskhand.config.config import Config, Home, Settings
from deskhand.runtime.app import Parts, open_app
from deskhand.testing.channel import MemoryContext, MemoryEditor
from deskhand.testing.channel_suite import CASES, Case, Stage
from deskhand.testing.discord.server import DiscordServer
from deskhand.testing.mail.server import MailServer
from deskhand.testing.matrix.synapse import Homeserver, Synapse
from deskhand.testing.ogg import make_silence
from deskhand.testing.platform import HttpChannel, Platform, Update
from deskhand.testing.scripted import ScriptedModel
from deskhand.testing.slack.server import SlackServer
from deskhand.testing.telegram.server import TelegramServer
from deskhand.testing.twitch.server import TwitchServer
from deskhand.types.identity import Address, Said
from deskhand.types.labels import Label
from deskhand.types.messages import Audio, File, Image, Message, Text
from deskhand.types.webhooks import WebhookRequest

from .stages import (
    DiscordStage,
    MailStage,
    MatrixStage,
    MqttStage,
    SlackStage,
    TwitchStage,
    settle,
)

ANN = 77
PUBLIC = "https://desk.example.org"
_NUMBERS = count(1)
SERVERS: dict[str, tuple[Any, Any]] = {
    "slack": (SlackStage, SlackServer),
    "discord": (DiscordStage, DiscordServer),
    "twitch": (TwitchStage, TwitchServer),
    "mail": (MailStage, MailServer),
}


def live_text(message: Mapping[str, Any]) -> str:
    """The words of a message of Telegram that are in no code, and the targets of its links."""
    text = str(message.get("text", message.get("caption", "")))
    entities = message.get("entities", message.get("caption_entities", []))
    assert len(entities) <= 100, "more are ignored"
    halves = text.encode("utf-16-le")
    live = bytearray(halves)
    for each in entities:
        if each["type"] in ("code", "pre"):
            start = 2 * each["offset"]
            end = 2 * (each["offset"] + each["length"])
            live[start:end] = "\n".encode("utf-16-le") * each["length"]
    return live.decode("utf-16-le") + "\n".join(str(each.get("url", "")) for each in entities)


class MemoryStage:
    keeps = True
    nowhere = Address("memory", chat="nowhere")

    def __init__(self) -> None:
        self._channel = MemoryEditor()
        self.blobs: dict[str, bytes] = {}

    def open(self) -> Channel:
        return self._channel

    async def says(self, text: str) -> None:
        self._channel.write(text)

    async def passes_on(self, words: str) -> int:
        written = [self._channel.write("") for _ in range(4)]
        parts = (
            Image("sha256:1", "image/png", words),
            Audio("sha256:2", "audio/ogg", words),
            File("sha256:3", words, "text/plain", 1),
            Text(words, Label("untrusted", source="a contact")),
        )
        said = [Said(Message("user", (each,))) for each in parts]
        self._channel.waiting = [
            replace(one, body=body) for one, body in zip(written, said, strict=True)
        ]
        return len(parts)

    async def bot_says(self, text: str) -> bool:
        self._channel.waiting = [replace(self._channel.write(text), by_program=True)]
        return True

    async def speaks(self, recording: bytes) -> bool:
        """It has no files."""
        return False

    async def spoken(self) -> Sequence[bytes] | None:
        return None

    async def buttons(self) -> Sequence[str]:
        return ()

    async def presses(self, label: str) -> bool:
        """It shows words alone."""
        return False

    async def said(self) -> Sequence[str]:
        return [post.replace("**", "") for post in self._channel.posts.values()]

    async def live(self) -> str:
        return ""

    async def away(self, gone: bool) -> None:
        self._channel.away = gone


class PlatformStage:
    """The platform that drops and doubles, here without whims of its own but the doubling."""

    keeps = True
    nowhere = None

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._platform = Platform(1)
        self._platform.dropped = 0.0
        self._session = session
        self._runner: web.AppRunner | None = None
        self._port = 0
        self.blobs: dict[str, bytes] = {}

    async def start(self) -> None:
        self._runner = web.AppRunner(self._platform.app(), shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = int(self._runner.addresses[0][1])

    def open(self) -> Channel:
        return HttpChannel(f"http://127.0.0.1:{self._port}", self._session)

    async def says(self, text: str) -> None:
        self._platform.updates.append(Update(len(self._platform.updates) + 1, "chat1", text))

    async def passes_on(self, words: str) -> int:
        return 0

    async def bot_says(self, text: str) -> bool:
        return False

    async def speaks(self, recording: bytes) -> bool:
        """It has lines of text alone."""
        return False

    async def spoken(self) -> Sequence[bytes] | None:
        return None

    async def buttons(self) -> Sequence[str]:
        return ()

    async def presses(self, label: str) -> bool:
        """It has lines of text alone."""
        return False

    async def said(self) -> Sequence[str]:
        return [sent.text for sent in self._platform.sent]

    async def live(self) -> str:
        return ""

    async def away(self, gone: bool) -> None:
        assert self._runner is not None
        await (self._runner.cleanup() if gone else self.start())


class TelegramStage:
    keeps = True
    nowhere = Address("telegram", "4200", "12345")

    def __init__(self, server: TelegramServer, open_: Callable[[], TelegramChannel]) -> None:
        self._server = server
        self._open = open_
        self.blobs: dict[str, bytes] = {}

    def open(self) -> Channel:
        channel = self._open()
        assert isinstance(channel._context, MemoryContext)
        channel._context.blobs = self.blobs  # also after a restart
        return channel

    async def says(self, text: str) -> None:
        self._server.chats.says(ANN, text)

    async def passes_on(self, words: str) -> int:
        chats = self._server.chats
        origin = {"type": "hidden_user", "sender_user_name": words, "date": 1_800_000_000}
        bot = {"id": 9, "is_bot": True, "first_name": words, "username": "other_bot"}
        sent = [
            chats.says(ANN, words, forward_origin=origin),
            chats.says(ANN, words, via_bot=bot),
            chats.post(ANN, ANN, {"contact": {"first_name": words, "phone_number": "1"}}),
            chats.post(ANN, ANN, {"location": {"latitude": 1.5, "longitude": 2.5}}),
            chats.sends_file(ANN, b"x", words + ".txt", mime="text/plain"),
            chats.sends_file(ANN, b"x", words + ".iso", size=21 * 2**20),
            chats.sends_file(ANN, b"x", "", "photo", caption=words, forward_origin=origin),
            chats.sends_file(ANN, b"x", "", "voice", mime="audio/ogg"),
        ]
        return len(sent)

    async def bot_says(self, text: str) -> bool:
        chats = self._server.chats
        chats.people[4711] = {
            "id": 4711,
            "is_bot": True,
            "first_name": "Other",
            "username": "other_bot",
        }
        chats.says(4711, text)
        return True

    async def speaks(self, recording: bytes) -> bool:
        self._server.chats.speaks(ANN, recording)
        return True

    async def spoken(self) -> Sequence[bytes] | None:
        chats = self._server.chats
        posts = [each for each in chats.posts[ANN] if each.sender == chats.bot["id"]]
        return [each.file for each in posts if "voice" in each.json]

    async def buttons(self) -> Sequence[str]:
        return [label for post in self._server.chats.messages(ANN) for label in post.buttons]

    async def presses(self, label: str) -> bool:
        chats = self._server.chats
        posts = [each for each in chats.messages(ANN) if label in each.buttons]
        if posts:
            chats.presses(ANN, posts[0], label)
        return True

    async def said(self) -> Sequence[str]:
        return self._server.chats.said(ANN)

    async def live(self) -> str:
        """Telegram makes links of words, but not of those in code; and of text that says where it
        leads."""
        return "\n".join(live_text(post.json) for post in self._server.chats.posts[ANN])

    async def away(self, gone: bool) -> None:
        await (self._server.stop() if gone else self._server.start(self._server.port))


class TelegramWebhookStage(TelegramStage):
    """Telegram, which posts what happens."""

    def __init__(self, server: TelegramServer, open_: Callable[[], TelegramChannel]) -> None:
        super().__init__(server, open_)
        self._newest: TelegramChannel | None = None

    def open(self) -> Channel:
        channel = super().open()
        assert isinstance(channel, TelegramChannel)
        channel.webhook_check_s = 0.1
        self._newest = channel
        return channel

    async def post(self, headers: dict[str, str], body: bytes) -> int:
        return await post_to(self._newest, headers, body)


class SlackWebhookStage(SlackStage):
    """Slack, which posts what happens."""

    def open(self) -> Channel:
        channel = super().open()
        assert isinstance(channel, SlackChannel)
        channel.webhook_check_s = 0.1
        return channel

    async def post(self, headers: dict[str, str], body: bytes) -> int:
        return await post_to(self.opened[-1] if self.opened else None, headers, body)


async def post_to(channel: object, headers: dict[str, str], body: bytes) -> int:
    """As a platform posts to our server. Nobody is there before a channel is opened."""
    if channel is None:
        return 502
    assert isinstance(channel, Webhook)
    lowered = {name.lower(): value for name, value in headers.items()}
    return (await channel.take_webhook(WebhookRequest(lowered, body))).status


PLATFORMS = (
    "memory",
    "platform",
    "telegram",
    "telegram-webhook",
    "slack",
    "slack-webhook",
    "discord",
    "twitch",
    "mqtt",
    "mail",
    "matrix",
)


@pytest.fixture(scope="module")
def homeserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homeserver]:
    """Its start takes seconds: one for all."""
    with Homeserver(tmp_path_factory.mktemp("synapse")) as found:
        yield found


@pytest.fixture(params=PLATFORMS)
async def stage(
    request: pytest.FixtureRequest,
    server: TelegramServer,
    open_channel: Callable[..., TelegramChannel],
    tmp_path: Path,
) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        if request.param == "memory":
            yield MemoryStage()
        elif request.param == "telegram":
            yield TelegramStage(server, open_channel)
        elif request.param == "telegram-webhook":
            posting = TelegramWebhookStage(server, partial(open_channel, webhook=PUBLIC))
            tasks = await stack.enter_async_context(anyio.create_task_group())
            tasks.start_soon(server.post_updates, posting.post)
            yield posting
            tasks.cancel_scope.cancel()
        elif request.param == "slack-webhook":
            slack = await stack.enter_async_context(SlackServer())
            found = SlackWebhookStage(slack, tmp_path / "state", PUBLIC)
            tasks = await stack.enter_async_context(anyio.create_task_group())
            tasks.start_soon(slack.post_events, found.post, SystemClock())
            yield found
            for channel in found.opened:
                await channel.close()
            tasks.cancel_scope.cancel()
        elif request.param == "platform":
            platform = PlatformStage(await stack.enter_async_context(aiohttp.ClientSession()))
            await platform.start()
            yield platform
            await platform.away(True)
        else:
            found = await _open_stage(request, stack, tmp_path)
            await settle(found)
            yield found
            for channel in found.opened:
                await channel.close()


async def _open_stage(request: pytest.FixtureRequest, stack: AsyncExitStack, folder: Path) -> Any:
    state = folder / "state"
    if request.param == "mqtt":
        device = MqttStage(folder)
        await device.away(False)
        stack.push_async_callback(device.away, True)
        return device
    if request.param == "matrix":
        synapse = await stack.enter_async_context(Synapse(request.getfixturevalue("homeserver")))
        bot, ann = [await synapse.register(f"{name}{next(_NUMBERS)}") for name in ("bot", "ann")]
        room = await ann.direct(bot.user_id)
        await bot.join(room)
        return MatrixStage(synapse, bot, ann, room, state)
    make, make_server = SERVERS[request.param]
    return make(await stack.enter_async_context(make_server()), state)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
async def test_conformance(case: Case, stage: Stage) -> None:
    await case(stage)


async def test_who_is_not_known_costs_nothing(stage: Stage, tmp_path: Path) -> None:
    """Whatever a stranger sends: no model is asked, nothing is stored, and at most one line is
    answered."""
    model = ScriptedModel()
    channel = stage.open()
    config = msgspec.convert({"defaults": {"models": ["scripted/x"]}}, Config)
    settings = Settings(Home(tmp_path / "home"), config, environment={"HOME": str(tmp_path)})
    parts = Parts(lambda _: model, channels=(channel,))
    async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        for text in ("hello", "/status", "!help", "yes"):
            await stage.says(text)
        await stage.passes_on("look")
        await stage.speaks(make_silence(1))
        await stage.bot_says("hello from a bot")
        with anyio.move_on_after(3):
            while not await stage.said():
                await anyio.sleep(0.05)
        await anyio.sleep(0.5)
        rows = app.store.query_sync("inbox_after", (0,))
        tasks.cancel_scope.cancel()
    assert model.requests == [] and rows == []
    assert len(await stage.said()) <= 1, await stage.said()
