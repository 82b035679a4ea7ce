"""What was written in the channels of a Discord server before.

https://discord.com/developers/docs/resources/channel, resources/guild, resources/message. The words
of messages that were not meant for the bot are shown to apps with the Message Content Intent alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from ...types.errors import SendRefused
from ...types.identity import Address
from ..base import PastMessage, Room
from ..patience import retry_after_waits
from .reader import SAID_TYPES, Json, read_snowflake_time, read_words

PAGE = 100
MAX_PAGES = 5
GUILDS_PAGE = 200
_KINDS = {0: "channel", 2: "voice channel", 5: "announcements", 13: "stage", 15: "forum"}
"""Those in which messages or threads are:
https://discord.com/developers/docs/resources/channel#channel-object-channel-types."""
_PUBLIC_THREADS = (10, 11)
_THREAD_STARTER = 21
"""Stands at the beginning of a thread for the message that the thread was made of."""
_NO_WORDS = (
    "Discord shows the bot no words that were not meant for it: switch on Message Content Intent "
    "under Bot, at https://discord.com/developers/applications"
)


class Call(Protocol):
    async def __call__(self, method: str, path: str, *, params: Json | None = None) -> Any:
        """What Discord answers. Raises ChannelError."""


class History:
    """Reads for one bot, which asks Discord by `call`."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def list_rooms(self) -> tuple[Room, ...]:
        """See `Reading.list_rooms`. Discord also tells of channels that the bot cannot read; who
        may is not looked up."""
        found: list[Room] = []
        for guild in await self._fetch("/users/@me/guilds", {"limit": str(GUILDS_PAGE)}):
            for channel in await self._fetch(f"/guilds/{guild['id']}/channels", {}):
                if kind := _KINDS.get(channel.get("type", -1)):
                    name = f"#{channel.get('name', '')}"
                    found.append(Room(str(channel["id"]), name, f"{kind} of {guild['name']}"))
        return tuple(found)

    async def read(self, address: Address, count: int, me: str) -> tuple[PastMessage, ...]:
        """See `Reading.read_history`; `me` is the number of the bot."""
        chat = str(_make_number(address.chat))
        if address.thread and address.thread != chat:
            chat = await self._find_thread(address)
        found: list[PastMessage] = []
        before: Mapping[str, str] = {}
        hidden = False
        for _ in range(MAX_PAGES):
            about = {"limit": str(PAGE), **before}
            page: Sequence[Json] = await self._fetch(f"/channels/{chat}/messages", about)
            for each in page:
                said = _find_said(each)
                if said is not None and (past := _read_message(said, me)).text:
                    found.append(past)
                hidden = hidden or _is_hidden(each)
            if len(found) >= count or len(page) < PAGE:
                break
            before = {"before": str(page[-1]["id"])}
        if hidden and not found:
            raise SendRefused(_NO_WORDS)
        return tuple(found[:count][::-1])

    async def _find_thread(self, address: Address) -> str:
        """The channel that a thread is. One that not everybody sees who reads in its channel is
        none."""
        told = await self._fetch(f"/channels/{_make_number(address.thread)}", {})
        if str(told.get("parent_id")) != address.chat or told.get("type") not in _PUBLIC_THREADS:
            raise SendRefused(f"there is no public thread {address.thread} in this channel")
        return str(told["id"])

    async def _fetch(self, path: str, params: Json) -> Any:
        return await retry_after_waits(partial(self._call, "GET", path, params=params))


def _make_number(name: str) -> int:
    """The number of a channel, so that nothing else gets into an address. Raises SendRefused."""
    if not name.isascii() or not name.isdecimal():
        raise SendRefused(f"{name[:40]!r} is no id of Discord's")
    return int(name)


def _find_said(told: Json) -> Json | None:
    """The message itself, where somebody wrote it; None for what is about the channel."""
    if told.get("type") == _THREAD_STARTER:
        started: Json | None = told.get("referenced_message")
        return started
    return told if told.get("type", 0) in SAID_TYPES else None


def _is_hidden(told: Json) -> bool:
    """Whether it was written, but is not shown to this bot."""
    shows = ("content", "attachments", "embeds", "components", "sticker_items", "poll")
    return told.get("type", 0) in SAID_TYPES and not any(told.get(each) for each in shows)


def _read_message(told: Json, me: str) -> PastMessage:
    author = told.get("author") or {}
    sender = str(told.get("webhook_id") or author.get("id", ""))
    files = [f"[file {each.get('filename') or 'file'}]" for each in told.get("attachments") or ()]
    thread = told.get("thread") or {}
    return PastMessage(
        id=str(told["id"]),
        sender=sender,
        name=str(author.get("username") or sender),
        at=read_snowflake_time(str(told["id"])),
        text="\n".join(filter(None, (read_words(told), *files))),
        thread=str(thread.get("id", "")),
        ours=sender == me,
    )
