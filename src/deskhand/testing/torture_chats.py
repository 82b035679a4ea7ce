"""Telegram, Slack and Discord on loopback, each with people in many chats, and with what goes wrong
on such a platform. They run beside the process that is killed, so they are the truth about it."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from ..channels.discord.channel import Cursor
from .discord.gateway import Session
from .discord.guild import GENERAL
from .discord.server import DiscordServer
from .discord.state import Post
from .slack.server import SlackServer
from .telegram.server import TelegramServer

PRIVATE_CHATS = 14
GROUPS = 5
"""So many chats with one person and with several people there are on each platform."""
ENDURANCE = (0.0, *[0.3] * 1_000)
"""Slack gives an event up after three tries. This one never does, as it is also there after any
number of kills."""
HEARTBEAT_S = 2.0
MAX_WAIT_S = 2
Upset = Callable[[], object]
"""Makes one thing go wrong."""


class TortureChats(Protocol):
    """One platform with its chats, which are named as the inbox names them."""

    @property
    def name(self) -> str:
        """The channel's name in the configuration."""
        ...

    @property
    def chats(self) -> Sequence[str]:
        """All chats of this platform."""
        ...

    @property
    def config(self) -> Mapping[str, object]:
        """What is set for the channel."""
        ...

    @property
    def secrets(self) -> Mapping[str, str]:
        """The variables of the environment that it needs."""
        ...

    @property
    def readings(self) -> int:
        """How often somebody began to read the account."""
        ...

    def write(self, chat: str, text: str) -> str:
        """Somebody writes this. Returns how the inbox will call it."""
        ...

    def said(self, chat: str) -> Sequence[str]:
        """What the bot said there, as it reads now, in order."""
        ...

    def ever_said(self, chat: str) -> Iterator[str]:
        """The same, and what it read before, and what was removed."""
        ...

    def confirmed(self) -> set[str]:
        """The messages that would not be told of again: those before the cursor."""
        ...

    async def upset(self) -> str:
        """Make one thing go wrong, and return what."""
        ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class TelegramChats:
    """One bot, with people alone with it and in groups."""

    name = "telegram"

    def __init__(self, seed: int) -> None:
        self.server = TelegramServer()
        self._random = random.Random(seed)
        people = [100 + number for number in range(PRIVATE_CHATS)]
        self._writers = {str(person): person for person in people}
        for number in range(GROUPS):
            chat = -1_000 - number
            self.server.chats.group(chat)
            self._writers[str(chat)] = people[number]
        self.chats = tuple(self._writers)
        self._names: list[str] = []
        self._most_confirmed = 0

    @property
    def config(self) -> Mapping[str, object]:
        return {
            "base_url": self.server.base_url.removesuffix("/bot"),
            "groups": "all",
            "allow_from": [*set(self._writers.values())],
        }

    @property
    def secrets(self) -> Mapping[str, str]:
        return {"TELEGRAM_BOT_TOKEN": self.server.token}

    @property
    def readings(self) -> int:
        return sum(method == "getUpdates" for method, _ in self.server.calls)

    def write(self, chat: str, text: str) -> str:
        post = self.server.chats.says(self._writers[chat], text, int(chat))
        name = f"{chat}:{post.id}"
        self._names.append(name)  # there is one update for each message
        return name

    def said(self, chat: str) -> Sequence[str]:
        return self.server.chats.said(int(chat))

    def ever_said(self, chat: str) -> Iterator[str]:
        chats = self.server.chats
        gone = [post for post in chats.removed if post.chat == int(chat)]
        for post in (*chats.messages(int(chat)), *gone):
            if post.sender == chats.bot["id"]:
                yield from (post.text, *post.edits)

    def confirmed(self) -> set[str]:
        self._most_confirmed = max(self._most_confirmed, self.server.confirmed)
        return set(self._names[: self._most_confirmed])

    async def upset(self) -> str:
        server = self.server
        wait_s = self._random.randint(1, MAX_WAIT_S)
        upsets: dict[str, tuple[float, Upset]] = {
            "429 sendMessage": (4, lambda: server.fail("sendMessage", 429, retry_after=wait_s)),
            "429 editMessageText": (
                2,
                lambda: server.fail("editMessageText", 429, retry_after=wait_s),
            ),
            "429 getUpdates": (1, lambda: server.fail("getUpdates", 429, retry_after=1)),
            "502 sendMessage": (2, lambda: server.fail("sendMessage", 502)),
            "502 getUpdates": (1, lambda: server.fail("getUpdates", 502)),
            "cut sendMessage": (3, lambda: server.lose("sendMessage")),
            "cut editMessageText": (1, lambda: server.lose("editMessageText")),
            "cut getUpdates": (2, lambda: server.lose("getUpdates")),
            "hang sendMessage": (0.5, lambda: server.hang("sendMessage")),
            "hang getUpdates": (0.2, lambda: server.hang("getUpdates")),
            "told again": (4, self._redeliver),
        }
        return await _make_upset(self._random, upsets, server.fails_next)

    def _redeliver(self) -> None:
        """Some of the last updates come again, behind those that came since."""
        self.confirmed()
        self.server.redeliver(self._random.randint(1, 6))

    async def start(self) -> None:
        await self.server.start()

    async def stop(self) -> None:
        await self.server.stop()


