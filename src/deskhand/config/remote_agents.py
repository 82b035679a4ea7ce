"""Settings of agents elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from ..types.errors import ConfigError

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


class RemoteAgentConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent at a `url`, spoken to by A2A (the Agent2Agent protocol) or ACP (operator-use's agent
    server; `agent_id` is its name there). `token_env` is the variable with its token.
    `description` tells our agents what it is good for. What it says is untrusted unless it is
    `trusted`. `timeout_s` is how long a task is waited for where the call does not say."""

    url: str
    protocol: Literal["a2a", "acp"] = "a2a"
    agent_id: str = ""
    token_env: str = ""
    description: str = ""
    trusted: bool = False
    enabled: bool = True
    timeout_s: Annotated[float, msgspec.Meta(ge=1, le=3_600)] = 120.0


def check_remote_agents(agents: Mapping[str, RemoteAgentConfig]) -> None:
    """Raises ConfigError for an agent that cannot be one."""
    for name, agent in agents.items():
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"remote_agents.{name}: a name begins with a letter and has at most 64 letters, "
                "digits, - and _"
            )
        if not agent.url.startswith(("https://", "http://")):
            raise ConfigError(f"remote_agents.{name}.url must begin with https:// or http://")
