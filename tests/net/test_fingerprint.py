"""How a browser is imitated. What is never reached, and what a server may send, is in the suites of
both clients."""

from __future__ import annotations

import ssl
import threading
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from anyio.abc import AnyByteStream, SocketAttribute
from anyio.streams.tls import TLSListener

from deskhand.net.client import Net, NetLimits, OutboundRequest
from deskhand.net.fingerprint import exchange
from deskhand.net.url import parse_url
from deskhand.testing.site import PRIVATE, PUBLIC, LocalSite, Rebinding
from deskhand.types.errors import NetError

PEM = Path(__file__).parent / "safe.test.pem"


@pytest.fixture
def site() -> LocalSite:
    return LocalSite(exchange=exchange)


async def test_it_says_what_a_browser_says(site: LocalSite) -> None:
    async with site:
        await site.net().get(site.url())
    (seen,) = site.requests
    assert "Chrome/" in seen.headers["user-agent"] and "Deskhand" not in str(seen)
    assert {
        "sec-ch-ua",
        "sec-fetch-mode",
        "sec-fetch-dest",
        "accept-language",
    } <= seen.headers.keys()


async def test_its_greeting_is_not_that_of_a_program(site: LocalSite) -> None:
    """The first bytes of TLS: a browser's hold values at random where a program's hold none (RFC
    8701, GREASE)."""
    hellos: list[bytes] = []

    async def serve(stream: AnyByteStream) -> None:
        async with stream:
            hellos.append(await stream.receive())

    listener = await anyio.create_tcp_listener(local_host=PUBLIC)
    port = listener.extra(SocketAttribute.local_port)
    net = Net(resolve=Rebinding([(PUBLIC,)]), allow={(PUBLIC, port)})
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, serve)
        for each in (net, net.with_exchange(exchange)):
            with pytest.raises(NetError):
                await each.get(f"https://safe.test:{port}/")
        group.cancel_scope.cancel()
    grease = [bytes((n * 16 + 10,) * 2) for n in range(16)]
    ciphers = [hello[76 : 76 + int.from_bytes(hello[76:78], "big") + 2] for hello in hellos]
    assert [any(each[2:4] == value for value in grease) for each in ciphers] == [False, True]
    assert all(b"safe.test" in hello for hello in hellos), (
        "the name is asked for, although an address is connected to"
    )


async def test_a_certificate_must_be_right(site: LocalSite) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(PEM)

    async def serve(stream: AnyByteStream) -> None:
        with suppress(anyio.BrokenResourceError):
            await stream.aclose()

    plain = await anyio.create_tcp_listener(local_host=PUBLIC)
    listener = TLSListener(plain, server)
    port = plain.extra(SocketAttribute.local_port)
    net = Net(resolve=Rebinding([(PUBLIC,)]), allow={(PUBLIC, port)}).with_exchange(exchange)
    async with anyio.create_task_group() as group:
        group.start_soon(listener.serve, serve)
        with pytest.raises(NetError, match="certificate is not valid"):
            await net.get(f"https://safe.test:{port}/")
        group.cancel_scope.cancel()
    await listener.aclose()


async def test_it_connects_to_none_but_the_addresses_it_is_given(site: LocalSite) -> None:
    """Whatever the name means to others: it is told, and asks nobody."""
    async with site, LocalSite(PRIVATE) as trap:
        request = OutboundRequest(parse_url(f"http://localhost:{site.port}/"))
        status, headers, body = await exchange(request, [site.address], NetLimits())
        assert (status, headers["content-type"], b"Hello" in body) == (
            200,
            "text/html; charset=utf-8",
            True,
        )
        with pytest.raises(NetError, match="refused the connection"):
            await exchange(request, ["127.0.0.77"], NetLimits())
        assert trap.connections == 0


async def test_what_nobody_waits_for_any_more_ends(site: LocalSite) -> None:
    async with site:
        with anyio.move_on_after(0.2):
            await site.net().get(site.url("/drip"))
        with anyio.fail_after(20):
            while site.open:
                await anyio.sleep(0.01)
    assert threading.active_count() < 20
