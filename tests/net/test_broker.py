"""A secret is put in at the proxy for exactly its host, replaces what the client sent, and never
comes back."""

from __future__ import annotations

import base64
import gzip
import json
import ssl

import pytest

from deskhand.net.egress_secrets import (
    BEARER,
    HeldSecret,
    SecretBroker,
    SecretRule,
    Withheld,
    normalize_secret_rule,
)
from deskhand.testing.egress import EchoServer, Lab, everything, lab
from deskhand.types.errors import ConfigError
from deskhand.types.secret_search import SecretSearch
from deskhand.types.secrets import MIN_SECRET_CHARS, Scrubber, list_secret_forms

TOKEN = "canary-token/+7f3a-äß"
PLAIN = "canary-token-7f3a91"
HOST = "api.test"


def held(value: str = PLAIN, **rule: object) -> HeldSecret:
    return HeldSecret("github", value, (SecretRule(HOST, **rule),))  # type: ignore[arg-type]


def own(here: Lab, *secrets: HeldSecret) -> None:
    here.allow(HOST, "other.test")
    here.secrets += secrets or (held(),)


def auth(request: bytes) -> list[bytes]:
    head = request.partition(b"\r\n\r\n")[0]
    return [line for line in head.split(b"\r\n") if line.lower().startswith(b"authorization:")]


GET = b"GET /user HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n"


