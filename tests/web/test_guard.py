"""Who is not let in, what they are told, and that nothing of theirs has happened."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import msgspec
import pytest

from deskhand.assembly.models import Models
from deskhand.config.config import read_settings
from deskhand.config.statements import load_statements
from deskhand.runtime.app import Parts, open_app
from deskhand.runtime.http_server import AppServer
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.clock import SetClock
from deskhand.testing.scripted import ScriptedModel
from deskhand.types.errors import ConfigError
from deskhand.types.identity import Principal
from deskhand.types.people import Grant
from deskhand.users.user_cache import Roster
from deskhand.users.users import LocalPeople
from deskhand.web.endpoints import ENDPOINTS, SOCKETS
from deskhand.web.errors import HttpProblem
from deskhand.web.guard import Credential, Guesses, client_of
from deskhand.web.routing import Endpoint

from .served import Client, Served, serving

OWNER = Principal("owner", ("owner",))
CODES = re.compile(r"[a-z_]+")


def address(path: str) -> str:
    """The path with something in the place of each parameter."""
    return re.sub(r"\{(\w+)(?::\w+)?\}", "a1", path)


ROUTES = [(endpoint.method, address(endpoint.path)) for endpoint in ENDPOINTS]
STATIC = [("GET", "/"), ("GET", "/app.js"), ("GET", "/no/such/thing"), ("HEAD", "/"), ("POST", "/")]
CHANGING = [(method, path) for method, path in ROUTES if method != "GET"]


async def changed(served: Served) -> tuple[int, ...]:
    """What would show that something was done."""
    rows = await served.app.store.sessions(OWNER, 1000)
    tokens = await served.people.tokens()
    return (
        served.app.store.last_inbox_id(),
        len(rows),
        len(tokens),
        len(await served.people.users()),
    )


def problem(answer: tuple[int, Any]) -> tuple[int, str]:
    """The status and the code of an error, which has the one shape."""
    status, body = answer
    assert isinstance(body, dict), body
    error = body["error"]
    openai = error.pop("param", "") != ""  # under /v1/ there is a shape of its own
    assert list(body) == (["error"] if openai else ["error", "detail"]), body
    if not openai:
        detail = body["detail"]
        assert detail == error["message"] or all(
            fault["loc"] and fault["msg"] for fault in detail
        ), body
    assert set(error) == {"code", "message", "type", "request_id"} and all(error.values()), error
    assert CODES.fullmatch(error["code"]) and error["message"].endswith((".", "?")), error
    return status, error["code"]


async def test_every_route_under_another_name(served: Served) -> None:
    """A name that somebody else's DNS points here is answered nothing, not even the page."""
    before = await changed(served)
    for method, path in [*ROUTES, *STATIC]:
        for host in (
            "attacker.test:8000",
            "127.0.0.1",
            "localhost:1",
            "127.0.0.1.:8000",
            "[::1]",
            "x@127.0.0.1",
        ):
            async with served.http.request(
                method, served.url + path, headers={**served.owner.headers, "host": host}
            ) as answer:
                assert answer.status == 421, (method, path, host)
                if method != "HEAD":
                    assert problem((421, await answer.json())) == (421, "wrong_host")
    for socket in SOCKETS:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await served.owner.ws(address(socket.path), headers={"host": "attacker.test:80"})
        assert refused.value.status == 421
    assert await changed(served) == before


async def test_pages_of_other_sites(served: Served) -> None:
    """With the cookie of a person who is logged in, as their browser would send it."""
    _, page = await served.browser()
    port = served.url.rpartition(":")[2]
    before = await changed(served)
    evil = [
        "https://evil.test",
        "null",
        f"http://localhost:{int(port) + 1}",
        "file://",
        f"http://evil.test:{port}",
    ]
    for method, path in CHANGING:
        for origin in evil:
            assert problem(await page.ask(method, path, {}, headers={"origin": origin})) == (
                403,
                "wrong_origin",
            )
        cross = {"sec-fetch-site": "cross-site"}
        assert problem(await page.ask(method, path, {}, headers=cross)) == (403, "wrong_origin")
    for socket in SOCKETS:
        for origin in evil:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await page.ws(address(socket.path), headers={"origin": origin})
            assert refused.value.status == 403
    assert await changed(served) == before


