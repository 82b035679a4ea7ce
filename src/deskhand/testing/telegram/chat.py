"""The chats of a Telegram that is only pretended: who is in them, what was said, and the updates
that came of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

Json = dict[str, Any]
DATE = 1_800_000_000
Kind = Literal["document", "photo", "voice", "audio", "video", "video_note"]


class Refusal(Exception):
    """What the server answers instead of a result."""

    def __init__(self, status: int, description: str, retry_after: int = 0) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.retry_after = retry_after


class Post(msgspec.Struct):
    """A message as it stands now. `file` are the bytes that came with it, `edits` the texts that it
    had before. `silent`: nobody was notified of it."""

    id: int
    chat: int
    sender: int
    json: Json
    file: bytes = b""
    edits: list[str] = []
    silent: bool = False

    @property
    def text(self) -> str:
        return str(self.json.get("text", self.json.get("caption", "")))

    @property
    def buttons(self) -> list[str]:
        rows = self.json.get("reply_markup", {}).get("inline_keyboard", [])
        return [button["text"] for row in rows for button in row]


class Chats:
    """What the platform knows. The first word from anybody opens their private chat; `group` makes
    a group. `removed` are the messages that were deleted, `old` those (chat, message) that are
    older than two days. In the chats of `voiceless` voice messages are forbidden: their owners can
    set that."""

    def __init__(self, bot: int, username: str) -> None:
        self.bot: Json = {"id": bot, "is_bot": True, "first_name": "Desk", "username": username}
        self.people: dict[int, Json] = {}
        self.chats: dict[int, Json] = {}
        self.posts: dict[int, list[Post]] = {}
        self.updates: list[Json] = []
        self.files: dict[str, tuple[str, bytes]] = {}
        self.by_path: dict[str, bytes] = {}
        self.answers: dict[str, Json] = {}
        self.reactions: dict[int, tuple[str, ...]] = {}
        self.open_queries: set[str] = set()
        self.actions: list[tuple[int, str]] = []
        self.blocked: set[int] = set()
        self.voiceless: set[int] = set()
        self.removed: list[Post] = []
        self.menu_button: Json = {}
        self.old: set[tuple[int, int]] = set()
        self.changed: Callable[[], None] = lambda: None
        self._numbers = itertools.count(1)
        self._ids: dict[int, itertools.count[int]] = {}

    # ------------------------------------------------------------------ what people do

    def person(self, id: int, name: str = "Ann") -> Json:
        return self.people.setdefault(id, {"id": id, "is_bot": False, "first_name": name})

    def group(
        self,
        id: int,
        title: str = "Family",
        *,
        forum: bool = False,
        reactions: Sequence[str] | None = None,
    ) -> None:
        """A group; `reactions` are the emoji that it allows, None for all."""
        self.chats[id] = {
            "id": id,
            "type": "supergroup",
            "title": title,
            **({"is_forum": True} if forum else {}),
        }
        if reactions is not None:
            self.reactions[id] = tuple(reactions)

    def says(self, user: int, text: str, chat: int = 0, **extra: Any) -> Post:
        """Somebody writes; `extra` are further fields of the message, as the Bot API has them."""
        entities = (
            [{"type": "bot_command", "offset": 0, "length": len(text.split()[0])}]
            if text[:1] == "/"
            else []
        )
        found = {"entities": entities} if entities else {}
        return self.post(user, chat or user, {"text": text, **found, **extra})

    def sends_file(
        self,
        user: int,
        data: bytes,
        name: str = "",
        kind: Kind = "document",
        *,
        chat: int = 0,
        **extra: Any,
    ) -> Post:
        """Somebody sends a file, a picture, a voice message; `size` in `extra` is what the platform
        says of it."""
        size = int(extra.pop("size", len(data)))
        about = self.stored(data, name, kind, str(extra.pop("mime", "")))
        described = {**about, "file_size": size}
        fields: Json = {kind: [described] if kind == "photo" else described}
        return self.post(user, chat or user, {**fields, **extra}, data)

    def speaks(self, user: int, data: bytes, *, chat: int = 0, **extra: Any) -> Post:
        """Somebody sends a voice message."""
        return self.sends_file(user, data, kind="voice", chat=chat, mime="audio/ogg", **extra)

    def edits(self, post: Post, text: str) -> None:
        """Somebody rewrites their message."""
        post.json = {**post.json, "text": text, "edit_date": DATE + 5}
        self._update("edited_message", post.json)

    def reacts(self, user: int, post: Post, new: Sequence[str], old: Sequence[str] = ()) -> None:
        def kinds(emoji: Sequence[str]) -> list[Json]:
            return [{"type": "emoji", "emoji": each} for each in emoji]

        changed = {
            "chat": self.chats[post.chat],
            "message_id": post.id,
            "user": self.person(user),
            "date": DATE,
        }
        self._update(
            "message_reaction", {**changed, "old_reaction": kinds(old), "new_reaction": kinds(new)}
        )

    def presses(self, user: int, post: Post, button: str) -> str:
        """Somebody presses the button of this text. Returns the id of the query, which is a key of
        `answers`."""
        rows = post.json.get("reply_markup", {}).get("inline_keyboard", [])
        data = next(each["callback_data"] for row in rows for each in row if each["text"] == button)
        return self.forges(user, post, data)

    def forges(self, user: int, post: Post, data: str) -> str:
        """Somebody sends this as a press, whatever the buttons are."""
        query = f"{7_000 + next(self._numbers)}"
        self.open_queries.add(query)
        shown = {
            "id": query,
            "from": self.person(user),
            "message": post.json,
            "chat_instance": "1",
            "data": data,
        }
        self._update("callback_query", shown)
        return query

    # ------------------------------------------------------------------ what is there

    def messages(self, chat: int) -> list[Post]:
        """All that stands in a chat."""
        return list(self.posts.get(chat, ()))

    def said(self, chat: int) -> list[str]:
        """What the bot has said there, as it reads now."""
        return [post.text for post in self.messages(chat) if post.sender == self.bot["id"]]

    def last(self, chat: int) -> Post:
        """The bot's last message."""
        return [post for post in self.messages(chat) if post.sender == self.bot["id"]][-1]

    # ------------------------------------------------------------------ how it comes to be

    def post(self, sender: int, chat: int, fields: Json, file: bytes = b"") -> Post:
        """Add a message; people's become updates."""
        ours = sender == self.bot["id"]
        by = self.bot if ours else self.person(sender)
        if chat not in self.chats:
            self.chats[chat] = {
                "id": chat,
                "type": "private",
                "first_name": self.person(chat)["first_name"],
            }
        number = next(self._ids.setdefault(chat, itertools.count(1)))
        json = {"message_id": number, "date": DATE, "chat": self.chats[chat], "from": by, **fields}
        post = Post(number, chat, sender, json, file)
        self.posts.setdefault(chat, []).append(post)
        if ours:
            self.changed()
        else:
            self._update("message", json)
        return post

    def stored(self, data: bytes, name: str, kind: str, mime: str = "") -> Json:
        """Keep a file; what the Bot API says of it."""
        number = next(self._numbers)
        file_id = f"file-{number}"
        path = f"{kind}s/file_{number}"
        self.files[file_id] = (path, data)
        self.by_path[path] = data
        about: Json = {"file_id": file_id, "file_unique_id": f"u{number}", "file_size": len(data)}
        if kind == "photo":
            return {**about, "width": 90, "height": 60}
        if kind in ("voice", "audio", "video", "video_note"):
            about["duration"] = 2
        if kind == "video_note":
            about["length"] = 60
        if kind == "video":
            about |= {"width": 90, "height": 60}
        if name:
            about["file_name"] = name
        return {**about, "mime_type": mime} if mime else about

    def find(self, chat: int, number: int) -> Post | None:
        return next((post for post in self.posts.get(chat, ()) if post.id == number), None)

    def _update(self, kind: str, body: Json) -> None:
        self.updates.append({"update_id": len(self.updates) + 1, kind: body})
        self.changed()
