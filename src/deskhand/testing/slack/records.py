"""What a pretended Slack knows, and the events that come of it.

Events are shaped as https://docs.slack.dev/reference/events says. As on the real platform, the bot
hears of its own messages, changes and reactions too, and a message in a channel that mentions it
makes two events, `message` and `app_mention`, with the same `ts`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Literal
from urllib.parse import quote

import msgspec

from .blocks import Json, buttons, live, words

DATE = 1_800_000_000
Kind = Literal["im", "mpim", "channel", "group"]
SCOPES = """
app_mentions:read channels:history channels:read chat:write files:read files:write groups:history
groups:read im:history mpim:history reactions:read reactions:write users:read
"""
"""What an app may that has all that docs/slack.md wants, and chats of several people."""
_SUBSCRIPTIONS = {"im": "im", "mpim": "mpim", "channel": "channels", "group": "groups"}


class Refusal(Exception):
    """The error that the server answers, and what else stands in that answer."""

    def __init__(self, error: str, **more: Any) -> None:
        super().__init__(error)
        self.error = error
        self.more = more


class Post(msgspec.Struct):
    """A message as it stands now. `edits` are the texts that it had before, `unfurls` what
    was said of unfurl_links and unfurl_media."""

    ts: str
    channel: str
    user: str
    json: Json
    edits: list[str] = []
    unfurls: dict[str, bool] = {}

    @property
    def text(self) -> str:
        """What a reader sees, without formatting."""
        return words(self.json)

    @property
    def buttons(self) -> list[str]:
        return [each["text"]["text"] for each in buttons(self.json.get("blocks", []))]

    @property
    def thread(self) -> str:
        """The ts of the message that this one answers in a thread, '' in none."""
        found = str(self.json.get("thread_ts", ""))
        return "" if found == self.ts else found


class Conversation(msgspec.Struct):
    """A channel, or a direct message with `user`."""

    id: str
    kind: Kind
    name: str = ""
    user: str = ""
    members: set[str] = set()
    archived: bool = False


class File(msgspec.Struct):
    id: str
    json: Json
    data: bytes = b""
    shares: list[Post] = []
    length: int = -1
    """What was said before the upload; -1 for what people sent."""


class Press(msgspec.Struct):
    """Somebody pressed a button. `answers` is what was said through its response_url."""

    post: Post
    response_url: str
    trigger_id: str
    acknowledged: bool = False
    answers: list[Json] = []


Deliver = Callable[[str, Json, Press | None], None]
"""Hands on an envelope: its type, its payload, and the press that it tells of."""


class Records:
    """People, places, messages and files. `channel` makes a channel, `im` a direct message.

    `scopes` are those that the app has; they are looked at where it reads what was written before.
    `subscribed` are the events that the app gets, `emoji` further names of emoji. `statuses` are
    the (channel, thread, status) that were set, `whispers` what only one person saw, `closed_edits`
    the ts of messages that are too old to be edited.
    """

    def __init__(self, deliver: Deliver, bot_name: str = "desk") -> None:
        self.team = "T0DESK"
        self.app = "A0DESK"
        self.bot = "U0BOT"
        self.bot_id = "B0BOT"
        self.origin = ""
        self.users: dict[str, Json] = {}
        self.places: dict[str, Conversation] = {}
        self.posts: dict[str, list[Post]] = {}
        self.files: dict[str, File] = {}
        self.removed: list[Post] = []
        self.whispers: list[tuple[str, str, Json]] = []
        self.statuses: list[tuple[str, str, str]] = []
        self.views: list[Json] = []
        self.presses_by_url: dict[str, Press] = {}
        self.closed_edits: set[str] = set()
        self.emoji: set[str] = set()
        self.scopes = set(SCOPES.split())
        self.subscribed = {f"message.{each}" for each in _SUBSCRIPTIONS.values()}
        self.subscribed |= {"app_mention", "reaction_added", "reaction_removed"}
        self.numbers = itertools.count(1)
        self._deliver = deliver
        self._user(self.bot, bot_name, is_bot=True)

    @property
    def mention(self) -> str:
        """What people type to address the bot."""
        return f"<@{self.bot}>"

    # ------------------------------------------------------------------ who and where

    def person(self, user: str, name: str = "") -> Json:
        return self.users.get(user) or self._user(user, name or user.lower())

    def _user(self, user: str, name: str, *, is_bot: bool = False) -> Json:
        profile = {"real_name": name.title(), "display_name": name}
        if is_bot:
            profile |= {"bot_id": self.bot_id, "api_app_id": self.app}
        about = {"id": user, "team_id": self.team, "name": name, "real_name": name.title()}
        flags = {"deleted": False, "is_bot": is_bot, "is_app_user": False, "tz": "Europe/Berlin"}
        self.users[user] = {**about, **flags, "profile": profile}
        return self.users[user]

    def im(self, user: str) -> str:
        """The id of somebody's direct message with the bot."""
        self.person(user)
        for place in self.places.values():
            if place.kind == "im" and place.user == user:
                return place.id
        place = Conversation(f"D0{user}", "im", user=user, members={user, self.bot})
        self.places[place.id] = place
        return place.id

    def channel(
        self,
        name: str,
        *,
        kind: Kind = "channel",
        has_bot: bool = True,
        members: Sequence[str] = (),
    ) -> str:
        """Make a channel; its id."""
        inside = {*members, *([self.bot] if has_bot else [])}
        place = Conversation(f"C{next(self.numbers):08}", kind, name, members=inside)
        self.places[place.id] = place
        return place.id

    # ------------------------------------------------------------------ what is there

    def messages(self, channel: str) -> list[Post]:
        """All that stands in a channel, threads included, in order; a person's id is their direct
        message."""
        return list(self.posts.get(self._id(channel), ()))

    def by_bot(self, channel: str) -> list[Post]:
        return [post for post in self.messages(channel) if post.user == self.bot]

    def said(self, channel: str) -> list[str]:
        """What the bot has said there, as it reads now, without formatting."""
        return [post.text for post in self.by_bot(channel)]

    def last(self, channel: str) -> Post:
        """The bot's last message."""
        return self.by_bot(channel)[-1]

    def live(self, channel: str) -> str:
        """All that the bot said there and Slack may make a link or a preview of."""
        return "\n".join(live(post.json) for post in self.by_bot(channel))

    def find(self, channel: str, ts: str) -> Post | None:
        return next((post for post in self.posts.get(channel, ()) if post.ts == ts), None)

    def _id(self, channel: str) -> str:
        return self.im(channel) if channel in self.users else channel

    # ------------------------------------------------------------------ how it comes to be

    def next_ts(self) -> str:
        number = next(self.numbers)
        return f"{DATE + number}.{number:06}"

    def post(self, channel: str, fields: Json, *, user: str) -> Post:
        """Add a message; it becomes events."""
        by: Json = {"user": user, "team": self.team} if user else {}
        if user and user not in self.users:
            self.person(user)
        ts = self.next_ts()
        json = {"type": "message", **by, "ts": ts, "text": "", **fields}
        thread = json.get("thread_ts")
        parent = self.find(channel, thread) if thread else None
        if parent is not None:
            json["parent_user_id"] = parent.user
            replies = int(parent.json.get("reply_count", 0)) + 1
            parent.json |= {"thread_ts": parent.ts, "reply_count": replies, "latest_reply": ts}
        post = Post(ts, channel, user, json)
        self.posts.setdefault(channel, []).append(post)
        self._say(post, json)
        place = self.places[channel]
        if self.mention in json["text"] and place.kind != "im" and user not in ("", self.bot):
            kept = {key: value for key, value in json.items() if key != "subtype"}
            about = {"type": "app_mention", "channel": channel, "event_ts": ts}
            self.event({**kept, **about}, place)
        return post

    def rewrite(self, post: Post, fields: Json, *, user: str) -> None:
        """Change fields of a message; those that are None go."""
        before = dict(post.json)
        post.edits.append(post.text)
        changed = {**post.json, **fields, "edited": {"user": user, "ts": self.next_ts()}}
        post.json = {key: value for key, value in changed.items() if value is not None}
        self._changed(post, before)

    def _changed(self, post: Post, before: Json) -> None:
        about = {"message": dict(post.json), "previous_message": before}
        self._say(post, {"subtype": "message_changed", "hidden": True, **about})

    def _say(self, post: Post, json: Json) -> None:
        """Tell the app of a message; what has a subtype of its own kind has a ts of its own."""
        place = self.places[post.channel]
        ts = json.get("ts") or self.next_ts()
        about = {"channel": place.id, "channel_type": place.kind, "event_ts": ts}
        self.event({"type": "message", **json, "ts": ts, **about}, place)

    def event(self, event: Json, place: Conversation) -> None:
        """Hand an event to the app, if it hears of this place and of such events."""
        name = str(event["type"])
        if name == "message":
            name = f"message.{_SUBSCRIPTIONS[place.kind]}"
        if name not in self.subscribed or self.bot not in place.members:
            return
        number = next(self.numbers)
        installed = {
            "enterprise_id": None,
            "team_id": self.team,
            "user_id": self.bot,
            "is_bot": True,
            "is_enterprise_install": False,
        }
        payload = {
            "token": "verification-token",
            "team_id": self.team,
            "api_app_id": self.app,
            "event": event,
            "type": "event_callback",
            "event_id": f"Ev{number:08}",
            "event_time": DATE + number,
            "authorizations": [installed],
            "is_ext_shared_channel": False,
        }
        # What is handed on must not change with the message that it tells of.
        self._deliver("events_api", msgspec.json.decode(msgspec.json.encode(payload)), None)

    def stored(self, user: str, data: bytes, name: str, about: Json) -> File:
        """Keep a file; what Slack says of it: https://docs.slack.dev/reference/objects/file-object"""
        id = f"F{next(self.numbers):08}"
        base = f"{self.origin}/files-pri/{self.team}-{id}"
        tail = quote(name)
        mimetype = about.get("mimetype", "application/octet-stream")
        json = {
            "id": id,
            "created": DATE,
            "timestamp": DATE,
            "name": name,
            "title": name,
            "mimetype": mimetype,
            "filetype": name.rpartition(".")[2] or "binary",
            "user": user,
            "size": len(data),
            "mode": "hosted",
            "is_external": False,
            "is_public": False,
            "file_access": "visible",
            "url_private": f"{base}/{tail}",
            "url_private_download": f"{base}/download/{tail}",
            "permalink": f"{self.origin}/files/{user}/{id}/{tail}",
            **about,
        }
        self.files[id] = File(id, json, data)
        return self.files[id]
