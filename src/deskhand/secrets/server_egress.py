"""Which hosts a program may reach that a person has set up, and which secrets its requests carry:
those that name `mcp:NAME` among who may use them."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
from anyio.abc import ByteStream

from ..net.egress import EgressHost, find_target_problem, parse_egress_host
from ..net.egress_door import open_egress_socket
from ..net.egress_proxy import Use
from ..net.egress_secrets import SecretBroker, SecretRule
from ..tools.command_network import CommandNetwork
from .command_egress import Egress, UseKey, count_use, filter_rules
from .queries import HostUse


@asynccontextmanager
async def open_server_network(
    egress: Egress, name: str, hosts: Sequence[str]
) -> AsyncIterator[str]:
    """The socket over which the server `name` reaches these hosts and no others, for as long as it
    runs; '' where there are none. Raises AddressRefused for what is no host."""
    if not hosts:
        yield ""
        return
    policy = _ServerPolicy(egress, name, [parse_egress_host(each) for each in hosts])
    trust_file = egress.keys.trust_file() if policy.rules else None
    try:
        async with open_egress_socket(policy, egress.slots, trust_file) as path:
            yield path
    finally:
        with anyio.CancelScope(shield=True):
            await egress.record_uses(name, policy.uses)


class _ServerPolicy:
    """Implements `net.egress_proxy.EgressPolicy`."""

    def __init__(self, egress: Egress, name: str, hosts: Sequence[EgressHost]) -> None:
        self._egress = egress
        self._name = name
        self._hosts = hosts
        self._network = CommandNetwork()
        self.uses: dict[UseKey, HostUse] = {}

        def is_for_server(rule: SecretRule) -> bool:
            return rule.is_usable_by((name,))

        self.rules = filter_rules(egress.keys.list_secrets(), is_for_server)

    async def find_refusal(self, host: str, port: int) -> str:
        problem = find_target_problem(host, port, public=False, entries=self._hosts)
        return f"{problem}; it is not among the hosts of {self._name}" if problem else ""

    async def get_label(self) -> object:
        return None

    async def connect(self, host: str, port: int) -> ByteStream:
        return await self._egress.net.connect(host, port)

    def secrets_for(self, host: str, port: int) -> SecretBroker | None:
        here = filter_rules(self.rules, lambda rule: (rule.host, rule.port) == (host, port))
        if not here:
            return None
        return SecretBroker(host, here, self._egress.keys.list_secrets())

    def client_context(self) -> ssl.SSLContext:
        return self._egress.keys.client_context()

    def server_context(self, host: str) -> ssl.SSLContext | None:
        return self._egress.keys.server_context(host)

    def record_use(self, use: Use) -> None:
        count_use(self._name, self._network, self.uses, use)
