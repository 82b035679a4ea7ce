"""What a homeserver tells of people, as a channel hands it in.

https://spec.matrix.org/latest/client-server-api: events of rooms, with relations for replies,
threads, edits and reactions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ...types.identity import Address, Body, Deletion, Edit, Inbound, Reaction, Said
from ...types.labels import PASSED_ON_SOURCE, Label
from ...types.messages import Message, Part, Text
from ..group_rules import GroupRules
from ..incoming_files import Download, IncomingFile, PutBlob, read_incoming_file
from ..thread_roots import remember_thread

Json = Mapping[str, Any]
PASSED_ON = Label("untrusted", source=PASSED_ON_SOURCE.format(platform="Matrix"))
VOICE_MARK = "org.matrix.msc3245.voice"
"""Tells a voice message from music: https://github.com/matrix-org/matrix-spec-proposals/pull/3245,
as Element and the bridges write it."""
_MEDIA = ("m.image", "m.file", "m.audio", "m.video")

IsGroup = Callable[[str], Awaitable[bool]]
"""Whether more than two are in a room."""


class Reader:
    """Reads events for one account. `groups` says where what is said need not be meant for it."""

    def __init__(
        self,
        address: Address,
        fetch: Download,
        keep: PutBlob,
        is_group: IsGroup,
        threads: dict[str, str],
        *,
        groups: GroupRules,
    ) -> None:
        self._here = address
        self._me = address.account
        self._fetch = fetch
        self._keep = keep
        self._is_group = is_group
        self._threads = threads
        self._groups = groups

    async def read(self, room: str, event: Json) -> Inbound | None:
        """What there is in it for an agent; None, for most kinds. Raises ChannelError where a file
        could not be fetched now."""
        if event.get("sender") == self._me or "state_key" in event:
            return None
        content = event.get("content") or {}
        relation = content.get("m.relates_to") or {}
        group = await self._is_group(room)
        if event.get("type") == "m.reaction" and relation.get("rel_type") == "m.annotation":
            of, emoji = str(relation.get("event_id", "")), str(relation.get("key", ""))
            thread = self._threads.get(of, "")
            return self._make_inbound(room, event, Reaction(of, emoji, True), thread, group=group)
        if event.get("type") == "m.room.redaction":
            of = str(event.get("redacts") or content.get("redacts") or "")
            thread = self._threads.get(of, "")
            return self._make_inbound(room, event, Deletion(of), thread, group=group)
        if event.get("type") != "m.room.message":
            return None
        if group and not self._is_addressed(room, content):
            return None
        thread = str(relation["event_id"]) if relation.get("rel_type") == "m.thread" else ""
        if relation.get("rel_type") == "m.replace":
            text = self._read_text(content.get("m.new_content") or {})
            of = str(relation.get("event_id", ""))
            thread = self._threads.get(of, "")
            body = Edit(of, Message("user", (Text(text),)))
            return self._make_inbound(room, event, body, thread, group=group) if text else None
        remember_thread(self._threads, str(event.get("event_id", "")), thread)
        parts = await self._read_parts(content)
        if not parts:
            return None
        return self._make_inbound(room, event, Said(Message("user", parts)), thread, group=group)

    def _make_inbound(
        self, room: str, event: Json, body: Body, thread: str, *, group: bool
    ) -> Inbound:
        content = event.get("content") or {}
        relation = content.get("m.relates_to") or {}
        reply = (relation.get("m.in_reply_to") or {}).get("event_id", "")
        return Inbound(
            str(event["event_id"]),
            Address(self._here.channel, self._me, room, thread, group),
            str(event["sender"]),
            float(event.get("origin_server_ts") or 0) / 1000,
            body,
            reply_to="" if relation.get("is_falling_back") else str(reply),
            by_program=content.get("msgtype") == "m.notice",
        )

    def _is_addressed(self, room: str, content: Json) -> bool:
        """Whether it is said to this account: it is mentioned, as in replies to it, or named."""
        if self._groups.reads_everything(room):
            return True
        shown = content.get("m.new_content") or content
        mentioned = (shown.get("m.mentions") or {}).get("user_ids") or ()
        text = str(content.get("body", ""))
        return self._me in mentioned or self._me in text or text.startswith(("/", "!"))

    def _read_text(self, content: Json) -> str:
        """What was written, without the name by which the account was called and without the copy
        of what it replies to."""
        text = read_words(content)
        local = self._me[1:].partition(":")[0]
        for name in (self._me, f"@{local}", local):
            after = text.removeprefix(name)
            if after != text and (after[:1] in (":", ",") or (name[0] == "@" and after[:1] <= " ")):
                return after.lstrip(":, \n").strip()
        return text.strip()

    async def _read_parts(self, content: Json) -> tuple[Part, ...]:
        """Files first, so that what is said of them comes after."""
        kind = content.get("msgtype")
        if kind in ("m.text", "m.emote", "m.notice"):
            text = self._read_text(content)
            return (Text(text),) if text else ()
        if kind == "m.location":
            return (Text(f"[location: {content.get('geo_uri', '')}]", PASSED_ON),)
        if kind not in _MEDIA:
            return ()
        name = str(content.get("filename") or content.get("body") or "file")
        parts = [await self._read_file(content, name)]
        if content.get("filename") and content.get("body") != name:
            parts.append(Text(self._read_text(content)))
        return tuple(parts)

    async def _read_file(self, content: Json, name: str) -> Part:
        info = content.get("info") or {}
        found = IncomingFile(
            name,
            str(info.get("mimetype") or "application/octet-stream"),
            str(content.get("url", "")),
            int(info.get("size") or 0),
            is_voice=content.get("msgtype") == "m.audio" and VOICE_MARK in content,
        )
        return await read_incoming_file(found, self._fetch, self._keep, "Matrix")


def read_words(content: Json) -> str:
    """What was written, without the copy of what it replies to."""
    text = str(content.get("body") or "")
    if (content.get("m.relates_to") or {}).get("m.in_reply_to") and text.startswith("> <@"):
        _, _, text = text.partition("\n\n")
    return text
