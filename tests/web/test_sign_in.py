"""Signing in at a provider: the way there and back, who is let in, and what is not believed."""

from __future__ import annotations

import hmac
import time
import warnings
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import jwt
import msgspec
import pytest
from cryptography.hazmat.primitives import serialization

from deskhand.config.clock import SystemClock
from deskhand.config.config import Config, Home, Settings
from deskhand.net.client import Net
from deskhand.secrets.redaction import Redactor
from deskhand.testing.clock import SetClock
from deskhand.types.errors import ConfigError, Refused
from deskhand.types.people import Identity
from deskhand.web.oidc_provider import Provider
from deskhand.web.settings import SignInConfig, check_sign_in
from deskhand.web.sign_in_pages import COOKIE

from .liar import CLIENT, EMAIL, Liar, lying
from .served import Served, serving

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of its own libraries
    from oidc_provider_mock import User, run_server_in_thread


@asynccontextmanager
async def signing_in(home: Path, issuer: str, **config: Any) -> AsyncIterator[Served]:
    sign_in = {"issuer": issuer, "client_id": CLIENT, "label": "Example", **config}
    environment = {"SIGN_IN_SECRET": "s3cret"}
    async with serving(home, web={"sign_in": sign_in}, environment=environment) as served:
        await served.people.add_user("ann", "member", Identity("sign-in", "Ann@Example.org"))
        yield served


@pytest.fixture
async def liar() -> AsyncIterator[Liar]:
    async with lying() as found:
        yield found


