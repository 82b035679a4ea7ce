"""Only hosts that were allowed are reached, by exactly the name that was judged."""

from __future__ import annotations

import re
import socket
import ssl
import stat
from pathlib import Path

import anyio
import pytest

from deskhand.net.egress import (
    find_target_problem,
    parse_authority,
    parse_egress_host,
    parse_server_name,
)
from deskhand.net.egress_http import HEAD_BYTES
from deskhand.testing.egress import EchoServer, everything, lab
from deskhand.types.errors import AddressRefused

PLAIN = "GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n"
POST = "POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n"
GET = "GET http://{0}/a?b=c HTTP/1.1\r\nHost: {0}\r\nConnection: close\r\n\r\n"


def status(said: bytes) -> int:
    return int(said.split(b" ")[1]) if said.startswith(b"HTTP/1.1 ") else 0


async def test_a_plain_request_reaches_an_allowed_host() -> None:
    server = EchoServer()
    async with lab(("allowed.test", 80, server)) as here:
        here.allow("allowed.test")
        said = await here.say(GET.format("Allowed.TEST.").encode())
    assert status(said) == 200
    head = server.requests[0].split(b"\r\n")
    assert head[:2] == [b"GET /a?b=c HTTP/1.1", b"Host: allowed.test"]
    assert (
        here.dialled == [("allowed.test", 80)]
        and here.uses[0].down > 0
        and not here.uses[0].refused
    )


async def test_a_tunnel_reaches_an_allowed_host() -> None:
    server = EchoServer()
    async with lab(("allowed.test", 443, server)) as here:
        here.allow("allowed.test")
        async with here.tunnel("allowed.test:443") as stream:
            assert (
                status(await everything(stream, b"GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n"))
                == 200
            )
    assert len(server.requests) == 1 and here.dialled == [("allowed.test", 443)]


@pytest.mark.parametrize(
    "host",
    [
        *(
            "evil.test",
            "allowed.test.evil.test",
            "xallowed.test",
            "sub.allowed.test",
            "127.0.0.1",
            "[::1]",
            "2130706433",
        ),
        *(
            "0x7f000001",
            "169.254.169.254",
            "[::ffff:127.0.0.1]",
            "allowed.test@evil.test",
            "evil.test@allowed.test",
        ),
        *(
            "evil.test#allowed.test",
            "evil.test?allowed.test",
            "evil.test/allowed.test",
            "evil.test\\allowed.test",
        ),
        *(
            "allowed.test\0.evil.test",
            "evil.test\0allowed.test",
            "evil.test%00.allowed.test",
            "evil.test%23allowed.test",
        ),
        *(
            "allowed.test%2eevil.test",
            "allowed。test.evil.test",
            "evil.test\tallowed.test",
            "evil.test;allowed.test",
        ),
        *(
            "allowed.test:22",
            "allowed.test:8443",
            "allowed.test:0",
            "allowed.test:99999",
            "allowed.test..",
            ".allowed.test",
        ),
        *(
            "",
            "allowed.test,evil.test",
            "*.test",
            "allowed.test:443:443",
            "localhost",
            "evil.test\ufe52allowed.test",
        ),
    ],
)
@pytest.mark.parametrize("form", ["connect", "absolute", "inside"])
async def test_another_host_is_not_reached(host: str, form: str) -> None:
    server = EchoServer()
    names = ("evil.test", "allowed.test.evil.test", "sub.allowed.test", "localhost")
    async with lab(*((name, port, server) for name in names for port in (80, 443))) as here:
        here.allow("allowed.test")
        named = host if ":" in host.rpartition("]")[2] else f"{host}:443"
        request = {
            "connect": f"CONNECT {named} HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
            "absolute": f"GET http://{host}/ HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n",  # noqa: E501
            "inside": f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n",
        }[form]
        said = await here.say(request.encode())
    outside = form == "absolute" and host.partition("?")[0].partition("/")[0] == "allowed.test"
    assert outside or status(said) in (400, 403), said
    assert not here.dialled and not server.accepted
    assert all(use.refused for use in here.uses)