async def test_a_cookie_alone_changes_nothing(served: Served) -> None:
    """Without Origin, or without the header that a form of another site cannot send, or with both
    and a plain form."""
    _, page = await served.browser()
    without = {name: value for name, value in page.headers.items() if name != "origin"}
    silent = Client(served.http, served.url, without)
    forged = Client(
        served.http, served.url, {n: v for n, v in page.headers.items() if n != "x-deskhand"}
    )
    mixed = Client(
        served.http, served.url, {**served.owner.headers, "cookie": page.headers["cookie"]}
    )
    for method, path in CHANGING:
        assert problem(await silent.ask(method, path, {})) == (403, "wrong_origin")
        assert problem(await forged.ask(method, path, {})) == (403, "forged")
        assert problem(await mixed.ask(method, path, {})) == (403, "wrong_origin")
    words = {"text": "hello"}
    assert (await page.ask("POST", "/api/sessions/a/messages", words))[0] == 202
    plain = {"headers": {"content-type": "text/plain"}, "data": msgspec.json.encode(words)}
    assert problem(await page.ask("POST", "/api/sessions/b/messages", **plain)) == (415, "not_json")


async def test_what_was_rotated_is_dead_within_a_second(served: Served) -> None:
    """With a socket open and requests in use. The best of three counts: this machine may have other
    things to do."""
    took: list[float] = []
    for _ in range(3):
        row, client = await served.token()
        async with client.ws("/ws/activity") as socket:
            assert (await client.ask("GET", "/api/status"))[0] == 200
            status, made = await served.owner.ask("POST", f"/api/tokens/{row.id}/rotate")
            rotated = anyio.current_time()
            assert status == 200 and problem(await client.ask("GET", "/api/status")) == (
                401,
                "unauthenticated",
            )
            with anyio.fail_after(20):
                assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
            took.append(anyio.current_time() - rotated)
        fresh = served.client(authorization=f"Bearer {made['secret']}")
        assert (await fresh.ask("GET", "/api/status"))[0] == 200, "the new one holds"
    assert min(took) <= 1, took


async def test_without_a_credential_or_with_one_that_is_void(served: Served) -> None:
    stranger = served.client()
    before = await changed(served)
    for endpoint in ENDPOINTS:
        if endpoint.needs != "public":
            body: dict[str, str] | None = None if endpoint.method == "GET" else {}
            answer = await stranger.ask(endpoint.method, address(endpoint.path), body)
            wanted = (401, "unauthenticated")
            assert problem(answer) == wanted, endpoint.name
            ours = {"origin": served.url}
            assert problem(
                await stranger.ask(endpoint.method, address(endpoint.path), body, headers=ours)
            ) == (
                401,
                "unauthenticated",
            )
    for socket in SOCKETS:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await stranger.ws(address(socket.path), headers={"origin": served.url})
        assert refused.value.status == 401
    assert await changed(served) == before
    row, client = await served.token()
    assert (await client.ask("GET", "/api/status"))[0] == 200
    await served.people.revoke(row.id)
    assert problem(await client.ask("GET", "/api/status")) == (401, "unauthenticated")
    assert problem(await client.ask("GET", "/")) == (401, "unauthenticated")
    kept = served.owner.headers["authorization"]
    for near in (kept[:-1], kept + "x", kept.upper(), "Basic " + kept[7:]):
        status, _ = await served.client(authorization=near).ask("GET", "/api/status")
        assert status == 401, near
    assert problem(await served.client().ask("GET", f"/api/status?token={kept[7:]}")) == (
        401,
        "unauthenticated",
    )


async def test_expired(tmp_path: Path) -> None:
    clock = SetClock()
    async with serving(tmp_path, clock=clock) as served:
        _, secret = await served.people.make_token("owner", "short", lasts_s=60)
        client = served.client(authorization=f"Bearer {secret}")
        assert (await client.ask("GET", "/api/status"))[0] == 200
        clock.advance(61)
        assert problem(await client.ask("GET", "/api/status")) == (401, "unauthenticated")


