"""Twitch: one account in the chats of some channels, read by EventSub over WebSocket.

https://dev.twitch.tv/docs/eventsub/handling-websocket-events. Twitch tells of a message once, and
keeps none for those who are away: what is said while Deskhand is not connected does not reach it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, suppress
from datetime import datetime
from hashlib import sha256
from typing import Any

import anyio
import msgspec
import websockets
from websockets.exceptions import WebSocketException

from ...types.commit import Outgoing
from ...types.errors import ChannelError, ConfigError, LoginRefused, SendRefused
from ...types.identity import Address, Inbound
from ..base import (
    Allowing,
    Channel,
    ChannelContext,
    ChannelHealth,
    Closing,
    Healthy,
    Instructing,
    Introducing,
    Introduction,
)
from ..group_rules import GroupRules
from ..health_record import HealthRecord
from ..long_sends import LongSends
from ..only_reader import only_reader
from ..pieces import MessageForm, Piece, find_attachment_name, prepend_note
from ..web_api import ApiFault, WebApi
from .reader import Reader
from .translate import WHISPER, Json, find_sent_id, translate_error, write_line

log = logging.getLogger(__name__)

FORM = MessageForm(text=500, buttons=False, markup=write_line)
FAULTS = (ApiFault, WebSocketException, TimeoutError, OSError, msgspec.DecodeError)
HELIX = "https://api.twitch.tv/helix"
OAUTH = "https://id.twitch.tv/oauth2"
EVENTSUB = "wss://eventsub.wss.twitch.tv/ws"
KEEPALIVE_S = 30
GRACE_S = 10.0
DRAIN_S = 0.3
MAX_FRAME_BYTES = 2**22
_OUT = ("authorization_revoked", "user_removed")
_SCOPES = ("user:read:chat", "user:write:chat")
_WHISPERS = ("user:read:whispers", "user:manage:whispers")
_NO_FILES = "files cannot be sent on Twitch"
_INSTRUCTIONS = (
    "This is the public chat of a stream, which everybody reads. Answer in one or two plain "
    "sentences, without Markdown or line breaks."
)


def open_twitch(context: ChannelContext) -> TwitchChannel:
    """The account of this configuration. Raises ConfigError where it cannot work, with what to
    do."""
    variable = context.config.token_env or "TWITCH_ACCESS_TOKEN"
    if not context.secret(variable):
        raise ConfigError(
            f"{variable} is not set: make a user access token with the scopes "
            f"{' and '.join(_SCOPES)} for the bot's account, and put it into .env"
        )
    return TwitchChannel(context, variable)


class TwitchChannel:
    """One account. Nothing that it says can be changed or taken back."""

    idempotent = False

    def __init__(self, context: ChannelContext, variable: str) -> None:
        self.name = context.name
        self._context = context
        self._token = context.secret(variable)
        self._variable = variable
        base = context.config.base_url.rstrip("/")
        self._helix = WebApi(f"{base}/helix" if base else HELIX, {})
        self._oauth = WebApi(f"{base}/oauth2" if base else OAUTH, {})
        self._eventsub = f"ws{base.removeprefix('http')}/ws" if base else EVENTSUB
        self._opening = anyio.Lock()
        self._me: Json = {}
        self._record = HealthRecord(context.now)
        self._long_sends = LongSends(FORM)

    # ------------------------------------------------------------------ in

    async def receive(self) -> AsyncIterator[Inbound]:
        with only_reader(self._context.state, self._context.secret(self._variable)):
            async with self._translate_errors():
                await self._open()
            reader = Reader(self.name, self._me, groups=GroupRules(self._context.config))
            address = f"{self._eventsub}?keepalive_timeout_seconds={KEEPALIVE_S}"
            socket, session = await self._connect(address)
            try:
                await self._subscribe(session)
                while True:
                    frame = await self._read_frame(socket)
                    kind = str(frame["metadata"]["message_type"])
                    frames = [frame]
                    if kind == "session_reconnect":
                        old, address = socket, str(frame["payload"]["session"]["reconnect_url"])
                        with suppress(ChannelError):  # else this one goes on for as long as it can
                            socket, _ = await self._connect(address)
                            frames = await self._drain(old)
                    for each in frames:
                        inbound = self._read_event(reader, each)
                        if inbound is not None:
                            yield inbound
            finally:
                await _close(socket)

    async def _connect(self, address: str) -> tuple[websockets.ClientConnection, str]:
        """A connection, and the session that Twitch has opened on it."""
        async with self._translate_errors():
            socket = await websockets.connect(  # noqa: TID251 -- Twitch's own
                address, max_size=MAX_FRAME_BYTES, proxy=None
            )
            try:
                with anyio.fail_after(GRACE_S):
                    welcome = msgspec.json.decode(await socket.recv())
                return socket, str(welcome["payload"]["session"]["id"])
            except BaseException:
                await _close(socket)
                raise

    async def _subscribe(self, session: str) -> None:
        """To the chat of each room, and to whispers where the token may read them."""
        me = self._me["user_id"]
        wanted: list[tuple[str, dict[str, str]]] = [
            ("channel.chat.message", {"broadcaster_user_id": room, "user_id": me})
            for room in await self._find_rooms()
        ]
        if any(scope in _WHISPERS for scope in self._me.get("scopes") or ()):
            wanted.append(("user.whisper.message", {"user_id": me}))
        transport = {"method": "websocket", "session_id": session}
        refused: list[SendRefused] = []
        for kind, condition in wanted:
            about = {"type": kind, "version": "1", "condition": condition, "transport": transport}
            try:
                await self._call("POST", "/eventsub/subscriptions", body=about)
            except SendRefused as error:  # one chat that it may not read is no matter for others
                where = condition.get("broadcaster_user_id", "whispers")
                self._record.note_error(ChannelError(f"{where} cannot be read: {error}"))
                refused.append(error)
        if len(refused) == len(wanted):
            raise self._record.note_error(LoginRefused(str(refused[0]), 300))

    async def _find_rooms(self) -> list[str]:
        """The numbers of the channels whose chats are read: by their names, else the account's
        own."""
        names = [name.lstrip("#@").lower() for name in self._context.config.rooms]
        if not names:
            return [str(self._me["user_id"])]
        query = "&".join(f"login={name}" for name in names if name.replace("_", "").isalnum())
        found = (await self._call("GET", f"/users?{query}")).get("data") or ()
        known = {str(each["login"]): str(each["id"]) for each in found}
        if missing := [name for name in names if name not in known]:
            why = f"Twitch knows no channel {missing[0]!r}: check `rooms`"
            raise self._record.note_error(LoginRefused(why, 300))
        return list(dict.fromkeys(known[name] for name in names))

    async def _read_frame(self, socket: websockets.ClientConnection) -> Json:
        """The next one. Twitch says at least every half minute that it is there."""
        async with self._translate_errors():
            with anyio.fail_after(KEEPALIVE_S + GRACE_S):
                frame: Json = msgspec.json.decode(await socket.recv())
        try:
            kind = str(frame["metadata"]["message_type"])
            ended = str(frame["payload"]["subscription"]["status"]) if kind == "revocation" else ""
        except (KeyError, TypeError) as error:
            raise self._record.note_error(ChannelError("Twitch sent what is no event")) from error
        if ended in _OUT:
            why = f"Twitch tells nothing any more ({ended}): make a new token"
            raise self._record.note_error(LoginRefused(why, 300))
        if ended:
            log.warning("%s: Twitch tells nothing of a chat any more: %s", self.name, ended)
        return frame

    async def _drain(self, socket: websockets.ClientConnection) -> list[Json]:
        """What had come over the connection that another has followed."""
        frames: list[Json] = []
        with anyio.move_on_after(DRAIN_S):
            try:
                while True:
                    frames.append(msgspec.json.decode(await socket.recv()))
            except WebSocketException:
                pass
        await _close(socket)
        return frames

    def _read_event(self, reader: Reader, frame: Json) -> Inbound | None:
        about = frame["metadata"]
        if about["message_type"] != "notification":
            return None
        try:
            at = datetime.fromisoformat(str(about["message_timestamp"])[:19] + "+00:00").timestamp()
            return reader.read(str(about["subscription_type"]), frame["payload"]["event"], at)
        except (AttributeError, KeyError, TypeError, ValueError):
            log.warning("%s sent an event that cannot be read.", self.name, exc_info=True)
            return None

    # ------------------------------------------------------------------ out

    async def send(self, outgoing: Outgoing, mark: str) -> str:
        async def send(i: int, piece: Piece) -> str:
            return await self._send_line(outgoing, piece, first=i == 0)

        return await self._long_sends.send(outgoing, mark, send)

    async def _send_line(self, outgoing: Outgoing, piece: Piece, *, first: bool) -> str:
        words = piece.words
        if piece.file is not None:
            words = prepend_note(words, f"{find_attachment_name(piece.file)}: {_NO_FILES}")
        try:
            async with self._translate_errors():
                await self._open()
        except ChannelError as error:
            error.unsent = True
            raise
        chat = outgoing.address.chat
        if chat.startswith(WHISPER):
            query = f"from_user_id={self._me['user_id']}&to_user_id={chat.removeprefix(WHISPER)}"
            await self._call("POST", f"/whispers?{query}", body={"message": write_line(words)})
            return ""
        about: dict[str, Any] = {
            "broadcaster_id": chat,
            "sender_id": self._me["user_id"],
            "message": write_line(words),
        }
        if first and outgoing.reply_to:
            about["reply_parent_message_id"] = outgoing.reply_to
        try:
            return find_sent_id(await self._call("POST", "/chat/messages", body=about))
        except SendRefused:
            if not about.pop("reply_parent_message_id", ""):
                raise
            # What it answers may be gone.
            return find_sent_id(await self._call("POST", "/chat/messages", body=about))

    # ------------------------------------------------------------------ facts

    def instructions(self, address: Address) -> str:
        return "" if address.chat.startswith(WHISPER) else _INSTRUCTIONS

    async def introduce(self) -> Introduction:
        async with self._translate_errors():
            await self._open()
        login = str(self._me.get("login", ""))
        return Introduction(login, f"https://www.twitch.tv/{login}")

    def health(self) -> ChannelHealth:
        return self._record.current

    @property
    def allow_from(self) -> tuple[str, ...]:
        return tuple(map(str, self._context.config.allow_from))

    async def close(self) -> None:
        await self._helix.close()
        await self._oauth.close()

    async def _open(self) -> None:
        """Ask who the token is for. Raises ApiFault, SendRefused."""
        async with self._opening:
            if self._me:
                return
            try:
                self._me = await self._validate()
            except ApiFault as error:
                if not _is_over(error) or not await self._refresh():
                    raise
                self._me = await self._validate()
            missing = [each for each in _SCOPES if each not in (self._me.get("scopes") or ())]
            if missing:
                me, self._me = self._me, {}
                raise LoginRefused(
                    f"the token of {me.get('login')} lacks the scope {missing[0]}: make a new one",
                    300,
                )

    async def _validate(self) -> Json:
        """https://dev.twitch.tv/docs/authentication/validate-tokens"""
        self._oauth.headers = {"Authorization": f"OAuth {self._token}"}
        found: Json = await self._oauth.call("GET", "/validate")
        self._helix.headers = {
            "Authorization": f"Bearer {self._token}",
            "Client-Id": str(found["client_id"]),
        }
        return found

    async def _refresh(self) -> bool:
        """Get a new token with the refresh token, where there is one. The newest refresh token is
        kept, as the one before may have stopped working.

        https://dev.twitch.tv/docs/authentication/refresh-tokens
        """
        family = self._variable.removesuffix("ACCESS_TOKEN")
        given = self._context.secret(f"{family}REFRESH_TOKEN")
        origin = sha256(given.encode()).hexdigest()[:16]
        known, _, newest = self._context.load_cursor().partition(" ")
        refresh = newest if known == origin else given  # one that was given since counts
        client = self._context.secret(f"{family}CLIENT_ID")
        key = self._context.secret(f"{family}CLIENT_SECRET")
        if not (refresh and client):
            return False
        fields = {"grant_type": "refresh_token", "refresh_token": refresh, "client_id": client}
        self._oauth.headers = {}
        try:
            made = await self._oauth.post_form("/token", {**fields, "client_secret": key})
        except ApiFault as error:
            if 400 <= error.status < 500:
                why = "Twitch does not renew this token: make a new one, with its refresh token"
                raise LoginRefused(why, 300, unsent=True) from error
            raise
        self._token = str(made["access_token"])
        self._context.save_cursor(f"{origin} {made['refresh_token']}")
        return True

    async def _call(self, method: str, path: str, **about: Any) -> Any:
        """With a new token where this one is over."""
        async with self._translate_errors():
            before = self._token
            try:
                return await self._helix.call(method, path, **about)
            except ApiFault as error:
                if not _is_over(error) or not await self._renew(before):
                    raise
                return await self._helix.call(method, path, **about)

    async def _renew(self, before: str) -> bool:
        """Whether there is another token than this one: who comes second takes what the first
        got."""
        async with self._opening:
            if self._token == before:
                if not await self._refresh():
                    return False
                self._me = await self._validate()
            return True

    def _translate_errors(self) -> AbstractAsyncContextManager[None]:
        """What Twitch answers inside is noted, and raised as ours."""

        def translate(error: Exception) -> ChannelError:
            return translate_error(error, self._context.now())

        return self._record.watch(FAULTS, translate)


def _is_over(error: ApiFault) -> bool:
    """Whether the token has ended. One that lacks a scope is answered with 401, too."""
    said = str(error.body.get("message", "")).lower()
    return error.status == 401 and "token" in said and "scope" not in said


async def _close(socket: websockets.ClientConnection) -> None:
    with anyio.CancelScope(shield=True), anyio.move_on_after(1):
        await socket.close()


_: type[Channel] = TwitchChannel
_others: tuple[type[Closing], type[Instructing], type[Allowing], type[Healthy]] = (
    TwitchChannel,
    TwitchChannel,
    TwitchChannel,
    TwitchChannel,
)
_introducing: type[Introducing] = TwitchChannel
