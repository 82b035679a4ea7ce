"""Where a command may connect to: which hosts, by the one spelling of their name, and what is said
of others."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from ..types.errors import AddressRefused, ConfigError
from .url import check_port, parse_host, quote_short

USUAL_PORTS = (443, 80)
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@/?#%\\\s]+):([0-9]{1,5})")
_HANDSHAKE = 22
_CLIENT_HELLO = 1
_SERVER_NAME = 0
HELLO_BYTES = 1 << 14
"""A longer first message of TLS is none that we would let pass."""


class EgressConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """The way of commands to the network. `allow`: the hosts that they may reach, as in
    `example.org`, `*.example.org` and `example.org:8443`, until a conversation has read something
    from outside. `enabled: false`: they have no network at all."""

    allow: tuple[str, ...] = ()
    enabled: bool = True


def check_egress(config: EgressConfig) -> None:
    """Raises ConfigError for an entry that is no host."""
    for each in config.allow:
        try:
            parse_egress_host(each)
        except AddressRefused as error:
            raise ConfigError(f"egress.allow: {error}") from error


class EgressHost(msgspec.Struct, frozen=True):
    """An entry of a list: `host` exactly, or, where it began with `*.`, every name below it but not
    itself. Without `ports` the usual ones of the web."""

    host: str
    below: bool = False
    ports: tuple[int, ...] = ()

    def __str__(self) -> str:
        start = "*." if self.below else ""
        name = f"[{self.host}]" if ":" in self.host else self.host
        ports = "".join(f":{port}" for port in self.ports)
        return f"{start}{name}{ports}"

    def covers(self, host: str, port: int) -> bool:
        """Whether this host, in its one spelling, is meant."""
        if port not in (self.ports or USUAL_PORTS):
            return False
        if not self.below:
            return host == self.host
        return host.endswith(f".{self.host}") and not is_ip_address(host)


def parse_egress_host(text: str) -> EgressHost:
    """`example.org`, `*.example.org`, `example.org:8443`, `192.0.2.7`. Raises AddressRefused for
    anything else."""
    stripped = text.strip()
    below = stripped.startswith("*.")
    name, ports = _split_ports(stripped.removeprefix("*."), text)
    if "/" in name or "*" in name:
        raise AddressRefused(
            f"{quote_short(text)} is not a host: write example.org, or *.example.org for all "
            "names below it."
        )
    host = parse_host(name)
    if below and (is_ip_address(host) or "." not in host):
        raise AddressRefused(
            f"{quote_short(text)} is too broad: name at least two parts, as in *.example.org."
        )
    return EgressHost(host, below, ports)


def _split_ports(entry: str, text: str) -> tuple[str, tuple[int, ...]]:
    """The name of an entry, and its port if it has one. `text` is the whole entry, for the error.
    Raises AddressRefused."""
    name, colon, digits = entry.rpartition(":")
    is_bare_ipv6 = entry.endswith("]") or (":" in name and not name.endswith("]"))
    if not colon or is_bare_ipv6:
        return entry, ()
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 5):
        raise AddressRefused(
            f"{quote_short(text)} has no port after its colon: write example.org:8443."
        )
    port = int(digits)
    if not 0 < port < 65536:
        raise AddressRefused(f"{quote_short(text)}: there is no such port.")
    return name, (port,)


def is_host_covered(entries: Iterable[EgressHost], host: str, port: int) -> bool:
    """Whether one of them means this host, in its one spelling."""
    return any(entry.covers(host, port) for entry in entries)


def is_ip_address(host: str) -> bool:
    """Whether this one spelling is an IP address."""
    return ":" in host or host.replace(".", "").isdigit()


def parse_authority(text: str) -> tuple[str, int]:
    """What `CONNECT` names: (the one spelling of the host, the port). Raises AddressRefused."""
    found = _AUTHORITY.fullmatch(text)
    if not found:
        raise AddressRefused(f"{quote_short(text)} is not a host and port.")
    port = int(found[2])
    if not 0 < port < 65536:
        raise AddressRefused(f"{quote_short(text)}: there is no such port.")
    return parse_host(found[1]), port


def find_target_problem(
    host: str, port: int, *, public: bool, entries: Iterable[EgressHost]
) -> str:
    """Why a command may not connect there; '' if it may. `public`: to every name of the web, on the
    usual ports."""
    if is_host_covered(entries, host, port):
        return ""
    if is_ip_address(host):
        return f"{host} is an IP address, and only hosts with a name can be reached"
    if port not in USUAL_PORTS:
        try:
            check_port(port)
        except AddressRefused as error:
            return str(error).rstrip(".")
        usual = " and ".join(map(str, USUAL_PORTS))
        return f"{host} can be reached on the ports {usual}, not on {port}"
    return "" if public else f"{host} is not allowed"


def parse_server_name(hello: bytes) -> str | None:
    """The host that the first message of a TLS connection names; '' where it names none, None while
    it is not whole.

    RFC 8446 section 4.1.2 and RFC 6066 section 3. Raises ValueError for what is no such message.
    """
    body = bytearray()
    at = 0
    while len(body) < 4 or len(body) < 4 + int.from_bytes(body[1:4]):
        head = hello[at : at + 5]
        if head[:1] not in (b"", b"\x16") or head[1:2] not in (b"", b"\x03"):
            raise ValueError("it is not TLS")
        size = int.from_bytes(head[3:5])
        if len(head) == 5 and not 0 < size <= HELLO_BYTES:
            raise ValueError("a record has no such size")
        if len(hello) > HELLO_BYTES + 5:
            raise ValueError("its first message is too long")
        if len(head) < 5 or len(hello) < at + 5 + size:
            return None
        body += hello[at + 5 : at + 5 + size]
        at += 5 + size
    if body[0] != _CLIENT_HELLO:
        raise ValueError("it does not begin with a greeting")
    greeting = bytes(body[4 : 4 + int.from_bytes(body[1:4])])
    return _read_server_name(_Reader(greeting))


class _Reader:
    """Bytes taken from the front. Raises ValueError where there are too few."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def take(self, size: int) -> bytes:
        if size > len(self._data):
            raise ValueError("it ends too early")
        taken = self._data[:size]
        self._data = self._data[size:]
        return taken

    def take_vector(self, length_bytes: int) -> bytes:
        return self.take(int.from_bytes(self.take(length_bytes)))

    def __bool__(self) -> bool:
        return bool(self._data)


def _read_server_name(hello: _Reader) -> str:
    hello.take(34)  # version, random
    hello.take_vector(1)  # the session
    hello.take_vector(2)  # ciphers
    hello.take_vector(1)  # compression
    names: list[str] = []
    extensions = _Reader(hello.take_vector(2)) if hello else _Reader(b"")
    while extensions:
        kind = int.from_bytes(extensions.take(2))
        content = extensions.take_vector(2)
        if kind != _SERVER_NAME:
            continue
        entries = _Reader(_Reader(content).take_vector(2))
        while entries:
            entries.take(1)
            # UnicodeDecodeError is a ValueError.
            names.append(entries.take_vector(2).decode("ascii"))
    if len(names) > 1:
        raise ValueError("it names more than one host")
    return names[0] if names else ""
