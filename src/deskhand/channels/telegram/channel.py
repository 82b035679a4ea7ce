"""Telegram, through python-telegram-bot: one bot, read by long polling.

https://core.telegram.org/bots/api. An update is confirmed by asking for the one after it, so it is
confirmed when the next inbound is asked for, and never before.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, contextmanager, suppress
from typing import Any

import anyio
import msgspec
import telegram
from msgspec.structs import replace
from telegram import error as faults
from telegram.request import HTTPXRequest

from ...languages.catalogue import ENGLISH, all_languages
from ...languages.sentences import say_notice
from ...types.commands import COMMANDS
from ...types.commit import Outgoing
from ...types.errors import BlobMissing, ChannelError, ConfigError, Refused, SendRefused
from ...types.identity import Address, Edit, Inbound
from ...types.marked_texts import mark_text
from ...types.messages import Audio, Image, Text
from ...types.people import Identity
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
    Introduction,
    Removing,
    Speaking,
    Typing,
)
from ..buttons import list_action_buttons
from ..group_rules import GroupRules
from ..health_record import HealthRecord
from ..long_sends import LongSends
from ..ogg_duration import find_ogg_voice
from ..only_reader import only_reader
from ..pieces import GONE, Attachment, MessageForm, Piece, find_attachment_name, prepend_note
from ..rich_text import MAX_TEXT_UNITS, Rich
from ..webhook import PostedEvents, make_webhook_address
from .mini_app import make_page_address, read_person
from .reader import PRESS_PREFIX, Reader, make_message_id, parse_message_number
from .translate import (
    arrange_buttons,
    make_entity,
    make_keyboard,
    parse_chat_id,
    placement_options,
    translate_error,
)

POLL_TIMEOUT_S = 25
FORM = MessageForm(MAX_TEXT_UNITS, caption=1024)
ALLOWED_UPDATES = ["message", "edited_message", "callback_query", "message_reaction"]
EDIT_INTERVAL_S = 1.0
GROUP_EDIT_INTERVAL_S = 3.5
"""One message a second in a chat, 20 a minute in a group:
https://core.telegram.org/bots/faq#my-bot-is-hitting-limits."""
WEBHOOK_PATIENCE_S = 25.0
WEBHOOK_CHECK_S = 300.0
MAX_ALERT_CHARS = 200
MAX_REMEMBERED = 200
MAX_PHOTO_BYTES = 10 * 2**20
MAX_FILE_BYTES = 50 * 2**20
_TOKEN = re.compile(r"(\d+):[\w-]{5,}", re.ASCII)
READ_REACTION = "👀"
READ_TEXT = "I have read this, and take it into account."
PAGE_BUTTON = "Open"
_TOO_LARGE = mark_text("{file} is larger than the 50 MB that Telegram accepts")
_INSTRUCTIONS = "Text is Markdown; people read it on a phone, so keep tables narrow."


def open_telegram(context: ChannelContext) -> TelegramChannel:
    """The bot of this configuration. Raises ConfigError where it cannot work, with what to do."""
    variable = context.config.token_env or "TELEGRAM_BOT_TOKEN"
    token = context.secret(variable)
    if not token:
        raise ConfigError(
            f"{variable} is not set: get a token from @BotFather and put {variable}=… into "
            "the .env file"
        )
    if not _TOKEN.fullmatch(token):
        raise ConfigError(
            f"{variable} is not a bot token: a token looks like 123456:ABC-…, as @BotFather "
            "gives it"
        )
    rules = context.config.group_rules.values()
    for allowed in (
        *context.config.allow_from,
        *(who for rule in rules for who in rule.allow_from),
    ):
        if not str(allowed).lstrip("-").isdecimal():
            raise ConfigError(
                f"allow_from has {allowed!r}: names can be taken over by others, so write the "
                "person's number instead"
            )
    return TelegramChannel(context, token)


