"""How something is said on Twitch, and what it answers, in our words. All of it pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...types.errors import ChannelError, LoginRefused, SendRefused
from ..markup import write_plain
from ..rich_text import Rich
from ..web_api import ApiFault

Json = Mapping[str, Any]
AGAIN_S = 31.0
_LATER = ("msg_duplicate", "msg_ratelimit", "msg_slowmode", "user_timed_out", "msg_timedout")
_COMMANDS = ("/", ".")
"""What a message begins with that Twitch takes for a command."""
WHISPER = "whisper:"
"""How the chat with one person begins."""


def write_line(rich: Rich) -> str:
    """The words in one line, as a chat shows them."""
    lines = (line.strip() for line in write_plain(rich).splitlines())
    said = " ".join(line for line in lines if line)
    return f"\u200b{said}" if said.startswith(_COMMANDS) else said


def translate_error(error: Exception, now: float) -> ChannelError:
    """What came of a call, in our words."""
    if not isinstance(error, ApiFault) or error.status < 300:
        unsent = isinstance(error, ApiFault) and error.unsent
        why = str(error) or type(error).__name__
        return ChannelError(f"Twitch could not be reached: {why}", unsent=unsent)
    why = str(error.body.get("message") or error)
    if error.status == 429:
        wait = max(_to_number(error.headers.get("Ratelimit-Reset", "")) - now, 1.0)
        return ChannelError(f"Twitch asks to wait {wait:.0f} s", wait, unsent=True)
    if error.status in (401, 403) and any(word in why.lower() for word in ("token", "scope")):
        return LoginRefused(
            f"Twitch does not accept this token ({why}): make a new one with the scopes "
            "user:read:chat and user:write:chat",
            300,
            unsent=True,
        )
    if error.status >= 500:
        return ChannelError(f"Twitch has a fault: {why}")
    return SendRefused(f"Twitch refuses: {why}")


def find_sent_id(answer: Json) -> str:
    """The id of a message that was sent. Raises SendRefused where Twitch dropped it, ChannelError
    where it would take it later, as the same words within half a minute.

    https://dev.twitch.tv/docs/api/reference/#send-chat-message
    """
    sent: Json = (answer.get("data") or ({},))[0]
    if sent.get("is_sent"):
        return str(sent["message_id"])
    reason: Json = sent.get("drop_reason") or {}
    why = f"Twitch did not take the message: {reason.get('message', 'it does not say why')}"
    if str(reason.get("code", "")) in _LATER:
        raise ChannelError(why, AGAIN_S, unsent=True)
    raise SendRefused(why)


def _to_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