async def test_it_is_put_in_over_tls_and_what_the_client_sent_is_replaced() -> None:
    server = EchoServer(lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    async with lab((HOST, 443, server)) as here:
        own(here)
        async with here.tunnel(f"{HOST}:443", inner=True) as stream:
            sent = b"AUTHORIZATION: Bearer mine\r\nCookie: a=b\r\nX-Kept: 1\r\n\r\n"
            said = await everything(stream, GET[:-2] + sent)
    assert said.endswith(b"ok\r\n0\r\n\r\n") or b"ok" in said
    assert auth(server.requests[0]) == [b"Authorization: Bearer " + PLAIN.encode()]
    assert b"X-Kept: 1" in server.requests[0] and b"Cookie" not in server.requests[0]


async def test_plain_http_leaves_as_https() -> None:
    server = EchoServer(lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    async with lab((HOST, 443, server)) as here:
        own(here)
        here.posing = False
        said = await here.say(
            b"GET http://api.test/user HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n"
        )
        assert b"200 OK" in said and auth(server.requests[0]) == [
            b"Authorization: Bearer " + PLAIN.encode()
        ]
        refused = await here.say(b"CONNECT api.test:443 HTTP/1.1\r\nHost: api.test\r\n\r\n")
    assert b"403" in refused and b"deskhand[secrets]" in refused and b"http://api.test/" in refused
    assert {use.port for use in here.uses} == {443}


async def test_another_host_never_gets_it() -> None:
    """Not by a redirect, not by the Host header, not by a target, and not with a certificate of its
    own."""
    elsewhere = (
        b"HTTP/1.1 302 Found\r\nLocation: http://other.test/steal\r\nContent-Length: 0\r\n\r\n"
    )
    server = EchoServer(lambda _: elsewhere)
    other = EchoServer()
    async with lab(
        (HOST, 443, server), ("other.test", 80, other), ("other.test", 443, other)
    ) as here:
        own(here)
        said = await here.say(
            b"GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n"
        )
        assert b"302" in said and b"Location: http://other.test/steal" in said
        assert not other.requests, "the proxy follows nothing"
        await here.say(
            b"GET http://other.test/steal HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n"
            b"Authorization: Bearer mine\r\n\r\n"
        )
        async with here.tunnel(f"{HOST}:443", inner=True) as stream:
            said = await everything(
                stream, b"GET / HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n"
            )
            assert b"421" in said
        async with here.tunnel(f"{HOST}:443", inner=True) as stream:
            said = await everything(
                stream, b"GET https://other.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n"
            )
            assert b"421" in said
    assert len(other.requests) == 1 and PLAIN.encode() not in other.requests[0]
    assert len(server.requests) == 1


async def test_a_server_without_a_valid_certificate_gets_nothing() -> None:
    server = EchoServer()
    async with lab((HOST, 443, server)) as here:
        own(here)
        here.trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        said = await here.say(b"GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n")
    assert b"502" in said and b"certificate is not valid" in said and not server.requests


@pytest.mark.parametrize(
    ("method", "target", "given"),
    [
        ("GET", "/repos/x", True),
        ("GET", "/repos/x?y=../..", True),
        ("GET", "/repos", False),
        ("POST", "/repos/x", False),
        ("GET", "/user", False),
        ("GET", "/reposx", False),
        ("GET", "/repos/../user", False),
        ("GET", "/repos/%2e%2e/user", False),
        ("GET", "/repos/..%2fuser", False),
        ("GET", "/repos//user", False),
        ("GET", "/repos/;/../user", False),
        ("GET", "//repos/x", False),
    ],
)
def test_only_requests_that_the_rule_means(method: str, target: str, given: bool) -> None:
    secret = held(methods=("GET",), paths=("/repos/",))
    sent = SecretBroker(HOST, [secret], [secret]).inject_headers(
        method, target, [(b"Authorization", b"mine"), (b"X", b"1")]
    )
    wanted = [(b"Authorization", b"Bearer " + PLAIN.encode())] if given else []
    assert sent == [(b"X", b"1"), *wanted]


def test_headers_of_other_shapes() -> None:
    basic = held(header="Authorization: Basic {basic:x-access-token}")
    key = held(header="X-Api-Key: {}")
    assert SecretBroker(HOST, [key], []).inject_headers("GET", "/", [(b"x-api-key", b"mine")]) == [
        (b"X-Api-Key", PLAIN.encode())
    ]
    (_, value), *_ = SecretBroker(HOST, [basic], []).inject_headers("GET", "/", [])
    assert base64.b64decode(value.split()[1]).decode() == f"x-access-token:{PLAIN}"


def test_a_handle_is_a_value_only_where_a_rule_says_so() -> None:
    secret = held(paths=("/a/",))
    broker = SecretBroker(HOST, [secret], [secret])
    assert (b"X-Key", PLAIN.encode()) in broker.inject_headers(
        "GET", "/a/b", [(b"X-Key", b"{{secret:github}}")]
    )
    for target, name in (("/b", "github"), ("/a/b", "other")):
        with pytest.raises(Withheld):
            broker.inject_headers("GET", target, [(b"X-Key", b"{{secret:%s}}" % name.encode())])
    with pytest.raises(Withheld, match="not allowed in a header"):
        SecretBroker(HOST, [held("a\r\nX-Evil: 12345")], []).inject_headers("GET", "/", [])


async def test_a_handle_for_a_host_without_secrets_is_not_sent() -> None:
    server = EchoServer()
    async with lab(("other.test", 80, server)) as here:
        own(here)
        request = (
            b"GET http://other.test/ HTTP/1.1\r\nHost: other.test\r\nX-Key: "
            b"{{secret:github}}\r\n\r\n"
        )
        said = await here.say(request)
    assert (
        b"403" in said and b"deskhand secrets rule NAME other.test" in said and not server.accepted
    )


async def test_what_a_server_echoes_is_taken_out() -> None:
    """In headers and bodies, in every form, wherever the pieces are cut."""

    def echo(_: bytes) -> bytes:
        shown = [
            PLAIN,
            base64.b64encode(f"user:{PLAIN}".encode()).decode(),
            PLAIN.encode().hex(),
            json.dumps(PLAIN),
        ]
        body = "|".join(shown).encode() * 50
        chunks = b"".join(b"7\r\n%s\r\n" % body[at : at + 7] for at in range(0, len(body) - 6, 7))
        head = (
            f"HTTP/1.1 200 {PLAIN}\r\nX-Echo: {PLAIN}\r\nSet-Cookie: "
            f"t={PLAIN}\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        return head.encode() + chunks + b"0\r\n\r\n"

    async with lab((HOST, 443, EchoServer(echo))) as here:
        own(here)
        said = await here.say(
            b"GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n"
        )
    assert b"{{secret:github}}" in said
    joined = b"".join(line for line in said.split(b"\r\n"))
    assert not [form for form in list_secret_forms(PLAIN) if form.encode() in joined]


async def test_an_answer_that_cannot_be_looked_through_is_not_given() -> None:
    packed = gzip.compress(PLAIN.encode())
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    server = EchoServer(lambda _: head + packed)
    async with lab((HOST, 443, server)) as here:
        own(here)
        asked = (
            b"GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\nAccept-Encoding: "
            b"gzip\r\nRange: bytes=0-5\r\n\r\n"
        )
        said = await here.say(asked)
    assert b"502" in said and b"compressed" in said
    assert b"identity" in server.requests[0] and b"Range" not in server.requests[0]


@pytest.mark.parametrize(
    "rule",
    [
        {"host": "*.api.test"},
        {"host": "192.0.2.7"},
        {"host": "api.test/x"},
        {"host": HOST, "header": "Authorization"},
        {"host": HOST, "header": "Authorization: Bearer"},
        {"host": HOST, "header": "Host: {}"},
        {"host": HOST, "header": "Content-Length: {}"},
        {"host": HOST, "header": "X-Key: {}\r\nX-Evil: 1"},
        {"host": HOST, "header": "X Key: {}"},
        {"host": HOST, "methods": ("G T",)},
        {"host": HOST, "paths": ("repos",)},
        {"host": HOST, "paths": ("/a/../b",)},
        {"host": HOST, "who": ()},
    ],
)
def test_a_rule_that_would_not_do_what_it_says(rule: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        normalize_secret_rule(SecretRule(**rule))  # type: ignore[arg-type]
    assert normalize_secret_rule(SecretRule("API.test.:8443", methods=("get",))) == SecretRule(
        HOST, BEARER, ("GET",), port=8443
    )


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 10_000])
def test_a_stream_is_scrubbed_as_a_whole_would_be(size: int) -> None:
    values = [TOKEN, PLAIN, PLAIN + "-longer", "canary-token"]
    text = (
        "".join(f"x{form}" for value in values for form in list_secret_forms(value)) + "canary-tok"
    )
    data = text.encode()
    named = [(value, f"<{at}>") for at, value in enumerate(values)]
    scrubber = Scrubber(named)
    out = (
        b"".join(scrubber.feed(data[at : at + size]) for at in range(0, len(data), size))
        + scrubber.flush()
    )
    assert out == Scrubber(named).scrub(data) and out.endswith(b"xcanary-tok"[1:])
    assert not [
        form for value in values for form in list_secret_forms(value) if form.encode() in out
    ]


@pytest.mark.parametrize("before", range(4))
def test_base64_is_found_in_the_middle_of_more(before: int) -> None:
    wrapped = base64.b64encode(b"u" * before + b":" + TOKEN.encode() + b"-and-more").decode()
    hidden = SecretSearch({TOKEN: "{{secret:x}}"}).redact
    left = hidden(wrapped).partition("{{secret:x}}")
    assert left[1], wrapped
    assert len(wrapped) - len(left[0]) - len(left[2]) >= len(TOKEN.encode()) * 4 // 3 - 3
    assert all(len(form) >= MIN_SECRET_CHARS for form in list_secret_forms("12345678"))
