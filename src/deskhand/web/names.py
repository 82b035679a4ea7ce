"""What a conversation is called in an address: a short name of one's own, or `agent~place` for any
other."""

from __future__ import annotations

import re

from ..types.identity import Address, Principal, session_key
from .errors import bad_request

CHANNEL = "web"
_SHORT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@ -]{0,127}")


def address_of(principal: Principal, name: str) -> Address:
    """Where this person's own conversation `name` happens. No two people share one, whatever they
    call it."""
    return Address(CHANNEL, principal.id, name)


def parse_session_name(name: str, principal: Principal, agent: str) -> str:
    """The session that a name in an address means. Raises HttpProblem for what is no name."""
    if "~" in name:
        first, _, place = name.partition("~")
        if first and place and len(name) <= 1024 and name.isprintable():
            return f"{first}/{place.replace('~1', '/').replace('~0', '~')}"
    elif _SHORT.fullmatch(name):
        return session_key(agent, address_of(principal, name))
    raise bad_request("A conversation is named by up to 128 letters, digits and . _ : @ - here.")


def format_session_name(key: str, principal: Principal, agent: str) -> str:
    """The name by which this person finds the session again: `key_of` gives `key` for it."""
    own = session_key(agent, address_of(principal, ""))  # ends in nothing: the chat follows
    short = key.removeprefix(f"{own}:") if key.startswith(f"{own}:") else ""
    if short and _SHORT.fullmatch(short) and parse_session_name(short, principal, agent) == key:
        return short
    first, _, place = key.partition("/")
    return f"{first}~{place.replace('~', '~0').replace('/', '~1')}"
