"""What a bot may put into a message on Discord, and the words with which it is refused.

https://docs.discord.com/developers/resources/message#create-message has the limits.
"""

from __future__ import annotations

import itertools
from base64 import b64decode

import msgspec

from .guild import Guild
from .state import IS_VOICE, MESSAGE_CONTENT, Attachment, Json, Post, Refusal, invalid

CONTENT = 2000
NONCE = 25
ROWS = 5
ROW_BUTTONS = 5
CUSTOM_ID = 100
LABEL = 80
FILES = 10
FILE_BYTES = 10 * 2**20
WAVEFORM_BYTES = 256
_SETTABLE = 1 << 2 | 1 << 12 | IS_VOICE
"""SUPPRESS_EMBEDS, SUPPRESS_NOTIFICATIONS and IS_VOICE_MESSAGE: the flags that a bot may set."""
_VOICE_KEYS = ("duration_secs", "waveform")


class Call(msgspec.Struct):
    """One request: what the address says, the body, and the files that came with it. `approved`
    are the privileged intents that the app has."""

    guild: Guild
    path: dict[str, str]
    query: dict[str, str]
    body: Json
    files: dict[str, tuple[str, bytes]]
    approved: int

    def place(self) -> int:
        """The channel, which the bot must see."""
        channel = number(self.path["channel"], "channel_id")
        if channel not in self.guild.channels:
            raise Refusal(404, 10003, "Unknown Channel")
        if channel in self.guild.forbidden:
            raise Refusal(403, 50001, "Missing Access")
        return channel

    def writable(self) -> int:
        channel = self.place()
        if channel in self.guild.muted:
            raise Refusal(403, 50013, "Missing Permissions")
        if any(self.guild.direct.get(each) == channel for each in self.guild.closed):
            raise Refusal(403, 50007, "Cannot send messages to this user")
        return channel

    def message(self) -> Post:
        post = self.guild.find(self.place(), number(self.path["message"], "message_id"))
        if post is None:
            raise Refusal(404, 10008, "Unknown Message")
        return post

    def shown(self, post: Post) -> Json:
        shown = self.guild.shown(post)
        full = self.approved & MESSAGE_CONTENT
        return shown if full else self.guild.bare(post, shown)


def number(text: object, field: str) -> int:
    try:
        return int(str(text))
    except ValueError as error:
        raise invalid(field, "NUMBER_TYPE_COERCE", f"Value {text!r} is not snowflake.") from error


def too_long(field: str, most: int) -> Refusal:
    return invalid(field, "BASE_TYPE_MAX_LENGTH", f"Must be {most} or fewer in length.")


def written(call: Call, channel: int) -> Json:
    """The fields of a message that a new one and a changed one share."""
    body = call.body
    text = str(body.get("content") or "")
    if len(text) > CONTENT:
        raise too_long("content", CONTENT)
    mentions, everyone = _pinged(call, text)
    fields: Json = {
        "components": _components(body.get("components") or []),
        "embeds": body.get("embeds") or [],
        "files": _files(call, channel),
        "flags": int(body.get("flags") or 0) & _SETTABLE,
        "mentions": mentions,
        "mention_everyone": everyone,
    }
    if fields["flags"] & IS_VOICE:
        _check_voice(call, channel, fields)
    return fields


def _check_voice(call: Call, channel: int, fields: Json) -> None:
    """https://docs.discord.com/developers/resources/message#message-object-message-flags, and the
    codes of https://docs.discord.com/developers/topics/opcodes-and-status-codes#json"""
    if channel in call.guild.voiceless:
        raise Refusal(403, 50173, "You cannot send voice messages in this channel.")
    if call.body.get("content") or fields["embeds"] or fields["components"]:
        raise Refusal(400, 50159, "Voice messages do not support additional content.")
    files: list[Attachment] = fields["files"]
    if len(files) != 1 or not str(files[0].about.get("content_type")).startswith("audio/"):
        raise Refusal(400, 50160, "Voice messages must have a single audio attachment.")
    if not all(files[0].about.get(key) for key in _VOICE_KEYS):
        raise Refusal(400, 50161, "Voice messages must have supporting metadata.")
    try:
        drawn = b64decode(str(files[0].about["waveform"]), validate=True)
        float(files[0].about["duration_secs"])
    except (TypeError, ValueError) as error:
        raise Refusal(400, 50161, "Voice messages must have supporting metadata.") from error
    if len(drawn) > WAVEFORM_BYTES:
        raise too_long("attachments.0.waveform", WAVEFORM_BYTES)


