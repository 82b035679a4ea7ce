"""What Telegram tells of people, as a channel hands it in."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence

import telegram
from msgspec.structs import replace
from telegram.constants import ChatType

from ...types.identity import Address, Body, Command, Edit, Inbound, Reaction, Said
from ...types.labels import PASSED_ON_SOURCE, Label
from ...types.messages import Audio, File, Image, Message, Part, Text
from ..buttons import read_press
from ..group_rules import GroupRules

PRESS_PREFIX = "press:"
"""What the id of a pressed button begins with, so that an answer to it can be told from one to a
message."""
MAX_DOWNLOAD_BYTES = 20 * 2**20
"""What Telegram gives to a bot at most: https://core.telegram.org/bots/api#getfile."""
_COMMAND = re.compile(r"/\w{1,32}@(\w+)")

FORWARDED = Label("untrusted", source=PASSED_ON_SOURCE.format(platform="Telegram"))
"""Whose word a contact, a place, the name of a file and the text of another bot are."""

Download = Callable[[str], Awaitable[bytes]]
"""Downloads a file by Telegram's id of it. Raises TelegramError."""
PutBlob = Callable[[bytes], Awaitable[str]]


def make_message_id(chat: int | str, number: int) -> str:
    """How a message is called here: numbers alone count anew in every chat."""
    return f"{chat}:{number}"


def parse_message_number(name: str) -> int | None:
    """Telegram's own number of a message that is called so; None for anything else."""
    number = name.rpartition(":")[2]
    return int(number) if number.isdecimal() and not name.startswith(PRESS_PREFIX) else None


_Sent = (
    telegram.PhotoSize
    | telegram.Voice
    | telegram.Document
    | telegram.Audio
    | telegram.Video
    | telegram.VideoNote
)


