"""What is on a Discord that is only pretended: channels, messages, files, and the events that the
gateway tells of them.

The shapes are those of https://docs.discord.com/developers/resources/message and
https://docs.discord.com/developers/resources/channel.
"""

from __future__ import annotations

import itertools
import mimetypes
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import msgspec

Json = dict[str, Any]

EPOCH_MS = 1_420_070_400_000
DATE_MS = 1_800_000_000_000
CHANNEL_TEXT = 0
CHANNEL_DM = 1
CHANNEL_THREAD = 11
PRIVATE_THREAD = 12
THREADS = (CHANNEL_THREAD, PRIVATE_THREAD)
MESSAGE_DEFAULT = 0
MESSAGE_REPLY = 19
MESSAGE_STARTER = 21
HAS_SNAPSHOT = 1 << 14
IS_VOICE = 1 << 13
EPHEMERAL = 1 << 6

# https://docs.discord.com/developers/events/gateway#list-of-intents
GUILDS = 1 << 0
GUILD_MEMBERS = 1 << 1
GUILD_PRESENCES = 1 << 8
GUILD_MESSAGES = 1 << 9
GUILD_REACTIONS = 1 << 10
DIRECT_MESSAGES = 1 << 12
DIRECT_REACTIONS = 1 << 13
MESSAGE_CONTENT = 1 << 15
ALWAYS = 0

_MENTION = re.compile(r"<@!?(\d+)>")


