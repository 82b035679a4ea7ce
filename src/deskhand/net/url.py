"""Addresses of the web, read once and strictly: what is judged, connected to and shown is the
same."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urljoin

import idna
import msgspec

from ..types.errors import AddressRefused

MAX_URL_CHARS = 8192
DEFAULT_PORTS = {"http": 80, "https": 443}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_USERINFO = re.compile(r"//[^/?#]*@")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}")
_KEPT = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=:@/?[]|"
)
# https://fetch.spec.whatwg.org/#port-blocking: services that take what is sent to them for commands
# of their own.
_BLOCKED = (
    "1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 "
    "101 102 103 104 109 110 111 113 115 117 119 123 135 137 139 143 161 179 "
    "389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989 990 993 995 "
    "1719 1720 1723 2049 3659 4045 4190 5060 5061 6000 6379 6566 6665 6666 6667 6668 6669 6679 "
    "6697 10080 11211"
)
_BLOCKED_PORTS = frozenset(map(int, _BLOCKED.split()))


class Url(msgspec.Struct, frozen=True):
    """An address in its one spelling. `host` is lower case ASCII without a dot at its end, or an IP
    address (without brackets); `target` is the path with the query. There is no fragment."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def authority(self) -> str:
        """The host, with the port where it is not the usual one: what the `Host` header says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    def __str__(self) -> str:
        return self.origin + self.target


def parse_url(text: str) -> Url:
    """The address that `text` spells. Raises AddressRefused with the reason where it is none that
    we would fetch.

    Reads as https://url.spec.whatwg.org/#url-parsing does, and refuses what parsers disagree on
    instead of mending it: names and passwords, control characters, backslashes, escapes in the
    host.
    """
    text = text.strip(" ")
    shown = quote_short(_USERINFO.sub("//…@", text))
    if len(text) > MAX_URL_CHARS:
        raise AddressRefused(
            f"an address may have {MAX_URL_CHARS:,} characters, but this one has {len(text):,}."
        )
    if bad := _CONTROL.search(text):
        raise AddressRefused(f"{shown} contains the control character U+{ord(bad[0]):04X}.")
    if "\\" in text:
        raise AddressRefused(
            f"{shown} contains a backslash, which programs read differently; write %5C if it is "
            "meant."
        )
    scheme, rest = _split_scheme(text, shown)
    end = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest))
    authority = rest[:end]
    if "@" in authority:
        raise AddressRefused(f"{shown} has a name or password before its host; write it without.")
    host, port = _split_port(authority, scheme, shown)

    target = rest[end:].partition("#")[0]
    if not target.startswith("/"):
        target = f"/{target}"
    return Url(scheme, parse_host(host), port, _escape_target(target))


def join_url(base: Url, reference: str) -> Url:
    """Where a link or a redirect on the page `base` leads. Raises AddressRefused."""
    reference = reference.strip(" ")
    if any(ord(c) < 33 or ord(c) == 127 or c == "\\" for c in reference):
        parse_url(f"{base.origin}/{reference}")  # says which character; a space alone is no reason
    try:
        return parse_url(urljoin(str(base), reference))
    except ValueError:
        raise AddressRefused(f"{quote_short(reference)} is not an address.") from None


def parse_host(host: str) -> str:
    """A host in its one spelling: `EXAMPLE.com.` is `example.com`, `0x7f.1` is `127.0.0.1`. Raises
    AddressRefused."""
    shown = quote_short(host)
    if host.startswith("["):
        return _parse_ipv6(host, shown)

    host = _encode_idna(host).lower().removesuffix(".")
    labels = host.split(".")
    if len(host) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise AddressRefused(f"{shown} is not a host name.")
    # https://url.spec.whatwg.org/#ends-in-a-number-checker
    return _parse_ipv4(labels, shown) if _NUMBER.fullmatch(labels[-1]) else host


def _encode_idna(host: str) -> str:
    """The host in ASCII; '' where it cannot be."""
    if host.isascii():
        return host
    if len(host) > 253:
        return ""
    try:
        return idna.encode(host, uts46=True).decode()
    except (idna.IDNAError, UnicodeError):
        return ""


def quote_short(text: str, limit: int = 100) -> str:
    """Something from outside in quotes, on one line and cut."""
    return repr(text if len(text) <= limit else f"{text[:limit]}…")


def _split_scheme(text: str, shown: str) -> tuple[str, str]:
    found = _SCHEME.match(text)
    scheme = found[1].lower() if found else ""
    rest = text[found.end() :] if found else ""
    if scheme in DEFAULT_PORTS and rest.startswith("//"):
        return scheme, rest[2:]
    if not found or "." in scheme or rest[:1].isdigit():  # example.com/x, localhost:80
        raise AddressRefused(
            f"{shown} is not a complete address: add https:// or http:// in front."
        )
    raise AddressRefused(f"{shown} is not fetched: only https:// and http:// addresses are.")


def _split_port(authority: str, scheme: str, shown: str) -> tuple[str, int]:
    if authority.startswith("["):
        at = authority.find(":", authority.find("]") % len(authority))
    else:
        at = authority.rfind(":")
    host = authority[:at] if at >= 0 else authority
    digits = authority[at + 1 :] if at >= 0 else ""
    if not host:
        raise AddressRefused(f"{shown} has no host.")
    if not digits:
        return host, DEFAULT_PORTS[scheme]

    is_number = digits.isascii() and digits.isdecimal() and len(digits) <= 5
    if not is_number or not 0 < int(digits) < 65536:
        raise AddressRefused(
            f"{shown} has {quote_short(digits)} instead of a port from 1 to 65535."
        )
    check_port(int(digits))
    return host, int(digits)


def check_port(port: int) -> None:
    """Raise AddressRefused for the port of a service that is not the web."""
    if port in _BLOCKED_PORTS or not 0 < port < 65536:
        raise AddressRefused(f"port {port} is not used for the web; browsers refuse it, too.")


def _parse_ipv6(host: str, shown: str) -> str:
    try:
        if not host.endswith("]") or "%" in host:
            raise ValueError
        return str(ipaddress.IPv6Address(host[1:-1]))
    except ValueError:
        raise AddressRefused(f"{shown} is not an IPv6 address.") from None


def _parse_ipv4(labels: list[str], shown: str) -> str:
    """https://url.spec.whatwg.org/#concept-ipv4-parser: up to four numbers, in base 8, 10 or 16;
    the last fills up."""
    try:
        if len(labels) > 4:
            raise ValueError
        numbers = [_parse_number(label) for label in labels]
        *firsts, last = numbers
        if any(number > 255 for number in firsts) or last >= 256 ** (5 - len(numbers)):
            raise ValueError
    except ValueError:
        raise AddressRefused(f"{shown} is neither a host name nor an IPv4 address.") from None
    number = last + sum(number << (24 - 8 * at) for at, number in enumerate(firsts))
    return str(ipaddress.IPv4Address(number))


def _parse_number(label: str) -> int:
    if label.startswith("0x"):
        return int(label[2:] or "0", 16)
    return int(label, 8 if label.startswith("0") and len(label) > 1 else 10)


def _escape_target(target: str) -> str:
    """Path and query in ASCII; what is escaped already stays as it is."""
    out = bytearray()
    data = target.encode()
    at = 0
    while at < len(data):
        if data[at] == 37 and _ESCAPE.match(data, at):
            out += data[at : at + 3]
            at += 3
            continue
        out += data[at : at + 1] if data[at] in _KEPT else b"%%%02X" % data[at]
        at += 1
    return out.decode()