async def test_a_scope_is_needed_for_each_route(served: Served) -> None:
    _, reader = await served.token(scopes=("read",))
    before = await changed(served)
    for endpoint in ENDPOINTS:
        if endpoint.needs not in ("public", "read"):
            body: dict[str, str] | None = None if endpoint.method in ("GET", "DELETE") else {}
            assert problem(await reader.ask(endpoint.method, address(endpoint.path), body)) == (
                403,
                "forbidden",
            ), endpoint.name
    assert await changed(served) == before


BAD = {
    "too large": (b'{"text": "' + b"x" * 1_000_001 + b'"}', "application/json", 413, "too_large"),
    "no json": (b'{"text": ', "application/json", 400, "bad_request"),
    "another type": (b'{"text": 1}', "application/json", 400, "bad_request"),
    "a list": (b"[]", "application/json", 400, "bad_request"),
    "nothing": (b"", "application/json", 400, "bad_request"),
    "too deep": (
        b'{"text": "x", "more": ' + b"[" * 40 + b"]" * 40 + b"}",
        "application/json",
        400,
        "bad_request",
    ),
    "far too deep": (b"[" * 900_000, "application/json", 400, "bad_request"),
    "no utf-8": (b'{"text": "\xff\xfe"}', "application/json", 400, "bad_request"),
    "half a pair": (b'{"text": "\\ud800"}', "application/json", 400, "bad_request"),
    "text": (b'{"text": "x"}', "text/plain", 415, "not_json"),
    "a form": (b"text=x", "application/x-www-form-urlencoded", 415, "not_json"),
    "no type": (b'{"text": "x"}', "", 415, "not_json"),
}


@pytest.mark.parametrize("name", BAD)
async def test_bad_bodies(served: Served, name: str) -> None:
    data, kind, status, code = BAD[name]
    before = await changed(served)
    headers = {"content-type": kind} if kind else {}
    skip = {} if kind else {"skip_auto_headers": ["content-type"]}
    for path in ("/api/sessions/a/messages", "/api/models/select", "/api/login"):
        answer = await served.owner.ask("POST", path, data=data, headers=headers, **skip)
        theirs = (
            path == "/api/models/select"
            and "detail" in answer[1]
            and isinstance(answer[1]["detail"], list)
        )
        assert problem(answer) == (422 if theirs else status, code), path
    assert await changed(served) == before


async def test_brackets_in_words_are_words(served: Served) -> None:
    words = "[{" * 100 + '\\" ]'
    assert (await served.owner.ask("POST", "/api/sessions/a/messages", {"text": words}))[0] == 202


async def test_a_body_without_end_is_not_read(served: Served) -> None:
    async def endless() -> Any:
        for _ in range(3000):
            yield b" " * 1024

    answer = await served.owner.ask(
        "POST",
        "/api/sessions/a/messages",
        data=endless(),
        headers={"content-type": "application/json"},
    )
    assert problem(answer) == (413, "too_large")


async def test_what_is_not_there(served: Served) -> None:
    for method, path, wanted in (
        ("GET", "/api/sessions/none/log", 404),
        ("GET", "/api/sessions/none/events", 404),
        ("POST", "/api/sessions/none/stop", 404),
        ("GET", "/api/nothing", 404),
        ("DELETE", "/api/status", 405),
        ("GET", "/api/sessions?limit=many", 400),
        ("GET", "/api/sessions/%00/log", 400),
        ("GET", "/api/tools?agent=nobody", 404),
    ):
        status, _ = problem(await served.owner.ask(method, path))
        assert status == wanted, path
    await served.people.add_user("eve", "member")
    _, eve = await served.token("eve")
    await served.owner.ask("POST", "/api/sessions/mine/messages", {"text": "secret"})
    owners = "default~web:owner:mine"
    assert (await served.owner.ask("GET", f"/api/sessions/{owners}/log"))[0] == 200
    for path in (f"/api/sessions/{owners}/log", f"/api/sessions/{owners}/events"):
        assert problem(await eve.ask("GET", path)) == (404, "not_found")
    said = await eve.ask("POST", f"/api/sessions/{owners}/messages", {"text": "let me in"})
    assert problem(said)[0] in (403, 404)


async def raw(served: Served, data: bytes) -> bytes:
    """All that is answered to these bytes until the server hangs up."""
    host, _, port = served.url.removeprefix("http://").partition(":")
    async with await anyio.connect_tcp(host, int(port)) as stream:
        await stream.send(data)
        found = b""
        with anyio.fail_after(20):
            try:
                while piece := await stream.receive():
                    found += piece
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return found
    return found


