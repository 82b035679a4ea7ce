"""The section `mcp` of the configuration: servers that bring tools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

import msgspec

from ..types.errors import ConfigError

_SERVER_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*(?:_[A-Za-z0-9-]+)*")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
MAX_SERVER_NAME = 32


class McpServerConfig(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """An MCP server: a program, `command` with `args`, that runs in the sandbox, or one that is
    reached at a `url`. In `args`, `env`, `url` and `headers` stands `${NAME}` for a variable of the
    environment. The program reaches `hosts` and no others, and sees these `folders`, read-only
    where not `PATH:rw`. With `client_id` and `client_secret` it knows us, where one signs in there
    and a program cannot register itself. What it says is untrusted unless it is `trusted`; tools
    that match `read_only` only look. `tools` are patterns of those that are offered. With
    `elicitation` it may ask people, with `sampling` the agent's cheap model, while one of its tools
    is called."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    url: str = ""
    headers: Mapping[str, str] = {}
    client_id: str = ""
    client_secret: str = ""
    hosts: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    trusted: bool = False
    read_only: tuple[str, ...] = ()
    tools: tuple[str, ...] = ("*",)
    enabled: bool = True
    timeout_s: Annotated[float, msgspec.Meta(ge=1, le=3_600)] = 120.0
    idle_s: Annotated[float, msgspec.Meta(ge=1, le=30 * 86_400)] = 600.0
    elicitation: bool = False
    sampling: bool = False

    @property
    def asks(self) -> bool:
        """Whether it may ask back during a call."""
        return self.elicitation or self.sampling


def check_mcp_servers(servers: Mapping[str, McpServerConfig]) -> None:
    """Raises ConfigError for a server that cannot be one."""
    for name, server in servers.items():
        if not _SERVER_NAME.fullmatch(name) or len(name) > MAX_SERVER_NAME:
            raise ConfigError(
                f"mcp.{name}: the name of a server begins with a letter and has at most "
                f"{MAX_SERVER_NAME} letters, digits, - and single _"
            )
        if bool(server.command) == bool(server.url):
            raise ConfigError(f"mcp.{name} needs a command, or a url, and not both")
        if server.url and not server.url.startswith(("https://", "http://", "${")):
            raise ConfigError(f"mcp.{name}.url must begin with https:// or http://")


def find_variables(text: str) -> list[str]:
    """The variables that stand in it as `${NAME}`."""
    return _VARIABLE.findall(text)


def fill_variables(text: str, environment: Mapping[str, str]) -> str:
    """The text with `${NAME}` replaced by this variable. Raises ConfigError where it is not set."""
    missing = [name for name in _VARIABLE.findall(text) if name not in environment]
    if missing:
        raise ConfigError(f"{missing[0]} is not set: put it into .env, or into the environment")
    return _VARIABLE.sub(lambda match: environment[match[1]], text)