class Refusal(Exception):
    """What the server answers instead of a result. `where` is the field that is wrong, as (field,
    code, message)."""

    def __init__(
        self, status: int, code: int, message: str, where: tuple[str, str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.where = where


def invalid(field: str, code: str, message: str) -> Refusal:
    """https://docs.discord.com/developers/reference#error-messages"""
    return Refusal(400, 50035, "Invalid Form Body", (field, code, message))


class Attachment(msgspec.Struct):
    """A file of a message. `about` are the further fields that the API has of it."""

    id: int
    channel: int
    name: str
    data: bytes
    about: Json


class Button(msgspec.Struct, frozen=True):
    label: str
    custom_id: str
    disabled: bool


class Post(msgspec.Struct, kw_only=True):
    """A message as it stands now. `edits` are the texts that it had before; `extra` are fields of
    the API that nothing here looks at."""

    id: int
    channel: int
    author: int
    text: str
    type: int = MESSAGE_DEFAULT
    reference: Json | None = None
    files: list[Attachment] = []
    components: list[Json] = []
    embeds: list[Json] = []
    mentions: list[int] = []
    mention_everyone: bool = False
    flags: int = 0
    nonce: int | str | None = None
    edited: bool = False
    edits: list[str] = []
    reactions: dict[str, list[int]] = {}
    extra: Json = {}

    @property
    def buttons(self) -> list[Button]:
        rows = [row.get("components", []) for row in self.components]
        return [
            Button(each.get("label", ""), each["custom_id"], bool(each.get("disabled")))
            for row in rows
            for each in row
            if "custom_id" in each
        ]


class Event(msgspec.Struct, frozen=True):
    """What the gateway tells whoever asked for this intent. `bare` is told to those without
    MESSAGE_CONTENT."""

    name: str
    intent: int
    data: Json
    bare: Json


MEMBER: Json = {
    "roles": [],
    "joined_at": "2026-01-01T00:00:00.000000+00:00",
    "deaf": False,
    "mute": False,
    "flags": 0,
    "nick": None,
    "avatar": None,
    "banner": None,
    "premium_since": None,
    "pending": False,
    "communication_disabled_until": None,
}


def user(id: int, name: str, *, bot: bool = False) -> Json:
    shown: Json = {"id": str(id), "username": name, "discriminator": "0", "avatar": None}
    return {
        **shown,
        "global_name": None if bot else name.title(),
        "bot": bot,
        "public_flags": 0,
        "flags": 0,
    }


def time_of(snowflake: int) -> str:
    """https://docs.discord.com/developers/reference#snowflakes"""
    at = datetime.fromtimestamp(((snowflake >> 22) + EPOCH_MS) / 1000, UTC)
    return at.isoformat(timespec="microseconds")


class GuildState:
    """What the platform knows. `forbidden` are channels that the bot cannot see, `muted` those in
    which it cannot write, `voiceless` those in which it cannot send voice messages, `closed` the
    people who take no direct messages from it."""

    def __init__(self, bot: int, username: str) -> None:
        self.id = 900
        self.name = "Desk"
        self.bot: Json = user(bot, username, bot=True)
        self.people: dict[int, Json] = {}
        self.channels: dict[int, Json] = {}
        self.posts: dict[int, list[Post]] = {}
        self.direct: dict[int, int] = {}
        self.files: dict[int, Attachment] = {}
        self.removed: list[Post] = []
        self.forbidden: set[int] = set()
        self.muted: set[int] = set()
        self.voiceless: set[int] = set()
        self.closed: set[int] = set()
        self.cdn = ""
        self.links = 1
        self.emit: Callable[[Event], None] = lambda event: None
        self._numbers = itertools.count(1)

    # ------------------------------------------------------------------ what is there

    @property
    def bot_id(self) -> int:
        return int(self.bot["id"])

    def messages(self, channel: int) -> list[Post]:
        """All that stands in a channel, or in the direct messages with this person."""
        return list(self.posts.get(self.direct.get(channel, channel), ()))

    def said(self, channel: int) -> list[str]:
        """What the bot has said there, as it reads now."""
        return [post.text for post in self.messages(channel) if post.author == self.bot_id]

    def last(self, channel: int) -> Post:
        """The bot's last message there."""
        return [post for post in self.messages(channel) if post.author == self.bot_id][-1]

    def find(self, channel: int, id: int) -> Post | None:
        return next((post for post in self.posts.get(channel, ()) if post.id == id), None)

    def account(self, id: int) -> Json:
        return self.bot if id == self.bot_id else self.people[id]

    def is_direct(self, channel: int) -> bool:
        return bool(self.channels[channel]["type"] == CHANNEL_DM)

    # ------------------------------------------------------------------ how it comes to be

    def person(self, id: int, name: str = "ann", *, bot: bool = False) -> Json:
        return self.people.setdefault(id, user(id, name, bot=bot))

    def snowflake(self) -> int:
        number = next(self._numbers)
        return (DATE_MS - EPOCH_MS + number) << 22 | number & 0xFFF

    def open_direct(self, id: int) -> int:
        """The channel of the direct messages with somebody."""
        if id not in self.direct:
            number = self.snowflake()
            shown = {"id": str(number), "type": CHANNEL_DM, "last_message_id": None, "flags": 0}
            self.channels[number] = {**shown, "recipients": [self.person(id)]}
            self.direct[id] = number
        return self.direct[id]

    def post(self, author: int, channel: int, text: str, **fields: Any) -> Post:
        """Add a message: further fields are those of `Post`."""
        if author != self.bot_id:
            self.person(author)
        where = channel or self.open_direct(author)
        fields.setdefault("mentions", self.mentioned(text))
        reference = fields.get("reference")
        if reference is not None and not reference.get("type") and "type" not in fields:
            fields["type"] = MESSAGE_REPLY
            target = self.find(where, int(reference["message_id"]))
            if target is not None and fields.pop("pings_replied", True):
                fields["mentions"] = [*fields["mentions"], target.author]
        fields.pop("pings_replied", None)
        post = Post(id=self.snowflake(), channel=where, author=author, text=text, **fields)
        self.posts.setdefault(where, []).append(post)
        self.channels[where]["last_message_id"] = str(post.id)
        self.tell_message("MESSAGE_CREATE", post)
        return post

    def rewrite(self, post: Post, text: str) -> None:
        post.edits = [*post.edits, post.text]
        post.text = text
        post.edited = True
        post.mentions = self.mentioned(text)
        self.tell_message("MESSAGE_UPDATE", post)

    def remove(self, post: Post) -> None:
        self.posts[post.channel].remove(post)
        self.removed.append(post)
        gone = {"id": str(post.id), "channel_id": str(post.channel), **self.guild_of(post.channel)}
        self.tell("MESSAGE_DELETE", self._messages_intent(post.channel), post.channel, gone)

    def react(self, who: int, post: Post, emoji: str, *, add: bool = True) -> None:
        """A second reaction of the same person with the same emoji changes nothing."""
        users = post.reactions.get(emoji, [])
        if (who in users) == add:
            return
        post.reactions[emoji] = [*users, who] if add else [each for each in users if each != who]
        what: Json = {"user_id": str(who), "emoji": {"id": None, "name": emoji}}
        what |= {"channel_id": str(post.channel), "message_id": str(post.id)}
        what |= {"burst": False, "type": 0, **self.guild_of(post.channel)}
        direct = self.is_direct(post.channel)
        if add:
            what |= {"message_author_id": str(post.author), "burst_colors": []}
            what |= {} if direct else {"member": {**MEMBER, "user": self.account(who)}}
        name = "MESSAGE_REACTION_ADD" if add else "MESSAGE_REACTION_REMOVE"
        self.tell(name, DIRECT_REACTIONS if direct else GUILD_REACTIONS, post.channel, what)

    def store(self, channel: int, data: bytes, name: str, **about: Any) -> Attachment:
        """Keep a file. Its type is guessed from its name unless it is said; names have no spaces
        here."""
        mime = mimetypes.guess_type(name)[0]
        about = {"size": len(data), **({"content_type": mime} if mime else {}), **about}
        file = Attachment(self.snowflake(), channel, name.replace(" ", "_"), data, about)
        self.files[file.id] = file
        return file

    def mentioned(self, text: str) -> list[int]:
        """Whom a text names, once each."""
        ids = dict.fromkeys(int(each) for each in _MENTION.findall(text))
        return [each for each in ids if each in self.people or each == self.bot_id]

    # ------------------------------------------------------------------ how it is shown

    def guild_of(self, channel: int) -> Json:
        """Events say the guild; there is none in direct messages."""
        return {} if self.is_direct(channel) else {"guild_id": str(self.id)}

    def shown_file(self, file: Attachment) -> Json:
        """An address holds for a day: https://docs.discord.com/developers/reference#signed-attachment-cdn-urls"""
        path = f"attachments/{file.channel}/{file.id}/{quote(file.name)}"
        url = f"{self.cdn}/{path}?ex=1&is=1&hm={self.links}"
        return {
            "id": str(file.id),
            "filename": file.name,
            "url": url,
            "proxy_url": url,
        } | file.about

    def shown(self, post: Post) -> Json:
        shown: Json = {
            "id": str(post.id),
            "channel_id": str(post.channel),
            "type": post.type,
            "author": self.account(post.author),
            "content": post.text,
            "timestamp": time_of(post.id),
            "edited_timestamp": time_of(post.id + (5000 << 22)) if post.edited else None,
            "tts": False,
            "pinned": False,
            "mention_everyone": post.mention_everyone,
            "mentions": [self.account(each) for each in dict.fromkeys(post.mentions)],
            "mention_roles": [],
            "attachments": [self.shown_file(each) for each in post.files],
            "embeds": post.embeds,
            "components": post.components,
            "flags": post.flags,
            **post.extra,
        }
        if post.nonce is not None:
            shown["nonce"] = post.nonce
        if self.channels[post.channel]["type"] in THREADS:
            shown["position"] = sum(each.id < post.id for each in self.posts[post.channel])
        if (thread := self.channels.get(post.id)) is not None:
            shown["thread"] = thread
        kinds = {emoji: users for emoji, users in post.reactions.items() if users}
        if kinds:
            shown["reactions"] = [self._shown_reaction(*each) for each in kinds.items()]
        if post.reference is not None:
            shown["message_reference"] = post.reference
        if post.type in (MESSAGE_REPLY, MESSAGE_STARTER) and post.reference is not None:
            where = int(post.reference.get("channel_id", post.channel))
            target = self.find(where, int(post.reference["message_id"]))
            one = None if target is None else self.shown(target)
            shown["referenced_message"] = one and {
                name: value for name, value in one.items() if name != "referenced_message"
            }
        return shown

    def _shown_reaction(self, emoji: str, users: list[int]) -> Json:
        details = {"burst": 0, "normal": len(users)}
        shown: Json = {"emoji": {"id": None, "name": emoji}, "count": len(users)}
        shown |= {"me": self.bot_id in users, "me_burst": False, "burst_colors": []}
        return {**shown, "count_details": details}

    def bare(self, post: Post, shown: Json) -> Json:
        """What an app without the intent MESSAGE_CONTENT sees, except in direct messages, of its
        own messages and where it is mentioned:
        https://docs.discord.com/developers/events/gateway#message-content-intent"""
        own = post.author == self.bot_id or self.bot_id in post.mentions
        if own or self.is_direct(post.channel):
            return shown
        empty: Json = {"content": "", "attachments": [], "embeds": [], "components": []}
        return {**shown, **empty}

    # ------------------------------------------------------------------ what the gateway tells

    def tell(
        self, name: str, intent: int, channel: int, data: Json, *, bare: Json | None = None
    ) -> None:
        if channel not in self.forbidden:
            self.emit(Event(name, intent, data, data if bare is None else bare))

    def tell_message(self, name: str, post: Post) -> None:
        shown = {**self.shown(post), **self.guild_of(post.channel)}
        if not self.is_direct(post.channel) and "webhook_id" not in post.extra:
            shown["member"] = MEMBER
            shown["mentions"] = [{**each, "member": MEMBER} for each in shown["mentions"]]
        bare = self.bare(post, shown)
        self.tell(name, self._messages_intent(post.channel), post.channel, shown, bare=bare)

    def _messages_intent(self, channel: int) -> int:
        return DIRECT_MESSAGES if self.is_direct(channel) else GUILD_MESSAGES
