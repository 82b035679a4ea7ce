"""What is to be said, as Telegram takes it; and what Telegram answers, in our words. All of it
pure."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx  # noqa: TID251 -- the names of its library's errors
import msgspec
import telegram
from telegram import error as faults

from ..types.commit import Choices, Outgoing
from ..types.errors import ChannelError, LoginRefused, SendRefused
from ..types.identity import Address
from ..types.messages import File, Image, Text
from .telegram_in import parse_message_number
from .telegram_text import (
    MAX_TEXT_UNITS,
    Rich,
    Span,
    count_units,
    defang_links,
    render_markdown,
    split_text,
)

MAX_DATA_BYTES = 64
MAX_BUTTONS = 20
NOTE_UNITS = 40
MAX_CAPTION_UNITS = 1024
_UNSENT_ERRORS = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_ALLOW = "Allow this?\n"
_ALLOW_ALL = "Allow all of these?\n"
_WAITS = "This needs approval:\n"
_BUTTON_LABELS = {"once": "Yes, once", "always": "Always this", "no": "No", "never": "Never this"}
_JOINT_BUTTON_LABELS = {"once": "Yes, all", "each": "One by one", "no": "No"}


def translate_error(error: faults.TelegramError) -> ChannelError:
    """What came of a call, in our words."""
    match error:
        case faults.RetryAfter():
            wait = error.retry_after
            wait_s = wait.total_seconds() if isinstance(wait, timedelta) else float(wait)
            return ChannelError(f"Telegram asks to wait {wait_s:.0f} s", wait_s, unsent=True)
        case faults.Forbidden() | faults.BadRequest():
            return SendRefused(f"Telegram refuses: {error}")
        case faults.ChatMigrated():
            return SendRefused(f"the group has moved to {error.new_chat_id}: write there")
        case faults.InvalidToken():
            return LoginRefused(
                "Telegram does not know this token: get a new one from @BotFather", 300, unsent=True
            )
        case faults.Conflict():
            why = (
                "another program uses this bot, so neither gets all messages: stop it, or use "
                "another bot"
            )
            return ChannelError(why, 10)
    unsent = isinstance(error.__cause__, _UNSENT_ERRORS)
    return ChannelError(f"Telegram could not be reached: {error}", unsent=unsent)


def parse_chat_id(address: Address) -> int:
    if not address.chat.lstrip("-").isdecimal():
        raise SendRefused(f"{address.chat!r} is not a Telegram chat: write its number")
    return int(address.chat)


def placement_options(outgoing: Outgoing) -> dict[str, Any]:
    """Where in the chat: which topic, and which message it answers."""
    place: dict[str, Any] = {}
    if outgoing.address.thread:
        place["message_thread_id"] = int(outgoing.address.thread)
    number = parse_message_number(outgoing.reply_to)
    if number is not None:
        place["reply_parameters"] = telegram.ReplyParameters(
            number, allow_sending_without_reply=True
        )
    return place


class Piece(msgspec.Struct, frozen=True):
    """One message: words, or a file with its caption."""

    words: Rich = Rich("")
    file: Image | File | None = None


def make_pieces(outgoing: Outgoing, *, over: bool = False) -> list[Piece]:
    """The messages that it takes. The words stand under the first file, and go on behind it where
    they are too long for that; with `over` they are written over a message that is there, which
    takes no file."""
    files = [part for part in outgoing.parts if isinstance(part, Image | File)]
    captioned = bool(files) and outgoing.ask is None and not over
    texts = render_texts(outgoing, first=MAX_CAPTION_UNITS - NOTE_UNITS if captioned else 0)
    caption = texts.pop(0) if captioned and texts else Rich("")
    words = [Piece(text) for text in texts]
    with_files = [Piece(file=file) for file in files]
    if not captioned:
        return words + with_files
    return [Piece(caption, files[0]), *words, *with_files[1:]]


def render_texts(outgoing: Outgoing, first: int = 0) -> list[Rich]:
    """The words, in pieces that leave room for a note, the first one of at most `first` units where
    that is given. What is to be allowed is shown byte for byte. Of a question that is decided it is
    the last piece, where its buttons were.
    """
    ask = outgoing.ask
    limit = MAX_TEXT_UNITS - NOTE_UNITS
    if ask is None or not (ask.approval or ask.decided or make_keyboard(ask)):
        words = render_markdown(
            "".join(part.text for part in outgoing.parts if isinstance(part, Text))
        )
        return list(split_text(defang_links(words, outgoing.links), limit, first))
    rich = render_markdown(ask.question)
    links = outgoing.links
    if ask.approval:
        links = links or ()  # why it is asked may name the very address that is not to be followed
        head = _WAITS if not ask.choices else _ALLOW_ALL if "each" in ask.choices else _ALLOW
        rich = Rich(
            head + ask.question, (Span("pre", len(head), len(head) + count_units(ask.question)),)
        )
    whole = defang_links(
        Rich(f"{rich.text}\n\n{ask.decided or ask.note}".rstrip(), rich.spans), links
    )
    pieces = list(split_text(whole, limit))
    return pieces[-1:] if ask.decided else pieces


def prepend_note(rich: Rich, note: str) -> Rich:
    if not note:
        return rich
    head = f"({note})\n"
    moved = (
        Span(each.kind, each.start + len(head), each.end + len(head), each.detail)
        for each in rich.spans
    )
    return Rich(
        (head + rich.text).rstrip(), (Span("italic", 0, len(head) - 1), *moved), rich.guarded
    )


def make_entity(span: Span) -> telegram.MessageEntity:
    detail = span.detail or None
    url, language = (detail, None) if span.kind == "text_link" else (None, detail)
    return telegram.MessageEntity(
        span.kind, span.start, span.end - span.start, url=url, language=language
    )


def make_keyboard(ask: Choices | None) -> telegram.InlineKeyboardMarkup | None:
    """A button for each answer. It sends the ask's id, which nobody can guess, and the answer, or
    its number where that is too long: then it is read off the button."""
    if ask is None or ask.decided or not 0 < len(ask.choices) <= MAX_BUTTONS:
        return None
    row: list[telegram.InlineKeyboardButton] = []
    for i, choice in enumerate(ask.choices):
        data = f"{ask.ask_id} {choice}"
        if choice.startswith("#") or len(data.encode()) > MAX_DATA_BYTES:
            data = f"{ask.ask_id} #{i}"
        named = _JOINT_BUTTON_LABELS if "each" in ask.choices else _BUTTON_LABELS
        words = named.get(choice, choice) if ask.approval else choice
        row.append(telegram.InlineKeyboardButton(words, callback_data=data))
    width = 2 if ask.approval else 1
    return telegram.InlineKeyboardMarkup([row[i : i + width] for i in range(0, len(row), width)])