class Browser:
    """Follows no redirect by itself, and keeps cookies."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.cookies: dict[str, str] = {}

    async def get(self, path: str) -> tuple[int, str, str]:
        """Status, where it leads, and what is shown."""
        sent = {"cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        async with self.served.http.get(
            self.served.url + path, headers=sent if self.cookies else {}, allow_redirects=False
        ) as answer:
            for name, morsel in answer.cookies.items():
                if morsel.value:
                    self.cookies[name] = morsel.value
                else:
                    self.cookies.pop(name, None)
            return answer.status, answer.headers.get("location", ""), await answer.text()

    async def begin(self) -> dict[str, str]:
        """What the provider is asked."""
        status, where, shown = await self.get("/auth/sign-in")
        assert status == 303, shown
        return {name: values[0] for name, values in parse_qs(urlsplit(where).query).items()}


async def redeem(served: Served, where: str) -> dict[str, Any]:
    """Who the page is, with the link to which the browser was sent."""
    assert where.startswith("/#login=")
    client = served.client(origin=served.url, x_deskhand="1")
    async with served.http.post(
        f"{served.url}/api/login",
        json={"code": where.removeprefix("/#login=")},
        headers=client.headers,
    ) as answer:
        assert answer.status == 204, await answer.text()
        cookie = answer.cookies["deskhand"].value
    page = served.client(cookie=f"deskhand={cookie}")
    found: dict[str, Any] = await page.get("/api/auth/me")
    return found


# With a provider that others keep


@pytest.mark.filterwarnings("ignore")  # those of its libraries
async def test_the_whole_way(tmp_path: Path) -> None:
    people = [
        User(sub="1", claims={"email": EMAIL, "email_verified": True}),
        User(sub="2", claims={"email": "eve@example.org", "email_verified": True}),
    ]
    with run_server_in_thread(user_claims=people) as provider:
        issuer = f"http://localhost:{provider.server_port}"
        async with signing_in(tmp_path, issuer, secret_env="SIGN_IN_SECRET") as served:
            for subject, known in (("1", True), ("2", False)):
                browser = Browser(served)
                status, where, _ = await browser.get("/auth/sign-in")
                assert status == 303 and where.startswith(issuer)
                async with (
                    aiohttp.ClientSession() as http,
                    http.post(where, data={"sub": subject}, allow_redirects=False) as answer,
                ):
                    back = answer.headers["location"]
                assert back.startswith(f"{served.url}/auth/callback?")
                status, where, shown = await browser.get(back.removeprefix(served.url))
                assert COOKIE not in browser.cookies
                if known:
                    assert status == 303, shown
                    assert (await redeem(served, where))["user"] == "ann"
                else:
                    assert status == 403 and "Nobody here has the address eve@example.org" in shown
                    notes = await served.people.list_audit_notes()
                    assert notes[0].what == "sign-in refused" and "eve" in notes[0].who


async def test_the_page_says_where_to_sign_in(tmp_path: Path, liar: Liar) -> None:
    async with signing_in(tmp_path, liar.url) as served:
        shown = await served.client().get("/api/auth/config")
        assert shown["enabled"] is True and shown["provider"] == "Example"
        assert shown["google_client_id"] is None


async def test_without_a_provider_there_is_no_such_way(served: Served) -> None:
    assert (await served.client().get("/api/auth/config"))["enabled"] is False
    status, shown = await served.client().ask("GET", "/auth/sign-in")
    assert status == 404 and "web.sign_in.issuer" in str(shown)


# With one that lies


async def come_back(
    served: Served, liar: Liar, browser: Browser | None = None, **claims: Any
) -> tuple[int, str]:
    """Sign in with an ID token that says this. Returns the status, and what is shown."""
    browser = browser or Browser(served)
    asked = await browser.begin()
    liar.claims = {"nonce": asked["nonce"], **claims}
    status, where, shown = await browser.get(f"/auth/callback?code=c&state={asked['state']}")
    if status == 303:
        assert (await redeem(served, where))["user"] == "ann"
    return status, shown


async def test_an_honest_word_is_believed(tmp_path: Path, liar: Liar) -> None:
    async with signing_in(tmp_path, liar.url) as served:
        assert (await come_back(served, liar))[0] == 303
        (asked,) = liar.asked
        assert asked["code"] == "c" and len(asked["code_verifier"]) >= 43
        assert asked["redirect_uri"] == f"{served.url}/auth/callback"
        assert (await come_back(served, liar, azp=CLIENT, aud=[CLIENT]))[0] == 303


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"nonce": "of another sign-in"}, "another sign-in"),
        ({"nonce": None}, "another sign-in"),
        ({"iss": "https://accounts.google.com"}, "another provider"),
        ({"aud": "another-client"}, "another program"),
        ({"aud": [CLIENT, "another-client"]}, "another program"),
        ({"aud": [CLIENT], "azp": "another-client"}, "another program"),
        ({"exp": 1.0}, "does not hold now"),
        ({"exp": None}, "how long it holds"),
        ({"iat": time.time() + 9_000}, "does not hold now"),
        ({"email_verified": False}, "no verified email"),
        ({"email_verified": "true"}, "no verified email"),
        ({"email_verified": None}, "no verified email"),
        ({"email": None}, "no verified email"),
        ({"sub": None}, "names nobody"),
        ({"email": "ann@example.org.evil"}, "Nobody here has the address"),
        ({"email": "ann@example.org\x00"}, "Nobody here has the address"),
        ({"email": "<b>ann</b>@example.org"}, "&lt;b&gt;ann"),
    ],
)
async def test_what_is_not_believed(
    tmp_path: Path, liar: Liar, claims: dict[str, Any], why: str
) -> None:
    async with signing_in(tmp_path, liar.url) as served:
        status, shown = await come_back(served, liar, **claims)
        assert status == 403 and why in shown
        assert len(await served.people.tokens()) == 1, "that of the test"


async def test_signatures_of_others_are_not_believed(tmp_path: Path, liar: Liar) -> None:
    claims = jwt.decode(liar.id_token(), options={"verify_signature": False})
    public = liar.key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    header, body = (
        urlsafe_b64encode(part).rstrip(b"=")
        for part in (b'{"alg":"HS256","kid":"k1"}', liar.id_token().split(".")[1].encode())
    )
    forged = hmac.digest(public, header + b"." + body, "sha256")
    hs256 = b".".join((header, body, urlsafe_b64encode(forged).rstrip(b"="))).decode()
    tokens = {
        "kind that is not accepted": [jwt.encode(claims, "", "none", {"kid": "k1"}), hs256],
        "signature is wrong": [
            jwt.encode(claims, liar.other, "RS256", {"kid": "k1"}),
            liar.id_token()[:-8] + "AAAAAAAA",
            "a.b.c",
            urlsafe_b64encode(b"[" * 4_000).decode() + ".b.c",
        ],
        "key that the provider does not have": [
            jwt.encode(claims, liar.other, "RS256", {"kid": "k2"})
        ],
    }
    async with signing_in(tmp_path, liar.url) as served:
        for why, forgeries in tokens.items():
            for liar.token in forgeries:
                status, shown = await come_back(served, liar)
                assert status == 403 and why in shown
        assert liar.keys_asked <= 2, "an unknown key is not asked for with every token"


async def test_a_code_without_its_browser_is_worth_nothing(tmp_path: Path, liar: Liar) -> None:
    """What an attacker began, or another window, or the same one a second time."""
    async with signing_in(tmp_path, liar.url) as served:
        attacker = Browser(served)
        asked = await attacker.begin()
        liar.claims = {"nonce": asked["nonce"]}
        victim = Browser(served)
        back = f"/auth/callback?code=c&state={asked['state']}"
        assert (await victim.get(back))[0] == 400, "no cookie"
        await victim.begin()
        assert (await victim.get(back))[0] == 400, "the cookie of another sign-in"
        assert liar.asked == []
        assert (await attacker.get(back))[0] == 303
        assert (await attacker.get(back))[0] == 400, "a second time"


async def test_another_provider_may_not_answer(tmp_path: Path, liar: Liar) -> None:
    async with signing_in(tmp_path, liar.url) as served:
        browser = Browser(served)
        asked = await browser.begin()
        back = f"/auth/callback?code=c&state={asked['state']}&iss=https://evil.example"
        status, _, shown = await browser.get(back)
        assert status == 400 and "Another provider" in shown and liar.asked == []


async def test_nobody_is_sent_elsewhere(tmp_path: Path, liar: Liar) -> None:
    async with signing_in(tmp_path, liar.url) as served:
        browser = Browser(served)
        asked = await browser.begin()
        liar.claims = {"nonce": asked["nonce"]}
        more = "&next=https://evil.example&redirect_uri=https://evil.example&return_to=//evil"
        status, where, _ = await browser.get(f"/auth/callback?code=c&state={asked['state']}{more}")
        assert status == 303 and where.startswith("/#login=")


async def test_a_provider_that_says_it_is_another(tmp_path: Path, liar: Liar) -> None:
    liar.described = {"issuer": "https://accounts.google.com"}
    async with signing_in(tmp_path, liar.url) as served:
        status, _, shown = await Browser(served).get("/auth/sign-in")
        assert status == 502 and "says that it is" in shown and "web.sign_in.issuer" in shown


async def test_a_provider_that_is_away(tmp_path: Path) -> None:
    async with signing_in(tmp_path, "http://127.0.0.1:29999") as served:
        status, _, shown = await Browser(served).get("/auth/sign-in")
        assert status == 502 and "is not reached" in shown


# ID tokens as credentials


async def test_an_id_token_is_a_credential(tmp_path: Path, liar: Liar) -> None:
    async with signing_in(tmp_path, liar.url) as served:
        client = served.client(authorization=f"Bearer {liar.id_token()}")
        found = await client.get("/api/auth/me")
        assert (found["user"], found["roles"], found["browser"]) == ("ann", ["member"], False)
        for claims in ({"aud": "x"}, {"exp": 1.0}, {"email": "eve@example.org"}):
            wrong = served.client(authorization=f"Bearer {liar.id_token(**claims)}")
            assert (await wrong.ask("GET", "/api/auth/me"))[0] == 401
        cookie = served.client(cookie=f"deskhand={liar.id_token()}")
        assert (await cookie.ask("GET", "/api/auth/me"))[0] == 401


async def test_an_id_token_in_the_address_of_a_socket(tmp_path: Path, liar: Liar) -> None:
    """It ends by itself; a token of ours is not accepted there."""
    async with signing_in(tmp_path, liar.url) as served:
        owner = served.owner.headers["authorization"].removeprefix("Bearer ")
        path = "/ws/agent?token="
        async with served.http.ws_connect(served.url + path + liar.id_token()):
            pass
        for token in (owner, "a.b.c", liar.id_token(aud="x")):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await served.http.ws_connect(served.url + path + token)
            assert refused.value.status == 401


async def test_a_key_that_was_taken_back_is_not_believed_for_ever(liar: Liar) -> None:
    clock = SetClock(time.time())
    provider = Provider(SignInConfig(liar.url, CLIENT), "", Net(), clock)
    token = liar.id_token(exp=time.time() + 9_000)
    assert (await provider.verify(token)).email == EMAIL
    liar.key = liar.other
    clock.advance(3_601)
    with pytest.raises(Refused, match="signature is wrong"):
        await provider.verify(token)


# Settings


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (SignInConfig("https://accounts.google.com"), "both"),
        (SignInConfig(client_id="x"), "both"),
        (SignInConfig("http://accounts.google.com", "x"), "https://"),
        (SignInConfig("accounts.google.com", "x"), "accounts.google.com"),
        (SignInConfig("https://localhost:9", "x"), "port 9"),
    ],
)
def test_settings_that_cannot_be(config: SignInConfig, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        check_sign_in(config)


def test_settings_that_can_be() -> None:
    for config in (
        SignInConfig(),
        SignInConfig("https://accounts.google.com", "x"),
        SignInConfig("https://login.example.org:8443/realms/home", "x"),
        SignInConfig("http://localhost:8080/realms/home", "x"),
    ):
        check_sign_in(config)


async def test_google_has_two_names(liar: Liar) -> None:
    """https://developers.google.com/identity/openid-connect/openid-connect"""
    provider = Provider(
        SignInConfig("https://accounts.google.com", CLIENT), "", Net(), SystemClock()
    )
    provider._keys = {"k1": jwt.PyJWK.from_dict((await keys_of(liar))["keys"][0], "RS256")}
    provider._keys_at = SystemClock().monotonic()
    for issuer in ("https://accounts.google.com", "accounts.google.com"):
        assert (await provider.verify(liar.id_token(iss=issuer))).email == EMAIL
    with pytest.raises(Refused, match="another provider"):
        await provider.verify(liar.id_token(iss="http://accounts.google.com"))


async def keys_of(liar: Liar) -> Any:
    async with aiohttp.ClientSession() as http, http.get(f"{liar.url}/keys") as answer:
        return await answer.json()


def test_the_secret_of_this_client_is_one(tmp_path: Path) -> None:
    """Whatever its variable is called."""
    sign_in = {"issuer": "https://id.test", "client_id": "desk", "secret_env": "ID_TEST"}
    config = msgspec.convert({"web": {"sign_in": sign_in}}, Config)
    hide = Redactor(Settings(Home(tmp_path), config, (), {"ID_TEST": "abcdef0123456789"}))
    assert "abcdef" not in hide("I sent abcdef0123456789 to the provider")
