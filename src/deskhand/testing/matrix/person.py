"""Somebody with an account on a Matrix homeserver, who writes, reacts, sends files and reads, over
the plain client-server API: https://spec.matrix.org/latest/client-server-api/."""

from __future__ import annotations

import itertools
import secrets
from typing import Any, Literal
from urllib.parse import quote

import msgspec
from aiohttp import ClientSession  # noqa: TID251 -- loopback
from yarl import URL

Json = dict[str, Any]
Media = Literal["m.file", "m.image", "m.audio", "m.video"]
HTML = "org.matrix.custom.html"
API = "/_matrix/client/v3"


class MatrixError(Exception):
    """The homeserver refused: `errcode` is its name for why, as M_FORBIDDEN."""

    def __init__(self, status: int, body: Json) -> None:
        super().__init__(f"{status} {body}")
        self.status = status
        self.errcode = str(body.get("errcode", ""))
        self.retry_after_ms = int(body.get("retry_after_ms", 0))


class Post(msgspec.Struct, kw_only=True):
    """A message as it reads now. `edits` are the contents that it had before, `reactions` who
    reacted with what."""

    id: str
    sender: str
    content: Json
    thread: str = ""
    reply_to: str = ""
    edits: list[Json] = []
    reactions: list[tuple[str, str]] = []

    @property
    def text(self) -> str:
        return str(self.content.get("body", ""))

    @property
    def html(self) -> str:
        """The formatted text; '' where there is only plain text."""
        return str(self.content.get("formatted_body", ""))

    @property
    def url(self) -> str:
        """Where the file of it is, as mxc://…"""
        return str(self.content.get("url", ""))


