"""Addresses as they are written, in every way that has fooled somebody."""

from __future__ import annotations

import ipaddress
import re
import string
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from yarl import URL

from deskhand.net.url import Url, join_url, parse_host, parse_url
from deskhand.types.errors import AddressRefused

GOOD = {
    "http://example.com": "http://example.com/",
    "HTTPS://EXAMPLE.com:443/A/b": "https://example.com/A/b",
    "https://example.com.:8443/?q=1#there": "https://example.com:8443/?q=1",
    "http://example.com?q": "http://example.com/?q",
    "http://example.com:/": "http://example.com/",
    " https://example.com/a b ": "https://example.com/a%20b",
    "https://bücher.example/ü?ß=%41%zz": "https://xn--bcher-kva.example/%C3%BC?%C3%9F=%41%25zz",
    "https://\uff25\uff38\uff21\uff2d\uff30\uff2c\uff25。com/": "https://example.com/",
    "https://a_b.example.com/": "https://a_b.example.com/",
    "http://2130706433/": "http://127.0.0.1/",
    "http://0x7f.1/": "http://127.0.0.1/",
    "http://0177.0.0.01/": "http://127.0.0.1/",
    "http://0/": "http://0.0.0.0/",
    "http://1.2.3/": "http://1.2.0.3/",
    "http://[2001:DB8:0::1]:8080/": "http://[2001:db8::1]:8080/",
    "http://[::ffff:127.0.0.1]/": "http://[::ffff:7f00:1]/",
    'https://example.com/{a}/<b>"^`': "https://example.com/%7Ba%7D/%3Cb%3E%22%5E%60",
}
BAD = {
    "": "not a complete address",
    "example.com/x": "https:// or http:// in front",
    "localhost:80": "https:// or http:// in front",
    "//example.com": "https:// or http:// in front",
    "http:example.com": "only https:// and http://",
    "http:/example.com": "only https:// and http://",
    "http:///x": "has no host",
    "https://:80/": "has no host",
    "https://?x": "has no host",
    "file:///etc/passwd": "only https:// and http://",
    "gopher://127.0.0.1:6379/_x": "only https:// and http://",
    "ftp://example.com/": "only https:// and http://",
    "data:text/html,x": "only https:// and http://",
    "javascript:alert(1)": "only https:// and http://",
    "http://user@example.com/": "name or password",
    "http://example.com@127.0.0.1/": "name or password",
    "http://example.com\\@127.0.0.1/": "backslash",
    "http://127.0.0.1\\.example.com/": "backslash",
    "http://example.com/a\\b": "backslash",
    "http://exa\tmple.com/": "control character U+0009",
    "http://example.com/\r\nHost: x": "control character U+000D",
    "http://example.com\0.evil.test/": "control character U+0000",
    "http://example.com/\x7f": "control character U+007F",
    "http://example.com/\ud800": "control character U+D800",
    "http://example%2ecom/": "not a host name",
    "http://exa mple.com/": "not a host name",
    "http://a..b/": "not a host name",
    "http://./": "not a host name",
    "http://-a.com/": "not a host name",
    "http://*.example.com/": "not a host name",
    "http://example.com,evil.test/": "not a host name",
    f"http://{'a' * 64}.com/": "not a host name",
    f"http://{'a.' * 130}com/": "not a host name",
    "http://\u2100.example/": "not a host name",  # becomes a/c
    "http://☃‍☃.example/": "not a host name",
    "http://1.2.3.4.5/": "neither a host name nor an IPv4 address",
    "http://256.1.1.1/": "neither a host name nor an IPv4 address",
    "http://1.2.3.08/": "neither a host name nor an IPv4 address",
    "http://a.b.0x1/": "neither a host name nor an IPv4 address",
    "http://4294967296/": "neither a host name nor an IPv4 address",
    "http://[::1/": "not an IPv6 address",
    "http://[fe80::1%25lo]/": "not an IPv6 address",
    "http://[::1]x/": "not an IPv6 address",
    "http://[127.0.0.1]/": "not an IPv6 address",
    "http://example.com:0/": "port from 1 to 65535",
    "http://example.com:65536/": "port from 1 to 65535",
    "http://example.com:\uff18\uff10/": "port from 1 to 65535",
    "http://example.com:80x/": "port from 1 to 65535",
    "http://example.com:+80/": "port from 1 to 65535",
    "http://example.com:22/": "is not used for the web",
    "http://example.com:6379/": "is not used for the web",
    "http://example.com/" + "a" * 9000: "may have 8,192 characters",
}


