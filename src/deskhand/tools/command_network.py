"""The network of a command: which hosts it may reach, and which it did."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import msgspec

from ..types.identity import Principal
from ..types.labels import LOCAL, UNTRUSTED, Label, join_labels

MAX_LISTED = 8


async def read_nothing() -> Label:
    """Of what reads no files."""
    return LOCAL


class NetworkUser(msgspec.Struct, frozen=True):
    """For whom a network is opened. `label` is that of what the conversation has read when the
    command starts, `read` tells that of what the command has read since. `public`: to every public
    host, with no secret, for what only looks. `secrets` are the names of the only ones that its
    requests may carry; None: of all that the principal may use."""

    session: str
    agent: str
    principal: Principal
    label: Label = UNTRUSTED
    public: bool = False
    read: Callable[[], Awaitable[Label]] = read_nothing
    secrets: tuple[str, ...] | None = None


class CommandNetwork(msgspec.Struct):
    """`path` is for `Command.egress`. `reached` are the hosts that answered, `refused` says why
    others did not."""

    path: str = ""
    reached: dict[str, int] = {}
    refused: dict[str, str] = {}

    def render_note(self) -> str:
        """What the model is told beneath the command's output."""
        lines = [f"[not reachable: {why}]" for why in list(self.refused.values())[:MAX_LISTED]]
        if (more := len(self.refused) - MAX_LISTED) > 0:
            lines.append(f"[not reachable: {more} more hosts]")
        return "".join(f"\n{line}" for line in lines)

    def output_label(self, plain: Label) -> Label:
        """That of what the command said: whoever heard from outside may repeat it."""
        return join_labels(
            [plain, *(Label("untrusted", None, f"https://{host}/") for host in self.reached)]
        )


OpenNetwork = Callable[[NetworkUser], AbstractAsyncContextManager[CommandNetwork]]
"""Opens a network for as long as a command runs."""


@asynccontextmanager
async def no_network(network_user: NetworkUser) -> AsyncIterator[CommandNetwork]:
    """Where commands have no network at all."""
    yield CommandNetwork()