class Reader:
    """Reads updates for one bot. `groups` says where what is said need not be meant for it."""

    def __init__(
        self, channel: str, me: telegram.User, fetch: Download, keep: PutBlob, *, groups: GroupRules
    ) -> None:
        self._channel = channel
        self._me = me
        self._fetch = fetch
        self._keep = keep
        self._groups = groups

    async def read(self, update: telegram.Update, now: float) -> Sequence[Inbound]:
        """What there is in it for an agent, in order; nothing, for most kinds. Raises TelegramError
        where a file could not be fetched now."""
        if update.message is not None:
            return await self._read_message(update.message)
        if update.edited_message is not None:
            return self._read_edit(update.edited_message, update.update_id)
        if update.callback_query is not None:
            return self._read_press(update.callback_query, now)
        if update.message_reaction is not None:
            return self._read_reactions(update.message_reaction, update.update_id)
        return ()

    async def _read_message(self, message: telegram.Message) -> Sequence[Inbound]:
        if not self._is_addressed(message):
            return ()
        parts = await self._read_parts(message)
        if not parts:
            return ()
        name = make_message_id(message.chat.id, message.message_id)
        replied = message.reply_to_message
        reply_to = ""
        if replied is not None and replied.forum_topic_created is None:
            reply_to = make_message_id(message.chat.id, replied.message_id)
        return (
            self._make_inbound(
                name, message, Said(Message("user", parts)), message.date.timestamp(), reply_to
            ),
        )

    def _read_edit(self, message: telegram.Message, update_id: int) -> Sequence[Inbound]:
        text = self._read_text(message)
        if not text or not self._is_addressed(message):
            return ()
        body = Edit(
            make_message_id(message.chat.id, message.message_id),
            Message("user", (_make_text(message, text),)),
        )
        at = (message.edit_date or message.date).timestamp()
        return (self._make_inbound(f"edit:{update_id}", message, body, at),)

    def _make_inbound(
        self, name: str, message: telegram.Message, body: Body, at: float, reply_to: str = ""
    ) -> Inbound:
        # Somebody may write in the name of a group or a channel: then it is that which speaks,
        # whoever it was.
        by = message.sender_chat or message.from_user
        sender = str(by.id) if by is not None else ""
        bot = (
            message.sender_chat is None
            and message.from_user is not None
            and message.from_user.is_bot
        )
        return Inbound(
            name,
            self._make_address(message),
            sender,
            at,
            body,
            reply_to=reply_to,
            by_program=bot,
            language=_language_of(message.from_user),
        )

    def _make_address(self, message: telegram.Message) -> Address:
        thread = (
            str(message.message_thread_id)
            if message.is_topic_message and message.message_thread_id
            else ""
        )
        group = message.chat.type != ChatType.PRIVATE
        return Address(self._channel, str(self._me.id), str(message.chat.id), thread, group)

    def _read_press(self, query: telegram.CallbackQuery, now: float) -> Sequence[Inbound]:
        message = query.message
        about, _, choice = (query.data or "").partition(" ")
        if message is None:
            return ()
        if choice.startswith("#"):  # too long for the button, but it stands on it
            choice = _find_button_text(message, query.data or "")
        body = read_press(about, choice)
        if body is None:
            return ()
        name = f"{PRESS_PREFIX}{query.id}"
        address = Address(
            self._channel,
            str(self._me.id),
            str(message.chat.id),
            "",
            message.chat.type != "private",
        )
        if isinstance(message, telegram.Message):
            address = self._make_address(message)
        who = query.from_user
        pressed = make_message_id(message.chat.id, message.message_id)
        reply_to = pressed if isinstance(body, Command) else ""
        return (
            Inbound(
                name,
                address,
                str(who.id),
                now,
                body,
                reply_to=reply_to,
                by_program=who.is_bot,
                language=_language_of(who),
            ),
        )

    def _read_reactions(
        self, changed: telegram.MessageReactionUpdated, update_id: int
    ) -> Sequence[Inbound]:
        if changed.user is None:
            return ()
        old, new = (
            [_emoji(each) for each in list_]
            for list_ in (changed.old_reaction, changed.new_reaction)
        )
        of = make_message_id(changed.chat.id, changed.message_id)
        group = changed.chat.type != ChatType.PRIVATE
        address = Address(self._channel, str(self._me.id), str(changed.chat.id), "", group)
        changes = [(each, False) for each in old if each not in new] + [
            (each, True) for each in new if each not in old
        ]
        at = changed.date.timestamp()
        who = str(changed.user.id)
        bot = changed.user.is_bot
        return [
            Inbound(
                f"reaction:{update_id}:{i}",
                address,
                who,
                at,
                Reaction(of, emoji, added),
                by_program=bot,
            )
            for i, (emoji, added) in enumerate(changes)
        ]

    def _is_addressed(self, message: telegram.Message) -> bool:
        """Whether it is said to this bot."""
        if message.chat.type == ChatType.CHANNEL:
            return False
        text = message.text or message.caption or ""
        command = _COMMAND.match(text)
        if command is not None and command[1].lower() != str(self._me.username).lower():
            return False
        if message.chat.type == ChatType.PRIVATE:
            return True
        if self._groups.reads_everything(str(message.chat.id)):
            return True
        replied = message.reply_to_message
        if (
            replied is not None
            and replied.from_user is not None
            and replied.from_user.id == self._me.id
        ):
            return True
        named = re.search(rf"@{re.escape(str(self._me.username))}\b", text, re.IGNORECASE)
        return named is not None or text.startswith("/")

    def _read_text(self, message: telegram.Message) -> str:
        """What was written, without the name by which the bot was called."""
        text = message.text or message.caption or ""
        if message.chat.type != ChatType.PRIVATE or text.startswith("/"):
            text = re.sub(rf"(?i)@{re.escape(str(self._me.username))}\b[:,]?", "", text)
        return text.strip()

    async def _read_parts(self, message: telegram.Message) -> tuple[Part, ...]:
        """Files first, so that what is said of them comes after."""
        parts = [*await self._read_files(message)]
        text = self._read_text(message)
        if not text and (about := _describe_content(message)):
            parts.append(Text(about, FORWARDED))
        if text and message.forward_origin is not None:
            # It is not their word that they pass on: it enters as what stands in a file does.
            data = text.encode()
            parts.append(
                File(await self._keep(data), "forwarded message.txt", "text/plain", len(data))
            )
        elif text:
            parts.append(_make_text(message, text))
        return tuple(parts)

    async def _read_files(self, message: telegram.Message) -> Sequence[Part]:
        if message.photo:
            best = message.photo[-1]
            return [await self._read_file(best, "photo.jpg", "image/jpeg")]
        voice = message.voice
        if voice is not None:
            mime = voice.mime_type or "audio/ogg"
            part = await self._read_file(voice, "voice.ogg", mime)
            theirs = _is_their_own(message) or not isinstance(part, Audio)
            return [part if theirs else replace(part, label=FORWARDED)]
        for found, name in (
            (message.document, "file"),
            (message.audio, "audio.mp3"),
            (message.video, "video.mp4"),
            (message.video_note, "video.mp4"),
        ):
            if found is not None:
                mime = getattr(found, "mime_type", None) or "application/octet-stream"
                return [
                    await self._read_file(found, getattr(found, "file_name", None) or name, mime)
                ]
        return ()

    async def _read_file(self, found: _Sent, name: str, mime: str) -> Part:
        size = found.file_size or 0
        too_big = Text(
            f"[{name} was not fetched: bots cannot download files above 20 MB from Telegram]\n",
            FORWARDED,
        )
        if size > MAX_DOWNLOAD_BYTES:
            return too_big
        try:
            data = await self._fetch(found.file_id)
        except telegram.error.BadRequest as error:
            if "too big" in str(error).lower():
                return too_big
            return Text(f"[{name} could not be fetched: {error}]\n", FORWARDED)
        blob = await self._keep(data)
        if isinstance(found, telegram.Voice):
            return Audio(blob, mime)
        if isinstance(found, telegram.PhotoSize) or mime in (
            "image/png",
            "image/jpeg",
            "image/webp",
            "image/gif",
        ):
            return Image(blob, mime, name)
        return File(blob, name, mime, len(data))