def _pinged(call: Call, text: str) -> tuple[list[int], bool]:
    """https://docs.discord.com/developers/resources/message#allowed-mentions-object; without one,
    all that the text names are told."""
    named = call.guild.mentioned(text)
    everyone = "@everyone" in text or "@here" in text
    allowed = call.body.get("allowed_mentions")
    if allowed is None:
        return named, everyone
    kinds = allowed.get("parse", [])
    users = [int(each) for each in allowed.get("users", [])]
    if "users" in kinds and users:
        message = 'parse:["users"] and users: [ids...] are mutually exclusive.'
        raise invalid("allowed_mentions", "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE", message)
    if "users" not in kinds:
        named = [each for each in named if each in users]
    return named, everyone and "everyone" in kinds


def replied_to(call: Call, channel: int) -> Json | None:
    reference = call.body.get("message_reference")
    if reference is None:
        return None
    id = number(reference.get("message_id"), "message_reference.message_id")
    if call.guild.find(channel, id) is None:
        if reference.get("fail_if_not_exists", True):
            raise invalid("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
        return None
    where = {"channel_id": str(channel), **call.guild.guild_of(channel)}
    return {"type": 0, "message_id": str(id), **where}


def _components(rows: list[Json]) -> list[Json]:
    """Rows of buttons: https://docs.discord.com/developers/components/reference#button"""
    if len(rows) > ROWS:
        raise too_long("components", ROWS)
    seen: set[str] = set()
    numbers = itertools.count(1)
    checked: list[Json] = []
    for at, row in enumerate(rows):
        field = f"components.{at}.components"
        if row.get("type") != 1:
            raise invalid(f"components.{at}.type", "UNION_TYPE_CHOICES", "Value must be one of {1}")
        if not 1 <= len(row.get("components", [])) <= ROW_BUTTONS:
            message = f"Must be between 1 and {ROW_BUTTONS} in length."
            raise invalid(field, "BASE_TYPE_BAD_LENGTH", message)
        id = next(numbers)
        buttons = [
            {"id": next(numbers), **_button(each, f"{field}.{place}", seen)}
            for place, each in enumerate(row["components"])
        ]
        checked.append({"type": 1, "id": id, "components": buttons})
    return checked


def _button(button: Json, field: str, seen: set[str]) -> Json:
    if button.get("style") == 5:
        return button
    name = str(button.get("custom_id") or "")
    if not name:
        raise invalid(f"{field}.custom_id", "BASE_TYPE_REQUIRED", "This field is required")
    if len(name) > CUSTOM_ID:
        raise too_long(f"{field}.custom_id", CUSTOM_ID)
    if len(str(button.get("label") or "")) > LABEL:
        raise too_long(f"{field}.label", LABEL)
    if name in seen:
        message = "Component custom id cannot be duplicated"
        raise invalid(f"{field}.custom_id", "COMPONENT_CUSTOM_ID_DUPLICATED", message)
    seen.add(name)
    return button


def _files(call: Call, channel: int) -> list[Attachment]:
    """https://docs.discord.com/developers/reference#uploading-files"""
    if len(call.files) > FILES:
        raise too_long("attachments", FILES)
    if sum(len(data) for _, data in call.files.values()) > FILE_BYTES:
        raise Refusal(413, 40005, "Request entity too large")
    described = {f"files[{each.get('id')}]": each for each in call.body.get("attachments") or ()}
    found = []
    for field, (name, data) in call.files.items():
        about = described.get(field, {})
        keys = ("description", "title", *_VOICE_KEYS)
        more = {key: about[key] for key in keys if about.get(key)}
        found.append(call.guild.store(channel, data, str(about.get("filename") or name), **more))
    return found
