"""Who opens the page inside Telegram: what Telegram hands to it, signed with the token of the bot.
Source: https://core.telegram.org/bots/webapps#validating-data-received-via-the-mini-app"""

from __future__ import annotations

import hmac
from urllib.parse import parse_qsl, quote

import msgspec

from ...types.errors import ConfigError, Refused
from ..settings import ChannelConfig
from ..webhook import is_public_address

MAX_CHARS = 8192
MAX_FIELDS = 40
FRESH_S = 300.0
"""So long after it was opened."""
AHEAD_S = 60.0
"""A clock may be so far behind that of Telegram."""
NOT_SIGNED = "Telegram has not signed this for this bot"


class _User(msgspec.Struct, frozen=True):
    id: int
    is_bot: bool = False


def make_page_address(name: str, config: ChannelConfig) -> str:
    """What Telegram opens for the channel of this name. Raises ConfigError where the setting is no
    address that it could open."""
    base = config.page.rstrip("/")
    if not is_public_address(base):
        raise ConfigError(
            f"channels.{name}.page has to be an address with https:// and a host, as Telegram "
            "opens no other: set the one under which your phone reaches the page"
        )
    return f"{base}/?channel={quote(name, safe='')}"


def read_person(data: str, token: str, now: float) -> str:
    """The number of the person who opened the page with this `initData`. Raises Refused for what
    Telegram has not signed for the bot with this token, or has signed more than FRESH_S ago."""
    if len(data) > MAX_CHARS:
        raise Refused(NOT_SIGNED)
    try:
        pairs = parse_qsl(data, strict_parsing=True, max_num_fields=MAX_FIELDS)
    except ValueError as error:
        raise Refused(NOT_SIGNED) from error
    fields = dict(pairs)
    given = fields.pop("hash", "")
    signed = "\n".join(f"{name}={value}" for name, value in sorted(fields.items()))
    key = hmac.digest(b"WebAppData", token.encode(), "sha256")
    wanted = hmac.new(key, signed.encode(), "sha256").hexdigest()
    if len(fields) + 1 != len(pairs) or not hmac.compare_digest(given.encode(), wanted.encode()):
        raise Refused(NOT_SIGNED)
    return _read_signed(fields, now)


def _read_signed(fields: dict[str, str], now: float) -> str:
    opened_at = fields.get("auth_date", "")
    if not (opened_at.isascii() and opened_at.isdigit() and len(opened_at) < 12):
        raise Refused("Telegram does not say when this was opened")
    if not -AHEAD_S <= now - int(opened_at) <= FRESH_S:
        raise Refused("this was opened too long ago: close it and open it again")
    try:
        user = msgspec.json.decode(fields.get("user", ""), type=_User)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused("Telegram does not say who opened this") from error
    if user.is_bot:
        raise Refused("this was opened by a bot")
    return str(user.id)
