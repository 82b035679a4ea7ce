"""Slack: one app in one workspace, read by Socket Mode.

https://docs.slack.dev/apis/events-api/using-socket-mode. An event is acknowledged when the next
inbound is asked for, and never before: Slack sends it again, also on the next connection.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any
from urllib.parse import urlsplit

import anyio
import msgspec
import websockets
from websockets.exceptions import WebSocketException

from ...languages.sentences import say_notice
from ...types.commit import Outgoing
from ...types.errors import BlobMissing, ConfigError, Refused, SendRefused
from ...types.identity import Address, Edit, Inbound
from ...types.marked_texts import mark_text
from ...types.reactions import EMOJIS
from ...types.webhooks import UNREADABLE, WebhookAnswer, WebhookRequest
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
)
from ..buttons import list_action_buttons, list_buttons
from ..group_rules import GroupRules
from ..health_record import HealthRecord
from ..incoming_files import MAX_DOWNLOAD_BYTES
from ..long_sends import LongSends
from ..only_reader import only_reader
from ..pieces import GONE, Attachment, MessageForm, Piece, find_attachment_name, prepend_note
from ..rich_text import Rich
from ..thread_roots import remember_thread
from ..web_api import ApiFault, WebApi
from ..webhook import PostedEvents, make_webhook_address
from .history import History
from .reader import Json, Reader, make_message_id, parse_message_ts
from .signature import read_posted, verify_slack
from .translate import (
    call_slack,
    make_blocks,
    make_button_blocks,
    make_fallback,
    translate_error,
)

log = logging.getLogger(__name__)

FORM = MessageForm(text=4000)
"""https://docs.slack.dev/changelog/2018-truncating-really-long-messages: more is shown cut."""
EDIT_INTERVAL_S = 1.2
"""https://docs.slack.dev/apis/web-api/rate-limits: about fifty changes a minute."""
MAX_REMEMBERED = 200
MAX_ENVELOPE_BYTES = 2**24
WEBHOOK_PATIENCE_S = 2.5
"""Slack waits for three seconds, and sends it again then:
https://docs.slack.dev/apis/events-api/#responding."""
WEBHOOK_CHECK_S = 300.0
SHORT_S = 3.0
"""After a connection that ended sooner there is a pause."""
READ_REACTION = "👀"
FAULTS = (ApiFault, WebSocketException, TimeoutError, OSError)
_GONE = ("message_not_found", "cant_update_message", "edit_window_closed")
_EMPTY = mark_text("{file} is empty, and Slack takes no empty files")
_INSTRUCTIONS = "Text is Markdown; Slack shows no wide tables, so keep them narrow."


def open_slack(context: ChannelContext) -> SlackChannel:
    """The app of this configuration. Raises ConfigError where it cannot work, with what to do."""
    config = context.config
    bot = _read_token(context, config.token_env or "SLACK_BOT_TOKEN", "xoxb-")
    if not config.webhook:
        app = _read_token(context, config.app_token_env or "SLACK_APP_TOKEN", "xapp-")
        return SlackChannel(context, bot, app)
    make_webhook_address(context.name, config)
    variable = config.signing_secret_env or "SLACK_SIGNING_SECRET"
    secret = context.secret(variable)
    if not secret.strip():
        raise ConfigError(
            f"{variable} is not set: put the Signing Secret under Basic Information of your Slack "
            "app into .env"
        )
    return SlackChannel(context, bot, "", secret)


def _read_token(context: ChannelContext, variable: str, begins: str) -> str:
    token = context.secret(variable)
    where = {
        "xoxb-": "the Bot User OAuth Token under OAuth & Permissions",
        "xapp-": "an App-Level Token with connections:write under Basic Information",
    }[begins]
    if not token:
        raise ConfigError(f"{variable} is not set: put {where} of your Slack app into .env")
    if not token.startswith(begins):
        raise ConfigError(f"{variable} does not begin with {begins}: it has to be {where}")
    return token


