"""Matrix: one account on one homeserver, read by syncing.

https://spec.matrix.org/latest/client-server-api. Where a sync ended is saved once everything that
it told of is taken, and never before. A message carries a transaction id that is made of its key,
so that the homeserver drops one that is sent again.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from hashlib import sha256
from typing import Any
from urllib.parse import quote, urlsplit

import anyio
import msgspec

from ...types.commit import Outgoing
from ...types.errors import BlobMissing, ChannelError, ConfigError, LoginRefused, SendRefused
from ...types.identity import Address, Edit, Inbound
from ...types.messages import Audio
from ..base import (
    Acknowledging,
    Allowing,
    Channel,
    ChannelContext,
    ChannelHealth,
    Closing,
    Editing,
    Healthy,
    Instructing,
    Introducing,
    Introduction,
    PastMessage,
    Reading,
    Removing,
    Room,
    Speaking,
    Typing,
)
from ..group_rules import GroupRules
from ..health_record import HealthRecord
from ..incoming_files import MAX_DOWNLOAD_BYTES
from ..long_sends import LongSends
from ..markup import write_html, write_plain
from ..ogg_duration import find_ogg_voice
from ..only_reader import only_reader
from ..pieces import Attachment, MessageForm, Piece, find_attachment_name, prepend_note
from ..rich_text import Rich
from ..thread_roots import remember_thread
from ..web_api import ApiFault, WebApi
from .history import History
from .reader import VOICE_MARK, Json, Reader

log = logging.getLogger(__name__)

FORM = MessageForm(text=3500, buttons=False)
"""An event holds 64 KiB, and the text stands in it up to four times."""
SYNC_S = 30.0
EDIT_INTERVAL_S = 1.5
TYPING_MS = 6000
MAX_GAP_PAGES = 50
GAP_PAGE = 100
MAX_REMEMBERED = 2_000
MAX_OLD_CHARS = 500
"""So much of a change is said to programs that know no changes."""
WAVEFORM_POINTS = 100
WAVEFORM_PEAK = 1024
READ_REACTION = "👀"
_V3 = "/_matrix/client/v3"
_MEDIA_TYPES = {"image": "m.image", "audio": "m.audio", "video": "m.video"}
_ENCRYPTED = (
    "This room is encrypted, and I cannot read what is written here. Please invite me to a room "
    "that is not."
)
_INSTRUCTIONS = "Text is Markdown."
_FIRST = {"room": {"timeline": {"limit": 0}}}
_FILTER = {
    "presence": {"types": []},
    "account_data": {"types": []},
    "room": {
        "timeline": {"limit": 100, "lazy_load_members": True},
        "ephemeral": {"types": []},
        "account_data": {"types": []},
    },
}


def open_matrix(context: ChannelContext) -> MatrixChannel:
    """The account of this configuration. Raises ConfigError where it cannot work, with what to
    do."""
    config = context.config
    variable = config.token_env or "MATRIX_ACCESS_TOKEN"
    token = context.secret(variable)
    try:
        place = urlsplit(config.base_url)
    except ValueError:
        place = urlsplit("")
    is_local = place.hostname in ("localhost", "127.0.0.1", "::1")
    if not place.hostname or place.scheme not in (("http", "https") if is_local else ("https",)):
        raise ConfigError(
            f"channels.{context.name}.base_url has to be the address of the homeserver, with "
            "https://, such as https://matrix.org"
        )
    if not token:
        raise ConfigError(
            f"{variable} is not set: sign in with the bot's account, copy its access token (in "
            "Element: Settings, Help & About, Advanced) and put it into .env"
        )
    return MatrixChannel(context, token)


class MatrixChannel:
    """One account. Rooms that it is invited to are joined."""

    idempotent = True
    takes_voice = True

    def __init__(self, context: ChannelContext, token: str) -> None:
        self.name = context.name
        self._context = context
        self._token = token
        self._api = WebApi(context.config.base_url, {"Authorization": f"Bearer {token}"})
        self._opening = anyio.Lock()
        self._me = ""
        self._groups: dict[str, bool] = {}
        self._encrypted: dict[str, bool] = {}
        self._threads: dict[str, str] = {}
        self._changes: dict[str, int] = {}
        self._record = HealthRecord(context.now)
        self._long_sends = LongSends(FORM)
        self._history = History(self._get)

    # ------------------------------------------------------------------ in

    async def receive(self) -> AsyncIterator[Inbound]:
        with only_reader(self._context.state, self._token):
            async with self._translate_errors(entering=True):
                await self._open()
            reader = Reader(
                Address(self.name, self._me),
                self._download,
                self._context.put_blob,
                self._is_group,
                self._threads,
                groups=GroupRules(self._context.config),
            )
            since = self._context.load_cursor()
            if not since:  # what was said before it was there is not for it
                since = str((await self._sync("", _FIRST))["next_batch"])
                self._context.save_cursor(since)
            while True:
                found = await self._sync(since, _FILTER)
                for room, events in await self._list_events(found, since):
                    for event in events:
                        inbound = await self._read(reader, room, event)
                        if inbound is not None:
                            yield inbound
                since = str(found["next_batch"])
                self._context.save_cursor(since)

    async def _sync(self, since: str, wanted: Json) -> Json:
        about = {
            "timeout": str(int(1000 * SYNC_S) if since else 0),
            "filter": msgspec.json.encode(wanted).decode(),
            **({"since": since} if since else {}),
        }
        async with self._translate_errors(entering=True):
            path = f"{_V3}/sync"
            found: Json = await self._api.call("GET", path, params=about, timeout_s=SYNC_S + 30)
        for room in (found.get("rooms") or {}).get("invite") or {}:
            try:
                await self._call("POST", f"/join/{quote(room, safe='')}", body={})
            except LoginRefused:
                raise
            except ChannelError as error:  # it was taken back, or leads nowhere
                log.warning("%s could not join a room: %s", self.name, error)
        return found

    async def _list_events(self, found: Json, since: str) -> Sequence[tuple[str, Sequence[Json]]]:
        """By room, in order; what did not fit into the answer is fetched."""
        listed = []
        for room, told in ((found.get("rooms") or {}).get("join") or {}).items():
            timeline = told.get("timeline") or {}
            events = list(timeline.get("events") or ())
            changes = [*events, *((told.get("state") or {}).get("events") or ())]
            if timeline.get("limited") or any(map(_is_membership, changes)):
                self._groups.pop(room, None)
            invited = next((i for i, each in enumerate(events) if self._is_about_me(each)), None)
            if invited is not None:  # what was said before is not for it
                events = events[invited:]
            elif timeline.get("limited"):
                events = await self._fetch_gap(room, str(timeline["prev_batch"]), since) + events
            listed.append((room, events))
        return listed

    def _is_about_me(self, event: Json) -> bool:
        """That it was invited, or came in."""
        now = (event.get("content") or {}).get("membership")
        before = ((event.get("unsigned") or {}).get("prev_content") or {}).get("membership")
        mine = _is_membership(event) and event.get("state_key") == self._me
        return mine and (now == "invite" or (now == "join" and before != "join"))

    async def _fetch_gap(self, room: str, before: str, since: str) -> list[Json]:
        """What was said in a room between two syncs, the oldest first."""
        found: list[Json] = []
        path = f"/rooms/{quote(room, safe='')}/messages"
        for _ in range(MAX_GAP_PAGES):
            about = {"dir": "b", "from": before, "to": since, "limit": str(GAP_PAGE)}
            try:
                page = await self._call("GET", path, params=about)
            except SendRefused as error:
                log.warning("%s cannot read what was said in %s: %s", self.name, room, error)
                break
            found += page.get("chunk") or ()
            before = str(page.get("end") or "")
            if not before or not page.get("chunk"):
                break
        else:
            log.error("%s: more was said in %s than can be fetched.", self.name, room)
        return found[::-1]

    async def _read(self, reader: Reader, room: str, event: Json) -> Inbound | None:
        if event.get("type") == "m.room.encryption":
            self._encrypted[room] = True
        if event.get("type") == "m.room.encrypted":
            if event.get("sender") != self._me:
                await self._say_encrypted(room)
            return None
        try:
            return await reader.read(room, event)
        except (AttributeError, KeyError, TypeError, ValueError):
            log.warning("%s sent an event that cannot be read.", self.name, exc_info=True)
            return None

    async def _say_encrypted(self, room: str) -> None:
        """Say once that nothing can be read there: the homeserver drops a second time."""
        try:
            content = {"msgtype": "m.notice", "body": _ENCRYPTED}
            await self._put(room, "m.room.message", content, f"encrypted {room}")
        except SendRefused as error:
            log.warning("%s: nobody was told that %s is encrypted: %s", self.name, room, error)

    async def _is_group(self, room: str) -> bool:
        if room not in self._groups:
            path = f"/rooms/{quote(room, safe='')}/joined_members"
            try:
                joined = (await self._call("GET", path)).get("joined") or {}
            except SendRefused:  # it has left the room: who reads there is not known
                return True
            self._groups[room] = len(joined) > 2
        return self._groups[room]

    async def _download(self, address: str) -> bytes:
        """https://spec.matrix.org/latest/client-server-api/#content-repository: media is given to
        those alone who may see it."""
        server, _, media = address.removeprefix("mxc://").partition("/")
        if not address.startswith("mxc://") or not media:
            raise SendRefused("it lies at no mxc: address")
        path = f"/_matrix/client/v1/media/download/{quote(server)}/{quote(media, safe='')}"
        async with self._translate_errors():
            return await self._api.download(path, MAX_DOWNLOAD_BYTES)

    # ------------------------------------------------------------------ out

    async def send(self, outgoing: Outgoing, mark: str) -> str:
        return await self._deliver(outgoing, mark, "")

    def edit_interval_s(self, address: Address) -> float:
        return EDIT_INTERVAL_S if self._context.config.streaming else 0.0

    async def edit(self, platform_id: str, outgoing: Outgoing, mark: str) -> str:
        return await self._deliver(outgoing, mark, platform_id)

    async def remove(self, platform_id: str, address: Address) -> None:
        path = f"/rooms/{quote(address.chat, safe='')}/redact/{quote(platform_id, safe='')}"
        await self._call("PUT", f"{path}/{_make_transaction(f'remove {platform_id}')}", body={})

    async def acknowledge(self, inbound: Inbound) -> None:
        of = inbound.body.of if isinstance(inbound.body, Edit) else inbound.external_id
        await self.react(inbound.address, of, READ_REACTION)

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        relation = {"rel_type": "m.annotation", "event_id": message_id, "key": emoji}
        name = f"{emoji} {message_id}"
        await self._put(address.chat, "m.reaction", {"m.relates_to": relation}, name)

    async def show_typing(self, address: Address) -> None:
        async with self._translate_errors():
            await self._open()
        path = f"/rooms/{quote(address.chat, safe='')}/typing/{quote(self._me, safe='')}"
        await self._call("PUT", path, body={"typing": True, "timeout": TYPING_MS})

    async def _deliver(self, outgoing: Outgoing, mark: str, into: str) -> str:
        """Say it in as many messages as it takes; the first of them is written over message
        `into`."""
        if await self._is_encrypted(outgoing.address.chat):
            raise SendRefused("the room is encrypted, and this would stand there in the open")

        async def send(i: int, piece: Piece) -> str:
            first = i == 0
            content = await self._make_content(outgoing, piece, first=first)
            name = f"{outgoing.key} {i}"
            if first and into:
                content = _make_edit(content, into)
                name += f" {into} {self._changes.get(into, 0)}"
                await self._put(outgoing.address.chat, "m.room.message", content, name)
                self._changes[into] = self._changes.get(into, 0) + 1  # it may be made again
                if len(self._changes) > MAX_REMEMBERED:
                    del self._changes[next(iter(self._changes))]
                return into
            made = await self._put(outgoing.address.chat, "m.room.message", content, name)
            remember_thread(self._threads, made, outgoing.address.thread)
            return made

        return await self._long_sends.send(outgoing, mark, send, over=bool(into))

    async def _is_encrypted(self, room: str) -> bool:
        if room not in self._encrypted:
            path = f"{_V3}/rooms/{quote(room, safe='')}/state/m.room.encryption"
            try:
                async with self._translate_errors():
                    self._encrypted[room] = await self._has_state(path)
            except ChannelError as error:
                error.unsent = True
                raise
        return self._encrypted[room]

    async def _has_state(self, path: str) -> bool:
        try:
            await self._api.call("GET", path)
        except ApiFault as error:
            if error.status != 404:
                raise
            return False
        return True

    async def _make_content(
        self, outgoing: Outgoing, piece: Piece, *, first: bool
    ) -> dict[str, Any]:
        content: dict[str, Any] = {
            "msgtype": "m.notice" if outgoing.silent else "m.text",
            "body": write_plain(piece.words),
            "format": "org.matrix.custom.html",
            "formatted_body": write_html(piece.words),
            "m.mentions": {},
        }
        if piece.file is not None:
            content = await self._make_file(piece.file)
        if relation := _make_relation(outgoing, first=first):
            content["m.relates_to"] = relation
        return content

    async def _make_file(self, file: Attachment) -> dict[str, Any]:
        name = find_attachment_name(file)
        try:
            data = await self._context.get_blob(file.blob)
        except BlobMissing:
            return _make_note(f"{name} is no longer there")
        mime = file.mime or "application/octet-stream"
        try:
            put = await self._upload(name, mime, data)
        except SendRefused as refused:  # most often it is too large
            return _make_note(f"{name} was not sent: {refused}")
        kind = _MEDIA_TYPES.get(mime.partition("/")[0], "m.file")
        info = {"mimetype": mime, "size": len(data)}
        place = {"url": put["content_uri"], "info": info}
        content = {"msgtype": kind, "body": name, "m.mentions": {}, **place}
        return _mark_as_voice(content, data) if isinstance(file, Audio) else content

    async def _upload(self, name: str, mime: str, data: bytes) -> Json:
        path = f"/_matrix/media/v3/upload?filename={quote(name)}"
        async with self._translate_errors():
            put: Json = await self._api.upload("POST", path, data, {"Content-Type": mime})
        return put

    async def _put(self, room: str, kind: str, content: Json, name: str) -> str:
        """Send an event under this name of ours; returns the homeserver's."""
        path = f"/rooms/{quote(room, safe='')}/send/{kind}/{_make_transaction(name)}"
        return str((await self._call("PUT", path, body=content))["event_id"])

    # ------------------------------------------------------------------ what was written before

    async def list_rooms(self) -> tuple[Room, ...]:
        return await self._history.list_rooms()

    async def read_history(self, address: Address, count: int) -> tuple[PastMessage, ...]:
        async with self._translate_errors():
            await self._open()
        if await self._is_encrypted(address.chat):
            raise SendRefused("the room is encrypted, and what is written there cannot be read")
        return await self._history.read(address, count, self._me)

    def find_thread(self, inbound: Inbound) -> Address | None:
        return inbound.address if inbound.address.thread else None

    async def _get(self, path: str, params: Mapping[str, str]) -> Any:
        async with self._translate_errors():
            return await self._api.call("GET", f"/_matrix/client{path}", params=params)

    # ------------------------------------------------------------------ facts

    def instructions(self, address: Address) -> str:
        return _INSTRUCTIONS

    async def introduce(self) -> Introduction:
        async with self._translate_errors():
            await self._open()
        return Introduction(self._me, f"https://matrix.to/#/{self._me}")

    def health(self) -> ChannelHealth:
        return self._record.current

    @property
    def allow_from(self) -> tuple[str, ...]:
        return tuple(map(str, self._context.config.allow_from))

    async def close(self) -> None:
        await self._api.close()

    async def _open(self) -> None:
        async with self._opening:
            if not self._me:
                self._me = str((await self._api.call("GET", f"{_V3}/account/whoami"))["user_id"])

    async def _call(self, method: str, path: str, **about: Any) -> Any:
        async with self._translate_errors():
            return await self._api.call(method, f"{_V3}{path}", **about)

    def _translate_errors(self, *, entering: bool = False) -> AbstractAsyncContextManager[None]:
        """What the homeserver answers inside is noted, and raised as ours."""
        return self._record.watch(ApiFault, translate_error, entering=entering)


