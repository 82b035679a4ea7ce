"""Which addresses are the public web."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand.net.address import find_address_problem, find_connect_problem, is_own_address

PUBLIC = [
    "1.1.1.1",
    "93.184.215.14",
    "192.0.1.1",
    "168.63.129.17",
    "172.15.255.255",
    "172.32.0.0",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2a00:1450:4001:81b::200e",
    "::ffff:1.1.1.1",
    "64:ff9b::1.1.1.1",
]
NOT_PUBLIC = [
    *(
        "0.0.0.0",
        "0.1.2.3",
        "127.0.0.1",
        "127.255.255.254",
        "10.0.0.1",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
    ),
    *(
        "169.254.169.254",
        "169.254.170.2",
        "100.64.0.1",
        "100.100.100.200",
        "192.0.0.192",
        "192.0.0.9",
        "192.0.2.1",
    ),
    *(
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "192.88.99.1",
        "224.0.0.1",
        "239.1.2.3",
        "240.0.0.1",
    ),
    *("255.255.255.255", "168.63.129.16", "161.26.0.10", "166.9.1.1"),
    *(
        "::",
        "::1",
        "fe80::1",
        "fe80::1%lo",
        "fec0::1",
        "fd00:ec2::254",
        "fc00::1",
        "ff02::1",
        "100::1",
        "2001:db8::1",
    ),
    *("3fff::1", "5f00::1", "4000::1", "2001::1", "2001:10::1"),
    *(
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::127.0.0.1",
        "::1.1.1.1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1.1.1.1",
    ),
    *("2002:a9fe:a9fe::", "2002:0101:0101::", "2001:0:7f00:1::1", "2001:0:101:101::80ff:fffe"),
    *("2a00::5efe:127.0.0.1", "2a00::200:5efe:10.0.0.1", "::ffff:0:127.0.0.1"),
    *("", "localhost", "1.1.1", "1.1.1.1 ", "\uff11.1.1.1"),
]


@pytest.mark.parametrize("address", PUBLIC)
def test_the_public_web_is_reached(address: str) -> None:
    assert find_address_problem(address) == ""


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_everything_else_is_refused_with_the_reason(address: str) -> None:
    assert find_address_problem(address)


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_judged_alike_in_every_wrapping(address: ipaddress.IPv4Address) -> None:
    inner = str(address)
    mapped = [f"::ffff:{inner}", f"64:ff9b::{inner}"]
    assert [bool(find_address_problem(each)) for each in mapped] == [
        bool(find_address_problem(inner))
    ] * 2
    if not address.is_global:
        assert find_address_problem(inner)
        number = int(address)
        sixtofour = ipaddress.IPv6Address((0x2002 << 112) | (number << 80) | 1)
        isatap = ipaddress.IPv6Address((0x2A00 << 112) | (0x5EFE << 32) | number)
        assert all(
            find_address_problem(str(each))
            for each in (sixtofour, isatap, ipaddress.IPv6Address(number))
        )


@given(st.ip_addresses(v=6))
def test_nothing_that_python_calls_local_is_public(address: ipaddress.IPv6Address) -> None:
    if address.ipv4_mapped is None and not address.is_global:
        assert find_address_problem(str(address)) or address in ipaddress.IPv6Network(
            "64:ff9b::/96"
        )


def test_this_machine_is_not_reached_by_its_public_address_either() -> None:
    assert find_connect_problem("1.1.1.1", lambda address: address == "1.1.1.1") == "this machine"
    assert (
        find_connect_problem("1.1.1.1") == ""
        and find_connect_problem("10.0.0.1") == "a private network"
    )


def test_the_addresses_of_this_machine_are_known_as_such() -> None:
    assert is_own_address("127.0.0.1") and is_own_address("127.0.0.2")
    assert (
        not is_own_address("192.0.2.1")
        and not is_own_address("nonsense")
        and not is_own_address("2001:db8::1")
    )