def _find_button_text(message: telegram.MaybeInaccessibleMessage, data: str) -> str:
    """What stands on the button that sends this; '' where the message is too old to be seen."""
    markup = message.reply_markup if isinstance(message, telegram.Message) else None
    rows = markup.inline_keyboard if markup is not None else ()
    return next((button.text for row in rows for button in row if button.callback_data == data), "")


def _emoji(kind: telegram.ReactionType) -> str:
    return kind.emoji if isinstance(kind, telegram.ReactionTypeEmoji) else "a custom emoji"


def _language_of(user: telegram.User | None) -> str:
    """The language of their Telegram, as `de`; '' where it does not say so."""
    return (user.language_code or "") if user is not None else ""


def _make_text(message: telegram.Message, text: str) -> Text:
    """What was written: by them, unless another bot wrote it for them, or they pass it on."""
    return Text(text) if _is_their_own(message) else Text(text, FORWARDED)


def _is_their_own(message: telegram.Message) -> bool:
    """Whether they made it, and neither pass it on nor had another bot make it for them."""
    return message.via_bot is None and message.forward_origin is None


def _describe_content(message: telegram.Message) -> str:
    """What is sent without words of its own."""
    if message.sticker is not None:
        return f"[sticker {message.sticker.emoji or ''}]".replace(" ]", "]")
    if message.location is not None:
        return f"[location: {message.location.latitude}, {message.location.longitude}]"
    if message.contact is not None:
        return f"[contact: {message.contact.first_name}, {message.contact.phone_number}]"
    return ""
