"""A whole Deskhand with its page and API on a loopback port, and a client for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import msgspec

from deskhand.assembly.models import Models
from deskhand.config.clock import SystemClock
from deskhand.config.config import read_settings
from deskhand.models.base import Model
from deskhand.net.client import Net
from deskhand.runtime.app import App, Parts, open_app, with_channels
from deskhand.runtime.http_server import AppServer
from deskhand.sandbox.choose import Proven, open_sandbox
from deskhand.speech.base import Speech
from deskhand.testing.scripted import ScriptedModel
from deskhand.tools.base import Tool
from deskhand.types.clock import Clock
from deskhand.types.people import SCOPES, People, Scope, TokenRow

PAGE = {"x-deskhand": "1"}


class Client:
    """One HTTP client with these headers. `asked` is what the last answer said of itself."""

    def __init__(self, http: aiohttp.ClientSession, url: str, headers: Mapping[str, str]) -> None:
        self.http, self.url, self.headers = http, url, dict(headers)

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, Any]:
        """The status, and the JSON of the answer (its text where it is none)."""
        headers = {**self.headers, **more.pop("headers", {})}
        if body is not None:
            more["json"] = body
        async with self.http.request(method, self.url + path, headers=headers, **more) as answer:
            data = await answer.read()
            if answer.content_type != "application/json":
                return answer.status, data.decode(errors="replace")
            return answer.status, msgspec.json.decode(data)

    async def get(self, path: str, **more: Any) -> Any:
        """The JSON of what must be there."""
        status, found = await self.ask("GET", path, **more)
        assert status == 200, (status, found)
        return found

    def ws(self, path: str, **more: Any) -> Any:
        return self.http.ws_connect(
            self.url + path, headers={**self.headers, **more.pop("headers", {})}, **more
        )


class Served(msgspec.Struct, frozen=True):
    """What runs, and ways in."""

    app: App
    people: People
    url: str
    http: aiohttp.ClientSession
    owner: Client

    def client(self, **headers: str) -> Client:
        return Client(
            self.http, self.url, {name.replace("_", "-"): value for name, value in headers.items()}
        )

    async def token(
        self, user: str = "owner", scopes: tuple[Scope, ...] = SCOPES
    ) -> tuple[TokenRow, Client]:
        row, secret = await self.people.make_token(user, "test", scopes)
        return row, self.client(authorization=f"Bearer {secret}")

    async def browser(self, user: str = "owner") -> tuple[TokenRow, Client]:
        """A page that was logged in."""
        found = await self.people.redeem_login(await self.people.make_login(user))
        assert found is not None
        return found[0], self.client(cookie=f"deskhand={found[1]}", origin=self.url, **PAGE)


@asynccontextmanager
async def serving(  # noqa: PLR0913 -- what few tests need has a default
    home: Path,
    model: Model | None = None,
    tools: tuple[Tool, ...] | None = (),
    clock: Clock | None = None,
    drive: Callable[[App], Coroutine[Any, Any, None]] = App.run,
    environment: Mapping[str, str] | None = None,
    net: Net | None = None,
    sandbox: Callable[[], Awaitable[Proven]] = open_sandbox,
    engine: Speech | None = None,
    with_platforms: bool = False,
    **config: Any,
) -> AsyncIterator[Served]:
    """With `tools` None the agent has its real ones. `engine` hears and speaks. `config` are keys
    of the configuration, of which the channels are opened `with_platforms`."""
    # Each half hour the harvester asks the model too, and takes a reply that was for a turn.
    quiet = {"memory": {"harvester": {"enabled": False}}}
    raw = {"defaults": {"models": ["scripted/echo"]}, **quiet, **config}
    raw["web"] = {"port": 0, **config.get("web", {})}
    (home / "deskhand.yaml").write_bytes(msgspec.json.encode(raw))
    settings = read_settings(
        None, {"DESKHAND_HOME": str(home), "HOME": str(home), **(environment or {})}
    )
    said = model or ScriptedModel()
    named = None if tools is None else {each.spec.name: each for each in tools}
    async with Models(settings) as models:

        async def serve(app: App) -> None:
            await AppServer(app, models).run()

        parts = Parts(
            lambda name: said,
            named,
            clock=clock or SystemClock(),
            serve=serve,
            net=net or Net(),
            sandbox=sandbox,
            speech=engine,
        )
        if with_platforms:
            parts = with_channels(parts, settings)
        async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
            tasks.start_soon(drive, app)
            await until(lambda: bool(app.address))
            _, secret = await app.people.make_token("owner", "test")
            jar = aiohttp.DummyCookieJar()
            async with aiohttp.ClientSession(
                cookie_jar=jar, connector=aiohttp.TCPConnector(limit=0)
            ) as http:
                owner = Client(http, app.address, {"authorization": f"Bearer {secret}"})
                yield Served(app, app.people, app.address, http, owner)
            tasks.cancel_scope.cancel()


async def until(true: Callable[[], bool], seconds: float = 30) -> None:
    with anyio.fail_after(seconds):
        while not true():
            await anyio.sleep(0.005)
