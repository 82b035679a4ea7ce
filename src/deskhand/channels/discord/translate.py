"""How something is said on Discord, and what it answers, in our words. All of it pure."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from ...types.commit import Outgoing
from ...types.errors import ChannelError, LoginRefused, SendRefused
from ..buttons import Button, encode_buttons, list_buttons
from ..ogg_duration import OggVoice
from ..pieces import Piece
from ..web_api import ApiFault
from .markdown import write_markdown

SUPPRESS_EMBEDS = 1 << 2
SUPPRESS_NOTIFICATIONS = 1 << 12
IS_VOICE_MESSAGE = 1 << 13
WAVEFORM_POINTS = 256
WAVEFORM_PEAK = 255
MAX_LABEL_CHARS = 80
MAX_CUSTOM_ID_CHARS = 100
_ROW = 5
_STYLES = {"once": 3, "always": 3, "no": 4, "never": 4}
_WRONG_TOKEN = (
    "Discord does not know this token: open the application at "
    "https://discord.com/developers/applications, and reset its token under Bot"
)
_CLOSES = {
    4004: _WRONG_TOKEN,
    4013: "Discord does not know what this bot asks for",
    4014: (
        "the bot may not read all messages: switch on Message Content Intent under Bot at "
        "https://discord.com/developers/applications, or set groups to mention"
    ),
}


def translate_error(error: Exception) -> ChannelError:
    """What came of a call, in our words."""
    if not isinstance(error, ApiFault) or error.status < 300:
        unsent = isinstance(error, ApiFault) and error.unsent
        why = str(error) or type(error).__name__
        return ChannelError(f"Discord could not be reached: {why}", unsent=unsent)
    why = str(error.body.get("message") or error)
    if error.status == 429:
        wait = float(error.body.get("retry_after") or error.find_wait_s())
        return ChannelError(f"Discord asks to wait {wait:.0f} s", wait, unsent=True)
    if error.status == 401:
        return LoginRefused(_WRONG_TOKEN, 300, unsent=True)
    if error.status >= 500:
        return ChannelError(f"Discord has a fault: {why}")
    return SendRefused(f"Discord refuses: {why}")


def translate_close(code: int) -> LoginRefused | None:
    """Why the gateway does not let the bot in; None where it may the next time.

    https://discord.com/developers/docs/topics/opcodes-and-status-codes#gateway
    """
    return LoginRefused(_CLOSES[code], 300) if code in _CLOSES else None


def make_message(outgoing: Outgoing, piece: Piece, number: int) -> dict[str, Any]:
    """The words of message `number` of an answer, as they are sent. Discord drops a second one with
    the same nonce for some minutes. Nobody is told of a name that stands in it."""
    message: dict[str, Any] = {
        "content": write_markdown(piece.words),
        "flags": SUPPRESS_EMBEDS | (SUPPRESS_NOTIFICATIONS if outgoing.silent else 0),
        "allowed_mentions": {"parse": []},
        "nonce": sha256(f"{outgoing.key} {number}".encode()).hexdigest()[:24],
        "enforce_nonce": True,
    }
    reply = outgoing.reply_to
    if number == 0 and reply.isdecimal() and outgoing.address.group:
        message["message_reference"] = {"message_id": reply, "fail_if_not_exists": False}
    if buttons := make_buttons(outgoing, piece):
        message["components"] = buttons
    return message


def make_voice_message(
    outgoing: Outgoing, number: int, voice: OggVoice, name: str
) -> dict[str, Any]:
    """The same of a voice message, which takes neither words nor anything else beside its one file.

    https://discord.com/developers/docs/resources/message#attachment-object: the waveform has at
    most 256 points of a byte each.
    """
    message = make_message(outgoing, Piece(), number)
    del message["content"]
    waveform = bytes(voice.draw_waveform(WAVEFORM_POINTS, WAVEFORM_PEAK))
    about = {
        "id": "0",
        "filename": name,
        "duration_secs": voice.duration_s,
        "waveform": b64encode(waveform).decode(),
    }
    flags = IS_VOICE_MESSAGE | (message["flags"] & SUPPRESS_NOTIFICATIONS)
    return {**message, "flags": flags, "attachments": [about]}


def make_change(outgoing: Outgoing, piece: Piece) -> dict[str, Any]:
    """The words of a message that says something else now."""
    return {
        "content": write_markdown(piece.words),
        "flags": SUPPRESS_EMBEDS,
        "allowed_mentions": {"parse": []},
        "components": make_buttons(outgoing, piece),
    }


def make_buttons(outgoing: Outgoing, piece: Piece) -> list[dict[str, Any]]:
    """The buttons below this piece."""
    return arrange_buttons(list_buttons(outgoing, piece))


def arrange_buttons(buttons: Sequence[Button]) -> list[dict[str, Any]]:
    """These buttons in rows."""
    components = [
        {
            "type": 2,
            "style": _STYLES.get(button.answer, 2),
            "label": button.label[:MAX_LABEL_CHARS],
            "custom_id": custom,
        }
        for button, custom in encode_buttons(buttons, _is_too_long)
    ]
    rows = [components[i : i + _ROW] for i in range(0, len(components), _ROW)]
    return [{"type": 1, "components": row} for row in rows]


def _is_too_long(custom: str) -> bool:
    return len(custom) > MAX_CUSTOM_ID_CHARS
