"""Where and how something is said on Telegram, and what it answers, in our words.

All of it pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import httpx  # noqa: TID251 -- the names of its library's errors
import telegram
from telegram import error as faults

from ...types.commit import Outgoing
from ...types.errors import ChannelError, LoginRefused, SendRefused
from ...types.identity import Address
from ..buttons import Button, encode_buttons, list_buttons
from ..pieces import Piece
from ..rich_text import Span
from .reader import parse_message_number

MAX_DATA_BYTES = 64
_UNSENT_ERRORS = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


def translate_error(error: Exception) -> ChannelError:
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


def make_entity(span: Span) -> telegram.MessageEntity:
    detail = span.detail or None
    url, language = (detail, None) if span.kind == "text_link" else (None, detail)
    return telegram.MessageEntity(
        span.kind, span.start, span.end - span.start, url=url, language=language
    )


def make_keyboard(outgoing: Outgoing, piece: Piece) -> telegram.InlineKeyboardMarkup | None:
    """The buttons below this piece."""
    width = 2 if outgoing.ask is None or outgoing.ask.approval else 1
    return arrange_buttons(list_buttons(outgoing, piece), width)


def arrange_buttons(
    buttons: Sequence[Button], width: int = 2
) -> telegram.InlineKeyboardMarkup | None:
    """These buttons in rows of this many; None for none."""
    row = [
        telegram.InlineKeyboardButton(button.label, callback_data=data)
        for button, data in encode_buttons(buttons, _is_too_long)
    ]
    if not row:
        return None
    return telegram.InlineKeyboardMarkup([row[i : i + width] for i in range(0, len(row), width)])


def _is_too_long(data: str) -> bool:
    return len(data.encode()) > MAX_DATA_BYTES