class SlackChats:
    """One app, with people alone with it, and in channels in which they talk to it in a thread."""

    name = "slack"

    def __init__(self, seed: int) -> None:
        self.server = SlackServer(retry_pauses_s=ENDURANCE)
        self._random = random.Random(seed)
        workspace = self.server.workspace
        people = [f"U0P{number}" for number in range(PRIVATE_CHATS)]
        self._writers = {workspace.im(person): person for person in people}
        for number in range(GROUPS):
            place = workspace.channel(f"team{number}", members=(people[number],))
            self._writers[place] = people[number]
        self.chats = tuple(self._writers)
        self._roots: dict[str, str] = {}
        self._envelopes: dict[str, str] = {}

    @property
    def config(self) -> Mapping[str, object]:
        return {
            "base_url": self.server.base_url.removesuffix("/"),
            "allow_from": [*set(self._writers.values())],
        }

    @property
    def secrets(self) -> Mapping[str, str]:
        return {"SLACK_BOT_TOKEN": self.server.token, "SLACK_APP_TOKEN": self.server.app_token}

    @property
    def readings(self) -> int:
        """Connections so far: each asked for an address of its own."""
        return sum(method == "apps.connections.open" for method, _ in self.server.calls)

    def write(self, chat: str, text: str) -> str:
        workspace = self.server.workspace
        waiting = self.server.socket_mode.waiting
        before = len(waiting)
        root = self._roots.get(chat, "")
        if not chat.startswith("D"):
            text = f"{workspace.mention} {text}"
        post = workspace.says(self._writers[chat], text, channel=chat, thread_ts=root)
        if not chat.startswith("D"):
            self._roots.setdefault(chat, post.ts)
        name = f"{chat}:{post.ts}"
        for envelope in waiting[before:]:  # in a channel these are two
            self._envelopes[envelope.id] = name
        return name

    def said(self, chat: str) -> Sequence[str]:
        return self.server.workspace.said(chat)

    def ever_said(self, chat: str) -> Iterator[str]:
        workspace = self.server.workspace
        gone = [post for post in workspace.removed if post.channel == chat]
        for post in (*workspace.messages(chat), *gone):
            if post.user == workspace.bot:
                yield from (post.text, *post.edits)

    def confirmed(self) -> set[str]:
        known = self._envelopes
        return {known[id] for id, _ in self.server.socket_mode.acknowledged if id in known}

    async def upset(self) -> str:
        server = self.server
        wait_s = self._random.randint(1, MAX_WAIT_S)
        posts = "chat.postMessage"
        upsets: dict[str, tuple[float, Upset]] = {
            "429 chat.postMessage": (4, lambda: server.fail(posts, 429, retry_after=wait_s)),
            "429 chat.update": (2, lambda: server.fail("chat.update", 429, retry_after=wait_s)),
            "503 chat.postMessage": (2, lambda: server.fail(posts, 503)),
            "cut chat.postMessage": (3, lambda: server.lose(posts)),
            "cut chat.update": (1, lambda: server.lose("chat.update")),
            "hang chat.postMessage": (0.5, lambda: server.hang(posts)),
            "503 apps.connections.open": (0.5, lambda: server.fail("apps.connections.open", 503)),
            "disconnect": (2, server.drop),
            "refresh": (2, server.ask_to_reconnect),
            "deaf": (0.2, server.go_deaf),
            "lost acknowledgements": (4, lambda: server.swallow(self._random.randint(1, 4))),
        }
        return await _make_upset(self._random, upsets, server.fails_next)

    async def start(self) -> None:
        await self.server.start()

    async def stop(self) -> None:
        await self.server.stop()