async def test_the_answer_says_why_and_what_to_do() -> None:
    async with lab() as here:
        said = await here.say(GET.format("evil.test").encode())
    assert status(said) == 403 and b"Deskhand: evil.test is not allowed" in said
    assert [(use.host, use.refused) for use in here.uses] == [
        ("evil.test", "evil.test is not allowed")
    ]


async def test_every_public_host_where_that_is_asked() -> None:
    server = EchoServer()
    async with lab(("any.test", 80, server)) as here:
        here.public = True
        assert status(await here.say(GET.format("any.test").encode())) == 200
        assert status(await here.say(GET.format("192.0.2.1").encode())) == 403
        assert status(await here.say(GET.format("other.test").encode())) == 403, (
            "its address is not public"
        )
    assert here.dialled == [("any.test", 80), ("other.test", 80)]


async def test_a_tunnel_for_another_name_than_was_allowed() -> None:
    """One address serves many hosts: what TLS names must be what was asked for."""
    server = EchoServer()
    async with lab(("allowed.test", 443, server)) as here:
        here.allow("allowed.test")
        with pytest.raises((ssl.SSLError, OSError, anyio.EndOfStream, anyio.BrokenResourceError)):
            async with here.tunnel("allowed.test:443", "evil.test"):
                pass
        plain = b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"
        said = await here.say(
            b"CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test\r\n\r\n", then=plain
        )
    assert not server.requests and said == b""
    assert [bool(use.refused) for use in here.uses] == [True, True]
    assert "evil.test" in here.uses[0].refused and "is not TLS" in here.uses[1].refused


async def test_another_port_carries_what_the_entry_allows() -> None:
    server = EchoServer(lambda request: request)
    async with lab(("allowed.test", 2222, server)) as here:
        here.allow("allowed.test:2222")
        said = await here.say(
            b"CONNECT allowed.test:2222 HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
            then=b"SSH-2.0-x\r\n\r\n",
        )
        refused = await here.say(b"CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test\r\n\r\n")
    assert said.endswith(b"SSH-2.0-x\r\n\r\n") and status(refused) == 403


