"""Which agent answers: by the bindings of the configuration, else by the account, else the first.
Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from ..types.errors import ConfigError
from ..types.identity import Address


class Binding(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is written at such a place is for this agent. What is '' fits anything; `chat` is the
    platform's own id."""

    agent: str
    channel: str = ""
    account: str = ""
    chat: str = ""

    def matches(self, address: Address) -> bool:
        wanted = (
            (self.channel, address.channel),
            (self.account, address.account),
            (self.chat, address.chat),
        )
        return all(mine in ("", theirs) for mine, theirs in wanted)


def check_bindings(bindings: Sequence[Binding], agents: Collection[str]) -> None:
    """Raises ConfigError for one that names nobody."""
    for number, binding in enumerate(bindings):
        if binding.agent not in agents:
            raise ConfigError(f"'bindings[{number}].agent': there is no agent {binding.agent!r}")


def route(bindings: Sequence[Binding], agents: Sequence[str], address: Address) -> str:
    """The first binding that fits, else the agent that is called as the account, else the first
    agent."""
    for binding in bindings:
        if binding.matches(address):
            return binding.agent
    return address.account if address.account in agents else agents[0]