class DiscordChats:
    """One bot, with people alone with it, and in channels of a server. `state` is the folder in
    which the channel keeps its cursor."""

    name = "discord"

    def __init__(self, seed: int, state: Path) -> None:
        self.server = DiscordServer()
        self.server.gateway.heartbeat_s = HEARTBEAT_S
        self._cursor = state / "cursor-discord"
        self._random = random.Random(seed)
        guild = self.server.guild
        people = [77_000 + number for number in range(PRIVATE_CHATS)]
        self._writers = {str(guild.open_direct(person)): person for person in people}
        for number in range(GROUPS):
            place = guild.channel(GENERAL + 1 + number, f"room{number}")
            self._writers[str(place)] = people[number]
        self.chats = tuple(self._writers)
        self._posts: dict[str, Post] = {}
        self._sessions: dict[str, Session] = {}

    @property
    def config(self) -> Mapping[str, object]:
        return {
            "base_url": self.server.api_url,
            "groups": "all",
            "allow_from": [str(person) for person in set(self._writers.values())],
        }

    @property
    def secrets(self) -> Mapping[str, str]:
        return {"DISCORD_BOT_TOKEN": self.server.token}

    @property
    def readings(self) -> int:
        """Sessions that were begun or taken up, once it is known where the first of all begins."""
        gateway = self.server.gateway
        found = len(gateway.identified) + len(gateway.resumed)
        return found if self._cursor.exists() else 0

    def write(self, chat: str, text: str) -> str:
        post = self.server.guild.says(self._writers[chat], text, int(chat))
        self._posts[str(post.id)] = post
        return str(post.id)

    def said(self, chat: str) -> Sequence[str]:
        return self.server.guild.said(int(chat))

    def ever_said(self, chat: str) -> Iterator[str]:
        guild = self.server.guild
        gone = [post for post in guild.removed if post.channel == int(chat)]
        for post in (*guild.messages(int(chat)), *gone):
            if post.author == guild.bot_id:
                yield from (post.text, *post.edits)

    def confirmed(self) -> set[str]:
        """What is before either mark of the cursor: the last message, the last event."""
        self._sessions |= self.server.gateway.sessions
        if not self._cursor.exists():
            return set()
        cursor = msgspec.json.decode(self._cursor.read_bytes(), type=Cursor)
        found = {name for name, post in self._posts.items() if post.id <= cursor.at}
        session = self._sessions.get(cursor.resume.session)
        for frame in session.told[: cursor.resume.seq] if session is not None else ():
            event = msgspec.json.decode(frame)
            if event["t"] == "MESSAGE_CREATE" and event["d"]["id"] in self._posts:
                found.add(event["d"]["id"])
        return found

    async def upset(self) -> str:
        server = self.server
        gateway = server.gateway
        self._sessions |= gateway.sessions  # some of what follows forgets them
        wait_s = self._random.uniform(0.2, MAX_WAIT_S)
        scope = self._random.choice(("user", "shared", "global"))
        posts = "create_message"
        upsets: dict[str, tuple[float, Upset]] = {
            "429 create_message": (4, lambda: server.flood(posts, wait_s, scope=scope)),
            "429 edit_message": (2, lambda: server.flood("edit_message", wait_s)),
            "429 get_messages": (1, lambda: server.flood("get_messages", 0.3)),
            "502 create_message": (2, lambda: server.fail(posts, 502)),
            "502 get_messages": (0.5, lambda: server.fail("get_messages", 502)),
            "502 connect": (0.5, lambda: server.fail("connect", 502)),
            "cut create_message": (3, lambda: server.lose(posts)),
            "cut edit_message": (1, lambda: server.lose("edit_message")),
            "hang create_message": (0.5, lambda: server.hang(posts)),
            "disconnect": (3, gateway.drop),
            "closed": (1, lambda: gateway.drop(4000)),
            "asked to reconnect": (2, gateway.ask_to_reconnect),
            "silent": (1, gateway.fall_silent),
            "session lost": (2, gateway.invalidate),
            "session forgotten": (2, gateway.forget),
        }
        return await _make_upset(self._random, upsets, server.fails_next)

    async def start(self) -> None:
        await self.server.start()

    async def stop(self) -> None:
        await self.server.stop()


async def _make_upset(
    chance: random.Random,
    upsets: Mapping[str, tuple[float, Upset]],
    is_planned: Callable[[str], bool],
) -> str:
    """One of these by its weight. What is planned for a method already is not planned again: else
    more would pile up while nobody calls it than anybody could bear."""
    weights = [weight for weight, _ in upsets.values()]
    (name,) = chance.choices([*upsets], weights)
    if is_planned(name.rpartition(" ")[2]):
        return ""
    made = upsets[name][1]()
    if isinstance(made, Awaitable):
        await made
    return name


_telegram: type[TortureChats] = TelegramChats
_slack: type[TortureChats] = SlackChats
_discord: type[TortureChats] = DiscordChats
