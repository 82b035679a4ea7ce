"""Which IP addresses are the public web, and which lead to this machine, its neighbours or its
provider."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterator

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Further than `is_global` goes, which differs between versions of Python:
_REFUSED_V4 = {
    ipaddress.IPv4Network(network): why
    for network, why in {
        "0.0.0.0/8": "this machine",
        "127.0.0.0/8": "this machine",
        "10.0.0.0/8": "a private network",
        "172.16.0.0/12": "a private network",
        "192.168.0.0/16": "a private network",
        "100.64.0.0/10": "the network of a provider",
        "169.254.0.0/16": "the local network, where clouds serve their keys",
        "192.0.0.0/24": "a reserved network",  # 192.0.0.192: metadata of Oracle's cloud
        "192.88.99.0/24": "a relay to other networks",  # RFC 7526
        "198.18.0.0/15": "a network for measurements",
        # Azure's agent: public by its number alone.
        "168.63.129.16/32": "the internal network of a cloud",
        "161.26.0.0/16": "the internal network of a cloud",  # IBM's services
        "166.8.0.0/14": "the internal network of a cloud",
        "224.0.0.0/4": "a multicast address",
        "240.0.0.0/4": "a reserved network",
    }.items()
}
# RFC 4291 section 2.4: all of the global unicast that is given out.
_PUBLIC_V6 = ipaddress.IPv6Network("2000::/3")
_REFUSED_V6 = [
    ipaddress.IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments
        "2001:db8::/32",
        "2002::/16",
        "3fff::/20",
    )
]
# RFC 6052; 64:ff9b:1::/48 (RFC 8215) is private, and refused as such.
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")


def find_address_problem(text: str) -> str:
    """Why nothing is connected to this IP address; '' means that it is a public one.

    An IPv6 address that carries an IPv4 one (mapped, compatible, 6to4, Teredo, NAT64, ISATAP) is
    judged by that too.
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return "it is not an IP address"
    if isinstance(address, ipaddress.IPv4Address):
        return _find_v4_problem(address)

    carried = list(_iter_embedded_v4(address))
    for inner in carried:
        if why := _find_v4_problem(inner):
            return f"{why} ({inner} inside)"
    if carried and (address.ipv4_mapped is not None or address in _NAT64):
        return ""  # another spelling of a public IPv4 address

    if address.is_loopback or address.is_unspecified:
        return "this machine"
    is_refused = any(address in network for network in _REFUSED_V6)
    if is_refused or address not in _PUBLIC_V6 or not address.is_global:
        return "a private or reserved network"
    return ""


def find_connect_problem(text: str, ours: Callable[[str], bool] | None = None) -> str:
    """Why nothing is connected to this address from here; '' where it is a public one of somebody
    else."""
    if why := find_address_problem(text):
        return why
    is_ours = ours or is_own_address
    return "this machine" if is_ours(text) else ""


def is_own_address(text: str) -> bool:
    """Whether it is an address of this very machine, be it a public one: only those can be
    bound."""
    if not _can_bind(text):
        return False
    # With net.ipv4.ip_nonlocal_bind everything can be bound: then this tells nothing.
    nowhere = "2001:db8::1" if ":" in text else "192.0.2.1"
    return not _can_bind(nowhere)


def _can_bind(text: str) -> bool:
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((text, 0))
            return True
    except (OSError, ValueError):
        return False


def _find_v4_problem(address: ipaddress.IPv4Address) -> str:
    for network, why in _REFUSED_V4.items():
        if address in network:
            return why
    return "" if address.is_global and not address.is_multicast else "a private or reserved network"


def _iter_embedded_v4(address: ipaddress.IPv6Address) -> Iterator[ipaddress.IPv4Address]:
    """Every IPv4 address that a gateway on the way may take it for."""
    number = int(address)
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    elif address in _COMPATIBLE and number > 1:
        yield ipaddress.IPv4Address(number)
    if address in _NAT64:
        yield ipaddress.IPv4Address(number & 0xFFFFFFFF)
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if (number >> 32) & 0xFDFFFFFF == 0x00005EFE:  # ISATAP, RFC 5214 section 6.1
        yield ipaddress.IPv4Address(number & 0xFFFFFFFF)