def translate_error(error: Exception) -> ChannelError:
    """What came of a call, in our words."""
    assert isinstance(error, ApiFault)
    code, why = str(error.body.get("errcode", "")), str(error.body.get("error", error))
    if error.status == 429:
        wait = float(error.body.get("retry_after_ms") or 1000 * error.find_wait_s()) / 1000
        return ChannelError(f"the homeserver asks to wait {wait:.0f} s", wait, unsent=True)
    if code in ("M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_DEACTIVATED"):
        return LoginRefused(
            f"the homeserver does not accept this token ({why}): sign in again, and copy the new "
            "access token",
            300,
            unsent=True,
        )
    if 400 <= error.status < 500:
        return SendRefused(f"the homeserver refuses: {why}")
    if not error.status:
        return ChannelError(f"the homeserver could not be reached: {error}", unsent=error.unsent)
    return ChannelError(f"the homeserver has a fault: {why}")


def _is_membership(event: Json) -> bool:
    return bool(event.get("type") == "m.room.member")


def _make_transaction(name: str) -> str:
    return sha256(name.encode()).hexdigest()[:32]


def _make_relation(outgoing: Outgoing, *, first: bool) -> dict[str, Any]:
    """In which thread it stands, and what it answers."""
    reply = outgoing.reply_to if first and outgoing.reply_to.startswith("$") else ""
    root = outgoing.address.thread
    if root:
        return {
            "rel_type": "m.thread",
            "event_id": root,
            "is_falling_back": not reply,
            "m.in_reply_to": {"event_id": reply or root},
        }
    return {"m.in_reply_to": {"event_id": reply}} if reply and outgoing.address.group else {}