class SlackChannel:
    """One app. What it says is formatted beside the words, without previews of links, which would
    fetch them."""

    idempotent = False
    takes_voice = True

    def __init__(
        self, context: ChannelContext, bot_token: str, app_token: str, signing_secret: str = ""
    ) -> None:
        """With a `signing_secret` Slack posts what happens; without one it is read from a
        socket."""
        self.name = context.name
        self._context = context
        self._app_token = app_token
        self._signing_secret = signing_secret
        self._posted = PostedEvents[Json](WEBHOOK_PATIENCE_S)
        self.webhook_check_s = WEBHOOK_CHECK_S
        self._files_from = urlsplit(context.config.base_url or "https://files.slack.com")
        base = context.config.base_url or "https://slack.com/api"
        self._api = WebApi(base, {"Authorization": f"Bearer {bot_token}"})
        self._app_api = WebApi(base, {"Authorization": f"Bearer {app_token}"})
        self._opening = anyio.Lock()
        self._me: Json = {}
        self._roots: dict[str, str] = {}
        self._record = HealthRecord(context.now)
        self._long_sends = LongSends(FORM)
        self._history = History(self._call)
        self._pressed: dict[str, Sequence[Json]] = {}
        """The blocks of messages with chat commands on buttons that were pressed."""

    # ------------------------------------------------------------------ in

    async def receive(self) -> AsyncIterator[Inbound]:
        with only_reader(self._context.state, self._app_token or self._signing_secret):
            async with self._translate_errors(entering=True):
                await self._open()
            reader = Reader(
                self.name,
                str(self._me["user_id"]),
                self._download,
                self._context.put_blob,
                self._roots,
                groups=GroupRules(self._context.config),
            )
            envelopes = self._read_posted() if self._signing_secret else self._read_sockets()
            async with aclosing(envelopes):
                async for envelope in envelopes:
                    inbound = await self._read_event(reader, envelope)
                    if inbound is not None:
                        yield inbound

    async def _read_sockets(self) -> AsyncGenerator[Json]:
        """When the next envelope is asked for, the one before is acknowledged."""
        while True:
            began = anyio.current_time()
            async with self._translate_errors(entering=True):
                socket = await self._connect()
            try:
                while (envelope := await self._read_envelope(socket)) is not None:
                    yield envelope
                    await self._acknowledge(socket, envelope)
            finally:
                with anyio.CancelScope(shield=True), anyio.move_on_after(1):
                    await socket.close()
            if anyio.current_time() - began < SHORT_S:  # it ends them one after the other
                await anyio.sleep(SHORT_S)

    async def _read_posted(self) -> AsyncGenerator[Json]:
        events = self._posted.read(self.webhook_check_s)
        async with aclosing(events):
            async for envelope in events:
                if envelope is None:
                    await self._call("auth.test", {})  # nothing came: does the token still hold?
                else:
                    self._record.note_answer()
                    yield envelope

    async def take_webhook(self, request: WebhookRequest) -> WebhookAnswer:
        if not self._signing_secret:
            raise Refused("nothing is to be posted: the events come over a socket")
        verify_slack(self._signing_secret, request, self._context.now())
        posted = read_posted(request)
        if posted is None:
            return UNREADABLE
        if posted.get("type") == "url_verification":
            challenge = {"challenge": str(posted.get("challenge", ""))}
            return WebhookAnswer(200, msgspec.json.encode(challenge))
        kind = "interactive" if posted.get("type") == "block_actions" else "events_api"
        return await self._posted.put({"type": kind, "payload": posted})

    async def _connect(self) -> websockets.ClientConnection:
        address = await self._fetch_address()
        return await websockets.connect(  # noqa: TID251 -- Slack gives it for its own app
            address, max_size=MAX_ENVELOPE_BYTES, proxy=None
        )

    async def _fetch_address(self) -> str:
        return str((await call_slack(self._app_api, "apps.connections.open"))["url"])

    async def _read_envelope(self, socket: websockets.ClientConnection) -> Json | None:
        """The next one; None where Slack asks for another connection."""
        async with self._translate_errors():
            envelope: Json = msgspec.json.decode(await socket.recv())
        return None if envelope.get("type") == "disconnect" else envelope

    async def _read_event(self, reader: Reader, envelope: Json) -> Inbound | None:
        payload = envelope.get("payload") or {}
        try:
            if envelope["type"] == "events_api":
                return await reader.read_event(payload.get("event") or {})
            if envelope["type"] == "interactive" and payload.get("type") == "block_actions":
                inbound = reader.read_press(payload)
                if inbound is not None and inbound.reply_to:
                    self._remember_pressed(inbound.reply_to, payload)
                return inbound
        except (AttributeError, KeyError, TypeError, ValueError):
            log.warning("%s sent an event that cannot be read.", self.name, exc_info=True)
        return None

    def _remember_pressed(self, message_id: str, payload: Json) -> None:
        self._pressed[message_id] = payload["message"].get("blocks") or ()
        if len(self._pressed) > MAX_REMEMBERED:
            del self._pressed[next(iter(self._pressed))]

    async def _acknowledge(self, socket: websockets.ClientConnection, envelope: Json) -> None:
        if name := envelope.get("envelope_id"):
            async with self._translate_errors():
                await socket.send(msgspec.json.encode({"envelope_id": name}).decode())

    async def _download(self, url: str) -> bytes:
        """A file of the workspace. The token goes to Slack alone. Raises SendRefused where there is
        none."""
        place = urlsplit(url)
        if (place.scheme, place.netloc) != (self._files_from.scheme, self._files_from.netloc):
            raise SendRefused("it does not lie with Slack")
        async with self._translate_errors():
            return await self._api.download(url, MAX_DOWNLOAD_BYTES)

    # ------------------------------------------------------------------ out

    async def send(self, outgoing: Outgoing, mark: str) -> str:
        if outgoing.pressed:
            await self._remove_buttons(outgoing)
        if outgoing.pressed and not outgoing.parts:
            return outgoing.reply_to
        return await self._deliver(outgoing, mark, "")

    def edit_interval_s(self, address: Address) -> float:
        return EDIT_INTERVAL_S if self._context.config.streaming else 0.0

    async def edit(self, platform_id: str, outgoing: Outgoing, mark: str) -> str:
        return await self._deliver(outgoing, mark, platform_id)

    async def remove(self, platform_id: str, address: Address) -> None:
        if ts := parse_message_ts(platform_id):
            about = {"channel": address.chat, "ts": ts}
            await self._call("chat.delete", about, harmless=("message_not_found",))

    async def _remove_buttons(self, outgoing: Outgoing) -> None:
        """Let the message stand with the buttons that are left, where it was pressed since the
        start: Slack takes all of its blocks or none."""
        blocks = self._pressed.get(outgoing.pressed)
        if blocks is not None:
            words = [each for each in blocks if each.get("type") != "actions"]
            about = {
                "channel": outgoing.address.chat,
                "ts": parse_message_ts(outgoing.pressed),
                "blocks": [
                    *words,
                    *make_button_blocks(list_action_buttons(outgoing.left, outgoing.language)),
                ],
            }
            await self._call("chat.update", about, harmless=_GONE)
            self._pressed.pop(outgoing.pressed, None)

    async def acknowledge(self, inbound: Inbound) -> None:
        of = inbound.body.of if isinstance(inbound.body, Edit) else inbound.external_id
        if parse_message_ts(of):
            await self.react(inbound.address, of, READ_REACTION)

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        ts = parse_message_ts(message_id)
        if not ts or emoji not in EMOJIS:
            raise SendRefused("there is no such message, or no such emoji")
        about = {"channel": address.chat, "timestamp": ts, "name": EMOJIS[emoji]}
        await self._call("reactions.add", about, harmless=("already_reacted",))

    async def _call(
        self, method: str, about: Mapping[str, object], *, harmless: Sequence[str] = ()
    ) -> Json:
        """What Slack answers; {} for an error that is `harmless`."""
        async with self._translate_errors():
            try:
                return await call_slack(self._api, method, about)
            except ApiFault as error:
                if error.body.get("error") not in harmless:
                    raise
                return {}

    async def _deliver(self, outgoing: Outgoing, mark: str, into: str) -> str:
        """Say it in as many messages as it takes; the first of them is written over message
        `into`."""

        async def send(i: int, piece: Piece) -> str:
            if piece.file is not None:
                return await self._send_file(outgoing, piece.file)
            return await self._send_text(outgoing, piece, into if i == 0 else "")

        return await self._long_sends.send(outgoing, mark, send, over=bool(into))

    async def _send_text(self, outgoing: Outgoing, piece: Piece, into: str) -> str:
        address = outgoing.address
        about: dict[str, Any] = {
            "channel": address.chat,
            "text": make_fallback(piece.words),
            "blocks": make_blocks(piece.words, list_buttons(outgoing, piece)),
        }
        ts = parse_message_ts(into)
        if ts and await self._call("chat.update", {"ts": ts, **about}, harmless=_GONE):
            return into
        # Where it is gone, or too old to be changed, it is said anew.
        about["thread_ts"] = address.thread
        quiet = {"unfurl_links": False, "unfurl_media": False}
        answer = await self._call("chat.postMessage", {**about, **quiet})
        name = make_message_id(str(answer["channel"]), str(answer["ts"]))
        remember_thread(self._roots, name, address.thread)
        return name

    async def _send_file(self, outgoing: Outgoing, file: Attachment) -> str:
        """Share it. An app cannot make an audio clip, but sound can be played where it stands."""
        address = outgoing.address
        language = outgoing.language
        name = find_attachment_name(file)
        try:
            data = await self._context.get_blob(file.blob)
        except BlobMissing:
            words = prepend_note(Rich(""), say_notice(GONE.format(file=name), language))
            return await self._send_text(outgoing, Piece(words), "")
        if not data:
            words = prepend_note(Rich(""), say_notice(_EMPTY.format(file=name), language))
            return await self._send_text(outgoing, Piece(words), "")
        about = {"filename": name, "length": len(data)}
        place = await self._call("files.getUploadURLExternal", about)
        async with self._translate_errors():
            await self._api.post_bytes(str(place["upload_url"]), data)
        shared = {
            "files": [{"id": place["file_id"], "title": name}],
            "channel_id": address.chat,
            "thread_ts": address.thread,
        }
        await self._call("files.completeUploadExternal", shared)
        return f"{address.chat}:file:{place['file_id']}"

    # ------------------------------------------------------------------ what was written before

    async def list_rooms(self) -> tuple[Room, ...]:
        return await self._history.list_rooms()

    async def read_history(self, address: Address, count: int) -> tuple[PastMessage, ...]:
        async with self._translate_errors():
            await self._open()
        return await self._history.read(address, count, self._me)

    def find_thread(self, inbound: Inbound) -> Address | None:
        address = inbound.address
        begins = inbound.external_id == make_message_id(address.chat, address.thread)
        return address if address.thread and not begins else None

    # ------------------------------------------------------------------ facts

    def instructions(self, address: Address) -> str:
        return _INSTRUCTIONS

    async def introduce(self) -> Introduction:
        async with self._translate_errors():
            await self._open()
            await self._fetch_address()
        return Introduction(str(self._me.get("user", "")), str(self._me.get("url", "")))

    def health(self) -> ChannelHealth:
        return self._record.current

    @property
    def allow_from(self) -> tuple[str, ...]:
        return tuple(map(str, self._context.config.allow_from))

    async def close(self) -> None:
        await self._api.close()
        await self._app_api.close()

    async def _open(self) -> None:
        async with self._opening:
            if not self._me:
                self._me = await call_slack(self._api, "auth.test")

    def _translate_errors(self, *, entering: bool = False) -> AbstractAsyncContextManager[None]:
        """What Slack answers inside is noted, and raised as ours."""
        return self._record.watch(FAULTS, translate_error, entering=entering)


_: type[Channel] = SlackChannel
_editing: type[Editing] = SlackChannel
_speaking: type[Speaking] = SlackChannel
_reading: type[Reading] = SlackChannel
_more: tuple[type[Removing], type[Acknowledging], type[Introducing]] = (
    SlackChannel,
    SlackChannel,
    SlackChannel,
)
_others: tuple[type[Closing], type[Instructing], type[Allowing], type[Healthy]] = (
    SlackChannel,
    SlackChannel,
    SlackChannel,
    SlackChannel,
)
