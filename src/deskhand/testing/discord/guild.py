"""The people of a Discord that is only pretended, and what they do there: one guild, and direct
messages with the bot."""

from __future__ import annotations

from typing import Any

from .state import (
    ALWAYS,
    CHANNEL_TEXT,
    CHANNEL_THREAD,
    GUILDS,
    HAS_SNAPSHOT,
    IS_VOICE,
    MEMBER,
    MESSAGE_DEFAULT,
    MESSAGE_STARTER,
    PRIVATE_THREAD,
    THREADS,
    Attachment,
    GuildState,
    Json,
    Post,
    time_of,
)

GENERAL = 901
_EVERYTHING = str((1 << 52) - 1)


class Guild(GuildState):
    """The first word from anybody opens their direct messages; `channel` and `thread` add to the
    guild, in which everybody is who ever wrote. `answers` says what the bot answered to presses;
    `whispers` are the (person, text) that only they saw; `typing` the channels where the bot was
    seen typing."""

    def __init__(self, bot: int, username: str) -> None:
        super().__init__(bot, username)
        self.answers: dict[str, Json] = {}
        self.interactions: dict[str, tuple[str, Post, int]] = {}
        self.whispers: list[tuple[int, str]] = []
        self.typing: list[int] = []
        self.channel(GENERAL, "general")

    # ------------------------------------------------------------------ places

    def channel(self, id: int, name: str) -> int:
        """A text channel of the guild. `general` is there from the beginning."""
        self.channels[id] = {
            "id": str(id),
            "type": CHANNEL_TEXT,
            "name": name,
            "guild_id": str(self.id),
            "position": 0,
            "permission_overwrites": [],
            "topic": None,
            "nsfw": False,
            "parent_id": None,
            "last_message_id": None,
            "rate_limit_per_user": 0,
        }
        self.tell("CHANNEL_CREATE", GUILDS, id, self.channels[id])
        return id

    def thread(
        self, user: int, channel: int, name: str, *, of: Post | None = None, private: bool = False
    ) -> int:
        """Somebody opens a thread in a channel, of a message or without one. One that is `private`
        is seen by those alone who were invited, the bot among them."""
        self.person(user)
        id = of.id if of is not None else self.snowflake()
        self.channels[id] = {
            "id": str(id),
            "type": PRIVATE_THREAD if private else CHANNEL_THREAD,
            "name": name,
            "guild_id": str(self.id),
            "parent_id": str(channel),
            "owner_id": str(user),
            "last_message_id": None,
            "rate_limit_per_user": 0,
            "message_count": 0,
            "member_count": 1,
            "total_message_sent": 0,
            "flags": 0,
            "thread_metadata": {
                "archived": False,
                "auto_archive_duration": 1440,
                "archive_timestamp": time_of(id),
                "locked": False,
                "create_timestamp": time_of(id),
            },
        }
        self.tell("THREAD_CREATE", GUILDS, id, {**self.channels[id], "newly_created": True})
        if of is not None:
            reference = {"type": 0, "message_id": str(of.id), "channel_id": str(of.channel)}
            reference |= self.guild_of(of.channel)
            starter = {"type": MESSAGE_STARTER, "reference": reference, "mentions": []}
            self.post(user, id, "", **starter)
        return id

    # ------------------------------------------------------------------ what people do

    def says(
        self, user: int, text: str, channel: int = 0, *, reply_to: Post | None = None, **extra: Any
    ) -> Post:
        """Somebody writes, to the bot where there is no channel; `extra` are further fields of the
        message, as the API has them (`webhook_id`, `sticker_items`, `type`)."""
        reference = None
        if reply_to is not None:
            reference = {"type": 0, "message_id": str(reply_to.id)}
            reference |= {"channel_id": str(reply_to.channel), **self.guild_of(reply_to.channel)}
        return self.post(user, channel, text, reference=reference, extra=extra)

    def bot_says(self, text: str, channel: int = GENERAL, *, bot: int = 4711) -> Post:
        """Another bot writes. Bots cannot open direct messages with each other."""
        self.person(bot, "other_bot", bot=True)
        return self.says(bot, text, channel)

    def sends_file(
        self, user: int, data: bytes, name: str = "file.bin", *, channel: int = 0, **about: Any
    ) -> Post:
        """Somebody sends a file, with the words `text`. `about` are further fields of the
        attachment: `content_type`, `size` as the platform says it, `duration_secs` and `waveform`
        of a voice message."""
        text = str(about.pop("text", ""))
        file = self.store(channel or self.open_direct(user), data, name, **about)
        flags = IS_VOICE if "waveform" in about else 0
        return self.post(user, channel, text, files=[file], flags=flags)

    def speaks(self, user: int, data: bytes, *, channel: int = 0, seconds: float = 1.0) -> Post:
        """Somebody sends a voice message."""
        about = {"content_type": "audio/ogg", "waveform": "AAA=", "duration_secs": seconds}
        return self.sends_file(user, data, "voice-message.ogg", channel=channel, **about)

    def forwards(
        self, user: int, words: str, channel: int = 0, *, file: Attachment | None = None
    ) -> Post:
        """Somebody passes on a message from a channel that the bot does not see; with a `waveform`
        the file is a voice message. Nothing in it is their own text: https://docs.discord.com/developers/resources/message#message-snapshot-object"""
        origin = self.snowflake()
        snapshot = {
            "type": MESSAGE_DEFAULT,
            "content": words,
            "embeds": [],
            "attachments": [] if file is None else [self.shown_file(file)],
            "timestamp": time_of(origin),
            "edited_timestamp": None,
            "flags": IS_VOICE if file is not None and "waveform" in file.about else 0,
            "mentions": [],
            "mention_roles": [],
            "components": [],
        }
        reference = {"type": 1, "channel_id": "777", "message_id": str(origin)}
        extra = {"message_snapshots": [{"message": snapshot}]}
        return self.post(
            user, channel, "", reference=reference, flags=HAS_SNAPSHOT, extra=extra, mentions=[]
        )

    def edits(self, post: Post, text: str) -> None:
        """Somebody rewrites their message."""
        self.rewrite(post, text)

    def deletes(self, post: Post) -> None:
        """A message is gone, whoever deleted it."""
        self.remove(post)

    def reacts(self, user: int, post: Post, emoji: str, *, add: bool = True) -> None:
        """Somebody sets a reaction, or takes it back."""
        self.person(user)
        self.react(user, post, emoji, add=add)

    def presses(self, user: int, post: Post, custom_id: str) -> str:
        """Somebody presses this button. Returns the id of the interaction, which is a key of
        `answers`. Raises LookupError where there is no such button to press."""
        if not any(each.custom_id == custom_id and not each.disabled for each in post.buttons):
            raise LookupError(f"no button {custom_id!r} in {post.buttons!r}")
        return self.forges(user, post, custom_id)

    def forges(self, user: int, post: Post, custom_id: str) -> str:
        """Somebody sends this as a press, whatever the buttons are."""
        id = str(self.snowflake())
        token = f"interaction-token-{id}"
        self.interactions[id] = (token, post, user)
        person = self.person(user)
        direct = self.is_direct(post.channel)
        by: Json = {"user": person} if direct else self._member(person)
        shown: Json = {
            "id": id,
            "application_id": self.bot["id"],
            "type": 3,
            "data": {"component_type": 2, "custom_id": custom_id, "id": 2},
            "channel": self.channels[post.channel],
            "channel_id": str(post.channel),
            "token": token,
            "version": 1,
            "message": self.shown(post),
            "app_permissions": _EVERYTHING,
            "locale": "en-US",
            "entitlements": [],
            "authorizing_integration_owners": {"0": "0" if direct else str(self.id)},
            "context": 1 if direct else 0,
            "attachment_size_limit": 10 * 2**20,
        }
        self.tell("INTERACTION_CREATE", ALWAYS, post.channel, {**shown, **by})
        return id

    def _member(self, person: Json) -> Json:
        member = {**MEMBER, "user": person, "permissions": _EVERYTHING}
        guild = {"id": str(self.id), "locale": "en-US", "features": []}
        return {
            "member": member,
            "guild": guild,
            "guild_id": str(self.id),
            "guild_locale": "en-US",
        }

    def expires(self, interaction: str) -> None:
        """Three seconds went by without an answer to a press."""
        del self.interactions[interaction]

    def expires_links(self) -> None:
        """A day went by: addresses of attachments that were given out lead nowhere. Messages that
        are asked for again have new ones."""
        self.links += 1

    # ------------------------------------------------------------------ how it is shown

    def shown_guild(self) -> Json:
        """https://docs.discord.com/developers/events/gateway-events#guild-create"""
        places = [
            each
            for id, each in self.channels.items()
            if id not in self.forbidden and "guild_id" in each
        ]
        members = [{**MEMBER, "user": each} for each in (self.bot, *self.people.values())]
        empty = ("emojis", "stickers", "features", "voice_states", "presences", "stage_instances")
        lists: Json = {name: [] for name in (*empty, "guild_scheduled_events", "soundboard_sounds")}
        numbers = ("verification_level", "default_message_notifications", "mfa_level", "nsfw_level")
        more = ("explicit_content_filter", "premium_tier", "premium_subscription_count")
        nothing = ("icon", "splash", "discovery_splash", "banner", "description", "afk_channel_id")
        none = ("system_channel_id", "rules_channel_id", "public_updates_channel_id")
        return {
            **lists,
            **dict.fromkeys((*numbers, *more, "system_channel_flags"), 0),
            **dict.fromkeys((*nothing, *none, "vanity_url_code", "safety_alerts_channel_id")),
            "id": str(self.id),
            "name": self.name,
            "owner_id": "1",
            "application_id": None,
            "roles": [_role(self.id)],
            "preferred_locale": "en-US",
            "premium_progress_bar_enabled": False,
            "afk_timeout": 300,
            "max_members": 500_000,
            "joined_at": MEMBER["joined_at"],
            "large": False,
            "unavailable": False,
            "member_count": len(members),
            "members": members,
            "channels": [each for each in places if each["type"] not in THREADS],
            "threads": [each for each in places if each["type"] in THREADS],
        }


def _role(id: int) -> Json:
    """@everyone, which has the guild's own id."""
    return {
        "id": str(id),
        "name": "@everyone",
        "color": 0,
        "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
        "hoist": False,
        "icon": None,
        "unicode_emoji": None,
        "position": 0,
        "permissions": _EVERYTHING,
        "managed": False,
        "mentionable": False,
        "flags": 0,
    }
