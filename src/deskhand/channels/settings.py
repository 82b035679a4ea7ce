"""What can be set for each channel."""

from __future__ import annotations

from typing import Literal

import msgspec


class GroupRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """What can be set for one group. `answers`: to what it answers there, in the place of the
    channel's `groups`; `none` is to nothing at all. With `allow_from` only these may speak to it
    there, and nobody else who may write on the channel."""

    answers: Literal["", "mention", "all", "none"] = ""
    allow_from: tuple[int | str, ...] = ()


class ChannelConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """One account on one platform. `type` is the kind of channel; '' is its name in the
    configuration. `token_env` names the variable that holds its token or password, which never
    stands in the configuration; `app_token_env` that of Slack's second token.

    `allow_from` are the ids of who may write; nobody else may, so an empty list admits nobody.
    `groups`: in a group it answers who speaks to it by name, by a command or by a reply
    (`mention`), or everything (`all`). `group_rules` says more of single groups, by the platform's
    id of the chat. `streaming`: an answer is shown while it is written. `bots`: other bots may
    write too, where `allow_from` or a user names them.

    `base_url` is the server: one of one's own, a homeserver, a broker, a mail server that is read;
    `send_url` is the one by which mail is sent. `user` is the name of the account there. `rooms`
    are the chats to join. With `webhook`, the public https address of the page's server, Telegram
    or Slack posts what happens; `signing_secret_env` names the variable of Slack's secret for that.
    With `page`, the https address under which a phone reaches the page, Telegram opens it there.
    `prefix` begins the topics of MQTT. `verified_by` is the name under which the own mail server
    says whose a mail is."""

    type: str = ""
    token_env: str = ""
    app_token_env: str = ""
    allow_from: tuple[int | str, ...] = ()
    groups: Literal["mention", "all"] = "mention"
    group_rules: dict[str, GroupRule] = {}
    streaming: bool = True
    bots: bool = False
    base_url: str = ""
    send_url: str = ""
    user: str = ""
    rooms: tuple[str, ...] = ()
    webhook: str = ""
    signing_secret_env: str = ""
    page: str = ""
    prefix: str = "operator"
    verified_by: str = ""
    enabled: bool = True
