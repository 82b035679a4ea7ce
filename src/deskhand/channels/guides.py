"""What each kind of channel has to be given, and where people find it."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec


class Need(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that is asked for. With a `variable` it is a secret, which `.env` keeps under that
    name and the configuration names by `setting`; else it is the setting itself. `example` is how
    one looks, `optional` says that an empty answer is one."""

    setting: str
    label: str
    where: str
    variable: str = ""
    example: str = ""
    optional: bool = False
    is_list: bool = False


class Guide(msgspec.Struct, frozen=True):
    """How a channel is set up. `link` is where that begins on the platform, '' where everybody has
    another place; `after` is what to do once it stands."""

    title: str
    link: str
    needs: tuple[Need, ...]
    after: str


_WRITE = "write to it directly to get a pairing code"

GUIDES: Mapping[str, Guide] = {
    "telegram": Guide(
        "Telegram",
        "https://t.me/BotFather",
        (
            Need(
                "token_env",
                "Bot token",
                "send /newbot to @BotFather, who gives you one",
                "TELEGRAM_BOT_TOKEN",
                "123456:ABC-…",
            ),
        ),
        "Open the chat with the bot, and " + _WRITE + ".",
    ),
    "discord": Guide(
        "Discord",
        "https://discord.com/developers/applications",
        (
            Need(
                "token_env",
                "Bot token",
                "create an application, open Bot, and press Reset Token",
                "DISCORD_BOT_TOKEN",
            ),
        ),
        "Open that link to invite the bot to a server. Then " + _WRITE + ".",
    ),
    "slack": Guide(
        "Slack",
        "https://api.slack.com/apps?new_app=1",
        (
            Need(
                "token_env",
                "Bot token",
                "create the app from the manifest in docs/slack.md, install it, and copy the Bot "
                "User OAuth Token under OAuth & Permissions",
                "SLACK_BOT_TOKEN",
                "xoxb-…",
            ),
            Need(
                "app_token_env",
                "App-level token",
                "Basic Information, App-Level Tokens, with the scope connections:write",
                "SLACK_APP_TOKEN",
                "xapp-…",
            ),
        ),
        "Open the app in Slack, and " + _WRITE + ".",
    ),
    "matrix": Guide(
        "Matrix",
        "https://app.element.io",
        (
            Need(
                "base_url",
                "Homeserver",
                "the server on which the bot has its account",
                example="https://matrix.org",
            ),
            Need(
                "token_env",
                "Access token",
                "sign in to the bot's account; in Element: All settings, Help & About, Advanced",
                "MATRIX_ACCESS_TOKEN",
                "syt_…",
            ),
        ),
        "Invite the account to a room that is not encrypted, and " + _WRITE + ".",
    ),
    "mail": Guide(
        "Mail",
        "",
        (
            Need("user", "Address", "the mailbox of the bot", example="desk@example.org"),
            Need(
                "base_url",
                "Server that is read",
                "your provider calls it the incoming or IMAP server",
                example="imaps://imap.example.org",
            ),
            Need(
                "send_url",
                "Server that sends",
                "your provider calls it the outgoing or SMTP server",
                example="smtps://smtp.example.org",
            ),
            Need(
                "verified_by",
                "Who vouches for senders",
                "open any mail in that mailbox, show its source, and copy the first word after "
                "Authentication-Results",
                example="mx.google.com",
            ),
            Need(
                "token_env",
                "Password",
                "most providers want an app password, which their security settings give you",
                "MAIL_PASSWORD",
            ),
        ),
        "Write a mail to the address to get a pairing code.",
    ),
    "mqtt": Guide(
        "MQTT",
        "",
        (
            Need("base_url", "Broker", "its address", example="mqtts://broker.example.org"),
            Need("user", "User", "as whom to connect; empty for nobody", optional=True),
            Need("token_env", "Password", "of that user", "MQTT_PASSWORD", optional=True),
        ),
        "Put the names of your devices into allow_from, in the configuration.",
    ),
    "twitch": Guide(
        "Twitch",
        "https://dev.twitch.tv/console/apps",
        (
            Need(
                "token_env",
                "User access token",
                "of the bot's account, with the scopes user:read:chat and user:write:chat",
                "TWITCH_ACCESS_TOKEN",
            ),
            Need(
                "rooms",
                "Channels",
                "whose chats it reads, with commas between; empty for its own",
                example="olga",
                optional=True,
                is_list=True,
            ),
        ),
        "Put the numbers of those who may write into allow_from, in the configuration.",
    ),
}


def find_variable(need: Need, kind: str, name: str) -> str:
    """The name of the variable that keeps a secret of the channel with this name."""
    own = re.sub(r"\W", "_", name).upper()
    return need.variable if name == kind else need.variable.replace(kind.upper(), own, 1)
