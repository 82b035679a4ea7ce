"""Nothing but the public web is reached, however an address is written, named, or arrived at."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from anyio.abc import AnyByteStream, SocketAttribute
from anyio.streams.tls import TLSListener

from deskhand.net.client import Net, NetLimits, OutboundRequest, SystemNames
from deskhand.net.exchange import _make_socket_factory
from deskhand.net.url import parse_url
from deskhand.testing.site import PRIVATE, PUBLIC, LocalSite, Rebinding
from deskhand.types.errors import AddressRefused, NetError

LITERALS = [
    *(
        "127.0.0.1",
        "localhost.",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "0",
        "[::1]",
        "[::]",
    ),
    *(
        "[::ffff:127.0.0.1]",
        "[0:0:0:0:0:ffff:7f00:1]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:a9fe:a9fe::]",
        "[::127.0.0.1]",
    ),
    *(
        "[fd00:ec2::254]",
        "[fe80::1%25lo]",
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
    ),
    *(
        "169.254.170.2",
        "100.100.100.200",
        "192.0.0.192",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
    ),
    *(
        "example.com@127.0.0.1",
        "example.com\\@127.0.0.1",
        "\uff11\uff12\uff17.1",
        "127。0。0。1",
        "①②⑦.0.0.1",
    ),
    *(
        "localhost",
        "LOCALHOST",
        "127.0.0.1.",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2001:0:7f00:1::]",
        "0x7f.1",
    ),
    *(
        "127.0.0.1%00.example.com",
        "127.0.0.1\0.example.com",
        "%31%32%37.0.0.1",
        "017700000001",
        "0x0000007f000001",
    ),
]
SCHEMES = [
    "file:///etc/passwd",
    "gopher://127.0.0.1:{port}/_x",
    "ftp://127.0.0.1:{port}/",
    "data:text/html,x",
]
EVERYTHING = [f"http://{host}:{{port}}/" for host in LITERALS] + SCHEMES
EVIL = "evil.test"
PEM = Path(__file__).parent / "safe.test.pem"
"""A certificate for `safe.test`, signed by itself, with its key."""


def names(site: LocalSite, *addresses: str) -> Net:
    return site.net(
        {EVIL: addresses, "localhost": (PRIVATE,), "example.com": (PUBLIC,)}, NetLimits(total_s=5)
    )


@pytest.mark.parametrize("written", EVERYTHING)
async def test_no_spelling_of_a_private_address_is_fetched(
    site: LocalSite, trap: LocalSite, written: str
) -> None:
    url = written.format(port=site.port)
    with pytest.raises(AddressRefused):
        await names(site, PRIVATE).get(url)
    assert (trap.connections, site.connections) == (0, 0)


@pytest.mark.parametrize("written", EVERYTHING)
async def test_no_redirect_leads_to_one(site: LocalSite, trap: LocalSite, written: str) -> None:
    url = written.format(port=site.port)
    site.page("/away", status=302, headers={"Location": url.replace("\0", "%00")})
    with pytest.raises(AddressRefused, match=r"redirects to|is not fetched"):
        await names(site, PRIVATE).get(site.url("/away"))
    assert (trap.connections, site.connections) == (0, 1)


@pytest.mark.parametrize(
    "addresses",
    [
        (PRIVATE,),
        (PUBLIC, PRIVATE),
        (PUBLIC, "::1"),
        ("fd00::1", PUBLIC),
        (*(f"93.184.215.{n}" for n in range(1, 20)), PRIVATE),
        ("::ffff:127.0.0.1", PUBLIC),
    ],
)
async def test_a_name_with_one_private_address_is_refused_whole(
    site: LocalSite, trap: LocalSite, addresses: Sequence[str]
) -> None:
    net = names(site, *addresses)
    for url in (f"http://{EVIL}:{site.port}/", site.url(f"/to?http://{EVIL}:{site.port}/")):
        with pytest.raises(
            AddressRefused, match=r"'evil\.test' is not fetched: its address .* only the public web"
        ):
            await net.get(url)
    assert (trap.connections, site.connections) == (0, 1)


async def test_a_name_that_is_bound_anew_gains_nothing_in_a_thousand_tries(
    site: LocalSite, trap: LocalSite
) -> None:
    """The name is public at one look-up and private at the next, first and last, directly and
    behind a redirect."""
    resolver = Rebinding([(PUBLIC,), (PRIVATE,), (PUBLIC,), (PUBLIC,), (PRIVATE,)])
    net = site.spoken_to(Net(NetLimits(total_s=20), resolve=resolver, allow={(PUBLIC, site.port)}))
    reached = refused = 0
    for attempt in range(1000):
        path = "/hop?1" if attempt % 2 else "/"
        try:
            reached += (await net.get(f"http://rebind.test:{site.port}{path}")).status == 200
        except AddressRefused:
            refused += 1
    assert trap.connections == 0
    assert reached + refused == 1000 and min(reached, refused) > 200
    assert resolver.asked == site.connections + refused, (
        "a name is looked up once for each connection"
    )


async def test_a_thousand_redirects_to_this_machine_reach_nothing(
    site: LocalSite, trap: LocalSite
) -> None:
    net = names(site, PRIVATE)
    for _ in range(1000):
        with pytest.raises(AddressRefused):
            await net.get(site.url(f"/to?http://127.0.0.1:{site.port}/"))
    assert (trap.connections, site.connections) == (0, 1000)


async def test_a_plain_connection_is_judged_alike(site: LocalSite, trap: LocalSite) -> None:
    net = names(site, PRIVATE)
    for host in (EVIL, PRIVATE, "localhost", "127.1", "::1", "::ffff:127.0.0.1", "169.254.169.254"):
        with pytest.raises(AddressRefused):
            await net.connect(host, site.port)
    async with await net.connect(site.host, site.port) as stream:
        await stream.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await stream.receive()).startswith(b"HTTP/1.1 200")
    assert trap.connections == 0
    with pytest.raises(NetError, match=r"'site\.test' could not be reached: it refused the conn"):
        await Net(resolve=names(site)._resolve, allow={(PUBLIC, 9)}).connect(site.host, 9)


async def test_this_machine_is_not_reached_by_its_public_address_either(site: LocalSite) -> None:
    """An address of this machine is refused although its number looks public; here another check
    stands for it."""
    net = site.spoken_to(Net(resolve=Rebinding([(PUBLIC,)])))
    with pytest.raises(AddressRefused, match="this machine"):
        await net.get(site.url())
    assert site.connections == 0


def test_no_socket_is_made_for_another_address() -> None:
    """The last look, should the library connect to something else than it was told."""
    make = _make_socket_factory(("1.1.1.1", "2606:4700::1111"))
    make((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("1.1.1.1", 443))).close()
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with pytest.raises(OSError, match="was not checked"):
            make((family, socket.SOCK_STREAM, 0, "", (address, 443)))


async def test_what_a_person_allows_is_reached_and_nothing_beside_it(
    site: LocalSite, trap: LocalSite
) -> None:
    net = site.spoken_to(Net()).with_allowed_host("LOCALHOST.", trap.port)
    assert (await net.get(f"http://localhost:{trap.port}/")).status == 200
    with pytest.raises(AddressRefused):
        await net.get(f"http://localhost:{trap.port + 1}/")
    with pytest.raises(AddressRefused):
        await net.get(f"http://127.0.0.1:{trap.port}/")
    trap.page("/away", status=302, headers={"Location": f"http://127.0.0.1:{trap.port}/"})
    with pytest.raises(AddressRefused):
        await net.get(f"http://localhost:{trap.port}/away")


async def test_a_closed_one_says_so(site: LocalSite) -> None:
    with pytest.raises(NetError, match="nothing is fetched here"):
        net = Net(closed="nothing is fetched here.", allow={(PUBLIC, site.port)})
        await site.spoken_to(net).get(f"http://{PUBLIC}:{site.port}/")
    assert site.connections == 0


async def test_keys_stay_with_the_host_that_they_were_meant_for(site: LocalSite) -> None:
    net = site.net({"other.test": (PUBLIC,)})
    headers = {"Authorization": "Bearer k", "X-Subscription-Token": "k", "Accept-Language": "de"}
    await net.get(site.url(f"/to?http://other.test:{site.port}/"), headers)
    await net.get(site.url("/hop?1"), headers)
    first, other, _, same = site.requests
    assert first.headers["authorization"] == same.headers["authorization"] == "Bearer k"
    assert {"authorization", "x-subscription-token"} & other.headers.keys() == set()
    assert (
        other.headers["accept-language"] == "de"
        and other.headers["host"] == f"other.test:{site.port}"
    )


async def test_cookies_are_neither_kept_nor_sent(site: LocalSite) -> None:
    assert (await site.net().get(site.url("/cookies"))).status == 200
    assert [seen.target for seen in site.requests] == ["/cookies", "/"]
    assert not any("cookie" in seen.headers for seen in site.requests)


async def test_proxies_of_the_environment_are_not_asked(
    site: LocalSite, trap: LocalSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "https_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{trap.port}")
    monkeypatch.setenv("no_proxy", "")
    assert (await site.net().get(site.url())).status == 200
    assert trap.connections == 0


async def test_a_request_with_a_body_is_not_sent_on(site: LocalSite) -> None:
    request = OutboundRequest(
        parse_url(site.url("/to?/")), {"Authorization": "Bearer k"}, "POST", b"{}"
    )
    with pytest.raises(NetError, match="redirects the request"):
        await site.net().send(request)
    assert [(seen.method, seen.body) for seen in site.requests] == [("POST", b"{}")]


async def test_encryption_is_not_given_up_on_the_way(site: LocalSite) -> None:
    """A server with TLS for `safe.test` that leads to a page without."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(PEM)
    client = ssl.create_default_context(cafile=str(PEM))
    answer = f"HTTP/1.1 302 Found\r\nLocation: {site.url()}\r\nContent-Length: 0\r\n\r\n".encode()
    names_asked: list[str | None] = []
    server.sni_callback = lambda _, name, __: names_asked.append(name)

    async def serve(stream: AnyByteStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(answer)

    plain = await anyio.create_tcp_listener(local_host=PUBLIC)
    listener = TLSListener(plain, server)
    port = plain.extra(SocketAttribute.local_port)
    resolve = Rebinding([(PUBLIC,)])
    net = Net(
        NetLimits(total_s=10),
        resolve=resolve,
        allow={(PUBLIC, port), (PUBLIC, site.port)},
        tls=client,
    )
    async with anyio.create_task_group() as group:
        group.start_soon(listener.serve, serve)
        with pytest.raises(AddressRefused, match="without encryption: not followed"):
            await net.get(f"https://safe.test:{port}/")
        assert names_asked == ["safe.test"], (
            "the name is asked for, although an address is connected to"
        )
        with pytest.raises(NetError, match="certificate is not valid"):
            await net.get(f"https://other.test:{port}/")
        with pytest.raises(NetError, match="certificate is not valid"):
            await Net(resolve=resolve, allow={(PUBLIC, port)}).get(f"https://safe.test:{port}/")
        group.cancel_scope.cancel()
    await listener.aclose()
    assert site.connections == 0


async def test_a_name_that_hangs_holds_up_nobody() -> None:
    """Neither this fetch beyond its time, nor the look-ups of others."""
    hanging, released = anyio.Event(), anyio.Event()

    async def hang(host: str, port: int) -> Sequence[str]:
        hanging.set()
        await released.wait()
        return ["1.1.1.1"]

    async with anyio.create_task_group() as group:

        async def fetch() -> None:
            with pytest.raises(NetError, match=r"took longer than 0\.2 s"):
                await Net(NetLimits(total_s=0.2), resolve=hang).get("http://slow.test/")
            released.set()

        group.start_soon(fetch)
        await hanging.wait()
    assert await SystemNames(1)("127.0.0.1", 80) == ["127.0.0.1"]
    with pytest.raises(NetError, match=r"the host name 'nowhere\.invalid' was not found"):
        await Net().get("http://nowhere.invalid/")
