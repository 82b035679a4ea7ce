"""What Discord tells of people, as a channel hands it in.

https://discord.com/developers/docs/events/gateway-events, resources/message
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ...types.identity import Address, Body, Command, Deletion, Edit, Inbound, Reaction, Said
from ...types.labels import PASSED_ON_SOURCE, Label
from ...types.messages import File, Message, Part, Text
from ..buttons import read_press
from ..group_rules import GroupRules
from ..incoming_files import Download, IncomingFile, PutBlob, read_incoming_file
from ..thread_roots import remember_thread

Json = Mapping[str, Any]
PRESS_PREFIX = "press:"
"""What the id of a pressed button begins with, so that an answer to it can be told from one to a
message."""
PASSED_ON = Label("untrusted", source=PASSED_ON_SOURCE.format(platform="Discord"))
EPOCH_MS = 1_420_070_400_000
"""When the count of https://discord.com/developers/docs/reference#snowflakes begins."""
SAID_TYPES = (0, 19)
"""A message and a reply; all other types are about the channel."""
_VOICE_MESSAGE = 1 << 13
_FORWARD = 1
_PRESS = 3
_MARK = re.compile(r"<(@!?|@&|#|a?:\w{1,64}:)(\d{1,20})>")


class Reader:
    """Reads events for one bot. `groups` says where what is said need not be meant for it."""

    def __init__(
        self,
        channel: str,
        me: str,
        fetch: Download,
        keep: PutBlob,
        threads: dict[str, str],
        *,
        groups: GroupRules,
    ) -> None:
        self._channel = channel
        self._me = me
        self._fetch = fetch
        self._keep = keep
        self._threads = threads
        self._groups = groups

    async def read(self, kind: str, event: Json, name: str, now: float) -> Inbound | None:
        """What there is in it for an agent; None, for most kinds. `name` is the event's own."""
        match kind:
            case "MESSAGE_CREATE":
                return await self.read_message(event)
            case "MESSAGE_UPDATE":
                return self._read_edit(event)
            case "MESSAGE_DELETE":
                return self._read_deletion(event, now)
            case "MESSAGE_REACTION_ADD" | "MESSAGE_REACTION_REMOVE":
                return self._read_reaction(event, name, now, added=kind.endswith("ADD"))
            case "INTERACTION_CREATE":
                return self._read_press(event, now)
            case _:
                return None

    async def read_message(self, event: Json) -> Inbound | None:
        if event.get("type", 0) not in SAID_TYPES or not self._is_addressed(event):
            return None
        parts = await self._read_parts(event)
        if not parts:
            return None
        reference = event.get("message_reference") or {}
        reply = "" if reference.get("type") == _FORWARD else str(reference.get("message_id", ""))
        body = Said(Message("user", parts))
        at = read_snowflake_time(str(event["id"]))
        if "position" in event:  # it has one in a thread, and nowhere else
            chat = str(event["channel_id"])
            remember_thread(self._threads, chat, chat)
        return self._make_inbound(str(event["id"]), event, at, body, reply)

    def _read_edit(self, event: Json) -> Inbound | None:
        edited = event.get("edited_timestamp")
        if not edited or "author" not in event or not self._is_addressed(event):
            return None  # a preview has come
        text = self._read_text(event)
        if not text:
            return None
        name = str(event["id"])
        body = Edit(name, Message("user", (Text(text),)))
        at = datetime.fromisoformat(str(edited)).timestamp()
        return self._make_inbound(f"edit:{name}:{edited}", event, at, body)

    def _read_deletion(self, event: Json, now: float) -> Inbound:
        """Discord does not say whose it was."""
        of = str(event["id"])
        return Inbound(f"deleted:{of}", self._make_address(event), "", now, Deletion(of))

    def _make_inbound(
        self, name: str, event: Json, at: float, body: Body, reply_to: str = ""
    ) -> Inbound:
        author = event.get("author") or {}
        program = bool(author.get("bot") or event.get("webhook_id"))
        who = str(event.get("webhook_id") or author.get("id", ""))
        address = self._make_address(event)
        return Inbound(name, address, who, at, body, reply_to=reply_to, by_program=program)

    def _make_address(self, event: Json) -> Address:
        """A thread is a channel of its own there."""
        group = bool(event.get("guild_id"))
        return Address(self._channel, self._me, str(event["channel_id"]), "", group)

    def _read_reaction(self, event: Json, name: str, now: float, *, added: bool) -> Inbound | None:
        who = str(event.get("user_id", ""))
        if who == self._me:
            return None
        of = str(event["message_id"])
        emoji = str((event.get("emoji") or {}).get("name", ""))
        body = Reaction(of, emoji, added)
        return Inbound(f"reaction:{name}", self._make_address(event), who, now, body)

    def _read_press(self, event: Json, now: float) -> Inbound | None:
        custom = str((event.get("data") or {}).get("custom_id", ""))
        about, _, choice = custom.partition(" ")
        if event.get("type") != _PRESS:
            return None
        if choice.startswith("#"):  # too long for the button's id, but it stands on it
            choice = _find_label(event.get("message") or {}, custom)
        user = event.get("user") or (event.get("member") or {}).get("user") or {}
        body = read_press(about, choice)
        if body is None:
            return None
        name = f"{PRESS_PREFIX}{event['id']}"
        who = str(user.get("id", ""))
        pressed = str((event.get("message") or {}).get("id", ""))
        reply_to = pressed if isinstance(body, Command) else ""
        address = self._make_address(event)
        locale = str(event.get("locale") or "")
        return Inbound(name, address, who, now, body, reply_to=reply_to, language=locale)

    def _is_addressed(self, event: Json) -> bool:
        """Whether it is said to this bot: alone with it, by its name, or in reply to it."""
        if (event.get("author") or {}).get("id") == self._me:
            return False
        if not event.get("guild_id"):
            return True
        if self._groups.reads_everything(str(event["channel_id"])):
            return True
        replied = (event.get("referenced_message") or {}).get("author") or {}
        mentioned = [str(each.get("id")) for each in event.get("mentions") or ()]
        return self._me in mentioned or replied.get("id") == self._me

    def _read_text(self, event: Json) -> str:
        """What was written, without the name by which the bot was called."""
        return read_words(event, me=self._me)

    async def _read_parts(self, event: Json) -> tuple[Part, ...]:
        """Files first, so that what is said of them comes after."""
        parts = await self._read_files(event, passed_on=False)
        for snapshot in event.get("message_snapshots") or ():
            passed = snapshot.get("message") or {}
            parts += await self._read_files(passed, passed_on=True)
            if words := str(passed.get("content", "")):
                # It is not their word that they pass on: it enters as what stands in a file does.
                data = words.encode()
                blob = await self._keep(data)
                parts.append(File(blob, "forwarded message.txt", "text/plain", len(data)))
        parts += [
            Text(f"[sticker {each.get('name', '')}]", PASSED_ON)
            for each in event.get("sticker_items") or ()
        ]
        if text := self._read_text(event):
            parts.append(Text(text))
        return tuple(parts)

    async def _read_files(self, event: Json, *, passed_on: bool) -> list[Part]:
        voice = bool(int(event.get("flags") or 0) & _VOICE_MESSAGE)
        return [
            await self._read_file(each, voice=voice, passed_on=passed_on)
            for each in event.get("attachments") or ()
        ]

    async def _read_file(self, file: Json, *, voice: bool, passed_on: bool) -> Part:
        mime = str(file.get("content_type") or "application/octet-stream")
        found = IncomingFile(
            str(file.get("filename") or "file"),
            mime.partition(";")[0],
            str(file.get("url", "")),
            int(file.get("size") or 0),
            is_voice=voice,
            is_passed_on=passed_on,
        )
        return await read_incoming_file(found, self._fetch, self._keep, "Discord")


def read_words(event: Json, *, me: str = "") -> str:
    """What was written in a message, with names in the place of numbers. The name of the bot `me`
    is left out."""
    people = {str(each.get("id")): each for each in event.get("mentions") or ()}

    def read_mark(found: re.Match[str]) -> str:
        kind, number = found[1], found[2]
        if kind in ("@", "@!") and number in people:
            return f"@{people[number].get('username')}"  # other names are free text
        return kind.lstrip("a") if kind.endswith(":") else found[0]

    text = str(event.get("content") or "")
    if me:
        text = re.sub(rf",?\s{{0,3}}<@!?{re.escape(me)}>[:,]?", "", text)
    return _MARK.sub(read_mark, text).strip()


def read_snowflake_time(name: str) -> float:
    """When something was made that has this id, in seconds since the epoch."""
    return ((int(name) >> 22) + EPOCH_MS) / 1000


def _find_label(message: Json, custom: str) -> str:
    """What stands on the button that sends this, or ''."""
    rows = message.get("components") or ()
    buttons = [each for row in rows for each in row.get("components") or ()]
    found = (str(each.get("label", "")) for each in buttons if each.get("custom_id") == custom)
    return next(found, "")
