"""What Slack tells of people, as a channel hands it in.

https://docs.slack.dev/reference/events, and
https://docs.slack.dev/messaging/formatting-message-text#parsing for the marks in a text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
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
ANSWER_ACTION = "answer"
"""How the action of our buttons begins."""
PASSED_ON = Label("untrusted", source=PASSED_ON_SOURCE.format(platform="Slack"))
_AUDIO_CLIP = "slack_audio"
"""What somebody recorded in Slack itself: its media type is that of a video, as often as not."""
SAID_SUBTYPES = ("", "file_share", "thread_broadcast", "me_message", "bot_message")
_MARK = re.compile(r"<([^<>|]{1,3000})(?:\|([^<>]{0,3000}))?>")


def make_message_id(chat: str, ts: str) -> str:
    """How a message is called here: a time stamp alone is unique in one chat only."""
    return f"{chat}:{ts}"


def parse_message_ts(name: str) -> str:
    """Slack's own name of a message that is called so; '' for anything else."""
    chat, _, ts = name.partition(":")
    return ts if chat and not name.startswith(PRESS_PREFIX) else ""


class Reader:
    """Reads events for one bot. `groups` says where what is said need not be meant for it."""

    def __init__(
        self,
        channel: str,
        me: str,
        fetch: Download,
        keep: PutBlob,
        roots: dict[str, str],
        *,
        groups: GroupRules,
    ) -> None:
        self._channel = channel
        self._me = me
        self._fetch = fetch
        self._keep = keep
        self._groups = groups
        self._roots = roots

    async def read_event(self, event: Json) -> Inbound | None:
        """What there is in it for an agent; None, for most kinds. Raises ChannelError where a file
        could not be fetched now."""
        match event.get("type"):
            case "message" | "app_mention":
                if event.get("subtype") == "message_changed":
                    return self._read_edit(event)
                if event.get("subtype") == "message_deleted":
                    return self._read_deletion(event)
                return await self._read_message(event)
            case "reaction_added" | "reaction_removed":
                return self._read_reaction(event)
            case _:
                return None

    def read_press(self, payload: Json) -> Inbound | None:
        """Who pressed one of our buttons, and which."""
        actions: Sequence[Json] = payload.get("actions") or ({},)
        if not str(actions[0].get("action_id", "")).startswith(ANSWER_ACTION):
            return None
        about, _, choice = str(actions[0].get("value", "")).partition(" ")
        chat = str(payload.get("channel", {}).get("id", ""))
        body = read_press(about, choice)
        if body is None or not chat:
            return None
        message = payload.get("message", {})
        at = str(actions[0].get("action_ts", ""))
        root = str(message.get("thread_ts") or ("" if _is_direct(chat) else message.get("ts", "")))
        address = self._make_address(chat, root)
        who = str(payload.get("user", {}).get("id", ""))
        name = f"{PRESS_PREFIX}{chat}:{message.get('ts', '')}:{who}:{at}"
        reply_to = ""
        if isinstance(body, Command):
            reply_to = make_message_id(chat, str(message.get("ts", "")))
        return Inbound(name, address, who, to_seconds(at), body, reply_to=reply_to)

    async def _read_message(self, event: Json) -> Inbound | None:
        if event.get("subtype", "") not in SAID_SUBTYPES or event.get("user") == self._me:
            return None
        if not self._is_addressed(event):
            return None
        parts = await self._read_parts(event)
        if not parts:
            return None
        return self._make_inbound(event, Said(Message("user", parts)), event)

    def _read_edit(self, event: Json) -> Inbound | None:
        now, before = event.get("message", {}), event.get("previous_message", {})
        text = self._read_text(now)
        if "edited" not in now or now.get("text") == before.get("text") or not text:
            return None  # a preview has come, or a file has gone
        if now.get("user") == self._me:  # what we wrote over a message of ours
            return None
        whole = {**now, "channel": event.get("channel"), "channel_type": event.get("channel_type")}
        if not self._is_addressed(whole):
            return None
        of = make_message_id(str(event.get("channel")), str(now.get("ts")))
        body = Edit(of, Message("user", (Text(text),)))
        return self._make_inbound(whole, body, event)

    def _read_deletion(self, event: Json) -> Inbound | None:
        before = event.get("previous_message", {})
        chat, ts = str(event.get("channel")), str(event.get("deleted_ts"))
        who = str(before.get("user") or "")
        if not who or who == self._me:
            return None
        of = make_message_id(chat, ts)
        address = self._make_address(chat, str(before.get("thread_ts", "")))
        at = to_seconds(str(event.get("ts")))
        program = bool(before.get("bot_id"))
        return Inbound(f"deleted:{of}", address, who, at, Deletion(of), by_program=program)

    def _make_inbound(self, said: Json, body: Body, event: Json) -> Inbound:
        chat, ts = str(said.get("channel")), str(event.get("ts"))
        root = str(said.get("thread_ts", ""))
        remember_thread(self._roots, make_message_id(chat, str(said.get("ts"))), root)
        name = make_message_id(chat, ts) if isinstance(body, Said) else f"edit:{chat}:{ts}"
        program = bool(said.get("bot_id")) or said.get("subtype") == "bot_message"
        return Inbound(
            name,
            self._make_address(chat, root or ("" if _is_direct(chat) else str(said.get("ts")))),
            str(said.get("user") or said.get("bot_id") or ""),
            to_seconds(ts),
            body,
            reply_to=make_message_id(chat, root) if root and root != said.get("ts") else "",
            by_program=program,
        )

    def _make_address(self, chat: str, root: str) -> Address:
        """In a channel each thread is a conversation; alone with somebody all of it is one, but for
        threads. The app has one name in a workspace, so that chats need no account beside them."""
        return Address(self._channel, "", chat, root, group=not _is_direct(chat))

    def _read_reaction(self, event: Json) -> Inbound | None:
        item = event.get("item", {})
        if item.get("type") != "message" or event.get("user") == self._me:
            return None
        chat = str(item.get("channel"))
        of = make_message_id(chat, str(item.get("ts")))
        added = event.get("type") == "reaction_added"
        at = str(event.get("event_ts", ""))
        who = str(event.get("user", ""))
        emoji = f":{event.get('reaction', '')}:"
        name = f"reaction:{of}:{who}:{emoji}:{at}"
        usual = "" if _is_direct(chat) else str(item.get("ts"))
        address = self._make_address(chat, self._roots.get(of, usual))
        return Inbound(name, address, who, to_seconds(at), Reaction(of, emoji, added))

    def _is_addressed(self, message: Json) -> bool:
        """Whether it is said to this bot: alone with it, by its name, or in a thread that it
        began."""
        chat = str(message.get("channel", ""))
        if _is_direct(chat) or self._groups.reads_everything(chat):
            return True
        return (
            message.get("type") == "app_mention"
            or self._is_named(str(message.get("text", "")))
            or message.get("parent_user_id") == self._me
        )

    def _is_named(self, text: str) -> bool:
        return f"<@{self._me}>" in text or f"<@{self._me}|" in text

    def _read_text(self, message: Json) -> str:
        """What was written, without the name by which the bot was called."""
        text = re.sub(
            rf"<@{re.escape(self._me)}(\|[^<>]{{0,100}})?>[:,]?", "", message.get("text", "")
        )
        return read_marks(text).strip()

    async def _read_parts(self, message: Json) -> tuple[Part, ...]:
        """Files first, so that what is said of them comes after."""
        parts = [await self._read_file(file) for file in message.get("files") or ()]
        for shared in message.get("attachments") or ():
            if not (shared.get("is_share") or shared.get("is_msg_unfurl")):
                continue
            files = shared.get("files") or ()
            parts += [await self._read_file(file, passed_on=True) for file in files]
            words = str(shared.get("text") or shared.get("fallback") or "")
            if words:
                data = read_marks(words).encode()
                blob = await self._keep(data)
                parts.append(File(blob, "forwarded message.txt", "text/plain", len(data)))
        if text := self._read_text(message):
            parts.append(Text(text))
        return tuple(parts)

    async def _read_file(self, file: Json, *, passed_on: bool = False) -> Part:
        name = str(file.get("name") or "file")
        mime = str(file.get("mimetype") or "application/octet-stream")
        url = str(file.get("url_private_download") or file.get("url_private") or "")
        if not url or file.get("mode") in ("tombstone", "hidden_by_limit"):
            return Text(f"[{name} cannot be fetched from Slack any more]\n", PASSED_ON)
        found = IncomingFile(
            name,
            mime,
            url,
            int(file.get("size") or 0),
            is_voice=file.get("subtype") == _AUDIO_CLIP,
            is_passed_on=passed_on,
        )
        return await read_incoming_file(found, self._fetch, self._keep, "Slack")


def _is_direct(chat: str) -> bool:
    """Whether it is somebody alone with the app."""
    return chat.startswith("D")


def read_marks(text: str) -> str:
    """A text of Slack's as people read it."""
    return html.unescape(_MARK.sub(_read_mark, text))


def _read_mark(found: re.Match[str]) -> str:
    """A mark in a text as people read it: `<@U1|ann>`, `<#C1|general>`, `<!here>`, a link."""
    target, label = found[1], found[2] or ""
    match target[0]:
        case "@":
            return f"@{label or target[1:]}"
        case "#":
            return f"#{label or target[1:]}"
        case "!":
            return label or f"@{target[1:].partition('^')[0]}"
    return target if not label or label in target else f"{label} ({target})"


def to_seconds(ts: str) -> float:
    """When a message with this time stamp was written, in seconds since the epoch; 0.0 for what is
    no time stamp."""
    try:
        return float(ts)
    except ValueError:
        return 0.0
