"""Each platform with one person on it, as the suite of channels wants it."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from html import unescape
from pathlib import Path
from typing import cast

import aiomqtt
import anyio

from deskhand.channels.base import Channel, Closing
from deskhand.channels.discord.channel import open_discord
from deskhand.channels.mail.channel import open_mail
from deskhand.channels.matrix.channel import open_matrix
from deskhand.channels.matrix.reader import VOICE_MARK
from deskhand.channels.mqtt.channel import open_mqtt
from deskhand.channels.settings import ChannelConfig
from deskhand.channels.slack.channel import open_slack
from deskhand.channels.twitch.channel import open_twitch
from deskhand.testing.broker import free_port, mosquitto
from deskhand.testing.channel import MemoryContext
from deskhand.testing.channel_suite import Stage
from deskhand.testing.discord.server import DiscordServer
from deskhand.testing.discord.state import IS_VOICE
from deskhand.testing.mail.person import Letter
from deskhand.testing.mail.server import AUTHORITY, MailServer
from deskhand.testing.matrix.person import Person
from deskhand.testing.matrix.synapse import Synapse
from deskhand.testing.slack.server import SlackServer
from deskhand.testing.twitch.server import TwitchServer
from deskhand.types.addresses import find_live_spans
from deskhand.types.identity import Address, Inbound

SLACK_ANN = "U0ANN"
DISCORD_ANN = 77
SETTLE_S = 0.3


async def settle(stage: Stage) -> None:
    """The account is there, and was read once: what is said from here on is for it."""
    receiving = cast(AsyncGenerator[Inbound], stage.open().receive())
    async with aclosing(receiving):
        with anyio.move_on_after(SETTLE_S):
            async for inbound in receiving:
                raise AssertionError(f"nobody has written: {inbound}")


class SlackStage:
    keeps = True

    def __init__(self, server: SlackServer, state: Path, webhook: str = "") -> None:
        self._server = server
        tokens = {
            "SLACK_BOT_TOKEN": server.token,
            "SLACK_APP_TOKEN": server.app_token,
            "SLACK_SIGNING_SECRET": server.signing_secret,
        }
        config = ChannelConfig(base_url=server.base_url.removesuffix("/"), webhook=webhook)
        self._context = MemoryContext("slack", config, state, tokens=tokens)
        self.nowhere = Address("slack", server.workspace.bot, "C0NOWHERE")
        self.opened: list[Closing] = []

    def open(self) -> Channel:
        channel = open_slack(self._context)
        self.opened.append(channel)
        return channel

    async def says(self, text: str) -> None:
        self._server.workspace.says(SLACK_ANN, text)

    async def passes_on(self, words: str) -> int:
        return len(self._server.workspace.passes_on(SLACK_ANN, words))

    async def bot_says(self, text: str) -> bool:
        workspace = self._server.workspace
        workspace.bot_says(text, channel=workspace.im(SLACK_ANN))
        return True

    @property
    def blobs(self) -> dict[str, bytes]:
        return self._context.blobs

    async def speaks(self, recording: bytes) -> bool:
        """Slack makes MP4 of it, but what comes in is what it says."""
        self._server.workspace.speaks(SLACK_ANN, recording, mimetype="audio/ogg")
        return True

    async def spoken(self) -> Sequence[bytes] | None:
        """An app cannot make an audio clip, but any sound can be played."""
        space = self._server.workspace
        posts = [each for each in space.posts[space.im(SLACK_ANN)] if each.user == space.bot]
        shared = [file for post in posts for file in post.json.get("files", ())]
        heard = [each["id"] for each in shared if each["mimetype"].startswith("audio/")]
        return [space.files[name].data for name in heard]

    async def buttons(self) -> Sequence[str]:
        space = self._server.workspace
        return [label for post in space.posts[space.im(SLACK_ANN)] for label in post.buttons]

    async def presses(self, label: str) -> bool:
        space = self._server.workspace
        posts = [each for each in space.posts[space.im(SLACK_ANN)] if label in each.buttons]
        if posts:
            space.presses(SLACK_ANN, posts[0], label)
        return True

    async def said(self) -> Sequence[str]:
        return self._server.workspace.said(SLACK_ANN)

    async def live(self) -> str:
        return self._server.workspace.live(SLACK_ANN)

    async def away(self, gone: bool) -> None:
        await (self._server.stop() if gone else self._server.start(self._server.port))


class DiscordStage:
    keeps = True
    nowhere = Address("discord", "4200", "12345")

    def __init__(self, server: DiscordServer, state: Path) -> None:
        self._server = server
        config = ChannelConfig(base_url=server.api_url)
        self._context = MemoryContext("discord", config, state, server.token)
        server.limits["create_message"] = (1000, 1.0)  # the suite says more than a person would
        self.opened: list[Closing] = []

    def open(self) -> Channel:
        channel = open_discord(self._context)
        self.opened.append(channel)
        return channel

    async def says(self, text: str) -> None:
        self._server.guild.says(DISCORD_ANN, text)

    async def passes_on(self, words: str) -> int:
        guild = self._server.guild
        guild.sends_file(DISCORD_ANN, b"x", f"{words}.txt")
        guild.forwards(DISCORD_ANN, words)
        return 2

    async def bot_says(self, text: str) -> bool:
        self._server.guild.bot_says(f"<@{self._server.guild.bot_id}> {text}")
        return True

    @property
    def blobs(self) -> dict[str, bytes]:
        return self._context.blobs

    async def speaks(self, recording: bytes) -> bool:
        self._server.guild.speaks(DISCORD_ANN, recording)
        return True

    async def spoken(self) -> Sequence[bytes] | None:
        guild = self._server.guild
        posts = [each for each in guild.messages(DISCORD_ANN) if each.author == guild.bot_id]
        return [file.data for post in posts if post.flags & IS_VOICE for file in post.files]

    async def buttons(self) -> Sequence[str]:
        posts = self._server.guild.messages(DISCORD_ANN)
        return [button.label for post in posts for button in post.buttons]

    async def presses(self, label: str) -> bool:
        guild = self._server.guild
        for post in guild.messages(DISCORD_ANN):
            for button in post.buttons:
                if button.label == label:
                    guild.presses(DISCORD_ANN, post, button.custom_id)
                    return True
        return True

    async def said(self) -> Sequence[str]:
        guild = self._server.guild
        return [read_discord(each) for each in guild.said(guild.open_direct(DISCORD_ANN))]

    async def live(self) -> str:
        guild = self._server.guild
        return "\n".join(map(live_discord, guild.said(guild.open_direct(DISCORD_ANN))))

    async def away(self, gone: bool) -> None:
        await (self._server.stop() if gone else self._server.start(self._server.port))


class TwitchStage:
    keeps = False

    def __init__(self, server: TwitchServer, state: Path) -> None:
        self._server = server
        base = server.base_url.removesuffix("/helix/")
        config = ChannelConfig(base_url=base, rooms=(server.channel.login,))
        tokens = {"TWITCH_ACCESS_TOKEN": server.token.access}
        self._context = MemoryContext("twitch", config, state, tokens=tokens)
        server.helix.repeat_s = 0.0  # the suite says the same more often than a person would
        self.nowhere = Address("twitch", server.bot.id, "12345", group=True)
        self.opened: list[Closing] = []

    def open(self) -> Channel:
        channel = open_twitch(self._context)
        self.opened.append(channel)
        return channel

    async def says(self, text: str) -> None:
        with anyio.fail_after(5):
            while not self._server.events.enabled():
                await anyio.sleep(0.01)
        self._server.says("ann", f"@{self._server.bot.login} {text}")

    async def passes_on(self, words: str) -> int:
        return 0

    async def bot_says(self, text: str) -> bool:
        return False

    @property
    def blobs(self) -> dict[str, bytes]:
        return self._context.blobs

    async def speaks(self, recording: bytes) -> bool:
        """A chat of a stream is lines of text, and takes no files."""
        return False

    async def spoken(self) -> Sequence[bytes] | None:
        return None

    async def buttons(self) -> Sequence[str]:
        return ()

    async def presses(self, label: str) -> bool:
        """A chat of a stream is lines of text."""
        return False

    async def said(self) -> Sequence[str]:
        server = self._server
        return [post.text for post in server.chat.said(server.bot, server.channel)]

    async def live(self) -> str:
        """Twitch makes a link of whatever looks like an address."""
        return live_plain("\n".join(await self.said()))

    async def away(self, gone: bool) -> None:
        await (self._server.stop() if gone else self._server.start(self._server.port))


class MqttStage:
    """On a real mosquitto, which is told what to keep."""

    keeps = True
    nowhere = Address("mqtt", chat="no/where")

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        config = ChannelConfig(base_url=f"mqtt://127.0.0.1:{self._port}")
        self._context = MemoryContext("mqtt", config, folder / "state")
        self._broker: AbstractAsyncContextManager[None] | None = None
        self._heard: list[str] = []
        self.opened: list[Closing] = []

    def open(self) -> Channel:
        return open_mqtt(self._context)

    async def says(self, text: str) -> None:
        async with aiomqtt.Client("127.0.0.1", self._port) as device:
            await device.publish("operator/in/ann", text, qos=1)

    async def passes_on(self, words: str) -> int:
        payloads = (f'{{"temperature": "{words}"}}', b"\xff" + words.encode(), f'["{words}"]')
        async with aiomqtt.Client("127.0.0.1", self._port) as device:
            for payload in payloads:
                await device.publish("operator/in/ann", payload, qos=1)
        return len(payloads)

    async def bot_says(self, text: str) -> bool:
        return False

    @property
    def blobs(self) -> dict[str, bytes]:
        return self._context.blobs

    async def speaks(self, recording: bytes) -> bool:
        """A payload says nothing of what it is: what is no text comes in as a file."""
        return False

    async def spoken(self) -> Sequence[bytes] | None:
        return None

    async def buttons(self) -> Sequence[str]:
        return ()

    async def presses(self, label: str) -> bool:
        """A payload has none."""
        return False

    async def said(self) -> Sequence[str]:
        """The broker keeps it for the device, which reads it now."""
        async with self._device() as device:
            with anyio.move_on_after(0.2):
                async for message in device.messages:
                    self._heard.append(bytes(message.payload).decode())
        return self._heard

    async def live(self) -> str:
        return live_plain("\n".join(await self.said()))

    async def away(self, gone: bool) -> None:
        if gone and self._broker is not None:
            await self._broker.__aexit__(None, None, None)
            return
        self._broker = mosquitto(self._folder, self._port)
        await self._broker.__aenter__()
        async with self._device() as device:
            await device.subscribe("operator/out/ann", 1)

    def _device(self) -> aiomqtt.Client:
        return aiomqtt.Client("127.0.0.1", self._port, identifier="ann", clean_session=False)


class MatrixStage:
    """On a real homeserver."""

    keeps = True

    def __init__(self, synapse: Synapse, bot: Person, ann: Person, room: str, state: Path) -> None:
        self._synapse = synapse
        self._bot = bot
        self._ann = ann
        self._room = room
        config = ChannelConfig(base_url=synapse.url)
        self._context = MemoryContext("matrix", config, state, bot.token)
        self.nowhere = Address("matrix", bot.user_id, "!nowhere:localhost")
        self.opened: list[Closing] = []

    def open(self) -> Channel:
        channel = open_matrix(self._context)
        self.opened.append(channel)
        return channel

    async def says(self, text: str) -> None:
        await self._ann.says(self._room, text)

    async def passes_on(self, words: str) -> int:
        await self._ann.sends_file(self._room, b"x", f"{words}.txt", "text/plain")
        await self._ann.speaks(self._room, b"OggS")
        location = {"msgtype": "m.location", "body": words, "geo_uri": f"geo:1,2?q={words}"}
        await self._ann.sends(self._room, "m.room.message", location)
        return 3

    async def bot_says(self, text: str) -> bool:
        await self._ann.notices(self._room, text)
        return True

    @property
    def blobs(self) -> dict[str, bytes]:
        return self._context.blobs

    async def speaks(self, recording: bytes) -> bool:
        await self._ann.speaks(self._room, recording)
        return True

    async def spoken(self) -> Sequence[bytes] | None:
        posts = [
            each for each in await self._ann.reads(self._room) if each.sender == self._bot.user_id
        ]
        voices = [each.url for each in posts if VOICE_MARK in each.content]
        return [await self._ann.downloads(url) for url in voices]

    async def buttons(self) -> Sequence[str]:
        return ()

    async def presses(self, label: str) -> bool:
        """Matrix has none."""
        return False

    async def said(self) -> Sequence[str]:
        posts = await self._ann.reads(self._room)
        return [read_html(post.html) for post in posts if post.sender == self._bot.user_id]

    async def live(self) -> str:
        posts = [
            each for each in await self._ann.reads(self._room) if each.sender == self._bot.user_id
        ]
        return "\n".join(live_html(post.html) + live_plain(post.text) for post in posts)

    async def away(self, gone: bool) -> None:
        await (self._synapse.stop() if gone else self._synapse.start(self._synapse.port))


class MailStage:
    """On a real IMAP server."""

    keeps = True
    nowhere = Address("mail", chat="nobody@home.test")

    def __init__(self, server: MailServer, state: Path) -> None:
        self._server = server
        self._ann = server.person("ann")
        self._bot = server.person("bot")
        config = ChannelConfig(
            base_url=f"imap://127.0.0.1:{server.imap.port}",
            send_url=f"smtp://127.0.0.1:{server.smtp_port}",
            user=self._bot.address,
            verified_by=AUTHORITY,
        )
        self._context = MemoryContext("mail", config, state, self._bot.password)
        self._written: list[str] = []
        self.opened: list[Closing] = []

    def open(self) -> Channel:
        return open_mail(self._context)

    async def says(self, text: str) -> None:
        """All in one thread, so that it is one conversation."""
        about = (
            {"References": self._written[0], "In-Reply-To": self._written[0]}
            if self._written
            else {}
        )
        letter = Letter(text=text, subject="" if not self._written else "Re: ", headers=about)
        self._written.append(self._ann.sends(self._bot.address, letter))

    async def passes_on(self, words: str) -> int:
        bot = self._bot.address
        quoted = f"\n---------- Forwarded message ---------\nFrom: x\n\n{words}"
        self._ann.sends_file(bot, b"x", f"{words}.txt", "text/plain", "see this")
        self._ann.writes(bot, f"what is this?\n\nOn Monday somebody wrote:\n> {words}", subject="")
        self._ann.writes(bot, f"look{quoted}", subject="")
        self._ann.writes(bot, "", html=f"<p>look</p><blockquote>{words}</blockquote>", subject="")
        return 4

    async def bot_says(self, text: str) -> bool:
        headers = {"Auto-Submitted": "auto-generated"}
        self._ann.sends(self._bot.address, Letter(text=text, subject="", headers=headers))
        return True

    @property
    def blobs(self) -> dict[str, bytes]:
        return self._context.blobs

    async def speaks(self, recording: bytes) -> bool:
        self._ann.speaks(self._bot.address, recording)
        return True

    async def spoken(self) -> Sequence[bytes] | None:
        """A mail has files alone."""
        files = [file for mail in self._ann.reads() for file in mail.files]
        return [each.data for each in files if each.mime.startswith("audio/")]

    async def buttons(self) -> Sequence[str]:
        return ()

    async def presses(self, label: str) -> bool:
        """A mail has none."""
        return False

    async def said(self) -> Sequence[str]:
        return [read_html(each.html) for each in self._ann.reads()]

    async def live(self) -> str:
        return "\n".join(live_html(each.html) + live_plain(each.text) for each in self._ann.reads())

    async def away(self, gone: bool) -> None:
        await (self._server.stop() if gone else self._server.start())


def read_html(html: str) -> str:
    """The words of a page."""
    lines = re.sub(r"<br>\n|<br>", "\n", html)
    return unescape(re.sub(r"<[^<>]*>", "", lines)).strip()


def live_html(html: str) -> str:
    """Where its links lead, and what of its words a program may make a link of."""
    shown = re.sub(r"<pre>.*?</pre>|<code>.*?</code>", " ", html, flags=re.DOTALL)
    return "\n".join(re.findall(r'(?:href|src)="([^"]*)"', html)) + live_plain(read_html(shown))


def live_plain(text: str) -> str:
    return "\n".join(text[start:end] for start, end in find_live_spans(text))


_TOKEN = re.compile(
    r"\\([^0-9A-Za-z\s])"  # escaped
    r"|```(?:[\w+#-]*\n)?(.*?)```|(`+)(.*?[^`])\3(?!`)",  # code
    re.DOTALL,
)
_MARKS = re.compile(r"\*\*|\*|~~|__|\|\|")


def read_discord(content: str) -> str:
    """A message as Discord shows it, without its looks."""
    words = []
    at = 0
    for found in _TOKEN.finditer(content):
        shown = found[1] or (found[2] or found[4] or "").strip("\n")
        words += [_MARKS.sub("", content[at : found.start()]), shown]
        at = found.end()
    return "".join([*words, _MARKS.sub("", content[at:])])


def live_discord(content: str) -> str:
    """The addresses that Discord makes links of: those in no code, and the targets of masked
    links."""
    shown = _TOKEN.sub(lambda found: "\0" if found[1] else " ", content)
    found = re.findall(r"https?://[^\s<>]+", shown)
    return "\n".join(found + re.findall(r"\[[^\]]*\]\(<?([^)>]+)", shown))
