"""What was written in the channels of a Slack workspace before.

https://docs.slack.dev/reference/methods/conversations.list, conversations.history and
conversations.replies. An app reads only channels that it was invited to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Protocol

from ...types.errors import SendRefused
from ...types.identity import Address
from ..base import PastMessage, Room
from ..patience import retry_after_waits
from .reader import SAID_SUBTYPES, Json, make_message_id, read_marks, to_seconds

PAGE = 200
MAX_ROOM_PAGES = 10
MAX_HISTORY_PAGES = 5
MAX_THREAD_PAGES = 25
"""Slack tells of a thread from its beginning, so that all of it is read for its end."""
MAX_NAMES = 2_000
_NO_USER = ("user_not_found", "user_not_visible")

SPARE = 20
"""So many more than are wanted are asked for, as some tell only that somebody came or left."""


class Call(Protocol):
    async def __call__(
        self, method: str, about: Mapping[str, object], *, harmless: Sequence[str] = ()
    ) -> Json:
        """What this method of Slack's answers; {} for an error that is `harmless`. Raises
        ChannelError."""


class History:
    """Reads for one app, whose methods are called by `call`."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._names: dict[str, str] = {}

    async def list_rooms(self) -> tuple[Room, ...]:
        """See `Reading.list_rooms`. Of private channels Slack tells members alone."""
        about = {
            "types": "public_channel,private_channel",
            "exclude_archived": "true",
            "limit": str(PAGE),
        }
        found: list[Room] = []
        cursor = ""
        for _ in range(MAX_ROOM_PAGES):
            page = await self._fetch("conversations.list", {**about, "cursor": cursor})
            found += map(_read_room, page.get("channels") or ())
            cursor = _find_cursor(page)
            if not cursor:
                break
        return tuple(found)

    async def read(self, address: Address, count: int, me: Json) -> tuple[PastMessage, ...]:
        """See `Reading.read_history`; `me` is what auth.test tells of the app."""
        if address.thread:
            messages = await self._read_thread(address, count)
        else:
            messages = await self._read_channel(address, count)
        names = await self._find_names(messages)
        found = []
        for each in messages:
            sender = str(each.get("user") or each.get("bot_id") or "")
            ours = sender == me.get("user_id") or each.get("bot_id", "") == me.get("bot_id")
            found.append(
                PastMessage(
                    id=make_message_id(address.chat, str(each["ts"])),
                    sender=sender,
                    name=names.get(sender) or _find_shown_name(each) or sender,
                    at=to_seconds(str(each["ts"])),
                    text=_read_words(each),
                    thread=str(each.get("thread_ts", "")),
                    ours=ours,
                )
            )
        return tuple(found)

    async def _read_channel(self, address: Address, count: int) -> list[Json]:
        """Slack tells the newest first, and leaves out what stands in threads."""
        about = {"channel": address.chat, "limit": str(min(count + SPARE, PAGE))}
        found: list[Json] = []
        cursor = ""
        for _ in range(MAX_HISTORY_PAGES):
            page = await self._fetch("conversations.history", {**about, "cursor": cursor})
            found += filter(_is_said, page.get("messages") or ())
            cursor = _find_cursor(page)
            if len(found) >= count or not cursor:
                break
        return found[:count][::-1]

    async def _read_thread(self, address: Address, count: int) -> list[Json]:
        """The oldest first. What a page repeats of the one before counts once."""
        about = {"channel": address.chat, "ts": address.thread, "limit": str(PAGE)}
        found: dict[str, Json] = {}
        cursor = ""
        for _ in range(MAX_THREAD_PAGES):
            page = await self._fetch("conversations.replies", {**about, "cursor": cursor})
            for each in filter(_is_said, page.get("messages") or ()):
                found[str(each["ts"])] = each
            cursor = _find_cursor(page)
            if not cursor:
                break
        return list(islice(found.values(), max(len(found) - count, 0), None))

    async def _find_names(self, messages: list[Json]) -> Mapping[str, str]:
        """How the people among the senders are called. Without the scope users:read they are shown
        by their ids."""
        for user in dict.fromkeys(str(each.get("user") or "") for each in messages):
            if not user or user in self._names:
                continue
            try:
                answer = await self._fetch("users.info", {"user": user}, harmless=_NO_USER)
            except SendRefused:
                break
            told = answer.get("user") or {}
            profile = told.get("profile") or {}
            shown = profile.get("display_name") or told.get("real_name") or told.get("name")
            self._names[user] = str(shown or user)
            if len(self._names) > MAX_NAMES:
                del self._names[next(iter(self._names))]
        return self._names

    async def _fetch(
        self, method: str, about: Mapping[str, object], *, harmless: Sequence[str] = ()
    ) -> Json:
        return await retry_after_waits(partial(self._call, method, about, harmless=harmless))


def _find_cursor(page: Json) -> str:
    return str((page.get("response_metadata") or {}).get("next_cursor") or "")


def _read_room(told: Json) -> Room:
    private = bool(told.get("is_private"))
    return Room(
        str(told["id"]),
        f"#{told.get('name', '')}",
        "private channel" if private else "channel",
        joined=bool(told.get("is_member")),
        public=not private,
    )


def _is_said(message: Json) -> bool:
    """Whether somebody wrote it: nobody came in or left, and no topic was set."""
    return message.get("subtype", "") in SAID_SUBTYPES and bool(_read_words(message))


def _find_shown_name(message: Json) -> str:
    """How an app without a user calls itself."""
    profile = message.get("bot_profile") or {}
    return str(message.get("username") or profile.get("name") or "")


def _read_words(message: Json) -> str:
    """Its text, or what stands for it, and the names of its files."""
    text = read_marks(str(message.get("text") or "")).strip()
    if message.get("bot_id"):  # of what an app says, the text is only what a notification shows
        text = _read_blocks(message) or text
    if not text:
        attached = message.get("attachments") or ()
        told = (str(each.get("text") or each.get("fallback") or "") for each in attached)
        text = read_marks("\n".join(filter(None, told))).strip()
    files = [f"[file {each.get('name') or 'file'}]" for each in message.get("files") or ()]
    return "\n".join(filter(None, (text, *files)))


def _read_blocks(message: Json) -> str:
    """The words of its rich text:
    https://docs.slack.dev/reference/block-kit/blocks/rich-text-block"""
    blocks = [each for each in message.get("blocks") or () if each.get("type") == "rich_text"]
    sections = [section for block in blocks for section in block.get("elements") or ()]
    lines = ["".join(map(_read_element, each.get("elements") or ())) for each in sections]
    return "\n".join(lines).strip()


def _read_element(element: Json) -> str:
    if element.get("type") == "rich_text_section":  # of a list
        return "".join(map(_read_leaf, element.get("elements") or ())) + "\n"
    return _read_leaf(element)


def _read_leaf(element: Json) -> str:
    match element.get("type"):
        case "user":
            return f"@{element.get('user_id', '')}"
        case "emoji":
            return f":{element.get('name', '')}:"
        case _:
            return str(element.get("text") or element.get("url") or "")
