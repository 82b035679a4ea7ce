"""Asking a person for a host that commands may reach."""

from __future__ import annotations

from ..net.egress import is_ip_address, parse_egress_host
from ..types.errors import AddressRefused, ToolError
from ..types.labels import Label
from .base import Context, Done, Tool, call_label, make_result
from .define import tool
from .queries import grant_host

REQUEST_HOST = "request_host"
READ_OUTSIDE = 1
READ_PRIVATE = 2
"""What a person knew who allowed a host: that something from outside had been read, which covers
all; or only what is private."""


def read_level(label: Label) -> int:
    """What the person who says yes knows that the conversation has read: OUTSIDE, PRIVATE, or 0 for
    nothing of that."""
    if label.integrity == "untrusted":
        return READ_OUTSIDE
    return READ_PRIVATE if label.readers is not None else 0


@tool(effect="network", replay="commit", name=REQUEST_HOST, hint="network")
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
            f"{entry} is an IP address: only a person can allow it, with `deskhand hosts allow "
            f"{entry}`"
        )
    grant = grant_host(
        str(entry),
        agent=context.agent,
        session=context.session,
        knowing=read_level(context.label),
        at=context.clock.now(),
        by=context.principal.id,
    )
    told = make_result(
        f"Commands of this conversation may reach {entry} now. Run the command again.",
        call_label(context),
    )
    return Done(told.parts, changes=(grant,))


TOOLS: tuple[Tool, ...] = (request_host,)