class TelegramChannel:
    """One bot. What it says is formatted with entities, and without previews of links, which would
    fetch them."""

    idempotent = False
    takes_voice = True

    def __init__(self, context: ChannelContext, token: str) -> None:
        self.name = context.name
        self._context = context
        self._token = token
        base = context.config.base_url.rstrip("/") or "https://api.telegram.org"
        self._requests = (
            HTTPXRequest(
                16, read_timeout=30, write_timeout=30, connect_timeout=10, pool_timeout=10
            ),
            HTTPXRequest(1, read_timeout=10, connect_timeout=10),
        )
        self._bot = telegram.Bot(token, f"{base}/bot", f"{base}/file/bot", *self._requests)
        self._opening = anyio.Lock()
        self._opened = False
        self._me = telegram.User(int(token.partition(":")[0]), "", True)
        self._record = HealthRecord(context.now)
        self._long_sends = LongSends(FORM)
        self._pressed: dict[str, list[tuple[str, str]]] = {}
        self._webhook = ""
        if context.config.webhook:
            self._webhook = make_webhook_address(self.name, context.config)
        self._page = make_page_address(self.name, context.config) if context.config.page else ""
        self._posted = PostedEvents[telegram.Update](WEBHOOK_PATIENCE_S)
        self.webhook_check_s = WEBHOOK_CHECK_S

    # ------------------------------------------------------------------ in

    async def receive(self) -> AsyncIterator[Inbound]:
        with self._only_reader():
            reader = await self._start()
            updates = self._read_posted() if self._webhook else self._poll()
            async with aclosing(updates):
                async for update in updates:
                    for inbound in await self._read_update(reader, update):
                        yield inbound

    async def _poll(self) -> AsyncGenerator[telegram.Update]:
        """When the next one is asked for, the one before is confirmed with the next poll."""
        offset = 0
        while True:
            for update in await self._fetch_updates(offset):
                yield update
                offset = update.update_id + 1

    async def _read_posted(self) -> AsyncGenerator[telegram.Update]:
        events = self._posted.read(self.webhook_check_s)
        async with aclosing(events):
            async for update in events:
                if update is None:
                    await self._check_webhook()
                else:
                    self._record.note_answer()
                    yield update

    async def _check_webhook(self) -> None:
        """Ask Telegram whether it can reach us, when nothing came for a while. Raises ChannelError
        with what it says."""
        async with self._translate_errors():
            found = await self._bot.get_webhook_info()
        if found.url != self._webhook:
            why = "another program has taken the webhook of this bot: give each its own bot"
            raise ChannelError(why, retry_after_s=WEBHOOK_CHECK_S)
        if found.pending_update_count and found.last_error_message:
            why = f"Telegram cannot post to {self._webhook}: {found.last_error_message}"
            self._record.note_error(ChannelError(why))

    async def take_webhook(self, request: WebhookRequest) -> WebhookAnswer:
        given = request.headers.get("x-telegram-bot-api-secret-token", "")
        if not self._webhook or not hmac.compare_digest(
            given.encode(), self._webhook_secret.encode()
        ):
            raise Refused("it is not from Telegram")
        try:
            update = telegram.Update.de_json(msgspec.json.decode(request.body), self._bot)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return UNREADABLE
        return await self._posted.put(update)

    @property
    def _webhook_secret(self) -> str:
        """Telegram sends it with each request. Who does not have the token cannot guess it."""
        return hmac.new(self._token.encode(), self._webhook.encode(), "sha256").hexdigest()

    async def _start(self) -> Reader:
        async with self._translate_errors():
            await self._open()
            if self._webhook:
                # One connection, so that what is said in a chat comes in its order.
                await self._bot.set_webhook(
                    self._webhook,
                    max_connections=1,
                    allowed_updates=ALLOWED_UPDATES,
                    secret_token=self._webhook_secret,
                )
            else:
                # What a webhook was set for before: long polling does not work beside one. Nothing
                # that waits is dropped.
                await self._bot.delete_webhook()
            with suppress(faults.TelegramError):  # menus are a nicety
                await self._set_commands()
                await self._set_menu_button()
        context = self._context
        groups = GroupRules(context.config)
        return Reader(self.name, self._me, self._download_file, context.put_blob, groups=groups)

    async def _set_commands(self) -> None:
        """Let the menu of commands be in the language of each person's Telegram; in English for
        those whose language there is not."""
        for language in all_languages():
            named = [(each.name, language.say(each.help)) for each in COMMANDS.values()]
            code = "" if language is ENGLISH else language.code
            await self._bot.set_my_commands(named, language_code=code or None)

    async def _set_menu_button(self) -> None:
        """Let the button beside the field open the page, or the commands again."""
        button: telegram.MenuButton = telegram.MenuButtonDefault()
        if self._page:
            button = telegram.MenuButtonWebApp(PAGE_BUTTON, telegram.WebAppInfo(self._page))
        await self._bot.set_chat_menu_button(menu_button=button)

    def identify(self, data: str) -> Identity:
        if not self._page:
            raise Refused(f"channels.{self.name}.page is not set")
        person = read_person(data, self._token, self._context.now())
        return Identity(self.name, person, str(self._me.id))

    async def _fetch_updates(self, offset: int) -> tuple[telegram.Update, ...]:
        async with self._translate_errors():
            return await self._bot.get_updates(
                offset or None, timeout=POLL_TIMEOUT_S, allowed_updates=ALLOWED_UPDATES
            )

    async def _read_update(self, reader: Reader, update: telegram.Update) -> list[Inbound]:
        query = update.callback_query
        about = (query.data or "").partition(" ")[0] if query is not None else ""
        if query is not None and query.message is not None and about.startswith("ask_"):
            pressed = make_message_id(query.message.chat.id, query.message.message_id), query.id
            self._pressed.setdefault(about, []).append(pressed)
            if len(self._pressed) > MAX_REMEMBERED:
                del self._pressed[next(iter(self._pressed))]
        async with self._translate_errors():
            return list(await reader.read(update, self._context.now()))

    async def _download_file(self, file_id: str) -> bytes:
        file = await self._bot.get_file(file_id, read_timeout=60)
        return bytes(await file.download_as_bytearray(read_timeout=60))

    @contextmanager
    def _only_reader(self) -> Iterator[None]:
        try:
            with only_reader(self._context.state, self._token):
                yield
        except ChannelError as error:
            self._record.note_error(error)
            raise

    # ------------------------------------------------------------------ out

    async def send(self, outgoing: Outgoing, mark: str) -> str:
        if outgoing.reply_to.startswith(PRESS_PREFIX):
            words = "".join(part.text for part in outgoing.parts if isinstance(part, Text))
            if outgoing.pressed:
                await self._remove_buttons(outgoing)
            is_heard = await self._answer_press(outgoing.reply_to.removeprefix(PRESS_PREFIX), words)
            if is_heard or not words:
                return outgoing.reply_to
        return await self._deliver(outgoing, mark, "")

    def edit_interval_s(self, address: Address) -> float:
        if not self._context.config.streaming:
            return 0.0
        return GROUP_EDIT_INTERVAL_S if address.group else EDIT_INTERVAL_S

    async def edit(self, platform_id: str, outgoing: Outgoing, mark: str) -> str:
        name = await self._deliver(outgoing, mark, platform_id)
        ask = outgoing.ask
        if ask is not None and ask.decided:
            for pressed, query in self._take_presses(ask.ask_id, outgoing.address):
                await self._answer_press(
                    query, ""
                )  # what came of it stands there: the button may rest
                if pressed != name:  # a message whose arrival nobody was told of
                    await self._deliver(
                        replace(outgoing, key=f"{outgoing.key}:{pressed}"), mark, pressed
                    )
        return name

    def _take_presses(self, ask_id: str, address: Address) -> list[tuple[str, str]]:
        """The messages in this chat whose buttons were pressed for that, each with its query; they
        are forgotten."""
        pressed = self._pressed.pop(ask_id, [])
        here = [each for each in pressed if each[0].rpartition(":")[0] == address.chat]
        if others := [each for each in pressed if each not in here]:
            self._pressed[ask_id] = others
        return here

    async def remove(self, platform_id: str, address: Address) -> None:
        number = parse_message_number(platform_id)
        async with self._translate_errors():
            await self._open()
            try:
                if number is not None:
                    await self._bot.delete_message(parse_chat_id(address), number)
            except faults.BadRequest as error:
                if "not found" not in str(error).lower():
                    raise

    async def acknowledge(self, inbound: Inbound) -> None:
        of = inbound.body.of if isinstance(inbound.body, Edit) else inbound.external_id
        number = parse_message_number(of)
        chat = parse_chat_id(inbound.address)
        if number is None:
            return
        async with self._translate_errors():
            await self._open()
            try:
                await self._bot.set_message_reaction(chat, number, READ_REACTION)
            except faults.BadRequest as error:  # a group may allow other reactions, or none
                if "not found" in str(error).lower():
                    return
                words = Outgoing("", inbound.address, (Text(READ_TEXT),), of, silent=True)
                await self._send_text(words, Rich(READ_TEXT), None, "")

    async def react(self, address: Address, message_id: str, emoji: str) -> None:
        number = parse_message_number(message_id)
        if number is None:
            raise SendRefused("there is no such message")
        async with self._translate_errors():
            await self._open()
            await self._bot.set_message_reaction(parse_chat_id(address), number, emoji)

    async def show_typing(self, address: Address) -> None:
        async with self._translate_errors():
            await self._open()
            thread = int(address.thread) if address.thread else None
            await self._bot.send_chat_action(
                parse_chat_id(address), "typing", message_thread_id=thread
            )

    async def _deliver(self, outgoing: Outgoing, mark: str, into: str) -> str:
        """Say it in as many messages as it takes; the first of them is written over message
        `into`."""

        async def send(i: int, piece: Piece) -> str:
            first = outgoing if i == 0 else replace(outgoing, reply_to="")
            async with self._translate_errors():
                await self._open()
                if piece.file is not None:
                    return await self._send_file(first, piece, piece.file)
                keys = make_keyboard(outgoing, piece)
                return await self._send_text(first, piece.words, keys, into if i == 0 else "")

        return await self._long_sends.send(outgoing, mark, send, over=bool(into))

    async def _send_text(
        self, outgoing: Outgoing, rich: Rich, keys: telegram.InlineKeyboardMarkup | None, into: str
    ) -> str:
        """One message. What Telegram does not like in the formatting is left out."""
        chat = parse_chat_id(outgoing.address)
        entities = [make_entity(span) for span in rich.spans]
        quiet = telegram.LinkPreviewOptions(is_disabled=True)
        number = parse_message_number(into) if into else None
        try:
            if number is not None:
                try:
                    await self._bot.edit_message_text(
                        rich.text,
                        chat,
                        number,
                        entities=entities,
                        reply_markup=keys,
                        link_preview_options=quiet,
                    )
                    return into
                except faults.BadRequest as error:
                    if "not modified" in str(error).lower():
                        return into
                    if "entit" in str(error).lower():
                        raise
                    # It is gone, or too old to be changed: then it is said anew.
            message = await self._bot.send_message(
                chat,
                rich.text,
                entities=entities,
                reply_markup=keys,
                link_preview_options=quiet,
                disable_notification=outgoing.silent or None,
                **placement_options(outgoing),
            )
            return make_message_id(message.chat.id, message.message_id)
        except faults.BadRequest as error:
            if rich.spans and "entit" in str(error).lower():
                return await self._send_text(outgoing, Rich(rich.text), keys, into)
            raise

    async def _send_file(self, outgoing: Outgoing, piece: Piece, file: Attachment) -> str:
        """One file with its caption. What Telegram does not like in the formatting is left out."""
        chat = parse_chat_id(outgoing.address)
        name = find_attachment_name(file)
        words = piece.words
        try:
            data = await self._context.get_blob(file.blob)
        except BlobMissing:
            why = say_notice(GONE.format(file=name), outgoing.language)
            return await self._send_text(outgoing, prepend_note(words, why), None, "")
        if len(data) > MAX_FILE_BYTES:
            why = say_notice(_TOO_LARGE.format(file=name), outgoing.language)
            return await self._send_text(outgoing, prepend_note(words, why), None, "")
        about = placement_options(outgoing) | {
            "filename": name,
            "caption": words.text or None,
            "write_timeout": 60,
        }
        about["caption_entities"] = [make_entity(span) for span in words.spans]
        try:
            message = await self._post_file(chat, file, data, about)
        except faults.BadRequest as error:
            if words.spans and "entit" in str(error).lower():
                return await self._send_file(outgoing, Piece(Rich(words.text), file), file)
            raise
        return make_message_id(message.chat.id, message.message_id)

    async def _post_file(
        self, chat: int, file: Attachment, data: bytes, about: Mapping[str, Any]
    ) -> telegram.Message:
        """As a picture or a voice message, or as a file where Telegram takes it for none, or where
        somebody wants no voice messages."""
        voice = find_ogg_voice(data) if isinstance(file, Audio) else None
        try:
            if isinstance(file, Image) and len(data) <= MAX_PHOTO_BYTES:
                return await self._bot.send_photo(chat, data, **about)
            if voice is not None:
                duration_s = round(voice.duration_s)
                return await self._bot.send_voice(chat, data, duration=duration_s, **about)
        except faults.BadRequest as error:
            if any(each in str(error).lower() for each in ("chat not found", "entit")):
                raise
        return await self._bot.send_document(chat, data, **about)

    async def _remove_buttons(self, outgoing: Outgoing) -> None:
        """Let the message that was pressed stand with the buttons that are left; nothing happens
        where it is gone."""
        number = parse_message_number(outgoing.pressed)
        keyboard = arrange_buttons(list_action_buttons(outgoing.left, outgoing.language))
        async with self._translate_errors():
            await self._open()
            with suppress(faults.BadRequest):  # it is gone, or has none
                await self._bot.edit_message_reply_markup(
                    parse_chat_id(outgoing.address), number, reply_markup=keyboard
                )

    async def _answer_press(self, query: str, words: str) -> bool:
        """Answer a pressed button. False when it was pressed too long ago for that."""
        async with self._translate_errors():
            await self._open()
            try:
                return await self._bot.answer_callback_query(
                    query, words[:MAX_ALERT_CHARS], show_alert=bool(words)
                )
            except faults.BadRequest:
                return False

    # ------------------------------------------------------------------ facts

    def instructions(self, address: Address) -> str:
        return _INSTRUCTIONS

    async def introduce(self) -> Introduction:
        async with self._translate_errors():
            await self._open()
        return Introduction(
            self._me.username or self._me.first_name, f"https://t.me/{self._me.username}"
        )

    def health(self) -> ChannelHealth:
        return self._record.current

    @property
    def allow_from(self) -> tuple[str, ...]:
        return tuple(map(str, self._context.config.allow_from))

    async def close(self) -> None:
        for request in self._requests:
            await request.shutdown()

    async def _open(self) -> None:
        async with self._opening:
            if not self._opened:
                await self._bot.initialize()
                self._me = self._bot.bot
                self._opened = True

    def _translate_errors(self) -> AbstractAsyncContextManager[None]:
        """What Telegram answers inside is noted, and raised as ours."""
        return self._record.watch(faults.TelegramError, translate_error)


_: type[Channel] = TelegramChannel
_editing: type[Editing] = TelegramChannel
_typing: type[Typing] = TelegramChannel
_speaking: type[Speaking] = TelegramChannel
_healthy: type[Healthy] = TelegramChannel
_more: tuple[type[Removing], type[Acknowledging]] = (TelegramChannel, TelegramChannel)
_others: tuple[type[Closing], type[Instructing], type[Allowing]] = (
    TelegramChannel,
    TelegramChannel,
    TelegramChannel,
)
