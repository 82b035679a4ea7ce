"""An agent whose commands reach a server, as far as people allow it."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec

from deskhand.config.clock import SystemClock
from deskhand.config.config import Config, Home, Settings
from deskhand.models.base import Request
from deskhand.net.client import Net
from deskhand.net.egress_ca import Authority
from deskhand.runtime.app import App, Parts, open_app
from deskhand.sandbox.choose import Proven
from deskhand.secrets.redaction import open_secrets
from deskhand.secrets.secrets import Secrets
from deskhand.testing.egress import EchoServer
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.events import ApprovalAsked, ToolFinished, TurnEnded
from deskhand.types.identity import Address, Answer, Body, Inbound, Said
from deskhand.types.messages import Message, Text, ToolCall, ToolResult

HOST = "api.test"


class World:
    """An agent that makes the calls that a test names, and a TLS server on loopback at
    `api.test:PORT`."""

    def __init__(self, home: Path, proven: Proven) -> None:
        self.home = Home(home)
        self._proven = proven
        self.server = EchoServer(lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nanswered")
        self.authority = Authority(SystemClock().now())
        self.config: dict[str, Any] = {"defaults": {"models": ["scripted/x"]}}
        self.environment: dict[str, str] = {}
        self.model = ScriptedModel(self._script)
        self._calls: list[tuple[str, dict[str, Any]]] = []
        self._count = 0
        self.session = ""

    @property
    def where(self) -> str:
        return f"{HOST}:{self.server.port}"

    @property
    def secrets(self) -> Secrets:
        return open_secrets(self.settings)

    @property
    def settings(self) -> Settings:
        return Settings(
            self.home, msgspec.convert(self.config, Config, strict=False), (), self.environment
        )

    def _script(self, request: Request) -> Message:
        if request.messages[-1].message.role == "tool":
            return say("done")
        calls = [
            ToolCall(f"c{self._count}-{n}", name, msgspec.Raw(msgspec.json.encode(arguments)))
            for n, (name, arguments) in enumerate(self._calls)
        ]
        return say("", *calls)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[App]:
        async def resolve(host: str, port: int) -> Sequence[str]:
            return ["127.0.0.1"]

        async def sandbox() -> Proven:
            return self._proven

        async with anyio.create_task_group() as tasks:
            await tasks.start(self.server.serve, self.authority.server_context(HOST))
            trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            trust.load_verify_locations(cadata=self.authority.pem)
            net = Net(resolve=resolve, allow=[(HOST, self.server.port)], tls=trust)
            parts = Parts(lambda _: self.model, sandbox=sandbox, net=net)
            async with open_app(self.settings, parts) as app, anyio.create_task_group() as driving:
                driving.start_soon(app.run)
                yield app
                driving.cancel_scope.cancel()
            tasks.cancel_scope.cancel()

    async def _submit(self, app: App, body: Body) -> None:
        self._count += 1
        address = Address("terminal", chat=self.session)
        await app.door.submit(
            Inbound(f"m{self._count}", address, "owner", app.parts.clock.now(), body)
        )

    async def start(self, app: App, session: str, *calls: tuple[str, dict[str, Any]]) -> None:
        self._calls = list(calls)
        self.session = session
        await self._submit(app, Said(Message("user", (Text("go"),))))

    async def results(
        self, app: App, session: str, *calls: tuple[str, dict[str, Any]]
    ) -> list[ToolResult]:
        """The results of these calls in this conversation, when its turn is over."""
        before = len(await self.found(app, session, TurnEnded))
        await self.start(app, session, *calls)
        with anyio.fail_after(100):
            while len(await self.found(app, session, TurnEnded)) == before:
                await anyio.sleep(0.01)
        return [
            each.result for each in (await self.found(app, session, ToolFinished))[-len(calls) :]
        ]

    async def shell(self, app: App, session: str, command: str) -> str:
        return (await self.results(app, session, ("shell", {"command": command})))[0].text

    async def found(self, app: App, session: str, kind: type) -> list[Any]:
        events = await app.store.events(f"default/terminal:{session}")
        return [each.event for each in events if isinstance(each.event, kind)]

    async def answer(self, app: App, ask_id: str, choice: str) -> None:
        """Answer what is asked in the conversation of the last call, and have its turn end."""
        before = len(await self.found(app, self.session, TurnEnded))
        await self._submit(app, Answer(ask_id, choice))
        with anyio.fail_after(100):
            while len(await self.found(app, self.session, TurnEnded)) == before:
                await anyio.sleep(0.01)

    async def request(self, app: App, session: str, choice: str) -> str:
        """Ask for the host, and answer so when that is asked; the result."""
        call = ("request_host", {"host": self.where})
        return await self.answered(app, session, choice, call)

    async def answered(
        self, app: App, session: str, choice: str, call: tuple[str, dict[str, Any]]
    ) -> str:
        """Make this call, and answer so when it is asked about; the result."""
        asked = len(await self.found(app, session, ApprovalAsked))
        before = len(await self.found(app, session, TurnEnded))
        await self.start(app, session, call)
        with anyio.fail_after(100):
            while len(await self.found(app, session, TurnEnded)) == before:
                if len(asks := await self.found(app, session, ApprovalAsked)) > asked:
                    asked += 1
                    await self._submit(app, Answer(asks[-1].ask_id, choice))
                await anyio.sleep(0.01)
        text: str = (await self.found(app, session, ToolFinished))[-1].result.text
        return text


def curl(world: World, path: str = "/", more: str = "") -> str:
    return f"curl -sS {more} https://{world.where}{path}"
