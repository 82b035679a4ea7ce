"""What other systems configure for an account on a platform, as settings of our channels.

The keys are those of operator-use and nanobot, in snake_case, which the readers of the other
systems translate to:

- operator-use: `operator_use/gateway/channels/config.py` in CursorTouch/Operator-Use
- nanobot: the `...Config` classes in `nanobot/channels/*/runtime.py` in HKUDS/nanobot
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ..channels.guides import GUIDES, Need
from .settings import NO_SUCH_CHANNEL_KEY, as_list, is_free_of_secrets

SECRET_KEYS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "telegram": {"token_env": ("token", "bot_token")},
    "discord": {"token_env": ("token", "bot_token")},
    "slack": {"token_env": ("bot_token", "token"), "app_token_env": ("app_token",)},
    "matrix": {"token_env": ("access_token", "token")},
    "mail": {"token_env": ("imap_password", "password")},
    "mqtt": {"token_env": ("password",)},
    "twitch": {"token_env": ("token", "access_token")},
}
"""The secrets of each kind: our setting -> their keys, of which the first that is set counts."""
_COMMON_KEYS = frozenset({"enabled", "allow_from", "account_id", "require_mention"})
_OWN_KEYS: Mapping[str, frozenset[str]] = {
    "matrix": frozenset({"homeserver", "user_id"}),
    "mail": frozenset(
        {
            *("imap_host", "imap_port", "imap_username", "imap_use_ssl"),
            *("smtp_host", "smtp_port", "smtp_username", "smtp_use_ssl", "smtp_use_tls"),
            *("from_address", "consent_granted", "verify_dkim", "verify_spf"),
            "trusted_authserv_ids",
        }
    ),
    "mqtt": frozenset({"broker_host", "broker_port", "username", "topic_prefix", "tls"}),
    "twitch": frozenset({"nick", "channel_name"}),
}
"""Keys of one kind that are taken over, or say what a channel here does anyway."""
_MAIL_WITNESSES: Mapping[str, str] = {"imap.gmail.com": "mx.google.com"}
"""Who vouches for senders, by the server that is read. Others do not document it."""
_REASONS: Mapping[str, tuple[str, str]] = {
    "proxy": ("Deskhand has no proxy for a single channel", ""),
    "encryption": ("Deskhand reads no encrypted rooms", "see docs/matrix.md"),
    "e2ee_enabled": ("Deskhand reads no encrypted rooms", "see docs/matrix.md"),
    "e2ee_mode": ("Deskhand reads no encrypted rooms", "see docs/matrix.md"),
    "allow_bots": (
        "an import must not let other bots in",
        "deskhand config set channels.NAME.bots true",
    ),
}
"""Keys with a reason of their own: (why, what to do)."""
_IMAPS_PORT = 993
_SMTP_PORTS = {"smtps": 465, "smtp": 587}
_MQTT_PORTS = {"mqtt": 1883, "mqtts": 8883}


class ChannelDraft(msgspec.Struct, frozen=True):
    """A channel as it comes in. `config` are settings of ours, `secrets` the values by the setting
    that names their variable; `unused` are (key, why, what to do) of what is not taken."""

    config: dict[str, Any]
    secrets: dict[str, str]
    unused: tuple[tuple[str, str, str], ...]

    def find_missing(self, kind: str) -> list[Need]:
        """What a channel of this kind needs and the other system does not say."""
        return [
            need
            for need in GUIDES[kind].needs
            if not need.optional
            and not (self.secrets.get(need.setting) or self.config.get(need.setting))
        ]


def convert_settings(kind: str, settings: Mapping[str, Any]) -> ChannelDraft:
    """An account of a platform as a channel of this kind. Who may write is not among it."""
    secrets: dict[str, str] = {}
    used = _COMMON_KEYS | _OWN_KEYS.get(kind, frozenset())
    for ours, theirs in SECRET_KEYS[kind].items():
        name = next((each for each in theirs if settings.get(each)), "")
        if name:
            secrets[ours] = str(settings[name]).strip()
            used |= {name}
    if kind == "twitch" and "token_env" in secrets:
        # IRC wants this before a token, and the API of Twitch does not.
        secrets["token_env"] = secrets["token_env"].removeprefix("oauth:")
    config = _convert_own(kind, settings)
    if settings.get("require_mention") is False and kind not in ("mail", "mqtt"):
        config["groups"] = "all"
    if settings.get("streaming") is False:
        config["streaming"] = False
    if isinstance(settings.get("streaming"), bool):
        used |= {"streaming"}
    if kind == "mail" and settings.get("smtp_password") == settings.get("imap_password"):
        used |= {"smtp_password"}
    usual = (NO_SUCH_CHANNEL_KEY, f"see docs/{kind}.md")
    unused = tuple(
        (name, *_REASONS.get(name, usual)) for name in says_something(settings) if name not in used
    )
    return ChannelDraft(config, secrets, unused)


def says_something(settings: Mapping[str, Any]) -> list[str]:
    """The keys that have a value."""
    return [name for name, value in settings.items() if value not in (None, "", [], {}, False)]


def list_allowed(settings: Mapping[str, Any]) -> list[str]:
    """Who may write, as it stands there."""
    listed = settings.get("allow_from")
    return [str(each).strip() for each in listed] if isinstance(listed, list) else []


def _convert_own(kind: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that only this kind has."""
    match kind:
        case "matrix":
            found = _convert_matrix(settings)
        case "mail":
            found = _convert_mail(settings)
        case "mqtt":
            found = _convert_mqtt(settings)
        case "twitch":
            room = _text(settings, "channel_name").lstrip("#")
            found = {"rooms": [room] if room else [], "user": _text(settings, "nick")}
        case _:
            found = {}
    return {name: value for name, value in found.items() if value}


