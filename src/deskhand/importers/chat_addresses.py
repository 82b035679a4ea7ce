"""Where the chats of other systems go on: their bots, and the addresses that our channels give the
same chats."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from collections.abc import Mapping

import msgspec

from ..types.identity import Address

KINDS: Mapping[str, str] = {
    "telegram": "telegram",
    "discord": "discord",
    "slack": "slack",
    "matrix": "matrix",
    "email": "mail",
    "mail": "mail",
    "mqtt": "mqtt",
    "twitch": "twitch",
}
"""Platforms that we have a channel for: their name elsewhere -> the kind of our channel."""
TITLES: Mapping[str, str] = {
    "bluebubbles": "BlueBubbles",
    "dingtalk": "DingTalk",
    "feishu": "Feishu",
    "googlechat": "Google Chat",
    "google_chat": "Google Chat",
    "homeassistant": "Home Assistant",
    "imessage": "iMessage",
    "irc": "IRC",
    "line": "LINE",
    "mattermost": "Mattermost",
    "msteams": "Microsoft Teams",
    "nextcloud-talk": "Nextcloud Talk",
    "nostr": "Nostr",
    "qq": "QQ",
    "qqbot": "QQ",
    "signal": "Signal",
    "sms": "SMS",
    "wecom": "WeCom",
    "weixin": "WeChat",
    "whatsapp": "WhatsApp",
    "whatsapp_cloud": "WhatsApp",
    "zalo": "Zalo",
}
"""What people call platforms that we have no channel for."""
CHAT_IDS: Mapping[str, re.Pattern[str]] = {
    "telegram": re.compile(r"-?\d{1,30}"),
    "discord": re.compile(r"\d{1,30}"),
    "slack": re.compile(r"[CDG][A-Z0-9]{1,30}"),
    "matrix": re.compile(r"![^\s]{1,255}"),
    "mail": re.compile(r"[!-;=?A-~]{1,64}@[A-Za-z0-9.-]{1,255}"),
    "mqtt": re.compile(r"[^/+#\s][^/+#]{0,99}"),
    "twitch": re.compile(r"\d{1,20}"),
}
"""The platforms' own ids of chats, by the kind of channel."""
_THREAD_IDS: Mapping[str, re.Pattern[str]] = {
    "telegram": re.compile(r"\d{1,20}"),
    "discord": re.compile(r"\d{1,30}"),
    "slack": re.compile(r"\d{1,20}\.\d{1,20}"),
    "matrix": re.compile(r"\$[^\s]{1,255}"),
}
_TELEGRAM_TOKEN = re.compile(r"([0-9]{1,20}):")
"""The start of a token, which is the bot's id:
https://core.telegram.org/bots/api#authorizing-your-bot"""
_NAMED_BY_ACCOUNT = frozenset({"telegram", "discord", "matrix", "mail"})
"""Kinds whose addresses name the bot, so that a chat goes on only where that is known."""
_ONE_SENDER = frozenset({"mail", "mqtt"})
"""Kinds whose chats have one person or device each."""


class Bot(msgspec.Struct, frozen=True):
    """An agent's bot: the kind of its channel, the name of that channel here, and its own id on the
    platform ('' where nothing in the home says it)."""

    kind: str
    channel: str
    id: str = ""


class ForeignChat(msgspec.Struct, frozen=True):
    """A chat as another system names it: the platform, the chat there, and its thread ('' for
    none)."""

    platform: str
    id: str
    thread: str = ""


class ChatFound(msgspec.Struct, frozen=True):
    """Where a chat goes on, None for nowhere, and then `why` it does not. `group`: several people
    read there."""

    place: Address | None = None
    group: bool = False
    why: str = ""


