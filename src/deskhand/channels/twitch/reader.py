"""What Twitch tells of people, as a channel hands it in.

https://dev.twitch.tv/docs/eventsub/eventsub-subscription-types, channel.chat.message and
user.whisper.message
"""

from __future__ import annotations

import re

from ...types.identity import Address, Inbound, Said
from ...types.messages import Message, Text
from ..group_rules import GroupRules
from .translate import WHISPER, Json

_WORDS = (
    "text",
    "channel_points_highlighted",
    "channel_points_sub_only",
    "user_intro",
    "power_ups_message_effect",
    "power_ups_gigantified_emote",
)


class Reader:
    """Reads events for one account. `groups` says where what is said need not be meant for it."""

    def __init__(self, channel: str, me: Json, *, groups: GroupRules) -> None:
        self._channel = channel
        self._me = str(me["user_id"])
        self._name = str(me["login"])
        self._groups = groups

    def read(self, kind: str, event: Json, at: float) -> Inbound | None:
        """What there is in it for an agent; None, for what is not meant for it."""
        if kind == "user.whisper.message":
            return self._read_whisper(event, at)
        return self._read_message(event, at) if kind == "channel.chat.message" else None

    def _read_message(self, event: Json, at: float) -> Inbound | None:
        who = str(event.get("chatter_user_id", ""))
        if who == self._me or event.get("message_type", "text") not in _WORDS:
            return None
        if event.get("source_broadcaster_user_id") not in (None, event["broadcaster_user_id"]):
            return None  # said in another chat that is shown here, too
        reply = event.get("reply") or {}
        words = str((event.get("message") or {}).get("text", ""))
        meant = self._is_named(words) or self._is_replied(reply)
        if not meant and not self._groups.reads_everything(str(event["broadcaster_user_id"])):
            return None
        text = self._strip_names(words, reply)
        if not text:
            return None
        address = Address(
            self._channel, self._me, str(event["broadcaster_user_id"]), "", group=True
        )
        return Inbound(
            str(event["message_id"]),
            address,
            who,
            at,
            Said(Message("user", (Text(text),))),
            reply_to=str(reply.get("parent_message_id", "")),
        )

    def _read_whisper(self, event: Json, at: float) -> Inbound | None:
        who = str(event.get("from_user_id", ""))
        text = str((event.get("whisper") or {}).get("text", "")).strip()
        if not text or who == self._me:
            return None
        address = Address(self._channel, self._me, f"{WHISPER}{who}")
        body = Said(Message("user", (Text(text),)))
        return Inbound(str(event["whisper_id"]), address, who, at, body)

    def _is_named(self, words: str) -> bool:
        return re.search(rf"@{re.escape(self._name)}\b", words, re.IGNORECASE) is not None

    def _is_replied(self, reply: Json) -> bool:
        return bool(reply) and reply.get("parent_user_id") == self._me

    def _strip_names(self, words: str, reply: Json) -> str:
        """Without the name by which the account was called, and the one that Twitch puts before a
        reply."""
        parent = str(reply.get("parent_user_name") or "")
        if parent and words.casefold().startswith(f"@{parent} ".casefold()):
            words = words[len(parent) + 2 :]
        return re.sub(rf"(?i)@{re.escape(self._name)}\b[:,]?", "", words).strip()
