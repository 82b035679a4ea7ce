"""Finds agents of other programs: at an address, or at one port of this machine or a network."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Literal

import anyio
import msgspec

from ..config.remote_agents import RemoteAgentConfig
from ..net.client import Net, NetLimits
from ..types.errors import ConfigError, ToolError
from .client import RemoteAgent, TokenRefused

MAX_HOSTS = 256
AT_ONCE = 32
PROTOCOLS: tuple[Literal["a2a", "acp"], ...] = ("a2a", "acp")


class FoundAgent(msgspec.Struct, frozen=True):
    """`agents` are lines with the name and the description of each; none where it wants a
    token."""

    url: str
    protocol: Literal["a2a", "acp"]
    agents: tuple[str, ...] = ()
    needs_token: bool = False


def list_hosts(network: str) -> list[str]:
    """The addresses of a network such as 192.168.1.0/24; this machine for ''. Raises
    ConfigError."""
    if not network:
        return ["127.0.0.1"]
    try:
        found = ipaddress.ip_network(network, strict=False)
    except ValueError as error:
        raise ConfigError(f"{network!r} is no network, such as 192.168.1.0/24") from error
    if found.num_addresses > MAX_HOSTS:
        raise ConfigError(f"{network} has more than {MAX_HOSTS} addresses")
    if not (found.is_private or found.is_loopback):
        raise ConfigError(f"{network} is not private: only your own network is searched")
    return [str(each) for each in found.hosts()] or [str(found.network_address)]


async def probe(url: str, token: str, net: Net, seconds: float) -> FoundAgent:
    """What is at this address, by either protocol. Raises ToolError where nothing is."""
    limits = NetLimits(body_bytes=1 << 20, total_s=seconds, idle_s=seconds, redirects=0)
    problem = ToolError(f"no agent answers at {url}")
    wants_token = False
    for protocol in PROTOCOLS:
        config = RemoteAgentConfig(url=url, protocol=protocol)
        try:
            agent = RemoteAgent(url, config, net, token, limits=limits)
            return FoundAgent(url, protocol, tuple(await agent.list_agents()))
        except TokenRefused:
            wants_token = True
        except ToolError as error:
            problem = error
    if wants_token:
        return FoundAgent(url, "acp", needs_token=True)
    raise problem


async def discover(hosts: Sequence[str], port: int, net: Net, seconds: float) -> list[FoundAgent]:
    """The agents at this port of these hosts."""
    found: list[FoundAgent] = []
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def look(host: str) -> None:
        shown = f"[{host}]" if ":" in host else host
        async with limiter:
            try:
                found.append(await probe(f"http://{shown}:{port}", "", net, seconds))
            except ToolError:
                return

    async with anyio.create_task_group() as tasks:
        for host in hosts:
            tasks.start_soon(look, host)
    return sorted(found, key=lambda each: each.url)
