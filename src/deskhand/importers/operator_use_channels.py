"""The bots of operator-use as channels of ours: who may write to them, who answers, and where a
chat goes on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ..config.foreign_keys import to_snake_case
from ..types.identity import Address
from .notes import ImportNotes
from .settings import ImportedKeys

PLATFORMS = ("telegram",)
"""Platforms that we have a channel for."""
HANDLED = ("agents.list.*.channels.*", "channels.*")
"""The keys that are looked after here."""
_BOT = re.compile(r"(\d{1,20}):.+", re.DOTALL)
_CHAT = re.compile(r"(-?\d{1,30})(?::(\d{1,20}))?")
"""A chat of Telegram, with the topic of a forum behind it."""
_USED = frozenset({"enabled", "token", "allow_from", "account_id"})
PAIR = "ask them to write to the bot, then approve them: deskhand pair"


class Bot(msgspec.Struct, frozen=True):
    """An agent's bot: its platform, the name of its channel here, and its id there ('' where there
    is no token)."""

    platform: str
    channel: str
    id: str


def convert_channels(
    notes: ImportNotes, keys: ImportedKeys, agents: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Bot]]:
    """Channels as we have them, and the bot of each agent. Their tokens are added to the secrets,
    the bindings of these channels replace those of `keys`."""
    channels: dict[str, Any] = {}
    bots: dict[str, Bot] = {}
    for agent, platform, given in _iter_channels(keys, agents):
        settings = {to_snake_case(str(name)): value for name, value in given.items()}
        if not _is_supported(notes, agent, platform, settings):
            continue
        if agent in bots:  # there is one binding for each agent, and its chats go on with one bot
            why = f"{agent} has a bot of its own, and one agent has one bot here"
            notes.leave_out(
                f"the bot in channels.{platform} at the top",
                why,
                f"deskhand channels add {platform}",
            )
            continue
        first = platform not in channels
        name = platform if first else f"{platform}-{agent}"
        variable = re.sub(
            r"\W", "_", f"{platform}_bot_token" if first else f"{platform}_{agent}_bot_token"
        ).upper()
        token = str(settings.get("token") or "")
        if token:
            keys.secrets[variable] = token
        found = _BOT.fullmatch(token)
        bots[agent] = Bot(platform, name, found[1] if found else "")
        listed = _allowed_ids(notes, f"{platform} of {agent}", settings.get("allow_from"))
        own = {} if first else {"type": platform, "token_env": variable}
        channels[name] = own | ({"allow_from": listed} if listed else {})
    if bots:
        keys.config["bindings"] = [*_explicit_bindings(notes, keys, bots), *_default_bindings(bots)]
    return channels, bots


def _iter_channels(
    keys: ImportedKeys, agents: Sequence[str]
) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """(agent, platform, settings) of every channel; one that stands at the top is of the first
    agent."""
    top = keys.raw.get("channels")
    own = [
        (agent, settings.get("channels"))
        for agent, settings in keys.agents.items()
        if isinstance(settings, Mapping)
    ]
    for agent, channels in (*own, (agents[0], top)):
        for platform, each in channels.items() if isinstance(channels, Mapping) else ():
            if isinstance(each, Mapping):
                yield agent, str(platform), each


def _is_supported(
    notes: ImportNotes, agent: str, platform: str, settings: Mapping[str, Any]
) -> bool:
    """Whether this becomes a channel; what it says that is not taken is noted."""
    where = f"channel {platform} of {agent}"
    said = [name for name, value in settings.items() if value not in (None, "", [], {}, False)]
    if platform not in PLATFORMS:
        if said:
            fields = ", ".join(said)
            notes.leave_out(
                f"{where} ({fields})",
                f"Deskhand has no channel for {platform} yet",
                "its keys stay there",
            )
        return False
    if not settings.get("enabled"):
        if said:
            notes.leave_out(
                f"{where} ({', '.join(said)})",
                "it is switched off",
                f"deskhand channels add {platform}",
            )
        return False
    if unused := [name for name in said if name not in _USED]:
        notes.leave_out(
            f"{', '.join(unused)} of {where}",
            "Deskhand has no such setting of a channel",
            "see docs/telegram.md",
        )
    return True


def _allowed_ids(notes: ImportNotes, where: str, given: Any) -> list[str]:
    """The ids of who may write. A name is nobody's for good, so it admits nobody."""
    listed = [str(each).strip() for each in given] if isinstance(given, list) else []
    ids: list[str] = []
    for each in listed:
        id_, bar, _ = each.partition("|")
        if id_.isascii() and id_.isdecimal():
            ids.append(id_)
            if bar:
                notes.change(
                    f"{each} of {where}",
                    f"they may write as {id_}: names can be taken over by others, numbers cannot",
                )
        else:
            notes.leave_out(
                f"that {each} may write to {where}",
                "names can be taken over by others, so only numbers are accepted",
                PAIR,
            )
    if not listed:
        notes.leave_out(f"that anybody may write to {where}", "people must be approved first", PAIR)
    return list(dict.fromkeys(ids))


def _explicit_bindings(
    notes: ImportNotes, keys: ImportedKeys, bots: Mapping[str, Bot]
) -> Iterator[dict[str, Any]]:
    """The bindings that are written down, in their order, for each bot that they are about. They
    count before what an agent's own bot says, as they do there."""
    for each in keys.config.get("bindings", ()):
        binding = dict(each)
        platform = str(binding.get("channel") or "")
        account = str(binding.pop("account", ""))
        chat = _CHAT.fullmatch(str(binding.get("chat") or ""))
        about = [
            bot
            for agent, bot in bots.items()
            if bot.platform == platform and account in ("", agent)
        ]
        if not about:
            yield binding  # of a channel that does not come in: said where it is planned
        elif binding.get("chat") and (chat is None or chat[2]):
            what = f"that {binding.get('agent')} answers in {binding['chat']} on {platform}"
            notes.leave_out(
                what,
                "a binding is for a whole chat, not for one of its topics",
                "bind the chat in `bindings`",
            )
        else:
            yield from (binding | {"channel": bot.channel} for bot in about)


def _default_bindings(bots: Mapping[str, Bot]) -> list[dict[str, Any]]:
    return [{"agent": agent, "channel": bot.channel} for agent, bot in bots.items()]


def parse_chat_address(
    key: str, bot: Bot | None, *, any_bot: bool = False
) -> tuple[Address | None, bool]:
    """Where the chat of this name goes on, None for nowhere, and whether several people read there.
    `any_bot`: also where the id of its bot is not known."""
    platform, _, rest = key.partition(":")
    group = rest.startswith("-")
    chat = _CHAT.fullmatch(rest)
    known = bot is not None and bot.platform == platform and bool(bot.id)
    if chat is None or platform not in PLATFORMS or not (known or any_bot):
        return None, group
    channel = bot.channel if bot is not None else platform
    account = bot.id if bot is not None else ""
    return Address(channel, account, chat[1], chat[2] or "", group=group), group