def _make_note(note: str) -> dict[str, Any]:
    """The content of a message that stands where a file should be."""
    return {"msgtype": "m.text", "body": prepend_note(Rich(""), note).text, "m.mentions": {}}


def _mark_as_voice(content: dict[str, Any], data: bytes) -> dict[str, Any]:
    """The content as that of a voice message, where the recording is OGG with Opus.

    Element X cannot move about in one without a waveform, which has 30 to 120 points of 0 to 1024:
    https://github.com/matrix-org/matrix-spec-proposals/pull/3246
    """
    voice = find_ogg_voice(data)
    if voice is None:
        return content
    duration_ms = round(1000 * voice.duration_s)
    waveform = voice.draw_waveform(WAVEFORM_POINTS, WAVEFORM_PEAK)
    return {
        **content,
        "info": {**content["info"], "duration": duration_ms},
        "org.matrix.msc1767.audio": {"duration": duration_ms, "waveform": waveform},
        VOICE_MARK: {},
    }


def _make_edit(content: dict[str, Any], of: str) -> dict[str, Any]:
    """The content that says it instead of that event; the copy outside is for programs that know no
    edits."""
    new = {name: value for name, value in content.items() if name != "m.relates_to"}
    return {
        "msgtype": new["msgtype"],
        "body": f"* {new['body']}"[:MAX_OLD_CHARS],
        "m.mentions": {},
        "m.new_content": new,
        "m.relates_to": {"rel_type": "m.replace", "event_id": of},
    }


_: type[Channel] = MatrixChannel
_editing: type[Editing] = MatrixChannel
_typing: type[Typing] = MatrixChannel
_speaking: type[Speaking] = MatrixChannel
_reading: type[Reading] = MatrixChannel
_more: tuple[type[Removing], type[Acknowledging], type[Introducing]] = (
    MatrixChannel,
    MatrixChannel,
    MatrixChannel,
)
_others: tuple[type[Closing], type[Instructing], type[Allowing], type[Healthy]] = (
    MatrixChannel,
    MatrixChannel,
    MatrixChannel,
    MatrixChannel,
)
