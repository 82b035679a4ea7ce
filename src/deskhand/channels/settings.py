"""What can be set for each channel."""

from __future__ import annotations

from typing import Literal

import msgspec


class ChannelConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """One account on one platform. `type` is the kind of channel; '' is its name in the
    configuration. `token_env` names the variable that holds its token, which never stands in the
    configuration. `allow_from` are the ids of who may write; nobody else may, so an empty list
    admits nobody. `groups`: in a group it answers who speaks to it by name, by a command or by a
    reply (`mention`), or everything (`all`). `streaming`: an answer is shown while it is written.
    `bots`: other bots may write too, where `allow_from` or a user names them. `base_url` is a Bot
    API server of one's own."""

    type: str = ""
    token_env: str = ""
    allow_from: tuple[int | str, ...] = ()
    groups: Literal["mention", "all"] = "mention"
    streaming: bool = True
    bots: bool = False
    base_url: str = ""
    enabled: bool = True
