"""Asking a person for a host that commands may reach."""

from __future__ import annotations

from ..net.egress import is_ip_address, parse_egress_host
from ..types.commit import Change
from ..types.errors import AddressRefused, ToolError
from ..types.labels import Label
from .base import Context, Done, Tool, done, own
from .define import tool

REQUEST = "request_host"
OUTSIDE = 1
PRIVATE = 2
"""What a person knew who allowed a host: that something from outside had been read, which covers
all; or only what is private."""


def read_so_far(label: Label) -> int:
    """What the person who says yes knows that the conversation has read: OUTSIDE, PRIVATE, or 0 for
    nothing of that."""
    if label.integrity == "untrusted":
        return OUTSIDE
    return PRIVATE if label.readers is not None else 0


@tool(effect="network", replay="commit", name=REQUEST)
async def request_host(host: str, context: Context) -> Done:
    """Ask a person to let commands of this conversation reach a host over http and https, say
    pypi.org. Call it when a command's result says that a host is not reachable.

    host: its name, as in example.org; example.org:8443 for another port, *.example.org for all
        names below it
    """
    try:
        entry = parse_egress_host(host)
    except AddressRefused as error:
        raise ToolError(str(error)) from error
    if is_ip_address(entry.host):
        raise ToolError(
            f"{entry} is an IP address: a person allows those with `deskhand hosts allow {entry}`"
        )
    knowing = read_so_far(context.label)
    row = (
        context.agent,
        context.session,
        str(entry),
        knowing,
        context.clock.now(),
        context.principal.id,
    )
    told = done(
        f"Commands of this conversation may reach {entry} now. Run the command again.", own(context)
    )
    return Done(told.parts, changes=(Change("egress_grant_set", row),))


TOOLS: tuple[Tool, ...] = (request_host,)
