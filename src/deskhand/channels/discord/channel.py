"""Discord: one bot, read over the gateway.

An event is behind us once the next inbound is asked for, and never before: where we are is saved
then. After a break the gateway is asked for everything since; where it has forgotten the session,
each chat is asked for the messages since the last one that was taken.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any
from urllib.parse import quote

import aiohttp  # noqa: TID251 -- a form for the platform's own address
import anyio
import msgspec
from msgspec.structs import replace
from websockets.exceptions import WebSocketException

from ...languages.sentences import say_notice
from ...types.commit import Outgoing
from ...types.errors import BlobMissing, ChannelError, ConfigError, LoginRefused, SendRefused
from ...types.identity import Address, Answer, Command, Edit, Inbound
from ...types.marked_texts import mark_text
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
from ..buttons import list_action_buttons
from ..group_rules import GroupRules
from ..health_record import HealthRecord
from ..incoming_files import MAX_DOWNLOAD_BYTES
from ..long_sends import LongSends
from ..ogg_duration import find_ogg_voice
from ..only_reader import only_reader
from ..pieces import GONE, Attachment, MessageForm, Piece, find_attachment_name, prepend_note
from ..web_api import ApiFault, WebApi
from .gateway import Event, Gateway, Resume
from .history import History
from .markdown import write_markdown
from .reader import EPOCH_MS, Json, Reader
from .translate import (
    MAX_LABEL_CHARS,
    arrange_buttons,
    make_change,
    make_message,
    make_voice_message,
    translate_error,
)

log = logging.getLogger(__name__)

API = "https://discord.com/api/v10"
FORM = MessageForm(text=2000, caption=1850, label=MAX_LABEL_CHARS, markup=write_markdown)
EDIT_INTERVAL_S = 1.2
MAX_FILE_BYTES = 10 * 2**20
"""https://discord.com/developers/docs/reference#uploading-files: without a boosted server."""
FAULTS = (ApiFault, WebSocketException, TimeoutError, OSError)
READ_REACTION = "👀"
SHORT_S = 5.0
"""A connection that breaks sooner is not made anew at once."""
SESSION_PAUSE_S = 1.5
"""https://discord.com/developers/docs/events/gateway#resuming: one to five seconds."""
MISSED_PAGE = 100
MAX_MISSED_PAGES = 50
MAX_PRIVATE_CHATS = 1_000
_GUILDS, _MESSAGES, _REACTIONS = 1 << 0, 1 << 9, 1 << 10
_PRIVATE, _PRIVATE_REACTIONS, _CONTENT = 1 << 12, 1 << 13, 1 << 15
_INTENTS = _GUILDS | _MESSAGES | _REACTIONS | _PRIVATE | _PRIVATE_REACTIONS
_DEFERRED_UPDATE = 6
_TOKEN = re.compile(r"[\w-]+(?:\.[\w-]+){2}", re.ASCII)
_TOO_LARGE = mark_text("{file} is larger than the 10 MB that Discord accepts")
_INSTRUCTIONS = "Text is Markdown; tables become fixed columns, so keep them narrow."


class Cursor(msgspec.Struct, frozen=True, omit_defaults=True):
    """Up to where events are taken. `at` is the id of the last message, 0 before the first start;
    `private` are the chats with one person, which Discord does not list."""

    resume: Resume = Resume()
    at: int = 0
    private: tuple[str, ...] = ()


def open_discord(context: ChannelContext) -> DiscordChannel:
    """The bot of this configuration. Raises ConfigError where it cannot work, with what to do."""
    variable = context.config.token_env or "DISCORD_BOT_TOKEN"
    token = context.secret(variable)
    where = "Bot, at https://discord.com/developers/applications"
    if not token:
        raise ConfigError(
            f"{variable} is not set: copy the token under {where} and put it into .env"
        )
    if not _TOKEN.fullmatch(token):
        raise ConfigError(f"{variable} is not a bot token: it stands under {where}, in three parts")
    return DiscordChannel(context, token)


