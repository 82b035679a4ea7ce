"""The people of a Twitch that is only pretended, what they said, and the events that came of it.

The fields are those of https://dev.twitch.tv/docs/eventsub/eventsub-subscription-types/
(channel.chat.message, channel.chat.message_delete, user.whisper.message).
"""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Callable
from typing import Any

import msgspec

from ...types.clock import Clock

Json = dict[str, Any]
CHAT_MESSAGE = "channel.chat.message"
CHAT_DELETE = "channel.chat.message_delete"
WHISPER = "user.whisper.message"


class Refusal(Exception):
    """What the server answers instead of a result. `retry_after` is in seconds."""

    def __init__(self, status: int, message: str, retry_after: float = 0) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after = retry_after


class User(msgspec.Struct, frozen=True):
    id: str
    login: str
    name: str

    def named(self, prefix: str) -> Json:
        """As events name somebody: broadcaster_user_id, chatter_user_login and so on."""
        return {
            f"{prefix}_id": self.id,
            f"{prefix}_login": self.login,
            f"{prefix}_name": self.name,
        }


class Post(msgspec.Struct, kw_only=True):
    """A message in the chat of `channel`, as it stands now; `at` is seconds of the epoch."""

    id: str
    channel: User
    sender: User
    text: str
    at: float
    parent: Post | None = None
    removed: bool = False


class Whisper(msgspec.Struct, frozen=True):
    id: str
    sender: User
    to: User
    text: str


def written(at: float) -> str:
    """A moment in RFC 3339 with nanoseconds, as EventSub writes all its times."""
    second, fraction = divmod(at, 1)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)) + f"{fraction:.9f}Z"[1:]


Publish = Callable[[str, dict[str, str], Json], None]
"""Type of the event, the values that a subscription's condition must have, the event."""


class Chat:
    """What the platform knows. `posts` and `whispers` hold all that was ever said, in order;
    `banned` are the channels (user ids) in which the bot may not talk."""

    def __init__(self, publish: Publish, clock: Clock) -> None:
        self._publish = publish
        self._clock = clock
        self.people: dict[str, User] = {}
        self.posts: list[Post] = []
        self.whispers: list[Whisper] = []
        self.banned: set[str] = set()
        self._numbers = itertools.count(1001)

    def person(self, login: str, id: str = "") -> User:
        """Whoever has this login; they are made at the first word."""
        found = self.people.get(login)
        if found is None:
            found = User(id or str(next(self._numbers)), login, login.capitalize())
            self.people[login] = found
        return found

    def by_id(self, id: str) -> User | None:
        return next((user for user in self.people.values() if user.id == id), None)

    def find(self, id: str) -> Post | None:
        return next((post for post in self.posts if post.id == id), None)

    def post(
        self,
        sender: User,
        channel: User,
        text: str,
        *,
        parent: Post | None = None,
        extra: Json | None = None,
    ) -> Post:
        """Everybody in the chat hears it, the sender too."""
        post = Post(
            id=str(uuid.uuid4()),
            channel=channel,
            sender=sender,
            text=text,
            at=self._clock.now(),
            parent=parent,
        )
        self.posts.append(post)
        about = {"broadcaster_user_id": channel.id}
        self._publish(CHAT_MESSAGE, about, message_event(post, extra or {}))
        return post

    def delete(self, post: Post) -> None:
        post.removed = True
        self._publish(CHAT_DELETE, {"broadcaster_user_id": post.channel.id}, delete_event(post))

    def whisper(self, sender: User, to: User, text: str) -> Whisper:
        whisper = Whisper(str(uuid.uuid4()), sender, to, text)
        self.whispers.append(whisper)
        self._publish(WHISPER, {"user_id": to.id}, whisper_event(whisper))
        return whisper

    def said(self, sender: User, channel: User) -> list[Post]:
        """What somebody has said in a chat, deleted or not."""
        return [each for each in self.posts if (each.sender, each.channel) == (sender, channel)]

    def have_whispered(self, sender: User, to: User) -> bool:
        return any(each.sender == sender and each.to == to for each in self.whispers)


def message_event(post: Post, extra: Json) -> Json:
    """https://dev.twitch.tv/docs/eventsub/eventsub-subscription-types/#channelchatmessage"""
    nothing: list[str] = [
        "cheer",
        "channel_points_custom_reward_id",
        "channel_points_animation_id",
        "source_broadcaster_user_id",
        "source_broadcaster_user_login",
        "source_broadcaster_user_name",
        "source_message_id",
        "source_badges",
        "is_source_only",
    ]
    owner = post.sender == post.channel
    return {
        **post.channel.named("broadcaster_user"),
        **post.sender.named("chatter_user"),
        **dict.fromkeys(nothing),
        "message_id": post.id,
        "message": {"text": post.text, "fragments": _fragments(post)},
        "message_type": "text",
        "badges": [{"set_id": "broadcaster", "id": "1", "info": ""}] if owner else [],
        "color": "",
        "reply": _reply(post.parent) if post.parent is not None else None,
        **extra,
    }


def _fragments(post: Post) -> list[Json]:
    """A reply begins with the name of whom it answers, as a fragment of its own."""
    kinds: Json = dict.fromkeys(("cheermote", "emote", "mention"))
    found: list[Json] = []
    text = post.text
    if post.parent is not None:
        whom = post.parent.sender
        named = f"@{whom.name}"
        if text.startswith(named):
            text = text.removeprefix(named)
            found.append({"type": "mention", "text": named, **kinds, "mention": whom.named("user")})
    return [*found, {"type": "text", "text": text, **kinds}]


def _reply(parent: Post) -> Json:
    first = parent
    while first.parent is not None:
        first = first.parent
    return {
        "parent_message_id": parent.id,
        "parent_message_body": parent.text,
        **parent.sender.named("parent_user"),
        "thread_message_id": first.id,
        **first.sender.named("thread_user"),
    }


def delete_event(post: Post) -> Json:
    return {
        **post.channel.named("broadcaster_user"),
        **post.sender.named("target_user"),
        "message_id": post.id,
    }


def whisper_event(whisper: Whisper) -> Json:
    return {
        **whisper.sender.named("from_user"),
        **whisper.to.named("to_user"),
        "whisper_id": whisper.id,
        "whisper": {"text": whisper.text},
    }