def _convert_matrix(settings: Mapping[str, Any]) -> dict[str, Any]:
    homeserver = _text(settings, "homeserver")
    if homeserver and "://" not in homeserver:
        homeserver = f"https://{homeserver}"
    return {
        "base_url": homeserver if is_free_of_secrets(homeserver) else "",
        "user": _text(settings, "user_id"),
    }


def _convert_mail(settings: Mapping[str, Any]) -> dict[str, Any]:
    names = [_text(settings, key) for key in ("imap_username", "from_address", "smtp_username")]
    addresses = [name for name in names if "@" in name]

    imap_host = _text(settings, "imap_host")
    imap_scheme = "imaps" if settings.get("imap_use_ssl", True) else "imap"
    imap_port = settings.get("imap_port")

    smtp_host = _text(settings, "smtp_host")
    smtp_scheme = "smtps" if settings.get("smtp_use_ssl") is True else "smtp"
    smtp_port = settings.get("smtp_port")
    usual_smtp_port = _SMTP_PORTS[smtp_scheme]

    witnesses = [str(each) for each in as_list(settings.get("trusted_authserv_ids"))]
    return {
        "user": addresses[0] if addresses else "",
        "base_url": _join_url(imap_scheme, imap_host, imap_port, usual=_IMAPS_PORT),
        "send_url": _join_url(smtp_scheme, smtp_host, smtp_port, usual=usual_smtp_port),
        "verified_by": witnesses[0] if witnesses else _MAIL_WITNESSES.get(imap_host.lower(), ""),
    }


def _convert_mqtt(settings: Mapping[str, Any]) -> dict[str, Any]:
    scheme = "mqtts" if settings.get("tls") else "mqtt"
    prefix = _text(settings, "topic_prefix").strip("/")
    return {
        "base_url": _join_url(
            scheme,
            _text(settings, "broker_host"),
            settings.get("broker_port"),
            usual=_MQTT_PORTS[scheme],
        ),
        "user": _text(settings, "username"),
        "prefix": "" if prefix == "operator" else prefix,
    }


def _join_url(scheme: str, host: str, port: Any, *, usual: int) -> str:
    """An address; '' where the host is none."""
    if not re.fullmatch(r"[A-Za-z0-9.-]{1,255}|\[[0-9a-fA-F:.]+\]", host):
        return ""
    number = int(port) if re.fullmatch(r"[0-9]{1,6}", str(port or "")) else usual
    return f"{scheme}://{host}" if number == usual else f"{scheme}://{host}:{number}"


def _text(settings: Mapping[str, Any], name: str) -> str:
    return str(settings.get(name) or "").strip()