async def test_what_is_no_request(served: Served) -> None:
    host = served.url.removeprefix("http://")
    bearer = f"Authorization: {served.owner.headers['authorization']}"
    for head in (
        f"GET /api/status HTTP/1.1\r\nHost: {host}\r\nHost: {host}\r\n{bearer}",
        f"GET /api/status HTTP/1.1\r\nHost: {host}\r\nHost: evil.test\r\n{bearer}",
        f"GET /api/status HTTP/1.1\r\n{bearer}",
        f"GET /api/status HTTP/1.1\r\nHost: {host}\r\nX: {'x' * 300_000}",
        "\x16\x03\x01 hello",
    ):
        answer = await raw(served, f"{head}\r\n\r\n".encode())
        first, _, body = answer.partition(b"\r\n\r\n")
        assert problem((400, msgspec.json.decode(body))) == (400, "bad_request"), head
        assert first.startswith(b"HTTP/1.1 400") and b"application/json" in first
    old = await raw(served, f"GET /api/status HTTP/1.0\r\n{bearer}\r\n\r\n".encode())
    assert old.startswith(b"HTTP/1.1 421"), "without a Host, and allowed to be by that version"


class Counted(LocalPeople):
    """Counts the credentials that were looked up."""

    evaluated = 0

    async def authenticate(self, secret: str) -> Grant | None:
        self.evaluated += 1
        await anyio.sleep(0)
        return await super().authenticate(secret)


async def test_ten_thousand_guesses(tmp_path: Path) -> None:
    """In ten seconds, a hundred at a time, from this machine under both of its names."""
    clock = SetClock()
    store = SqliteStore(tmp_path / "db", load_statements())
    people = Counted(Roster(store, clock, dict), dict)
    _, secret = await people.make_token("owner", "test")
    login = await people.redeem_login(await people.make_login("owner"))
    assert login is not None
    guesses, page = Guesses(people, clock), Credential(login[1], browser=True)
    await guesses.authenticate(page, "127.0.0.1")
    people.evaluated, told = 0, dict.fromkeys((401, 429), 0)

    async def guess(number: int, host: str) -> None:
        with pytest.raises(HttpProblem) as refused:
            await guesses.authenticate(Credential(f"dh_{number}", browser=False), client_of(host))
        told[refused.value.status] += 1

    for start in range(0, 10_000, 100):
        async with anyio.create_task_group() as tasks:
            for number in range(start, start + 100):
                tasks.start_soon(
                    guess, number, ("127.0.0.1", "::ffff:127.0.0.1", "::1")[number % 3]
                )
        clock.advance(0.1)
        if start % 1000 == 0:
            assert (await guesses.authenticate(page, "127.0.0.1")).browser, (
                "who was let in before still is"
            )
    asked = people.evaluated - 10
    assert asked == told[401] and asked <= 12 and told[429] == 10_000 - asked
    clock.advance(50)
    for number in range(100):
        await guess(number, "127.0.0.1")
    assert people.evaluated - 10 <= 20
    clock.advance(60)
    right = await guesses.authenticate(Credential(secret, browser=False), "127.0.0.1")
    assert right.principal == OWNER
    for _ in range(50):
        await guesses.authenticate(
            Credential((await people.make_token("owner", "more"))[1], browser=False), "127.0.0.1"
        )
    await store.close()


async def test_guesses_over_http(served: Served) -> None:
    _, page = await served.browser()
    await page.get("/api/status")
    statuses = []
    for number in range(200):
        status, _ = await served.client(authorization=f"Bearer dh_{number}").ask("GET", "/")
        statuses.append(status)
    assert statuses.count(401) <= 20 and set(statuses) == {401, 429}
    links = [
        (await served.client(origin=served.url).ask("POST", "/api/login", {"code": str(n)}))[0]
        for n in range(9)
    ]
    assert set(links) <= {401, 429} and 429 in links
    await page.get("/api/status")