@pytest.mark.parametrize("text", GOOD)
def test_an_address_has_one_spelling(text: str) -> None:
    assert str(parse_url(text)) == GOOD[text]


@pytest.mark.parametrize("text", BAD)
def test_what_is_no_plain_address_is_refused_with_the_reason(text: str) -> None:
    with pytest.raises(AddressRefused, match=re.escape(BAD[text])) as refused:
        parse_url(text)
    message = str(refused.value)
    assert len(message) < 400 and message.isprintable(), "nothing of it can break a line"


def test_a_password_in_an_address_is_not_repeated() -> None:
    for text in (
        "https://ann:secret@example.com/",
        "https://ann:secret@example.com:x/",
        "https://secret@a\\b@c/\0",
    ):
        with pytest.raises(AddressRefused) as refused:
            parse_url(text)
        assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("reference", "leads"),
    [
        ("/x?y", "https://example.com/x?y"),
        ("../up", "https://example.com/up"),
        ("?page=2", "https://example.com/a/b?page=2"),
        ("//other.test/x", "https://other.test/x"),
        ("http://127.1/", "http://127.0.0.1/"),
        ("a b", "https://example.com/a/a%20b"),
    ],
)
def test_links_are_read_from_where_they_stand(reference: str, leads: str) -> None:
    assert str(join_url(parse_url("https://example.com/a/b"), reference)) == leads


@pytest.mark.parametrize(
    "reference",
    [
        "file:///etc/passwd",
        "//user@x/",
        "\\\\evil.test/",
        "/\x00",
        "/a\nb",
        "http://[",
        "javascript:1",
    ],
)
def test_links_that_lead_nowhere_are_refused(reference: str) -> None:
    with pytest.raises(AddressRefused):
        join_url(parse_url("https://example.com/a/b"), reference)


ODD = ".-_:[]%@/\\?# \t\0\u3002\uff0e\uff10\u00df\u200dxX"
HOSTISH = st.text(st.sampled_from(string.ascii_letters + string.digits + ODD), max_size=40)


@given(st.one_of(st.text(max_size=60), HOSTISH).map(lambda rest: f"http://{rest}"))
@example("http://a:80:80/")
def test_whatever_comes_is_refused_or_read_as_others_read_it(text: str) -> None:
    """What our parser takes has no second reading: two other parsers find the same host in the
    spelling that we use."""
    try:
        url = parse_url(text)
    except AddressRefused:
        return
    again = str(url)
    assert parse_url(again) == url, "reading it again changes nothing"
    assert (
        again.isascii() and again.isprintable() and "@" not in url.authority and "\\" not in again
    )
    assert urlsplit(again).hostname == url.host
    assert URL(again, encoded=True).raw_host == url.host
    assert URL(again).raw_host == url.host
    assert (urlsplit(again).port or 80) == url.port


@given(st.ip_addresses(v=4), st.sampled_from(["dec", "hex", "oct", "two", "three", "mixed"]))
def test_every_spelling_of_an_ipv4_address_is_that_address(
    address: ipaddress.IPv4Address, way: str
) -> None:
    number = int(address)
    a, b, c, d = address.packed
    spelling = {
        "dec": str(number),
        "hex": hex(number).upper().replace("X", "x"),
        "oct": f"0{number:o}",
        "two": f"{a}.{number & 0xFFFFFF}",
        "three": f"{a}.{b:#x}.{number & 0xFFFF}",
        "mixed": f"0{a:o}.{b:#x}.{c}.0{d:o}.",
    }[way]
    assert parse_host(spelling) == str(address)


@given(st.ip_addresses(v=6))
def test_every_ipv6_address_has_one_spelling(address: ipaddress.IPv6Address) -> None:
    assert parse_host(f"[{address.exploded.upper()}]") == str(address)
    assert str(Url("http", str(address), 81, "/")) == f"http://[{address}]:81/"
