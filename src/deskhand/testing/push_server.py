"""A push service on a loopback port, and browsers that subscribed there. It reads each request as
strictly as the RFCs 8030, 8188, 8291 and 8292 say, and takes nothing that is not right."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import jwt
import msgspec
from aiohttp import web  # noqa: TID251 -- it listens
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from ..web.agent_signatures import from_base64url, to_base64url

CURVE = ec.SECP256R1()
MAX_BODY_BYTES = 4096
HEADER_BYTES = 21
POINT_BYTES = 65
LAST_RECORD = 2


class PushBrowser:
    """A browser that subscribed: it can read what is sent to it."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.auth = secrets.token_bytes(16)
        self._key = ec.generate_private_key(CURVE)
        self.point = self._key.public_key().public_bytes(
            Encoding.X962, PublicFormat.UncompressedPoint
        )

    def subscription(self) -> dict[str, Any]:
        """As `PushSubscription.toJSON()` gives it."""
        keys = {"p256dh": to_base64url(self.point), "auth": to_base64url(self.auth)}
        return {"endpoint": self.endpoint, "expirationTime": None, "keys": keys}

    def decrypt(self, body: bytes) -> bytes:
        """What this message says. Raises ValueError and `cryptography`'s InvalidTag for one that is
        not for this browser."""
        salt, id_bytes = body[:16], body[20]
        if id_bytes != POINT_BYTES or int.from_bytes(body[16:20]) < len(body) - HEADER_BYTES - 65:
            raise ValueError("the header of aes128gcm is not that of one record")
        sender = body[HEADER_BYTES : HEADER_BYTES + POINT_BYTES]
        theirs = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, sender)
        info = b"WebPush: info\0" + self.point + sender
        shared = HKDF(SHA256(), 32, self.auth, info).derive(self._key.exchange(ec.ECDH(), theirs))
        key = HKDF(SHA256(), 16, salt, b"Content-Encoding: aes128gcm\0").derive(shared)
        nonce = HKDF(SHA256(), 12, salt, b"Content-Encoding: nonce\0").derive(shared)
        plain = AESGCM(key).decrypt(nonce, body[HEADER_BYTES + POINT_BYTES :], None)
        text = plain.rstrip(b"\0")
        if not text or text[-1] != LAST_RECORD:
            raise ValueError("the last record has no mark")
        return text[:-1]


class Pushed(msgspec.Struct, frozen=True):
    """A message that was taken: what it says, and its headers with names in lower case."""

    browser: PushBrowser
    said: dict[str, Any]
    headers: dict[str, str]
    body: bytes


class PushServer:
    """What was pushed, and how the next requests are answered: with each of `answers` in turn, and
    with 201 when there is none left. `refused` says what was wrong with those that it did not
    take. `now` is the time, in seconds since the epoch."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.url = ""
        self.pushed: list[Pushed] = []
        self.refused: list[str] = []
        self.answers: list[tuple[int, dict[str, str]]] = []
        self._browsers: dict[str, PushBrowser] = {}
        self._held: dict[PushBrowser, anyio.Event] = {}

    def hold(self, browser: PushBrowser) -> anyio.Event:
        """Answer nothing for this browser until the event is set."""
        self._held[browser] = event = anyio.Event()
        return event

    def subscribe(self) -> PushBrowser:
        """A browser with permission."""
        name = secrets.token_hex(8)
        browser = PushBrowser(f"{self.url}/push/{name}")
        self._browsers[name] = browser
        return browser

    async def handle(self, request: web.Request) -> web.Response:
        browser = self._browsers.get(request.match_info["name"])
        if browser is None:
            return web.Response(status=410)
        body = await request.read()
        if browser in self._held:
            await self._held[browser].wait()
        headers = {name.lower(): value for name, value in request.headers.items()}
        try:
            self._check_headers(headers, body)
            said = msgspec.json.decode(browser.decrypt(body))
        except (ValueError, KeyError, IndexError, InvalidTag, jwt.PyJWTError) as error:
            self.refused.append(f"{type(error).__name__}: {error}")
            return web.Response(status=400, text=str(error))
        status, more = self.answers.pop(0) if self.answers else (201, {})
        if status == 201:
            self.pushed.append(Pushed(browser, said, headers, body))
        return web.Response(status=status, headers=more)

    def _check_headers(self, headers: dict[str, str], body: bytes) -> None:
        if headers.get("content-encoding") != "aes128gcm":
            raise ValueError("the coding is not aes128gcm")
        if not headers.get("ttl", "").isdigit():
            raise ValueError("TTL is missing")
        if headers.get("urgency") not in ("very-low", "low", "normal", "high"):
            raise ValueError("the urgency is none")
        if len(body) > MAX_BODY_BYTES:
            raise ValueError("it is too large")
        scheme, _, given = headers.get("authorization", "").partition(" ")
        parts = dict(part.strip().split("=", 1) for part in given.split(","))
        if scheme != "vapid":
            raise ValueError("the authorization is not of vapid")
        key = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, from_base64url(parts["k"]))
        claims = jwt.decode(
            parts["t"],
            key,
            algorithms=["ES256"],
            audience=self.url,
            options={"require": ["exp", "aud", "sub"], "verify_exp": False},
        )
        if not self._now() < claims["exp"] <= self._now() + 24 * 3600:
            raise ValueError("it does not hold, or for more than a day")
        if not str(claims["sub"]).startswith(("mailto:", "https://")):
            raise ValueError("the contact is no address")


@asynccontextmanager
async def open_push_server(now: Callable[[], float]) -> AsyncIterator[PushServer]:
    """One that runs."""
    service = PushServer(now)
    app = web.Application()
    app.router.add_post("/push/{name}", service.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        service.url = f"http://127.0.0.1:{port}"
        yield service
    finally:
        await runner.cleanup()