class DiscordChannel:
    """One bot. What it says has no previews of links, which would fetch them, and calls nobody by
    name."""

    idempotent = False
    takes_voice = True

    def __init__(self, context: ChannelContext, token: str) -> None:
        self.name = context.name
        self._context = context
        self._token = token
        self._groups = GroupRules(context.config)
        base = context.config.base_url or API
        self._api = WebApi(base, {"Authorization": f"Bot {token}"})
        self._opening = anyio.Lock()
        self._me: Json = {}
        self._cursor = Cursor()
        self._behind: set[str] = set()
        self._record = HealthRecord(context.now)
        self._threads: dict[str, str] = {}
        self._long_sends = LongSends(FORM)
        self._history = History(self._call)

    # ------------------------------------------------------------------ in

    async def receive(self) -> AsyncIterator[Inbound]:
        with only_reader(self._context.state, self._token):
            async with self._translate_errors(entering=True):
                await self._open()
            reader = Reader(
                self.name,
                str(self._me["id"]),
                self._download,
                self._context.put_blob,
                self._threads,
                groups=self._groups,
            )
            self._cursor = self._load_cursor()
            while True:
                began = self._context.now()
                gateway = await self._connect()
                try:
                    while (event := await self._next_event(gateway)) is not None:
                        work = self._read_event(reader, event)
                        for inbound in await gateway.keep_alive(work):
                            yield inbound
                            await self._release_button(inbound, event)
                        self._advance(event)
                finally:
                    await gateway.close()
                if gateway.lost_session:
                    self._forget_session()
                    await anyio.sleep(SESSION_PAUSE_S)
                elif self._context.now() - began < SHORT_S and not gateway.is_asked:
                    why = "Discord has closed the connection at once"
                    raise self._record.note_error(ChannelError(why))

    def _load_cursor(self) -> Cursor:
        try:
            return msgspec.json.decode(self._context.load_cursor() or "{}", type=Cursor)
        except (msgspec.DecodeError, RecursionError):
            return Cursor()

    def _forget_session(self) -> None:
        """What was missed has to be asked for."""
        self._cursor = replace(self._cursor, resume=Resume())
        self._context.save_cursor(msgspec.json.encode(self._cursor).decode())

    async def _connect(self) -> Gateway:
        resume = self._cursor.resume
        intents = _INTENTS | (_CONTENT if self._groups.reads_everything_somewhere() else 0)
        gateway = Gateway(self._token, intents, resume, anyio.current_time)
        try:
            async with self._translate_errors(entering=True):
                url = resume.url or str((await self._api.call("GET", "/gateway/bot"))["url"])
                await gateway.connect(url)
        except ChannelError:
            if resume.url:  # the address of a session ends with it
                self._forget_session()
            raise
        return gateway

    async def _next_event(self, gateway: Gateway) -> Event | None:
        async with self._translate_errors():
            return await gateway.read()

    async def _read_event(self, reader: Reader, event: Event) -> Sequence[Inbound]:
        try:
            match event.kind:
                case "READY":
                    return await self._begin(reader, event.data)
                case "GUILD_CREATE":
                    return await self._catch_up(reader, event.data)
                case _:
                    now = self._context.now()
                    name = f"{self._cursor.resume.session}:{event.seq}"
                    found = await reader.read(event.kind, event.data, name, now)
                    return (found,) if found is not None else ()
        except (AttributeError, KeyError, TypeError, ValueError):
            log.warning("%s sent an event that cannot be read.", self.name, exc_info=True)
            return ()

    async def _begin(self, reader: Reader, ready: Json) -> Sequence[Inbound]:
        """A session begins anew. What was said before the first of all is not for it; what came
        since the last one is asked for in each chat."""
        resume = Resume(str(ready["session_id"]), str(ready.get("resume_gateway_url", "")))
        first = not self._cursor.at
        at = self._cursor.at or (int(1000 * self._context.now()) - EPOCH_MS) << 22
        self._cursor = replace(self._cursor, resume=resume, at=at)
        self._behind = set() if first else {str(each["id"]) for each in ready.get("guilds") or ()}
        missed: list[Json] = []
        for chat in [] if first else await self._list_private():
            missed += await self._fetch_missed(chat)
        return await self._read_all(reader, missed)

    async def _list_private(self) -> Sequence[str]:
        """The chats with one person: those of before, and those with guests, who may have begun one
        meanwhile."""
        chats = list(self._cursor.private)
        for person in self.allow_from:
            with suppress(SendRefused):
                made = await self._call("POST", "/users/@me/channels", {"recipient_id": person})
                chats.append(str(made["id"]))
        return list(dict.fromkeys(chats))

    async def _catch_up(self, reader: Reader, guild: Json) -> Sequence[Inbound]:
        """What was missed in the chats of a server, where it is one of those that a session begins
        with."""
        if str(guild["id"]) not in self._behind:
            return ()
        missed: list[Json] = []
        for chat in (*(guild.get("channels") or ()), *(guild.get("threads") or ())):
            if int(chat.get("last_message_id") or 0) > self._cursor.at:
                found = await self._fetch_missed(str(chat["id"]))
                missed += [{**each, "guild_id": guild["id"]} for each in found]
        self._behind.discard(str(guild["id"]))
        return await self._read_all(reader, missed)

    async def _fetch_missed(self, chat: str) -> list[Json]:
        """What was said in a chat since the last message that was taken, the oldest first."""
        found: list[Json] = []
        after = self._cursor.at
        for _ in range(MAX_MISSED_PAGES):
            about = {"after": str(after), "limit": str(MISSED_PAGE)}
            try:
                page = await self._fetch_patiently(f"/channels/{chat}/messages", about)
            except SendRefused:  # it may not read there
                break
            found += sorted(page, key=lambda each: int(each["id"]))
            if len(page) < MISSED_PAGE:
                break
            after = int(found[-1]["id"])
        else:
            log.error("%s: more was said in %s than can be fetched.", self.name, chat)
        return found

    async def _fetch_patiently(self, path: str, about: Json) -> Any:
        """Where Discord asks to wait, that is done: to begin anew would ask for all of it again."""
        while True:
            try:
                return await self._call("GET", path, params=about)
            except ChannelError as error:
                if error.retry_after_s is None or isinstance(error, LoginRefused):
                    raise
                await anyio.sleep(error.retry_after_s)

    async def _read_all(self, reader: Reader, messages: Sequence[Json]) -> list[Inbound]:
        """In the order in which they were said."""
        found = []
        for message in sorted(messages, key=lambda each: int(each["id"])):
            try:
                inbound = await reader.read_message(message)
            except (AttributeError, KeyError, TypeError, ValueError):
                log.warning("%s sent an event that cannot be read.", self.name, exc_info=True)
                continue
            if inbound is not None:
                found.append(inbound)
        return found

    def _advance(self, event: Event) -> None:
        """Nothing is behind us before everything that was missed is asked for."""
        cursor = self._cursor
        if event.kind == "MESSAGE_CREATE":
            chat = str(event.data.get("channel_id", ""))
            if chat and not event.data.get("guild_id") and chat not in cursor.private:
                private = (*cursor.private, chat)[-MAX_PRIVATE_CHATS:]
                cursor = replace(cursor, private=private)
            if not self._behind:
                cursor = replace(cursor, at=max(cursor.at, int(event.data.get("id", 0))))
        self._cursor = replace(cursor, resume=replace(cursor.resume, seq=event.seq))
        kept = replace(self._cursor, resume=Resume()) if self._behind else self._cursor
        self._context.save_cursor(msgspec.json.encode(kept).decode())

    async def _release_button(self, inbound: Inbound, event: Event) -> None:
        """A button is shown as busy until somebody says that it was pressed."""
        if isinstance(inbound.body, Answer | Command):
            path = f"/interactions/{event.data['id']}/{event.data['token']}/callback"
            with suppress(ChannelError):
                await self._call("POST", path, {"type": _DEFERRED_UPDATE})

    async def _download(self, url: str) -> bytes:
        """Files lie at addresses that are signed, so that no token goes there."""
        async with self._translate_errors():
            return await self._api.download(url, MAX_DOWNLOAD_BYTES, own=False)

    # ------------------------------------------------------------------ out

    async def send(self, outgoing: Outgoing, mark: str) -> str:
        if outgoing.pressed:
            path = f"/channels/{outgoing.address.chat}/messages/{outgoing.pressed}"
            left = arrange_buttons(list_action_buttons(outgoing.left, outgoing.language))
            with suppress(SendRefused):  # it is gone
                await self._call("PATCH", path, {"components": left})
        if outgoing.pressed and not outgoing.parts:
            return outgoing.reply_to
        return await self._deliver(outgoing, mark, "")

    def edit_interval_s(self, address: Address) -> float:
        return EDIT_INTERVAL_S if self._context.config.streaming else 0.0

    async def edit(self, platform_id: str, outgoing: Outgoing, mark: str) -> str:
        return await self._deliver(outgoing, mark, platform_id)

    async def remove(self, platform_id: str, address: Address) -> None:
        with suppress(SendRefused):  # it is gone
            await self._call("DELETE", f"/channels/{address.chat}/messages/{platform_id}")

    async def acknowledge(self, inbound: Inbound) -> None:
        of = inbound.body.of if isinstance(inbound.body, Edit) else inbound.external_id
        await self.react(inbound.address, of, READ_REACTION)

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        of, what = quote(message_id, safe=""), quote(emoji)
        await self._call("PUT", f"/channels/{address.chat}/messages/{of}/reactions/{what}/@me")

    async def show_typing(self, address: Address) -> None:
        await self._call("POST", f"/channels/{address.chat}/typing")

    async def _deliver(self, outgoing: Outgoing, mark: str, into: str) -> str:
        """Say it in as many messages as it takes; the first of them is written over message
        `into`."""

        async def send(i: int, piece: Piece) -> str:
            if piece.file is not None:
                return await self._send_file(outgoing, piece, piece.file, i)
            return await self._send_text(outgoing, piece, i, into if i == 0 else "")

        return await self._long_sends.send(outgoing, mark, send, over=bool(into))

    async def _send_text(self, outgoing: Outgoing, piece: Piece, i: int, into: str) -> str:
        path = f"/channels/{outgoing.address.chat}/messages"
        if into:
            with suppress(SendRefused):  # it is gone: then it is said anew
                await self._call("PATCH", f"{path}/{into}", make_change(outgoing, piece))
                return into
        made = await self._call("POST", path, make_message(outgoing, piece, i))
        return str(made["id"])

    async def _send_file(self, outgoing: Outgoing, piece: Piece, file: Attachment, i: int) -> str:
        """One file with its caption."""
        name = find_attachment_name(file)
        why = ""
        try:
            data = await self._context.get_blob(file.blob)
        except BlobMissing:
            why = GONE.format(file=name[:80])
        else:
            if len(data) > MAX_FILE_BYTES:
                why = _TOO_LARGE.format(file=name[:80])
        if why:
            words = prepend_note(piece.words, say_notice(why, outgoing.language))
            return await self._send_text(outgoing, replace(piece, words=words, file=None), i, "")
        voice = find_ogg_voice(data) if isinstance(file, Audio) else None
        if voice is not None and not piece.words.text:  # a note has no place in a voice message
            with suppress(SendRefused):  # they may not be sent in this chat: then as a file
                message = make_voice_message(outgoing, i, voice, name)
                return await self._upload(outgoing.address, message, name, data)
        message = make_message(outgoing, piece, i)
        return await self._upload(outgoing.address, message, name, data)

    async def _upload(self, address: Address, message: Json, name: str, data: bytes) -> str:
        """Post a message with one file."""
        form = aiohttp.FormData(quote_fields=False)
        form.add_field(
            "payload_json", msgspec.json.encode(message).decode(), content_type="application/json"
        )
        form.add_field("files[0]", data, filename=name, content_type="application/octet-stream")
        async with self._translate_errors():
            made = await self._api.upload("POST", f"/channels/{address.chat}/messages", form)
        return str(made["id"])

    # ------------------------------------------------------------------ what was written before

    async def list_rooms(self) -> tuple[Room, ...]:
        return await self._history.list_rooms()

    async def read_history(self, address: Address, count: int) -> tuple[PastMessage, ...]:
        async with self._translate_errors():
            await self._open()
        return await self._history.read(address, count, str(self._me["id"]))

    def find_thread(self, inbound: Inbound) -> Address | None:
        return inbound.address if inbound.address.chat in self._threads else None

    # ------------------------------------------------------------------ facts

    def instructions(self, address: Address) -> str:
        return _INSTRUCTIONS

    async def introduce(self) -> Introduction:
        async with self._translate_errors():
            await self._open()
        number = self._me["id"]
        return Introduction(
            str(self._me.get("username", "")),
            f"https://discord.com/oauth2/authorize?client_id={number}&scope=bot&permissions=274878024768",
        )

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
                self._me = await self._api.call("GET", "/users/@me")

    async def _call(
        self, method: str, path: str, body: object = None, *, params: Json | None = None
    ) -> Any:
        async with self._translate_errors():
            return await self._api.call(method, path, body=body, params=params)

    def _translate_errors(self, *, entering: bool = False) -> AbstractAsyncContextManager[None]:
        """What Discord answers inside is noted, and raised as ours."""
        return self._record.watch(FAULTS, translate_error, entering=entering)


_: type[Channel] = DiscordChannel
_editing: type[Editing] = DiscordChannel
_typing: type[Typing] = DiscordChannel
_speaking: type[Speaking] = DiscordChannel
_reading: type[Reading] = DiscordChannel
_more: tuple[type[Removing], type[Acknowledging], type[Introducing]] = (
    DiscordChannel,
    DiscordChannel,
    DiscordChannel,
)
_others: tuple[type[Closing], type[Instructing], type[Allowing], type[Healthy]] = (
    DiscordChannel,
    DiscordChannel,
    DiscordChannel,
    DiscordChannel,
)
