"""Where on the web a call goes, as its arguments tell, in the one spelling that is also connected
to."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

import msgspec

from ..net.url import parse_host, parse_url
from ..types.effects import Effect
from ..types.errors import AddressRefused
from .information_flow import ADDRESS_ARGUMENTS

HOST_EFFECTS: frozenset[Effect] = frozenset({"fetch", "network"})
"""Effects that go to a host which stands in the arguments."""
_KEYS = ADDRESS_ARGUMENTS | {"host", "hosts"}
_URL = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.\-]*:/")
UNREADABLE_HOST = "\0"
"""Stands for an address that cannot be read: no pattern fits it."""
MAX_ADDRESSES = 100
"""So many addresses of a call are read; what stands behind them counts as one that cannot be."""


def extract_hosts(arguments: bytes) -> tuple[str, ...]:
    """The hosts of all addresses among a call's arguments, each once."""
    try:
        given = msgspec.json.decode(arguments)
    except (ValueError, RecursionError):
        return (UNREADABLE_HOST,)
    found = [*islice(_iter_hosts(given, named=False, depth=0), MAX_ADDRESSES + 1)]
    return tuple(
        dict.fromkeys(found[:MAX_ADDRESSES] + [UNREADABLE_HOST] * (len(found) > MAX_ADDRESSES))
    )


def _iter_hosts(value: Any, *, named: bool, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        if _URL.match(value) or named:
            yield normalize_host(value)
    elif depth > 5:
        yield UNREADABLE_HOST
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _iter_hosts(each, named=str(key).lower() in _KEYS, depth=depth + 1)
    elif isinstance(value, list):
        for each in value:
            yield from _iter_hosts(each, named=named, depth=depth + 1)


def normalize_host(text: str) -> str:
    """The host of an address, or of a host alone; of `*.host` the same."""
    star = "*." if text.startswith("*.") else ""
    try:
        return (
            parse_url(text).host
            if "/" in text
            else star + parse_host(text.removeprefix(star).partition(":")[0])
        )
    except AddressRefused:
        return UNREADABLE_HOST


def is_host_match(pattern: str, hosts: Collection[str], *, every: bool) -> bool:
    """Whether one of these hosts fits the pattern, or `every` one; where there are none, none
    does."""
    fit = (_fits(pattern, host) for host in hosts)
    return bool(hosts) and (all(fit) if every else any(fit))


def _fits(pattern: str, host: str) -> bool:
    if pattern.startswith("*."):
        return host.endswith(pattern[1:])
    return host == pattern


def find_host_problem(pattern: str) -> str:
    """What speaks against this pattern, or ''. `*.example.org` fits what lies beneath, not
    example.org itself."""
    name = pattern.removeprefix("*.")
    try:
        known = parse_host(name)
    except AddressRefused:
        known = ""
    if known and known == name:
        return ""
    better = normalize_host(pattern)
    if better != UNREADABLE_HOST:
        hint = f"; write {better!r}"
    else:
        hint = "; write example.org, *.example.org or an IP address"
    return f"{pattern!r} is not a host name{hint}"