@pytest.mark.parametrize(
    "request_",
    [
        POST + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
        POST + "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
        POST + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        POST + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "POST http://allowed.test/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + "Content-Length: -1\r\n\r\n",
        PLAIN + "Host: allowed.test\r\n\r\n",
        PLAIN + "X : b\r\n\r\n",
        PLAIN + "X: b\0c\r\n\r\n",
        PLAIN + "X: b\rY: c\r\n\r\n",
        PLAIN + "X: b\r\n Y: c\r\n\r\n",
        PLAIN + "X: b\nY: c\r\n\r\n",
        PLAIN + "\n",
        PLAIN + "Authorization: Basic eDp5\r\nAuthorization: Basic eDp6\r\n\r\n",
        "\r\n" + PLAIN + "\r\n",
        POST + "Content-Length: 5, 5\r\n\r\nhello",
        POST + "Content-Length: +5\r\n\r\nhello",
        POST + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        "GET http://allowed.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "GET http://allowed.test/ HTTP/1.1\r\nHost: x.allowed.test\r\n\r\n",
        "CONNECT allowed.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n",
        "GET http://allowed.test/ HTTP/0.9\r\n\r\n",
        "GET http://allowed.test/ HTTP/2.0\r\n\r\n",
        "GET http://allowed.test/ x HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        "GET http://allowed.test/#x HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        "GET https://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        "GET ftp://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        "GET file:///etc/passwd HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        "GET /etc/passwd HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
        "CONNECT allowed.test:80 HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 4\r\n\r\nabcd",
        "\x16\x03\x01\x00\x05hello",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
async def test_what_can_be_read_in_two_ways_is_refused(request_: str) -> None:
    server = EchoServer()
    async with lab(("allowed.test", 80, server)) as here:
        here.allow("allowed.test")
        said = await here.say(request_.encode())
    assert status(said) == 400 and b"Deskhand: " in said
    assert not server.accepted


async def test_a_head_without_end() -> None:
    async with lab() as here:
        said = await here.say(b"GET http://allowed.test/ HTTP/1.1\r\nX: " + b"a" * (4 * HEAD_BYTES))
        assert status(said) == 400
        many = b"GET http://allowed.test/ HTTP/1.1\r\n" + b"X: y\r\n" * HEAD_BYTES
        assert status(await here.say(many)) == 400


async def test_requests_in_one_go_are_answered_in_order() -> None:
    server = EchoServer()
    async with lab(("allowed.test", 80, server)) as here:
        here.allow("allowed.test")
        first = b"GET http://allowed.test/1 HTTP/1.1\r\nHost: allowed.test\r\n\r\n"
        said = await here.say(
            first
            + GET.format("evil.test").encode()
            + b"GET http://allowed.test/3 HTTP/1.1\r\nHost: allowed.test\r\n\r\n"
        )
    assert [line for line in said.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")] == [
        b"HTTP/1.1 200 OK",
        b"HTTP/1.1 403 Deskhand",
    ], "each is judged; after a refusal nothing more is read"
    assert len(server.requests) == 1


async def test_bodies_of_both_kinds_and_the_wait_for_them() -> None:
    server = EchoServer()
    async with lab(("allowed.test", 80, server)) as here:
        here.allow("allowed.test")
        head = b"POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n"
        assert status(await here.say(head + b"Content-Length: 5\r\n\r\nhello", pieces=7)) == 200
        chunked = b"5\r\nhello\r\n0\r\nX-Trailer: y\r\n\r\n"
        assert (
            status(await here.say(head + b"Transfer-Encoding: chunked\r\n\r\n" + chunked, pieces=3))
            == 200
        )
        said = await here.say(
            head + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n", then=b"hello"
        )
        assert status(said) == 200
    bodies = [request.partition(b"\r\n\r\n")[2] for request in server.requests]
    assert (
        bodies[0] == bodies[2] == b"hello"
        and re.sub(rb"\w+\r\n(\w*)\r\n", rb"\1", bodies[1]) == b"hello"
    )
    assert not any(
        b"expect" in request.lower() or b"trailer" in request.lower() for request in server.requests
    )


async def test_an_unlisted_host_is_told_before_the_body_is_sent() -> None:
    async with lab() as here:
        head = b"POST http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n"
        head += b"Expect: 100-continue\r\nContent-Length: 50000000\r\n\r\n"
        assert status(await here.say(head)) == 403


async def test_what_is_meant_for_the_proxy_stays_there() -> None:
    server = EchoServer()
    async with lab(("allowed.test", 80, server)) as here:
        here.allow("allowed.test")
        await here.say(
            b"GET http://allowed.test/ HTTP/1.1\r\nHost: "
            b"allowed.test\r\nProxy-Authorization: Basic eDp5\r\n"
            b"Connection: X-Own, Host, close\r\nX-Own: 1\r\nUpgrade: h2c\r\nTE: "
            b"trailers\r\nX-Kept: 1\r\n\r\n"
        )
    sent = server.requests[0].lower()
    assert b"host: allowed.test\r\n" in sent and b"x-kept: 1" in sent and sent.count(b"host:") == 1
    assert not any(name in sent for name in (b"proxy-", b"x-own", b"upgrade", b"te:", b"evil"))


@pytest.mark.parametrize(
    "bad",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        b"not http at all",
        b"",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * (4 * HEAD_BYTES),
    ],
)
async def test_an_answer_that_is_no_proper_http(bad: bytes) -> None:
    async with lab(("allowed.test", 80, EchoServer(lambda _: bad or b"\r\n"))) as here:
        here.allow("allowed.test")
        assert status(await here.say(GET.format("allowed.test").encode())) == 502


async def test_an_answer_that_breaks_off_is_not_completed() -> None:
    async with lab(
        (
            "allowed.test",
            80,
            EchoServer(lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello"),
        )
    ) as here:
        here.allow("allowed.test")
        said = await here.say(GET.format("allowed.test").encode())
    assert said.endswith(b"hello") and status(said) == 200 and b"Content-Length: 50" in said


async def test_the_socket_is_ours_alone_and_takes_nothing_but_a_listener() -> None:
    async with lab() as here:
        path = Path(here.path)
        assert (
            stat.S_IMODE(path.stat().st_mode) == 0o600
            and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        )
        one, other = socket.socketpair()
        with one, other, socket.socket(socket.AF_UNIX) as connection:
            connection.connect(here.path)
            socket.send_fds(connection, [b"L"], [one.fileno()])
            connection.settimeout(5)
            assert await anyio.to_thread.run_sync(connection.recv, 1) == b"", "it hangs up"
        said = await here.say(GET.format("evil.test").encode())
        assert status(said) == 403, "and the others are served"
    assert not path.parent.exists()


async def test_more_connections_than_there_is_room_for_wait() -> None:
    async with lab() as here:
        streams = [await here.connected() for _ in range(60)]
        for stream in streams[:40]:
            await stream.aclose()
        assert status(await here.say(GET.format("evil.test").encode())) == 403
        for stream in streams[40:]:
            await stream.aclose()


def test_entries_mean_what_they_say() -> None:
    below = parse_egress_host("*.Example.ORG")
    assert below.covers("a.example.org", 443) and below.covers("a.b.example.org", 80)
    assert not below.covers("example.org", 443) and not below.covers("badexample.org", 443)
    assert str(parse_egress_host("bücher.example:8443")) == "xn--bcher-kva.example:8443"
    assert parse_egress_host("192.0.2.7").covers("192.0.2.7", 443) and parse_egress_host(
        "[2001:db8::1]:8443"
    ).ports == (8443,)
    for wrong in (
        "*",
        "*.org",
        "http://a.test",
        "a.test/x",
        "a b",
        "a.*.test",
        "",
        "a.test:",
        "*.192.0.2.7",
        "a.test:0",
    ):
        with pytest.raises(AddressRefused):
            parse_egress_host(wrong)


def test_a_target_is_judged_by_its_one_spelling() -> None:
    entries = [parse_egress_host("allowed.test"), parse_egress_host("192.0.2.7")]
    assert parse_authority("ALLOWED.test.:443") == ("allowed.test", 443)
    assert not find_target_problem("allowed.test", 443, public=False, entries=entries)
    assert not find_target_problem("192.0.2.7", 443, public=False, entries=entries)
    assert "IP address" in find_target_problem("192.0.2.8", 443, public=True, entries=entries)
    assert "ports 443 and 80" in find_target_problem("a.test", 8080, public=True, entries=entries)


def _hello(name: str | None) -> bytes:
    incoming = ssl.MemoryBIO()
    outgoing = ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname=name).do_handshake()
    return outgoing.read()


def test_the_name_in_a_greeting_is_found_however_it_is_cut() -> None:
    hello = _hello("allowed.test")
    assert parse_server_name(hello) == "allowed.test" and parse_server_name(_hello(None)) == ""
    assert all(parse_server_name(hello[:at]) is None for at in range(len(hello)))
    body = hello[5:]
    half = len(hello) // 2
    split = b"".join(
        b"\x16\x03\x01" + len(part).to_bytes(2) + part for part in (body[:half], body[half:])
    )
    assert parse_server_name(split) == "allowed.test"
    for wrong in (
        b"GET / HTTP/1.1",
        b"\x16\x03\x01\xff\xff",
        b"\x16\x03\x01\x00\x00",
        b"\x17\x03\x03\x00\x01x",
    ):
        with pytest.raises(ValueError, match=r"."):
            parse_server_name(wrong + b"x" * 10)
