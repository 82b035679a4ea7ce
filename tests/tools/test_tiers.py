"""The further ways of `web_fetch`: a real Chromium in the real sandbox, and a site that does
everything nasty."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from anyio.abc import ByteStream
from msgspec.structs import replace

from deskhand.net.client import NetLimits
from deskhand.net.egress import EgressHost, find_target_problem
from deskhand.net.egress_door import Slots, open_egress_socket
from deskhand.net.egress_proxy import Use
from deskhand.net.egress_secrets import SecretBroker
from deskhand.testing.site import PRIVATE, PUBLIC, LocalSite
from deskhand.tools.base import Done
from deskhand.tools.command_network import CommandNetwork, NetworkUser
from deskhand.tools.render import INSTALL_COMMAND, Rendered
from deskhand.tools.tiers import make_further_tiers
from deskhand.tools.web import WebFetch, WebFetchConfig
from tests.tools.conftest import Hands, OtherHost, text_of
from tests.tools.test_convert import forget_peak, peak_bytes

SCRIPTED = """<title>A shop</title><p id=price>loading …</p><p class=x>unseen</p><style>.x{display:none}</style>
<script>setTimeout(() => { document.getElementById('price').textContent = 'It costs ' + 6 * 7 }, 200)</script>"""


@pytest.fixture
async def site() -> AsyncIterator[LocalSite]:
    async with LocalSite() as running:
        yield running


class Web:
    """Calls the tool; the site counts as public for its client, and for the browser's proxy. `uses`
    are those of the proxy."""

    def __init__(self, hands: Hands, site: LocalSite) -> None:
        self._hands = hands
        self.site = site
        self.net = site.net(
            {"other.test": (PUBLIC,), "evil.test": (PRIVATE,)}, NetLimits(total_s=10)
        )
        self.tool = WebFetch(WebFetchConfig(pause_s=0.0, cache_min=0.0), make_further_tiers())
        self.uses: list[Use] = []
        self.network_users: list[NetworkUser] = []

    @asynccontextmanager
    async def open_network(self, network_user: NetworkUser) -> AsyncIterator[CommandNetwork]:
        """As a process gives them, but for the site's port."""
        self.network_users.append(network_user)
        network = CommandNetwork(reached={}, refused={})

        policy = BrowserPolicy(self, network_user, network)
        async with open_egress_socket(policy, Slots()) as network.path:
            yield network

    async def done(self, path: str, tier: str = "rendered", **arguments: Any) -> Done:
        context = await self._hands.context()
        host = OtherHost(context.reach.host, network=self.open_network)
        context = replace(context, reach=replace(context.reach, net=self.net, host=host))
        url = self.site.url(path) if path.startswith("/") else path
        given = {"url": url, "tier": tier, "wait_s": 0.5, "timeout_s": 50, **arguments}
        outcome = await self.tool.run(msgspec.Raw(msgspec.json.encode(given)), context)
        assert isinstance(outcome, Done)
        return outcome

    async def __call__(self, path: str, **arguments: Any) -> str:
        return text_of(await self.done(path, **arguments))


