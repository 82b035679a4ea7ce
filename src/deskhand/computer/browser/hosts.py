"""Hosts of addresses, and which of them are one site."""

from __future__ import annotations

from urllib.parse import urlsplit


def find_host(url: str) -> str:
    """The host of an address; '' for none."""
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""


def is_beneath(host: str, other: str) -> bool:
    """Whether a host is this other one, or lies beneath it; `www.` is left aside."""
    host, other = host.removeprefix("www."), other.removeprefix("www.")
    return bool(host and other) and (host == other or ("." in other and host.endswith(f".{other}")))
