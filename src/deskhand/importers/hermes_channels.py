"""The bots of Hermes Agent, in the words that all systems share here.

Where each key is documented in NousResearch/hermes-agent:

- variables of the platforms: `gateway/config.py` (`_apply_env_overrides`), and the pages of
  `website/docs/user-guide/messaging/`
- the sections `discord`, `slack` and `matrix`, and `platforms`: the same pages
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .chat_addresses import KINDS, TITLES, explain_no_channel
from .platform_settings import SECRET_KEYS
from .safe_files import Tree, Unread
from .settings import as_list, section_at, snake_fields

PLATFORMS = ("telegram", "discord", "slack", "matrix", "email")
"""Platforms that both have."""
_VARIABLES: Mapping[str, Mapping[str, str]] = {
    "telegram": {"TELEGRAM_BOT_TOKEN": "token"},
    "discord": {"DISCORD_BOT_TOKEN": "token", "DISCORD_PROXY": "proxy"},
    "slack": {"SLACK_BOT_TOKEN": "bot_token", "SLACK_APP_TOKEN": "app_token"},
    "matrix": {
        "MATRIX_ACCESS_TOKEN": "access_token",
        "MATRIX_HOMESERVER": "homeserver",
        "MATRIX_USER_ID": "user_id",
        "MATRIX_PASSWORD": "password",
        "MATRIX_E2EE_MODE": "e2ee_mode",
        "MATRIX_ENCRYPTION": "encryption",
    },
    "email": {
        "EMAIL_ADDRESS": "imap_username",
        "EMAIL_PASSWORD": "imap_password",
        "EMAIL_IMAP_HOST": "imap_host",
        "EMAIL_IMAP_PORT": "imap_port",
        "EMAIL_SMTP_HOST": "smtp_host",
        "EMAIL_SMTP_PORT": "smtp_port",
    },
}
"""Variables of each platform, and the words that all systems share for them."""
_SECTION_KEYS: Mapping[str, str] = {
    "enabled": "enabled",
    "token": "token",
    "require_mention": "require_mention",
    "allow_bots": "allow_bots",
    "homeserver": "homeserver",
    "user_id": "user_id",
    "password": "password",
    "address": "imap_username",
    "imap_host": "imap_host",
    "smtp_host": "smtp_host",
}
"""Keys of a platform in the configuration, and the words that all systems share for them."""
_PEOPLE_KEYS = ("allow_from", "allowed_users")
_PLACES = (
    "{}.",
    "{}.extra.",
    "platforms.{}.",
    "platforms.{}.extra.",
    "gateway.platforms.{}.",
    "gateway.platforms.{}.extra.",
)
"""Where a platform is configured. A later place counts before an earlier one."""
_OTHERS: Mapping[str, str] = {
    "WHATSAPP_ENABLED": "whatsapp",
    "WHATSAPP_CLOUD_ACCESS_TOKEN": "whatsapp_cloud",
    "SIGNAL_ACCOUNT": "signal",
    "MATTERMOST_TOKEN": "mattermost",
    "HASS_TOKEN": "homeassistant",
    "TWILIO_ACCOUNT_SID": "sms",
    "DINGTALK_CLIENT_ID": "dingtalk",
    "FEISHU_APP_ID": "feishu",
    "WECOM_BOT_ID": "wecom",
    "WEIXIN_TOKEN": "weixin",
    "BLUEBUBBLES_PASSWORD": "bluebubbles",
    "QQ_APP_ID": "qqbot",
}
"""A variable that is set where a platform is used that we have no channel for."""
_HOMES: Mapping[str, str] = {"matrix": "MATRIX_HOME_ROOM", "email": "EMAIL_HOME_ADDRESS"}
"""Variables for the chat of jobs that are not called PLATFORM_HOME_CHANNEL."""
HANDLED_VARIABLES = re.compile(
    "|".join(
        (
            *(name for names in _VARIABLES.values() for name in names),
            *(f"{each.upper()}_(ALLOWED_USERS|ALLOW_ALL_USERS)" for each in PLATFORMS),
            *(f"{each.upper()}_REQUIRE_MENTION" for each in PLATFORMS),
            r"(TELEGRAM|DISCORD|SLACK)_HOME_CHANNEL(_NAME|_THREAD_ID)?",
            r"MATRIX_HOME_ROOM(_NAME|_THREAD_ID)?|EMAIL_HOME_ADDRESS(_NAME|_THREAD_ID)?",
            r"GATEWAY_ALLOW(ED|_ALL)_USERS",
        )
    )
)
"""Variables that are looked after here: who the bots are, who may write, and where jobs answer."""


def list_channel_keys() -> Iterator[str]:
    """The keys of the configuration that are read here."""
    for platform in PLATFORMS:
        for place in _PLACES:
            for key in (*_SECTION_KEYS, *_PEOPLE_KEYS, "home_channel*"):
                yield f"{place.format(platform)}{key}"


def read_paired(tree: Tree) -> dict[str, list[str]]:
    """Whom its owner has approved, by platform; of platforms that we have no channel for it is
    noted."""
    found: dict[str, list[str]] = {}
    for folder in ("platforms/pairing", "pairing"):
        for entry in tree.entries(folder):
            platform, _, kind = entry.name.removesuffix(".json").rpartition("-")
            inner = f"{folder}/{entry.name}"
            if kind != "approved" or not tree.has_file(inner):
                continue
            try:
                people = tree.read_json(inner)
            except Unread as error:
                tree.note_unread(inner, error)
                continue
            ids = [str(each) for each in people] if isinstance(people, Mapping) else []
            if platform in KINDS:
                found.setdefault(platform, []).extend(ids)
            elif ids:
                what = f"that {', '.join(ids)} may write on {platform}"
                tree.notes.leave_out(what, explain_no_channel(platform))
    return found


def convert_platforms(
    tree: Tree, raw: Mapping[str, Any], env: Mapping[str, str], paired: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, Any]]:
    """Its bots, with all who may write to them: the variables count before the configuration."""
    found: dict[str, dict[str, Any]] = {}
    everywhere = as_list(env.get("GATEWAY_ALLOWED_USERS"))
    for platform in PLATFORMS:
        settings, people = _read_sections(raw, platform)
        settings |= {
            word: env[name] for name, word in _VARIABLES[platform].items() if env.get(name)
        }
        mention = env.get(f"{platform.upper()}_REQUIRE_MENTION", "").lower()
        if mention:
            settings["require_mention"] = mention not in ("false", "0", "no", "off")
        allowed = [
            *as_list(env.get(f"{platform.upper()}_ALLOWED_USERS")),
            *people,
            *paired.get(platform, ()),
        ]
        if _has_account(platform, settings):
            settings.setdefault("enabled", True)
            found[platform] = settings | {"allow_from": list(map(str, [*allowed, *everywhere]))}
        elif allowed:
            tree.notes.leave_out(
                f"that {', '.join(map(str, allowed))} may write on {platform}",
                "no bot with a token is in this home",
                f"deskhand channels add {KINDS[platform]}",
            )
    if everywhere and not found:
        what = f"that {', '.join(everywhere)} may write on every platform"
        tree.notes.leave_out(what, "no bot with a token is in this home", "deskhand channels add")
    _note_others(tree, raw, env)
    return found


def _read_sections(raw: Mapping[str, Any], platform: str) -> tuple[dict[str, Any], list[Any]]:
    """(settings of a platform, who may write) in the words that all systems share."""
    settings: dict[str, Any] = {}
    people: list[Any] = []
    for place in _PLACES:
        path = place.format(platform).strip(".").split(".")
        given = section_at(raw, *path)
        settings |= {word: given[key] for key, word in _SECTION_KEYS.items() if key in given}
        people += [each for key in _PEOPLE_KEYS for each in as_list(given.get(key))]
    return settings, people


def _has_account(platform: str, settings: Mapping[str, Any]) -> bool:
    keys = SECRET_KEYS[KINDS[platform]]["token_env"]
    if platform == "matrix":
        keys = (*keys, "password")  # Hermes signs in with it, so there is an account
    return any(settings.get(key) for key in keys)


def _note_others(tree: Tree, raw: Mapping[str, Any], env: Mapping[str, str]) -> None:
    """Note the platforms that we have no channel for."""
    named = [platform for name, platform in _OTHERS.items() if env.get(name)]
    for path in (("platforms",), ("gateway", "platforms")):
        named += [platform for platform in section_at(raw, *path) if platform not in KINDS]
    named += [platform for platform in TITLES if snake_fields(raw.get(platform))]
    for platform in dict.fromkeys(named):
        tree.notes.leave_out(f"the platform {platform}", explain_no_channel(platform))


def find_home_chats(raw: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, str]:
    """The chat of each platform where jobs answer when nothing else is said."""
    found: dict[str, str] = {}
    for platform in PLATFORMS:
        variable = _HOMES.get(platform, f"{platform.upper()}_HOME_CHANNEL")
        home = section_at(raw, "platforms", platform, "home_channel")
        chat = env.get(variable) or home.get("chat_id")
        if chat:
            found[platform] = str(chat)
    return found