class BrowserPolicy:
    """What the proxy of the browser lets through: the site's port on three names."""

    def __init__(self, web: Web, network_user: NetworkUser, network: CommandNetwork) -> None:
        self._web = web
        self._traveller = network_user
        self._network = network

    async def find_refusal(self, host: str, port: int) -> str:
        site = self._web.site
        entries = [
            EgressHost(name, ports=(site.port,)) for name in (site.host, "other.test", "evil.test")
        ]
        return find_target_problem(host, port, public=self._traveller.public, entries=entries)

    async def get_label(self) -> object:
        return None

    async def connect(self, host: str, port: int) -> ByteStream:
        return await self._web.net.connect(host, port)

    def secrets_for(self, host: str, port: int) -> SecretBroker | None:
        return None

    def client_context(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    def server_context(self, host: str) -> ssl.SSLContext | None:
        return None

    def record_use(self, use: Use) -> None:
        self._web.uses.append(use)
        if use.refused:
            self._network.refused[use.host] = use.refused


@pytest.fixture
def web(hands: Hands, site: LocalSite) -> Web:
    return Web(hands, site)


async def test_a_page_made_by_scripts_is_read(web: Web, site: LocalSite) -> None:
    site.page("/shop", SCRIPTED)
    assert "It costs" not in await web("/shop", tier="plain")
    done = await web.done("/shop")
    text = text_of(done)
    assert "[title: A shop]" in text and text.endswith("It costs 42")
    assert "unseen" not in text and "hidden elements (1)" in text
    assert [part.label.integrity for part in done.parts] == ["untrusted"]
    (seen, *_) = [each for each in site.requests if each.target == "/shop"][1:]
    assert "Chrome/" in seen.headers["user-agent"] and "Headless" not in seen.headers["user-agent"]


async def test_where_scripts_lead_is_where_it_is_from(web: Web, site: LocalSite) -> None:
    site.page("/on", f"<script>location = 'http://other.test:{site.port}/there'</script>")
    site.page("/there", "<p>arrived</p>")
    text = await web("/on", selector="p")
    assert f"[from http://other.test:{site.port}/there]" in text and text.endswith("arrived")


async def test_it_asks_nobody_but_the_site(web: Web, site: LocalSite) -> None:
    """Neither its maker, nor name servers, nor anything beside the proxy; and its network_user carries
    no secrets."""
    await web("/", wait_s=3)
    assert {use.host for use in web.uses if not use.refused} == {site.host}
    assert {use.host for use in web.uses if use.refused} <= {"127.0.0.1"}
    assert [network_user.public for network_user in web.network_users] == [True]


HOSTILE = {
    "other addresses": """
        document.write('<iframe src="file:///etc/passwd"></iframe><embed src="file:///etc/passwd">')
        const a = document.createElement('a'); a.href = '/'; a.download = 'x'; a.click()
        window.open('file:///etc/passwd'); alert('stay'); confirm('here'); prompt('for ever')
        const ways = ['file:///etc/passwd', 'chrome://version', 'view-source:file:///etc/passwd', 'devtools://x/']
        ways.forEach((each, n) => setTimeout(() => { location = each }, n * 50))
        fetch('file:///etc/passwd').then(r => r.text()).then(t => document.body.append(t))""",
    "scripts never finish": "for (;;) {}",
    "scripts never finish later": "setTimeout(() => { for (;;) {} }, 300)",
    "words without end": "for (let i = 0; i < 200; i++) document.write('<p>' + 'word '.repeat(1e5))",
    "elements without end": "setInterval(() => { for (let i = 0; i < 1e5; i++) document.body.append('x') }, 1)",
    "work without end": "for (let i = 0; i < 4; i++) new Worker(URL.createObjectURL(new Blob(['for(;;){}'])))",
}


@pytest.mark.parametrize("does", HOSTILE)
async def test_hostile_scripts_gain_nothing_and_end(web: Web, site: LocalSite, does: str) -> None:
    site.page("/hostile", f"<p>Words.</p><script>{HOSTILE[does]}</script>")
    text = await web("/hostile", timeout_s=14)
    assert "root:" not in text and "Chromium" not in text
    assert "Words." in text or "could not be rendered" in text


async def test_memory_without_end_ends(web: Web, site: LocalSite) -> None:
    eat = (
        "const a = []; setInterval(() => { for (let i = 0; i < 50; i++) a.push(new Uint8Array(1 "
        "<< 24).fill(7)) }, 1)"
    )
    site.page("/eats", f"<p>Words.</p><script>{eat}</script>")
    await web("/", tier="browser")  # what that loads for good is not counted
    before = forget_peak()
    text = await web("/eats", timeout_s=25)
    assert peak_bytes() - before < 50_000_000, "the service itself takes no part in it"
    assert "could not be rendered" in text or text.endswith("Words.")
    assert (await web("/")).endswith("An ordinary page.")


async def test_nothing_of_this_machine_is_reached(web: Web, site: LocalSite) -> None:
    """By its addresses, names that mean it, sockets, beacons, WebRTC and prefetches."""
    async with LocalSite(PRIVATE, "private.test") as trap:
        addresses = [
            f"http://{host}:{trap.port}/"
            for host in ("127.0.0.1", "localhost", "[::1]", "0.0.0.0", "127.1")
        ]
        addresses += [f"http://evil.test:{site.port}/", "http://169.254.169.254/latest/meta-data/"]
        tries = "".join(
            f"fetch('{each}', {{mode: 'no-cors'}}).catch(() => 0);"
            f"navigator.sendBeacon('{each}', 'x'); new Image().src = '{each}';"
            f"try {{ new WebSocket('{each.replace('http', 'ws')}') }} catch (e) {{}}"
            for each in addresses
        )
        peer = (
            f"const p = new RTCPeerConnection({{iceServers: [{{urls: "
            f"'stun:127.0.0.1:{trap.port}'}},"
            f"{{urls: 'turn:127.0.0.1:{trap.port}?transport=tcp', username: 'a', "
            f"credential: 'b'}}]}});"
            "p.createDataChannel('x'); p.createOffer().then(o => p.setLocalDescription(o));"
            "p.onicecandidate = e => e.candidate && document.body.append(' CANDIDATE ' + "
            "e.candidate.candidate);"
        )
        hints = "".join(
            f"<link rel='{rel}' href='{each}'>"
            for each in addresses
            for rel in ("prefetch", "preconnect")
        )
        site.page("/inward", f"{hints}<p>Words.</p><script>{tries}{peer}</script>")
        text = await web("/inward", wait_s=2)
        assert "Words." in text and "CANDIDATE" not in text
        assert trap.connections == 0
    assert {use.host for use in web.uses if not use.refused} == {site.host}
    reasons = {use.host: use.refused for use in web.uses if use.refused}
    assert "only the public web can be reached" in reasons["evil.test"]


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://evil.test:{port}/", "only the public web can be reached"),
        ("http://nowhere.test:{port}/", "was not found: check its spelling"),
        ("file:///etc/passwd", "only https:// and http:// addresses are"),
        ("view-source:http://site.test:{port}/", "only https:// and http:// addresses are"),
        ("http://127.0.0.1:{port}/", "only the public web can be reached"),
    ],
)
async def test_what_is_not_fetched_starts_no_browser(
    web: Web, site: LocalSite, url: str, says: str
) -> None:
    done = await web.done(url.format(port=site.port))
    assert done.status == "error" and says in text_of(done)
    assert web.network_users == [] and site.requests == []


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/gone", "answered with 404"),
        ("/pdf", "it is a download, not a web page|it is application/pdf, not a web page"),
        ("/hangs-up", "answered with 502|could not be rendered"),
        (
            "/to?http://other.test:8080/",
            "other.test:8080 is not fetched: other.test can be reached on the ports",
        ),
        ("/led", "127.0.0.1 is not fetched: 127.0.0.1 is an IP address"),
    ],
)
async def test_what_cannot_be_rendered_is_said(
    web: Web, site: LocalSite, path: str, says: str
) -> None:
    site.page("/led", "<script>location = 'http://127.0.0.1/'</script>")
    site.page("/pdf", b"%PDF-1.4", headers={"Content-Type": "application/pdf"})
    done = await web.done(path)
    assert done.status == "error"
    assert any(each in text_of(done) for each in says.split("|")), text_of(done)


async def test_without_a_browser_it_says_how_to_get_one(web: Web, site: LocalSite) -> None:
    web.tool = WebFetch(WebFetchConfig(pause_s=0.0), {"rendered": Rendered(lambda: "")})
    text = await web("/")
    assert (
        f"which is not installed on this machine: {INSTALL_COMMAND}" in text and site.requests == []
    )


async def test_without_a_way_out_there_is_no_page(hands: Hands, web: Web, site: LocalSite) -> None:
    """Should the proxy ever be missing, nothing is reached beside it."""

    @asynccontextmanager
    async def none(network_user: NetworkUser) -> AsyncIterator[CommandNetwork]:
        yield CommandNetwork()

    web.open_network = none  # type: ignore[method-assign]  # another port
    assert "could not be rendered" in await web("/")
    assert site.requests == []


async def test_as_a_browser_it_greets_as_one(web: Web, site: LocalSite) -> None:
    assert (await web("/", tier="browser")).endswith("An ordinary page.")
    assert "sec-ch-ua" in site.requests[0].headers
    assert "only the public web can be reached" in await web(
        f"/to?http://evil.test:{site.port}/", tier="browser"
    )
