"""The workspace of a Slack that is only pretended: what people do there, and what the bot said."""

from __future__ import annotations

from typing import Any

from .blocks import Json, buttons, escaped
from .records import DATE, Post, Press, Records


class Workspace(Records):
    """The first word from anybody makes them known and opens their direct message. People are
    named by ids as 'U0ANN', places by ids as well; whose place is not given is their direct
    message."""

    def says(
        self, user: str, text: str, *, channel: str = "", thread_ts: str = "", **extra: Any
    ) -> Post:
        """Somebody types this, in their direct message if nowhere else; `extra` are further fields
        of the message, as Slack has them."""
        rich = [{"type": "text", "text": text}]
        block = {
            "type": "rich_text",
            "block_id": f"b{next(self.numbers)}",
            "elements": [{"type": "rich_text_section", "elements": rich}],
        }
        fields: Json = {"text": escaped(text), "client_msg_id": f"c-{next(self.numbers)}"}
        if text:
            fields["blocks"] = [block]
        if thread_ts:
            fields["thread_ts"] = thread_ts
        return self.post(channel or self.im(user), {**fields, **extra}, user=user)

    def sends_file(
        self, user: str, data: bytes, name: str, *, mimetype: str = "text/plain", **extra: Any
    ) -> Post:
        """Somebody sends a file. `about` in `extra` are further fields of the file (`size`,
        `alt_txt`, `title`, ...); `text`, `channel` and `thread_ts` are those of the message."""
        about = extra.pop("about", {})
        text = str(extra.pop("text", ""))
        file = self.stored(user, data, name, {"mimetype": mimetype, **about})
        fields = {"subtype": "file_share", "files": [file.json], "upload": True, **extra}
        post = self.says(user, text, **fields)
        file.shares.append(post)
        return post

    def speaks(self, user: str, data: bytes, *, mimetype: str = "audio/mp4", **extra: Any) -> Post:
        """Somebody records an audio clip. Slack makes MP4 of it, and calls it audio or video."""
        clip = {"subtype": "slack_audio", "media_display_type": "audio", "duration_ms": 1000}
        return self.sends_file(
            user, data, "audio_message.mp4", mimetype=mimetype, about=clip, **extra
        )

    def shares_clip(self, user: str, data: bytes) -> Post:
        """Somebody passes on an audio clip of somebody else: it stands within the message that is
        shared, as its files do."""
        file = self.stored("U0OTHER", data, "audio_message.mp4", {"mimetype": "video/mp4"})
        clip = {**file.json, "subtype": "slack_audio"}
        shared = {"is_share": True, "author_id": "U0OTHER", "ts": f"{DATE}.000001", "text": ""}
        return self.says(user, "", attachments=[{**shared, "files": [clip]}])

    def passes_on(self, user: str, said: str, *, channel: str = "") -> list[Post]:
        """Somebody sends these words in each way in which Slack lets people send what they did not
        type: a message that they share, the name, the title and the alternative text of a file,
        the transcript of a voice clip."""
        elsewhere = {
            "is_share": True,
            "is_msg_unfurl": True,
            "author_id": "U0OTHER",
            "author_name": said,
            "channel_id": "C0ELSEWHERE",
            "ts": f"{DATE}.000001",
            "from_url": "https://deskhand.slack.com/archives/C0ELSEWHERE/p1",
            "text": escaped(said),
            "fallback": said,
        }
        clip = {
            "subtype": "slack_audio",
            "transcription": {"status": "complete", "preview": {"content": said}},
        }
        to: Json = {"channel": channel} if channel else {}
        return [
            self.says(user, "", attachments=[elsewhere], **to),
            self.sends_file(user, b"x", f"{said}.txt", **to),
            self.sends_file(user, b"x", "notes.txt", about={"title": said}, **to),
            self.sends_file(
                user,
                b"\x89PNG\r\n\x1a\n",
                "a.png",
                mimetype="image/png",
                about={"alt_txt": said},
                **to,
            ),
            self.sends_file(
                user, b"x", "audio_message.m4a", mimetype="audio/mp4", about=clip, **to
            ),
        ]

    def bot_says(self, text: str, *, channel: str, user: str = "", username: str = "other") -> Post:
        """Another app writes: without a user as an incoming webhook does (`bot_message`), with one
        as apps do that have a user of their own, or speak in somebody's name."""
        fields: Json = {"text": escaped(text), "bot_id": "B0OTHER", "app_id": "A0OTHER"}
        if not user:
            return self.post(
                channel, {**fields, "subtype": "bot_message", "username": username}, user=""
            )
        profile = {"id": "B0OTHER", "name": username, "app_id": "A0OTHER", "team_id": self.team}
        if user not in self.users:
            self._user(user, username, is_bot=True)
        return self.post(channel, {**fields, "bot_profile": profile}, user=user)

    def edits(self, post: Post, text: str) -> None:
        """Somebody rewrites their message."""
        self.rewrite(post, {"text": escaped(text), "blocks": None}, user=post.user)

    def unfurls(self, post: Post, url: str, title: str, text: str) -> None:
        """Slack puts the preview of a page under a message. Apps see it as a change of the message,
        whose text is still the same, and which nobody has edited."""
        preview = {"from_url": url, "original_url": url, "title": title, "text": text, "id": 1}
        before = dict(post.json)
        post.json = {**post.json, "attachments": [{**preview, "fallback": title}]}
        self._changed(post, before)

    def deletes(self, post: Post) -> None:
        """The message goes away."""
        self.posts[post.channel].remove(post)
        self.removed.append(post)
        about = {"deleted_ts": post.ts, "previous_message": post.json}
        self._say(post, {"subtype": "message_deleted", "hidden": True, **about})

    def reacts(self, user: str, post: Post, name: str, *, remove: bool = False) -> None:
        """Somebody adds an emoji, by its name without colons, or takes it back."""
        if user != self.bot:
            self.person(user)
        reactions = post.json.setdefault("reactions", [])
        found = next((each for each in reactions if each["name"] == name), None)
        if found is None:
            found = {"name": name, "users": [], "count": 0}
            reactions.append(found)
        if remove:
            found["users"].remove(user)
        else:
            found["users"].append(user)
        found["count"] = len(found["users"])
        post.json["reactions"] = [each for each in reactions if each["users"]]
        item = {"type": "message", "channel": post.channel, "ts": post.ts}
        kind = "reaction_removed" if remove else "reaction_added"
        about = {"user": user, "reaction": name, "item_user": post.user, "item": item}
        self.event({"type": kind, **about, "event_ts": self.next_ts()}, self.places[post.channel])

    def presses(self, user: str, post: Post, button: str) -> Press:
        """Somebody presses the button with this text, value or action_id. Raises LookupError if
        there is none."""
        for each in buttons(post.json.get("blocks", [])):
            if button in (each["text"]["text"], each.get("value"), each["action_id"]):
                return self.forges(user, post, each)
        raise LookupError(f"{button!r} is none of {post.buttons}")

    def forges(self, user: str, post: Post, button: Json) -> Press:
        """Somebody sends this button as pressed, whether the message has it or not."""
        number = next(self.numbers)
        place = self.places[post.channel]
        url = f"{self.origin}/actions/{self.team}/{number}/secret"
        press = Press(post, url, f"{number}.{self.team}.trigger")
        self.presses_by_url[url.removeprefix(self.origin)] = press
        where = {"message_ts": post.ts, "channel_id": post.channel, "is_ephemeral": False}
        if post.thread:
            where["thread_ts"] = post.thread
        action = {"action_id": "a", "block_id": "b", "type": "button", **button}
        who = self.person(user)
        payload: Json = {
            "type": "block_actions",
            "user": {
                "id": user,
                "username": who["name"],
                "name": who["name"],
                "team_id": self.team,
            },
            "api_app_id": self.app,
            "token": "verification-token",
            "container": {"type": "message", **where},
            "trigger_id": press.trigger_id,
            "team": {"id": self.team, "domain": "deskhand"},
            "enterprise": None,
            "is_enterprise_install": False,
            "channel": {"id": post.channel, "name": place.name or "directmessage"},
            "message": post.json,
            "state": {"values": {}},
            "response_url": url,
            "actions": [{**action, "action_ts": self.next_ts()}],
        }
        self._deliver("interactive", payload, press)
        return press