class Person:
    """One account, logged in. Whatever is sent returns the id of its event; each method raises
    MatrixError where the homeserver refuses."""

    def __init__(self, session: ClientSession, url: str, user_id: str, token: str) -> None:
        self._session = session
        self._url = url
        self._numbers = itertools.count(1)
        self._run = secrets.token_hex(4)
        self.user_id = user_id
        self.token = token

    # ------------------------------------------------------------------ rooms

    async def direct(self, other: str) -> str:
        """Open a room for two, invite the other, and mark it as a direct chat. Returns its id."""
        made = await self.call(
            "POST",
            "/createRoom",
            {"is_direct": True, "preset": "trusted_private_chat", "invite": [other]},
        )
        path = f"/user/{_part(self.user_id)}/account_data/m.direct"
        await self.call("PUT", path, {other: [made["room_id"]]})
        return str(made["room_id"])

    async def group(self, name: str, *invited: str, encrypted: bool = False) -> str:
        """Open a room with a name and invite these. Returns its id."""
        algorithm = {"algorithm": "m.megolm.v1.aes-sha2"}
        state = [{"type": "m.room.encryption", "state_key": "", "content": algorithm}]
        made = await self.call(
            "POST",
            "/createRoom",
            {
                "name": name,
                "preset": "private_chat",
                "invite": list(invited),
                "initial_state": state if encrypted else [],
            },
        )
        return str(made["room_id"])

    async def join(self, room: str) -> None:
        await self.call("POST", f"/join/{_part(room)}", {})

    async def leave(self, room: str) -> None:
        await self.call("POST", f"/rooms/{_part(room)}/leave", {})

    async def invite(self, room: str, other: str) -> None:
        await self.call("POST", f"/rooms/{_part(room)}/invite", {"user_id": other})

    async def kick(self, room: str, other: str) -> None:
        await self.call("POST", f"/rooms/{_part(room)}/kick", {"user_id": other})

    async def members(self, room: str) -> list[str]:
        """Who has joined."""
        found = await self.call("GET", f"/rooms/{_part(room)}/joined_members")
        return sorted(found["joined"])

    # ------------------------------------------------------------------ writing

    async def says(
        self, room: str, text: str, *, formatted: str = "", extra: Json | None = None
    ) -> str:
        """Write; `extra` are further keys of the content, as {"m.mentions": …}."""
        content = {**_text(text, formatted), **(extra or {})}
        return await self.sends(room, "m.room.message", content)

    async def notices(self, room: str, text: str) -> str:
        """Write as bots do, so that other bots do not answer."""
        return await self.sends(room, "m.room.message", {"msgtype": "m.notice", "body": text})

    async def replies(self, room: str, to: str, text: str) -> str:
        relation = {"m.in_reply_to": {"event_id": to}}
        return await self.says(room, text, extra={"m.relates_to": relation})

    async def in_thread(self, room: str, root: str, text: str) -> str:
        """Write in the thread that begins with `root`; the reply is for clients without threads."""
        relation = {
            "rel_type": "m.thread",
            "event_id": root,
            "is_falling_back": True,
            "m.in_reply_to": {"event_id": root},
        }
        return await self.says(room, text, extra={"m.relates_to": relation})

    async def edits(self, room: str, event: str, text: str, *, formatted: str = "") -> str:
        content = {
            **_text(f"* {text}", formatted and f"* {formatted}"),
            "m.new_content": _text(text, formatted),
            "m.relates_to": {"rel_type": "m.replace", "event_id": event},
        }
        return await self.sends(room, "m.room.message", content)

    async def reacts(self, room: str, event: str, emoji: str) -> str:
        relation = {"rel_type": "m.annotation", "event_id": event, "key": emoji}
        return await self.sends(room, "m.reaction", {"m.relates_to": relation})

    async def redacts(self, room: str, event: str, reason: str = "") -> str:
        """Take a message or a reaction back."""
        path = f"/rooms/{_part(room)}/redact/{_part(event)}/{self._transaction()}"
        found = await self.call("PUT", path, {"reason": reason} if reason else {})
        return str(found["event_id"])

    async def sends_file(
        self,
        room: str,
        data: bytes,
        name: str,
        mime: str,
        kind: Media = "m.file",
        extra: Json | None = None,
    ) -> str:
        """Upload and send. A caption is `body` in `extra` with the name in `filename`, as the
        specification has it; `info` there replaces what is said of the file."""
        url = await self.uploads(data, name, mime)
        content = {
            "msgtype": kind,
            "body": name,
            "url": url,
            "info": {"mimetype": mime, "size": len(data)},
        }
        return await self.sends(room, "m.room.message", {**content, **(extra or {})})

    async def speaks(self, room: str, data: bytes, mime: str = "audio/ogg") -> str:
        """Send a voice message, as MSC3245 has it and Element writes it."""
        marked = {"org.matrix.msc3245.voice": {}, "org.matrix.msc1767.audio": {"duration": 2000}}
        return await self.sends_file(room, data, "Voice message.ogg", mime, "m.audio", marked)

    async def sends(self, room: str, type: str, content: Json, transaction: str = "") -> str:
        """Send an event of any type. The same transaction is done once."""
        path = f"/rooms/{_part(room)}/send/{type}/{transaction or self._transaction()}"
        return str((await self.call("PUT", path, content))["event_id"])

    async def uploads(self, data: bytes, name: str, mime: str) -> str:
        path = f"{self._url}/_matrix/media/v3/upload?filename={quote(name)}"
        headers = {**self._headers, "Content-Type": mime}
        async with self._session.post(path, data=data, headers=headers) as response:
            found = await response.json()
            if response.status != 200:
                raise MatrixError(response.status, found)
        return str(found["content_uri"])

    # ------------------------------------------------------------------ reading

    async def reads(self, room: str) -> list[Post]:
        """What stands in a room, each message as it reads now, without what was taken back."""
        path = f"/rooms/{_part(room)}/messages?dir=f&limit=1000"
        found = await self.call("GET", path)
        posts: dict[str, Post] = {}
        for event in found["chunk"]:
            _take(event, posts)
        return list(posts.values())

    async def said(self, room: str, by: str) -> list[str]:
        """The texts of one account in a room."""
        return [each.text for each in await self.reads(room) if each.sender == by]

    async def downloads(self, url: str) -> bytes:
        """A file by its mxc://… from the endpoint that wants a token."""
        path = f"{self._url}/_matrix/client/v1/media/download/{url.removeprefix('mxc://')}"
        async with self._session.get(path, headers=self._headers) as response:
            if response.status != 200:
                raise MatrixError(response.status, await response.json())
            return await response.read()

    async def typing(self, room: str) -> list[str]:
        """Who is typing there."""
        # Synapse gives the same answer for two minutes to a first sync with the same filter.
        limit = f'{{"limit":{next(self._numbers)}}}'
        only = f'{{"room":{{"timeline":{limit}}},"presence":{{"types":[]}}}}'
        found = await self.call("GET", f"/sync?filter={quote(only)}")
        joined = found["rooms"]["join"][room]["ephemeral"]["events"]
        types = [each["content"]["user_ids"] for each in joined if each["type"] == "m.typing"]
        return list(types[-1]) if types else []

    # ------------------------------------------------------------------ the account

    async def name_itself(self, name: str) -> None:
        path = f"/profile/{_part(self.user_id)}/displayname"
        await self.call("PUT", path, {"displayname": name})

    async def log_out(self) -> None:
        """Revoke the token: whoever uses it gets 401 M_UNKNOWN_TOKEN."""
        await self.call("POST", "/logout", {})

    async def call(self, method: str, path: str, body: Json | None = None) -> Json:
        """Any method of the API, by its path after /_matrix/client/v3."""
        async with self._session.request(
            method, URL(f"{self._url}{API}{path}", encoded=True), json=body, headers=self._headers
        ) as response:
            found: Json = await response.json()
            if response.status != 200:
                raise MatrixError(response.status, found)
            return found

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def _transaction(self) -> str:
        return f"{self._run}-{next(self._numbers)}"


def _part(value: str) -> str:
    return quote(value, safe="")


def _text(text: str, formatted: str) -> Json:
    plain = {"msgtype": "m.text", "body": text}
    return {**plain, "format": HTML, "formatted_body": formatted} if formatted else plain


def _take(event: Json, posts: dict[str, Post]) -> None:
    """Fold one event of a room into its messages."""
    content = event["content"]
    relation = content.get("m.relates_to", {})
    target = posts.get(relation.get("event_id", ""))
    kind = relation.get("rel_type", "")
    if event["type"] == "m.reaction" and target is not None:
        target.reactions = [*target.reactions, (event["sender"], relation["key"])]
    # A message that was taken back has no content any more.
    if event["type"] != "m.room.message" or not content:
        return
    if kind == "m.replace":
        # Only its own author may change a message.
        if target is not None and target.sender == event["sender"]:
            target.edits = [*target.edits, target.content]
            target.content = content["m.new_content"]
        return
    posts[event["event_id"]] = Post(
        id=event["event_id"],
        sender=event["sender"],
        content=content,
        thread=relation.get("event_id", "") if kind == "m.thread" else "",
        reply_to=relation.get("m.in_reply_to", {}).get("event_id", ""),
    )