async def test_a_link_is_used_once(served: Served) -> None:
    code = await served.people.make_login("owner")
    visitor = served.client(origin=served.url)
    async with served.http.post(
        f"{served.url}/api/login", json={"code": code}, headers=visitor.headers
    ) as answer:
        cookie = answer.headers["set-cookie"]
        assert answer.status == 204
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Path=/" in cookie
    page = served.client(cookie=cookie.partition(";")[0], origin=served.url, x_deskhand="1")
    assert (await page.get("/api/auth/me"))["user"] == "owner"
    assert problem(await visitor.ask("POST", "/api/login", {"code": code})) == (401, "link_void")
    assert (await page.ask("POST", "/api/logout"))[0] == 204
    assert problem(await page.ask("GET", "/api/auth/me")) == (401, "unauthenticated")


async def test_behind_a_proxy_with_tls_links_lead_back_through_it(tmp_path: Path) -> None:
    """The cookie then never goes in the clear. A proxy is known by the name that was set, and
    nothing else."""
    name = "desk.example.org"
    async with serving(tmp_path, web={"hosts": [name]}) as served:
        _, page = await served.browser()
        page.headers.update({"host": name, "origin": f"https://{name}"})
        status, made = await page.ask("POST", "/api/logins", {})
        url, _, code = made["url"].partition("#login=")
        assert (status, url) == (201, f"https://{name}/")
        headers = {"host": name, "origin": f"https://{name}"}
        async with served.http.post(
            f"{served.url}/api/login", json={"code": code}, headers=headers
        ) as answer:
            assert answer.status == 204 and "; Secure" in answer.headers["set-cookie"]
        page.headers.update({"origin": "https://other.example.org"})
        assert problem(await page.ask("POST", "/api/logins", {})) == (403, "wrong_origin")


async def test_what_was_revoked_ends_its_stream(served: Served) -> None:
    row, client = await served.token()
    await client.ask("POST", "/api/sessions/a/messages", {"text": "hello"})
    async with served.http.get(
        f"{served.url}/api/sessions/a/events", headers=client.headers
    ) as stream:
        async for line in stream.content:
            if b"turn_ended" in line:
                break
        await served.people.revoke(row.id)
        revoked = anyio.current_time()
        with anyio.fail_after(20):
            await stream.content.read()
        assert anyio.current_time() - revoked < 5, "the poll is twice a second"


def test_two_hundred_and_fifty_six_bits_and_one_address() -> None:
    assert client_of("::ffff:127.0.0.1") == client_of("127.0.0.1")
    assert client_of("2001:db8::1") == client_of("2001:db8::ffff:1") != client_of("2001:db8:1::1")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])
async def test_other_machines_only_with_tls(tmp_path: Path, host: str) -> None:
    (tmp_path / "deskhand.yaml").write_text(f'web: {{host: "{host}", port: 0}}')
    settings = read_settings(None, {"DESKHAND_HOME": str(tmp_path), "HOME": str(tmp_path)})
    async with (
        Models(settings) as models,
        open_app(settings, Parts(lambda name: ScriptedModel())) as app,
    ):
        with pytest.raises(ConfigError, match="tls_cert"):
            await AppServer(app, models).run()


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_it_does_not_start_where_others_would_reach_it_in_the_clear(
    tmp_path: Path, host: str
) -> None:
    (tmp_path / "deskhand.yaml").write_text(f'web: {{host: "{host}", port: 0}}')
    command = [sys.executable, "-P", "-m", "deskhand", "serve"]
    environment = {**os.environ, "DESKHAND_HOME": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert done.returncode != 0 and "tls_cert" in done.stderr


def test_each_route_says_who_may() -> None:
    """Nothing is public but these: whoever adds one says so here. A hook is opened by its
    signature."""
    public = {each.name for each in ENDPOINTS if each.needs == "public"}
    mine = {"GET /health", "POST /api/login", "POST /api/login/platform"}
    mine |= {"GET /api/auth/config", "GET /openapi.json"}
    mine |= {"GET /auth/sign-in", "GET /auth/callback"}
    mine |= {"POST /auth/device", "POST /auth/token", "GET /auth/approve"}
    mine |= {"GET /.well-known/agent-card.json", "GET /share/{secret}"}
    mine |= {"GET /share/{secret}/files/{file}"}
    assert public == mine | {"POST /api/hooks/{name}", "POST /api/hooks/channels/{name}"}
    assert all(isinstance(each, Endpoint) and each.summary for each in ENDPOINTS)