class Bots:
    """The bots of all agents: each has at most one of a kind."""

    def __init__(self) -> None:
        self._by_agent: dict[tuple[str, str], Bot] = {}

    def add(self, agent: str, bot: Bot) -> None:
        self._by_agent[agent, bot.kind] = bot

    def find(self, agent: str, platform: str) -> Bot | None:
        """The bot of this agent on a platform, as that is called elsewhere."""
        return self._by_agent.get((agent, KINDS.get(platform, platform)))

    def all_of(self, kind: str) -> dict[str, Bot]:
        """The bots of this kind by agent."""
        return {agent: bot for (agent, each), bot in self._by_agent.items() if each == kind}

    def bindings(self) -> list[dict[str, str]]:
        """A binding for each bot: its agent answers there."""
        return [
            {"agent": agent, "channel": bot.channel} for (agent, _), bot in self._by_agent.items()
        ]

    def __bool__(self) -> bool:
        return bool(self._by_agent)

    def find_chat(self, agent: str, chat: ForeignChat, *, alone: bool = False) -> ChatFound:
        """Where this chat goes on with the bot of this agent. `alone`: the other system says that
        one person alone reads it; on most platforms an id does not say that."""
        kind = KINDS.get(chat.platform, "")
        if not kind:
            return ChatFound(group=not alone, why=explain_no_channel(chat.platform))
        group = _is_group(kind, chat.id, alone=alone)
        bot = self.find(agent, chat.platform)
        if bot is None or (kind in _NAMED_BY_ACCOUNT and not bot.id):
            why = f"no bot of {agent} with a token is in this home"
            if bot is not None and kind == "matrix":
                why = "the home does not say which account its bot has"
            return ChatFound(group=group, why=why)
        if why := _why_unreachable(kind, chat.id, chat.thread):
            return ChatFound(group=group, why=why)
        return ChatFound(_make_address(bot, chat, group=group), group)

    def find_target(self, agent: str, chat: ForeignChat) -> Address | None:
        """Where a job of this agent sends to; None for nowhere. The id of its bot need not be
        known, and a message that begins a thread needs none."""
        bot = self.find(agent, chat.platform)
        if bot is None or not CHAT_IDS[bot.kind].fullmatch(chat.id):
            return None
        return _make_address(bot, chat, group=_is_group(bot.kind, chat.id, alone=False))


def explain_no_channel(platform: str) -> str:
    """Why nothing of this platform goes on here."""
    return f"Deskhand has no channel for {TITLES.get(platform.lower(), platform)}"


def find_bot_id(kind: str, token: str, user: str) -> str:
    """A bot's own id on the platform, as far as its token or its account says it."""
    match kind:
        case "telegram":
            found = _TELEGRAM_TOKEN.match(token)
            return found[1] if found else ""
        case "discord":
            # The first of the three parts is the bot's id in base64:
            # https://docs.discord.com/developers/reference#authentication
            return _decode_discord_id(token.partition(".")[0])
        case "matrix":
            return user if user.startswith("@") else ""
        case "mail":
            return user.lower()
        case _:
            return ""


def _decode_discord_id(part: str) -> str:
    try:
        id_ = urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode("ascii")
    except ValueError:
        return ""
    return id_ if id_.isdecimal() and len(id_) <= 30 else ""


def parse_chat(name: str) -> ForeignChat:
    """The chat with a name such as `slack:C1:12.3` or `matrix:!a:b.example:thread:$c`. A room of
    Matrix has colons in its id, so that a thread stands behind a word there."""
    platform, _, rest = name.partition(":")
    for word in (":topic:", ":thread:"):
        chat, found, thread = rest.partition(word)
        if found:
            return ForeignChat(platform, chat, thread)
    if platform in ("telegram", "slack"):
        chat, _, thread = rest.partition(":")
        return ForeignChat(platform, chat, thread)
    return ForeignChat(platform, rest)


def _is_group(kind: str, chat: str, *, alone: bool) -> bool:
    if kind == "telegram":
        return chat.startswith("-")
    if kind == "slack":
        return not chat.startswith("D")
    return not alone and kind not in _ONE_SENDER


def _why_unreachable(kind: str, chat: str, thread: str) -> str:
    """Why no message from there would find this conversation; '' where one would."""
    if not CHAT_IDS[kind].fullmatch(chat):
        return "its chat has a name there, and Deskhand knows chats by the platform's own ids"
    known = _THREAD_IDS.get(kind)
    if thread and (known is None or not known.fullmatch(thread)):
        return "its thread is not named as the platform names it"
    if kind == "slack" and not thread and not chat.startswith("D"):
        return "in a channel of Slack each thread is a conversation here"
    if kind == "mail":
        return "in mail each thread is a conversation here, and the home does not tell them apart"
    return ""


def _make_address(bot: Bot, chat: ForeignChat, *, group: bool) -> Address:
    account = bot.id if bot.kind in _NAMED_BY_ACCOUNT else ""
    if bot.kind == "discord":  # a thread is a channel of its own there
        return Address(bot.channel, account, chat.thread or chat.id, group=group)
    return Address(bot.channel, account, chat.id, chat.thread, group=group)
