"""An OpenID provider that says whatever a test wants, signed with whatever key."""

from __future__ import annotations

import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT = "deskhand-client"
EMAIL = "ann@example.org"


class Liar:
    """`claims` are over those of an honest ID token; None leaves one out."""

    def __init__(self) -> None:
        self.key = rsa.generate_private_key(65537, 2048)
        self.other = rsa.generate_private_key(65537, 2048)
        self.url = ""
        self.described: dict[str, str] = {}
        self.claims: dict[str, Any] = {}
        self.token = ""
        """What is given instead of an ID token of its own."""
        self.asked: list[dict[str, str]] = []
        self.keys_asked = 0

    def id_token(self, **claims: Any) -> str:
        now = time.time()
        honest = {
            "iss": self.url,
            "aud": CLIENT,
            "sub": "1",
            "email": EMAIL,
            "email_verified": True,
            "iat": now,
            "exp": now + 3600,
        }
        said = {name: value for name, value in (honest | claims).items() if value is not None}
        return jwt.encode(said, self.key, "RS256", {"kid": "k1"})

    async def serve(self, request: web.Request) -> web.Response:
        match request.path:
            case "/.well-known/openid-configuration":
                return web.json_response(
                    {
                        "issuer": self.url,
                        "authorization_endpoint": f"{self.url}/authorize",
                        "token_endpoint": f"{self.url}/token",
                        "jwks_uri": f"{self.url}/keys",
                        **self.described,
                    }
                )
            case "/keys":
                self.keys_asked += 1
                numbers = self.key.public_key().public_numbers()
                n, e = (
                    urlsafe_b64encode(each.to_bytes((each.bit_length() + 7) // 8, "big"))
                    .rstrip(b"=")
                    .decode()
                    for each in (numbers.n, numbers.e)
                )
                return web.json_response({"keys": [{"kty": "RSA", "kid": "k1", "n": n, "e": e}]})
            case "/token":
                form = {key: str(value) for key, value in (await request.post()).items()}
                self.asked.append(form)
                return web.json_response({"id_token": self.token or self.id_token(**self.claims)})
            case _:
                return web.Response(status=404)


@asynccontextmanager
async def lying() -> AsyncIterator[Liar]:
    liar = Liar()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", liar.serve)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    liar.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield liar
    finally:
        await runner.cleanup()
